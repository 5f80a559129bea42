"""`lakegate doctor`: compare a deployment with this checkout, from outside and inside."""
