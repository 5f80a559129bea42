"""`lakegate trace` says why it finds nothing."""

import pytest

from cli.tables.trace import none_found
from lakegate.errors import LakegateError

PUBLISHED = [{"state": "published", "rows": 0}]
UNDONE = [{"state": "published; undone by commit 0a1b: too much", "rows": 0}]


@pytest.mark.parametrize(
    ("documents", "row", "said"),
    [
        ([], 0, "no such rows$"),
        (UNDONE, 0, "no such rows$"),
        (PUBLISHED, 7, "no such rows$"),
        (PUBLISHED, 0, r"compacted or changed since\n.*`provenance`"),
    ],
)
def test_rows_that_cannot_be_told_from_others_are_not_called_missing(
    documents: list[dict[str, object]], row: int, said: str
) -> None:
    """A published file whose data files were compacted has its rows on main."""
    with pytest.raises(LakegateError, match=f"NO_ROWS: .*{said}"):
        raise none_found(documents, row)
