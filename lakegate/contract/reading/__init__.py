"""Read a contract from its YAML."""
