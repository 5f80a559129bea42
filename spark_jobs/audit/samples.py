"""Add a few of the rows that break a check to its result, each with its place in the file."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from lakegate.audit.diagnosis import HIDDEN
from lakegate.audit.report import (
    ADDRESS,
    MOST_OF_KEY,
    PLACE,
    READABLE,
    TIMES,
    CheckResult,
    Status,
)
from lakegate.contract.checks import OF_ROWS, Check, Metric
from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from lakegate.contract.rules import Reference
from spark_jobs.audit import check_sql
from spark_jobs.audit.bad_cells import bad_cells
from spark_jobs.audit.keys import counts as keys
from spark_jobs.audit.keys import references, tier_keys
from spark_jobs.audit.places import FindPlaces, Stored, hash_of, nowhere
from spark_jobs.audit.run import Run
from spark_jobs.files import source
from spark_jobs.files.source import Source

_ROWS = 10
_KEYS = 3  # that are there several times
_COLUMNS = 8
_WIDEST = 200
_MOST_CHECKS = 20
_FILE, _POSITION, _HASH, _KEY = "stored_in", "stored_at", "hash", "key"
Samples = tuple[Mapping[str, str | None], ...]


@dataclass(frozen=True)
class _Sampled:
    """A row that breaks a check: where it is stored, and its values for people.

    Rows that have the same key as others have its hash in `key`; it is 0 for all others.
    """

    stored: Stored
    values: Mapping[str, str | None]
    key: int = 0


def with_samples(
    results: Sequence[CheckResult], run: Run, read: Source, find: FindPlaces = nowhere
) -> tuple[CheckResult, ...]:
    """Return the results; the first failed checks have sample rows, whose places `find` returns.

    Where the contract allows no samples they tell the places alone. Of unparseable rows the cells
    at fault are named, whose values may be hidden. `read` is the file if Spark read it, else its
    rows that are not in the table.
    """
    checks = {check.id: check for check in run.contract.checks}
    failed = [each for each in results if each.status in (Status.FAIL, Status.WARN)][:_MOST_CHECKS]
    asked = [checks[each.id] for each in failed if each.id in checks and each.counted]
    samples = _placed({check.id: _sampled(check, run, read) for check in asked}, run.contract, find)
    if any(each.id == READABLE for each in failed):
        samples[READABLE] = tuple(cell.sample for cell in bad_cells(read, run.contract))
    return tuple(replace(each, samples=samples.get(each.id, ())) for each in results)


def _placed(
    sampled: Mapping[str, Sequence[_Sampled]], contract: Contract, find: FindPlaces
) -> dict[str, Samples]:
    """Return the samples of each check by their places, which are all found at once."""
    every = list(dict.fromkeys(row.stored for rows in sampled.values() for row in rows))
    at = dict(zip(every, find(every), strict=True)) if every else {}
    placed = {id_: [(row, at[row.stored]) for row in rows] for id_, rows in sampled.items()}
    return {
        id_: tuple(
            _sample(row, place) for row, place in _ordered(rows) if contract.allow_samples or place
        )
        for id_, rows in placed.items()
    }


def _ordered(rows: Sequence[tuple[_Sampled, str]]) -> list[tuple[_Sampled, str]]:
    """Return rows by their places; those of one key stay together."""
    first: dict[int, int] = {}
    for row, place in rows:
        if row.key:
            first[row.key] = min(first.get(row.key, _number(place)), _number(place))
    return sorted(rows, key=lambda each: (first.get(each[0].key, 0), _number(each[1])))


def _number(place: str) -> int:
    return int(place.rpartition(" ")[2].replace(",", "")) if place else 0


def _sample(row: _Sampled, place: str) -> dict[str, str | None]:
    address = dict(zip(ADDRESS, (row.stored.file, str(row.stored.position)), strict=True))
    at = {PLACE: place} if place else {}
    return {**at, **(address if row.stored.file else {}), **row.values}


def _sampled(check: Check, run: Run, read: Source) -> list[_Sampled]:
    """Return a few rows that break a check: those in the table, or those that it quarantines."""
    names = _shown_columns(check, run.contract)
    if check.metric in (Metric.DUPLICATE, Metric.ORPHAN):
        samples: Iterable[Row] = _key_rows(check, run, names)
    elif check.metric in OF_ROWS:
        rows = read.rows if check.quarantine else run.rows
        broken = rows.where(F.expr(check_sql.counts_row(check, run.contract)))
        columns = _columns(broken, names, run.contract, in_table=not check.quarantine)
        samples = broken.select(*columns).limit(_ROWS).collect()
    else:
        return []
    sampled: dict[Stored, _Sampled] = {}
    for row in _numbered(_read(row, names, run.contract) for row in samples):
        sampled.setdefault(row.stored, row)  # a row may have a key that is in the table as well
    return list(sampled.values())


def _numbered(rows: Iterable[_Sampled]) -> Iterator[_Sampled]:
    """Yield rows; of equal ones whose positions are unknown each gets one of its own."""
    seen: Counter[Stored] = Counter()
    for row in rows:
        seen[row.stored] += 1
        position = row.stored.position
        if position < 0:
            position -= seen[row.stored]
        yield replace(row, stored=replace(row.stored, position=position))


def _shown_columns(check: Check, contract: Contract) -> list[str]:
    """Return the columns of a sample: the check's own, those of a key, and the first others.

    Columns that the contract does not declare are left out, because their values may be
    confidential.
    """
    own = [contract.column(name).top for name in check.columns]
    if not contract.allow_samples:
        return list(dict.fromkeys(own))
    unique = (each.columns for each in contract.checks if each.metric is Metric.DUPLICATE)
    key = [contract.column(name).top for name in next(unique, ())]
    declared = (column.name for column in contract.columns if column.is_declared)
    return list(dict.fromkeys((*own, *key, *declared)))[:_COLUMNS]


def _columns(
    rows: DataFrame, names: Sequence[str], contract: Contract, *, in_table: bool
) -> list[Expression]:
    """Return what is read of a sample row: where it is, its hash, and its values as texts."""
    number = F.col(source.PLACE) if source.PLACE in rows.columns else F.lit(-1)
    file, position = map(F.col, ADDRESS) if in_table else (F.lit(""), number)
    return [
        file.alias(_FILE),
        position.alias(_POSITION),
        hash_of(contract).alias(_HASH),
        *(F.col(quoted(name)).cast("string").alias(f"v{n}") for n, name in enumerate(names)),
    ]


def _key_rows(check: Check, run: Run, names: Sequence[str]) -> Iterator[Row]:
    """Yield rows whose key breaks a check: repeated, in the table already, or without a match."""
    rows = run.rows.where(check_sql.checks_row(check))
    key = keys.key_expressions(check.columns, run.contract)
    keyed = keys.keys_of(rows, key, *_columns(rows, names, run.contract, in_table=True))
    parts = keyed.columns[: len(key)]
    if isinstance(check.rule, Reference):
        orphans = references.orphans(run, check, check.rule, keyed)
        yield from orphans.drop(*parts).limit(_ROWS).collect()
        return
    yield from _repeated(keyed, parts)
    known = tier_keys.keys_in_table(run, check) if check.checks_whole_table else None
    if known is not None:
        yield from keyed.join(known, parts, "left_semi").drop(*parts).limit(_ROWS).collect()


def _repeated(keyed: DataFrame, parts: list[str]) -> list[Row]:
    """Return the first rows of a few keys that the file has more than once."""
    several = keyed.groupBy(*parts).agg(F.count(F.lit(1)).alias(TIMES))
    several = several.where(F.col(TIMES) > 1).limit(_KEYS)
    nth = F.row_number().over(Window.partitionBy(*parts).orderBy(_FILE, _POSITION))
    first = keyed.join(F.broadcast(several), parts).withColumn("nth", nth)
    first = first.where(F.col("nth") <= MOST_OF_KEY).withColumn(_KEY, F.xxhash64(*parts))
    return first.drop(*parts, "nth").collect()


def _read(row: Row, names: Sequence[str], contract: Contract) -> _Sampled:
    cells = row.asDict()
    hidden = contract.concealed if contract.allow_samples else frozenset(names)
    values = {name: _shown(name, cells[f"v{n}"], hidden) for n, name in enumerate(names)}
    times = {TIMES: str(cells[TIMES])} if TIMES in cells else {}
    stored = Stored(cells[_HASH], cells[_FILE], cells[_POSITION])
    return _Sampled(stored, {**times, **values}, cells.get(_KEY, 0))


def _shown(name: str, value: str | None, hidden: frozenset[str]) -> str | None:
    if name in hidden:
        return HIDDEN
    return value[:_WIDEST] if value else value
