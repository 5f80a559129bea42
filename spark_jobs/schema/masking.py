"""Hide what a message must not quote of a file whose contract has confidential columns. Pure.

In a file that lost its header, the cells of its first row are the names of its columns. So such
messages name only declared columns, and number all others.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import count

from lakegate.contract.model import Contract
from spark_jobs.schema.differences import Difference


def mask_names(differing: Sequence[Difference], contract: Contract) -> list[Difference]:
    """Return the differences with confidential names masked, in the same order.

    Undeclared columns become `#1`, `#2`, …, and types are shown without their fields.
    """
    if contract.names_columns:
        return list(differing)
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
