"""Read the checks of a contract."""
