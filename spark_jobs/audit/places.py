"""Find the places of rows in their landed file, as people count them: line 7, row 6, item 6.

A row of the branch is found again in the landed file by a hash of its values. Of equal rows the
first ones are taken.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakegate.audit.diagnosis import place
from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError
from spark_jobs.files.source import PLACE, Placed, Source
from spark_jobs.files.text.text_lines import collected
from spark_jobs.spark import jvm

_IN_PARTITION = 33  # bits of Spark's monotonically increasing id
_HASH, _NTH = "_lakegate_hash", "_lakegate_nth"


@dataclass(frozen=True)
class Stored:
    """A row that a run has read: a hash of its values, and where it is, counted from 0.

    That is its number in the data file at the address `file`; "" for a row that is in none, of
    which `position` is the number among all rows of the landed file, negative if that is unknown.
    """

    hash: int
    file: str
    position: int


# Returns the place of each row in the landed file, "" where it is unknown.
FindPlaces: TypeAlias = Callable[[Sequence[Stored]], list[str]]


def nowhere(rows: Sequence[Stored]) -> list[str]:
    """Return no places: these rows are of no landed file."""
    return [""] * len(rows)


def hash_of(contract: Contract) -> Expression:
    """Return a hash of a row's values in the contract's columns; Spark has none of maps."""
    values = (
        F.to_json(F.struct(quoted(column.name)))
        if "map<" in column.type
        else F.col(quoted(column.name))
        for column in contract.columns
    )
    return F.xxhash64(*values)


def searched(read: Callable[[], AbstractContextManager[Source]], contract: Contract) -> FindPlaces:
    """Return a function that searches the landed file, which `read` opens, for different rows.

    A file that cannot be read again has no known places: its verdict does not depend on them.
    """

    def find(rows: Sequence[Stored]) -> list[str]:
        try:
            with read() as source:
                return _places(source.placed, rows, contract) if source.placed else nowhere(rows)
        except (*jvm.JavaError, LakegateError):
            return nowhere(rows)

    return find


def _places(file: Placed, rows: Sequence[Stored], contract: Contract) -> list[str]:
    hashes = [row.hash for row in rows]
    most = max(map(hashes.count, hashes))
    same = Window.partitionBy(_HASH).orderBy(PLACE)
    alike = file.read()[0].select(PLACE, hash_of(contract).alias(_HASH))
    alike = alike.where(F.col(_HASH).isin(*set(hashes)))
    first = alike.withColumn(_NTH, F.row_number().over(same)).where(F.col(_NTH) <= most)
    matches = sorted(collected(first), key=lambda row: row[PLACE])
    found_at = told([row[PLACE] for row in matches], file)
    of_hash: dict[int, list[str]] = {}
    for row, at in zip(matches, found_at, strict=True):
        of_hash.setdefault(row[_HASH], []).append(at)
    left = {each: iter(places) for each, places in of_hash.items()}
    return [next(left.get(each, iter(())), "") for each in hashes]


def told(places: Sequence[int], file: Placed) -> list[str]:
    """Return the places of a file's rows in words, by their numbers in Spark's order."""
    return [place(file.unit, number) if number else "" for number in numbers(places, file)]


def numbers(places: Sequence[int], file: Placed) -> list[int]:
    """Return the numbers of a file's rows, from 1, as a `unit` of it counts them."""
    counted = _counted(places, file.every)
    return file.lines(counted) if file.lines else counted


def _counted(places: Sequence[int], every: Callable[[], DataFrame]) -> list[int]:
    """Return the numbers of rows, from 1, by their places: a partition, and the place in it."""
    last = max((place >> _IN_PARTITION for place in places), default=0)
    before = [0] * (last + 1)
    if last:
        part = F.shiftright(F.col(PLACE), _IN_PARTITION).alias("part")
        counted = collected(every().groupBy(part).count())
        held = {row["part"]: row["count"] for row in counted}
        before = [0, *accumulate(held.get(number, 0) for number in range(last))]
    rest = (1 << _IN_PARTITION) - 1
    return [before[place >> _IN_PARTITION] + (place & rest) + 1 for place in places]
