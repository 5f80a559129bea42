"""Names as duckdb's SQL reads them."""


def quoted(name: str) -> str:
    """A name as SQL reads it, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'
