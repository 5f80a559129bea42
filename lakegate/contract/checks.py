"""The checks of a contract: a measure, its rule, and its expectation."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from lakegate.contract.expectations import Expectation, Number, Unit
from lakegate.contract.rules import Condition, Control, Quantile, Query, Reference, Rule, listed

_IN_TABLE = " in the whole table"


class Metric(StrEnum):
    """The measure of a check, with the Open Data Contract Standard's names where it has one.

    Counts of single rows: `NULL` rows with a null; `MISSING` rows whose value is one of the rule's
    `missing_values`; `INVALID` rows whose value is not null and breaks the rule; `BROKEN` rows for
    which a `Condition` is false; `UNDECODED` rows with a character that shows a wrong encoding.
    Other counts: `DUPLICATE` rows beyond the first with the same key, where a key with a null in it
    is no key; `ROWS` all rows. The others are numbers of the columns' values, without NaN; `AGE` is
    the age of the newest value in hours, and `DRIFT` the deviation of another measure. `ORPHAN` are
    rows whose key another table lacks, `DISTINCT` is the number of keys; `QUERY` is the answer of a
    query, `CONTROL` the number of differences from a control file.
    """

    NULL = "nullValues"
    MISSING = "missingValues"
    INVALID = "invalidValues"
    BROKEN = "brokenRows"
    UNDECODED = "encoding"
    DUPLICATE = "duplicateValues"
    ROWS = "rowCount"
    SUM = "sum"
    MEAN = "mean"
    STDDEV = "stddev"
    QUANTILE = "quantile"
    AGE = "freshness"
    DRIFT = "drift"
    ORPHAN = "missingReferences"
    DISTINCT = "distinctCount"
    QUERY = "sql"
    CONTROL = "reconcile"


LIBRARY = (Metric.NULL, Metric.MISSING, Metric.INVALID, Metric.DUPLICATE, Metric.ROWS)
OF_ROWS = (Metric.NULL, Metric.MISSING, Metric.INVALID, Metric.BROKEN, Metric.UNDECODED)
KEYED = (Metric.DUPLICATE, Metric.ORPHAN, Metric.DISTINCT, Metric.QUERY, Metric.CONTROL)
OF_VALUES = (Metric.SUM, Metric.MEAN, Metric.STDDEV, Metric.QUANTILE, Metric.AGE)


class Scope(StrEnum):
    """The rows that a check covers: the file's own, or the table's existing rows as well."""

    FILE = "file"
    TABLE = "table"


@dataclass(frozen=True)
class Window:
    """The file's own rows, and the table's rows of the last days before the file's newest value.

    `column` is the date or timestamp that decides.
    """

    days: int
    column: str


class Severity(StrEnum):
    """The effect of a failed check: `ERROR` rejects the file, the others only warn."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Drift:
    """A measure that is compared with its values in published runs, in robust deviations."""

    of: Metric
    rule: Rule | Condition | Quantile


CheckSpec = Rule | Condition | Quantile | Drift | Reference | Query | Control


@dataclass(frozen=True)
class Check:
    """One measure compared with one expectation, or with two: `warn` never rejects.

    `id` is unique in its contract and stable. `columns` are the names of columns, nested ones
    included; empty if the measure is of whole rows, and more than one for keys only. `description`
    is the data owner's, or else `measure`. Only rows that meet `where`, a condition in Spark SQL,
    are covered. With `quarantine`, the counted rows are quarantined, and the file is not rejected
    for them. With `Scope.TABLE`, `Metric.ROWS` counts the whole table's rows after the append, and
    `Metric.DUPLICATE` the file's rows that repeat a key of the table or of an earlier row; the
    others measure all of the table's rows. A `Window` leaves older rows out. `line` is its place in
    the contract's text.
    """

    id: str
    metric: Metric
    columns: tuple[str, ...]
    rule: CheckSpec
    expect: Expectation
    severity: Severity = Severity.ERROR
    description: str = ""
    scope: Scope | Window = Scope.FILE
    where: str = ""
    warn: Expectation | None = None
    quarantine: bool = False
    line: int = field(default=0, compare=False, repr=False)

    @property
    def measure(self) -> str:
        """Return the measure in words: `rows whose origin is not one of EWR, JFK, LGA`."""
        where = f" where {self.where}" if self.where else ""
        return measure(self.metric, self.columns, self.rule) + where + self._place

    @property
    def expected(self) -> str:
        """Return the expectation in words: `0 rows in the whole table`."""
        return self.expect.wording + self._place

    @property
    def values(self) -> Rule:
        """Return the rule for single values; an empty rule for other kinds of check."""
        return self.rule if isinstance(self.rule, Rule) else Rule()

    @property
    def basis(self) -> "Check":
        """Return the check whose measure this one needs: itself, or the one behind its drift."""
        if isinstance(self.rule, Drift):
            return replace(self, metric=self.rule.of, rule=self.rule.rule)
        return self

    def found(self, value: Number | None, rows: int) -> str:
        """Return a measured number in words, out of `rows`: `1 row in the whole table`."""
        return self.expect.found(value, rows) + self._place

    @property
    def checks_whole_table(self) -> bool:
        """Return if its measure also depends on the table's existing rows."""
        return self.scope is not Scope.FILE

    @property
    def names_rows(self) -> bool:
        """Return if single rows of a file break it, whatever else there is."""
        return self.metric in (*OF_ROWS, Metric.DUPLICATE) and not self.checks_whole_table

    @property
    def is_share(self) -> bool:
        """Return if it expects a percentage of rows."""
        return any(each.unit is Unit.PERCENT for each in self._expectations)

    @property
    def is_key_of_table(self) -> bool:
        """Return if its files pass where no key of the table is there twice.

        For many files together it then is enough to find none in all of them.
        """
        counts_keys = self.metric is Metric.DUPLICATE and self.scope is Scope.TABLE
        is_met_by_none = all(each.met(0, 1) for each in self._expectations)
        return counts_keys and is_met_by_none and not self.is_share

    @property
    def _expectations(self) -> list[Expectation]:
        return [self.expect, *([self.warn] if self.warn else [])]

    def reads_others(self, table: str) -> bool:
        """Return if it reads, or may read, another table than its own, named `table`."""
        match self.basis.rule:
            case Reference(other):
                return other != table
            case Query():
                return True
            case _:
                return False

    @property
    def _place(self) -> str:
        if isinstance(self.scope, Window):
            return f" in the table's last {self.scope.days} days by {self.scope.column}"
        return _IN_TABLE if self.scope is Scope.TABLE else ""


def measure(metric: Metric, columns: tuple[str, ...], rule: CheckSpec) -> str:
    """Return a metric's measure in words: `rows whose origin is not one of EWR, JFK, LGA`."""
    names = ", ".join(columns)
    match metric, rule:
        case Metric.MISSING, Rule():
            return f"rows whose {names} is one of {listed(rule.missing_values)}"
        case Metric.INVALID, Rule():
            return f"rows whose {names} is not {rule.wording}"
        case Metric.DRIFT, Drift(of, behind):
            return f"how far {measure(of, columns, behind)} is from what was published before"
        case _:
            return _WORDS[metric].format(names, rule)


_WORDS = {
    Metric.NULL: "rows without {}",
    Metric.DUPLICATE: "rows that repeat another row's {}",
    Metric.UNDECODED: "rows whose {} has characters that show a wrong encoding",
    Metric.ROWS: "rows",
    Metric.SUM: "the sum of {}",
    Metric.MEAN: "the mean of {}",
    Metric.STDDEV: "the standard deviation of {}",
    Metric.BROKEN: "rows for which {1.sql} is false",
    Metric.QUANTILE: "the {1.share:f} quantile of {0}",
    Metric.ORPHAN: "rows whose {0} is not in {1.wording}",
    Metric.DISTINCT: "different values of {}",
    Metric.QUERY: "the query's answer",
    Metric.CONTROL: "numbers in the control file that are not the file's",
    Metric.AGE: "hours since the newest {}",
}
