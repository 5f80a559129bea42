"""Find every row of a landed file that breaks its contract, with the reasons."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakegate.audit import causes
from lakegate.audit.broken_rows import MOST, BrokenRows, require_few
from lakegate.contract.checks import OF_ROWS, Check, Metric
from lakegate.contract.model import Contract
from spark_jobs.audit import check_sql
from spark_jobs.audit.bad_cells import Secrecy, cells_of
from spark_jobs.audit.keys import counts as keys
from spark_jobs.audit.places import numbers
from spark_jobs.files.source import BAD_ROW, PLACE, Placed
from spark_jobs.files.text.text_lines import collected

_Found = Iterator[tuple[int, str]]  # the place of a row, and a reason


def broken_rows(
    file: Placed, checks: Sequence[Check], contract: Contract, *, unreadable: bool
) -> BrokenRows:
    """Return the rows of a file that break the checks or, if these count, are `unreadable`.

    A check is one of `OF_ROWS`, or of keys within the file. Raises LakegateError TOO_MANY_ROWS.
    """
    reasons: defaultdict[int, list[str]] = defaultdict(list)
    good = file.read()[0].where(F.col(BAD_ROW).isNull())
    for place, reason in (
        *(_unreadable(file, contract) if unreadable and file.names_cells else ()),
        *_broken_rows(good, [check for check in checks if check.metric in OF_ROWS], contract),
        *(
            each
            for c in checks
            if c.metric is Metric.DUPLICATE
            for each in _repeated(good, c, contract)
        ),
    ):
        reasons[place].append(reason)
    require_few(len(reasons))
    places = sorted(reasons)
    numbered = zip(numbers(places, file), places, strict=True)
    found = {number: tuple(reasons[place]) for number, place in numbered}
    return BrokenRows(file.unit, found, spans=file.lines is not None)


def _unreadable(file: Placed, contract: Contract) -> _Found:
    bad_rows = collected(file.read()[1].limit(MOST + 1))
    require_few(len(bad_rows))
    secrecy = Secrecy(everything=False, columns=frozenset(), order=file.names)
    for row in bad_rows:
        for cell in cells_of(row, "", contract, secrecy):
            yield row[PLACE], f"{cell.column}: {cell.reason}" if cell.column else cell.reason


def _broken_rows(rows: DataFrame, checks: Sequence[Check], contract: Contract) -> _Found:
    if not checks:
        return
    breaks = [F.expr(check_sql.counts_row(check, contract)) for check in checks]
    flags = [each.alias(f"b{n}") for n, each in enumerate(breaks)]
    broken = rows.select(PLACE, *flags).where(" OR ".join(f"b{n}" for n in range(len(checks))))
    bad_rows = collected(broken.limit(MOST + 1))
    require_few(len(bad_rows))
    for row in bad_rows:
        for n, check in enumerate(checks):
            if row[f"b{n}"]:
                yield row[PLACE], causes.row_cause(check)


def _repeated(rows: DataFrame, check: Check, contract: Contract) -> _Found:
    """Yield all rows of each key that is there several times."""
    key = keys.key_expressions(check.columns, contract)
    keyed = keys.keys_of(rows.where(check_sql.checks_row(check)), key, PLACE)
    alike = F.count(F.lit(1)).over(Window.partitionBy(*keyed.columns[: len(key)]))
    several = keyed.withColumn("alike", alike).where("alike > 1").select(PLACE)
    repeated = collected(several.limit(MOST + 1))
    require_few(len(repeated))
    for row in repeated:
        yield row[PLACE], causes.row_cause(check)
