"""Something that reconcile found."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """Something to tell people; `table`, `ingestion` and `commit` are "" where it has none."""

    code: str
    message: str
    table: str = ""
    ingestion: str = ""
    commit: str = ""
