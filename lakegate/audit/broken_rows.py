"""All rows of a landed file that break its contract, by their numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakegate.errors import LakegateError

MOST = 100_000  # that somebody corrects one by one


@dataclass(frozen=True)
class BrokenRows:
    """The reasons of each broken row by its number from 1, in order.

    Numbers count a `unit`: line, with the header, else item. With `spans` a row may have several
    lines, and its number is the first one's.
    """

    unit: str
    reasons: Mapping[int, tuple[str, ...]]
    spans: bool = False


def require_few(many: int) -> None:
    """Raise LakegateError TOO_MANY_ROWS where more rows are broken than somebody corrects."""
    if many > MOST:
        message = (
            f"more than {MOST:,} rows are broken, which is no task row by row\n"
            "Correct what writes the file, and drop it again."
        )
        raise LakegateError("TOO_MANY_ROWS", message)
