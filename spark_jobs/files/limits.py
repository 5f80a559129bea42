"""Enforce the limits of the files that the job reads. Pure."""

from lakegate.errors import Permanent
from lakegate.limits import Limits


def check_columns(count: int, limits: Limits) -> None:
    """Refuse a file with too many columns. Raises Permanent TOO_MANY_COLUMNS."""
    if count > limits.most_columns:
        message = f"the file has more than {limits.most_columns:,} columns, the limit MostColumns"
        raise Permanent("TOO_MANY_COLUMNS", message)


def check_rows(count: int, limits: Limits) -> None:
    """Refuse a file that declares too many rows. Raises Permanent TOO_MANY_ROWS."""
    if not 0 <= count <= limits.most_rows:
        message = f"the file declares {count:,} rows; the limit MostRows is {limits.most_rows:,}"
        raise Permanent("TOO_MANY_ROWS", message)


def check_line(length: int, limits: Limits) -> None:
    """Refuse a text with a line that is too long. Raises Permanent LINE_TOO_LONG."""
    if length > limits.longest_line:
        message = f"a line has more than {limits.longest_line:,} bytes, the limit LongestLine"
        raise Permanent("LINE_TOO_LONG", message)


def check_array(size: int, limits: Limits) -> None:
    """Refuse a JSON array that is too large to be read as a whole. Raises Permanent TOO_LARGE."""
    if size > limits.largest_array:
        message = (
            f"the array has more than {limits.largest_array:,} bytes: write one object a line, or "
            "raise the limit LargestArray"
        )
        raise Permanent("TOO_LARGE", message)
