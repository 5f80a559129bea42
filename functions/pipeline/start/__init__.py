"""Take a landed object in, and start its attempt."""
