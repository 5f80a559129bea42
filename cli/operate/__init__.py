"""A deployment: deploy, look after and destroy it."""
