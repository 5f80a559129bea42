"""The certificates by which Nessie is known, and knows its database."""
