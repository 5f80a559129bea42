"""Hide what a message must not quote of a file whose contract has confidential columns. Pure.

In a file that lost its header, the cells of its first row are the names of its columns. So such
messages name only declared columns, and number all others, unless the row is a header for certain.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import count

from lakegate.contract.model import Contract
from lakegate.contract.reading.settings import FLAT_FORMATS
from spark_jobs.schema.differences import Difference


def hides_names(names: Collection[str], contract: Contract) -> bool:
    """Return whether the names of a file's columns could be confidential values.

    A first row is a header if two of its cells, and half of them, name half of the columns.
    """
    if contract.names_columns:
        return False
    if contract.format not in FLAT_FORMATS:
        return True
    declared = {column.name.lower() for column in contract.columns if column.is_declared}
    named = declared & {name.strip().lower() for name in names}
    return len(named) < 2 or 2 * len(named) < max(len(declared), len(names))


def mask_names(differing: Sequence[Difference], contract: Contract) -> list[Difference]:
    """Return the differences with names masked, in the same order.

    Undeclared columns become `#1`, `#2`, …, and types are shown without their fields.
    """
    columns = (*contract.table_columns, *contract.nested)
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
