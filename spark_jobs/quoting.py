"""What people are told of a file's own words. Pure.

Where a file has lost its header the cells of its first row are the names of its columns, and what a
reader says of a damaged file is part of it. So a contract that conceals anything has none of it
repeated: columns are named that it declares, and others are numbered.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

from lakegate.contract import Contract
from lakegate.errors import LakegateError, Permanent
from spark_jobs.differences import Difference


class Quoting(Permanent):
    """One whose words `in_full` may be the file's own; its message has none of them."""

    def __init__(self, code: str, message: str, in_full: str) -> None:
        super().__init__(code, message)
        self.in_full = in_full


def told(error: LakegateError, contract: Contract) -> LakegateError:
    """The error as people may have it who are told of a file under the contract."""
    if isinstance(error, Quoting) and contract.quotes_files:
        return Permanent(error.code, error.in_full)
    return error


@contextmanager
def telling(contract: Contract) -> Iterator[None]:
    """Have errors be as people may have them who are told of a file under the contract."""
    try:
        yield
    except Quoting as error:
        raise told(error, contract) from error


def numbered(differing: Sequence[Difference], contract: Contract) -> list[Difference]:
    """Differences from the contract as people may have them, in the same order.

    Where their names may not be told, `#1`, `#2`, … stand for the columns that it does not declare,
    and types are told without their fields.
    """
    if contract.names_columns:
        return list(differing)
    columns = (*contract.columns, *contract.nested)
    own = {_folded(column.steps) for column in columns if column.is_declared}
    numbers = (f"#{n}" for n in count(1))
    return [_plain(each, own, numbers) for each in differing]


def _plain(
    difference: Difference, own: Collection[tuple[str, ...]], numbers: Iterator[str]
) -> Difference:
    path = difference.path
    if _folded(path) not in own:
        within = path[:-1] if _folded(path[:-1]) in own else ()
        path = (*within, next(numbers))
    found, wanted = (each.partition("<")[0] for each in (difference.found, difference.wanted))
    return replace(difference, path=path, found=found, wanted=wanted)


def _folded(path: Sequence[str]) -> tuple[str, ...]:
    return tuple(step.lower() for step in path)
