"""Change the rows of a table, if a person or the upkeep asks for it."""
