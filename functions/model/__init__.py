"""Values that the use cases decide on."""
