"""The deployment to work on: the local stack, or one on AWS."""
