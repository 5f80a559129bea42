"""Read a contract's text, field by field, with the place of each problem."""
