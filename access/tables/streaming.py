"""Keep what fails within an Arrow stream that duckdb reads: it raises an error of its own."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import duckdb

from lakegate.errors import LakegateError

_Batch = TypeVar("_Batch")
_STOPPED = "Query interrupted"  # duckdb's word for Ctrl-C


def watched(batches: Iterable[_Batch], failures: list[Exception]) -> Iterator[_Batch]:
    """Yield batches, and keep what fails among the `failures`."""
    try:
        yield from batches
    except Exception as error:
        failures.append(error)
        raise


@contextmanager
def reading(failures: list[Exception]) -> Iterator[None]:
    """Raise the first of the `failures` in place of duckdb's error about it.

    Arrow raises an OSError without a number for what fails in duckdb: that is duckdb's again.
    """
    try:
        yield
    except (duckdb.Error, OSError) as error:
        if failures:
            raise _told(failures[0]) from error
        if isinstance(error, OSError) and error.errno is None:
            raise duckdb.Error(str(error)) from error
        raise
    except RuntimeError as error:
        if str(error) != _STOPPED:
            raise
        raise KeyboardInterrupt from error


def _told(failure: Exception) -> Exception:
    if isinstance(failure, OSError | LakegateError):
        return failure
    return LakegateError("UNREADABLE_ROWS", f"the rows cannot be read: {failure}")
