"""What the service notes of itself from one run to the next."""
