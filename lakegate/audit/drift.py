"""Drift: the distance of a measure from the values of the table's published runs.

The distance is in robust standard deviations: from the median, in units of 1.4826 times the median
absolute deviation (Rousseeuw and Croux 1993, "Alternatives to the Median Absolute Deviation"), so
that one unusual run hardly moves it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import inf
from statistics import median

from lakegate.audit.report import AuditReport, Baseline, CheckResult, Status
from lakegate.contract.checks import OF_ROWS, Check, Metric
from lakegate.errors import LakegateError, Permanent
from lakegate.text import load_json

SCHEMA = "baselines/1"
_MOST = 30
_UNUSUAL = (Status.WARN, Status.FAIL)


@dataclass(frozen=True)
class Value:
    """The measure of one ingestion's run; `run` is its start (ISO 8601)."""

    ingestion: str
    at: str
    value: float


@dataclass(frozen=True)
class Acceptance:
    """A person's decision that a run's measure is the new normal: baselines restart there.

    `since` is the run's start, `at` the time of the decision.
    """

    ingestion: str
    since: str
    by: str
    reason: str
    at: str


@dataclass(frozen=True)
class Series:
    """The values of one check under one rule, the newest last, and where they begin."""

    values: tuple[Value, ...] = ()
    accepted: Acceptance | None = None

    def adding(self, value: Value) -> "Series":
        """Return the series with the value of one more run; each ingestion has one."""
        if self.accepted and value.at < self.accepted.since:
            return self
        others = [each for each in self.values if each.ingestion != value.ingestion]
        newest = sorted([*others, value], key=lambda each: (each.at, each.ingestion))[-_MOST:]
        return replace(self, values=tuple(newest))

    def restarting(self, value: Value, accepted: Acceptance) -> "Series":
        """Return the series restarted at that run's value. Raises as `accepting` does."""
        if self.accepted and self.accepted.since > accepted.since:
            message = f"a later run was accepted since: {self.accepted.ingestion}"
            raise LakegateError("ACCEPTED_SINCE", message)
        if self.accepted and self.accepted.since == accepted.since:
            return self
        kept = tuple(each for each in self.values if each.at >= accepted.since)
        return replace(self, values=kept, accepted=accepted).adding(value)


@dataclass(frozen=True)
class Baselines:
    """All series of one table, by check id and the digest of its rule: `id@digest`.

    They are one small document per table. Adding runs in another order, or one twice, gives the
    same document.
    """

    table: str
    series: Mapping[str, Series] = field(default_factory=dict)

    def values(self, check: str, rule: str) -> list[float]:
        """Return the measures of published runs, at most the last 30."""
        return [each.value for each in self.series.get(f"{check}@{rule}", Series()).values]

    def adding(self, report: AuditReport) -> "Baselines":
        """Return the baselines with the measures of a published run."""
        new = {key: self._known(key).adding(value) for key, _, value in _measured(report)}
        return replace(self, series={**self.series, **new})

    def accepting(self, report: AuditReport, by: str, reason: str, at: str) -> "Baselines":
        """Return the baselines with a run's measures as the new normal; unchanged if they are.

        Raises LakegateError if the run has none, or if a later run was accepted since.
        """
        unusual = [each for each in _measured(report) if each[1].status in _UNUSUAL]
        if not unusual:
            message = f"no check of drift found ingestion {report.ingestion} unusual"
            raise LakegateError("NOTHING_TO_ACCEPT", message)
        accepted = Acceptance(report.ingestion, report.started_at, by, reason, at)
        new = {key: self._known(key).restarting(value, accepted) for key, _, value in unusual}
        return replace(self, series={**self.series, **new})

    def accepted(self, ingestion: str) -> Acceptance | None:
        """Return who accepted an ingestion's run, unless a later one was accepted."""
        acceptances = (each.accepted for each in self.series.values() if each.accepted)
        return next((each for each in acceptances if each.ingestion == ingestion), None)

    def _known(self, key: str) -> Series:
        return self.series.get(key, Series())

    def to_json(self) -> str:
        """Return the document."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Baselines":
        """Return the baselines that `to_json` wrote. Raises Permanent BAD_BASELINES."""
        try:
            document = load_json(text)
            if document["schema"] != SCHEMA:
                raise ValueError(f"the schema is not {SCHEMA}")
            series = {key: _series(each) for key, each in document["series"].items()}
            return cls(str(document["table"]), series)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"the baselines cannot be read: {error!r}"
            raise Permanent("BAD_BASELINES", message) from error


def baselines_key(table: str) -> str:
    """Return the key of a table's baselines in the lake bucket."""
    return f"baselines/{table}.json"


def _measured(report: AuditReport) -> list[tuple[str, CheckResult, Value]]:
    """Return each drift measure of a run: the series' key, the check, and the value."""
    return [
        (
            f"{check.id}@{check.baseline.rule}",
            check,
            Value(report.ingestion, report.started_at, check.baseline.measured),
        )
        for check in report.checks
        if check.baseline
    ]


def _series(document: Mapping[str, Mapping[str, str]]) -> Series:
    accepted = document["accepted"]
    return Series(
        tuple(Value(**each) for each in document["values"]),  # type: ignore[arg-type]
        Acceptance(**accepted) if accepted else None,
    )


FEWEST = 7
_CONSISTENT = 1.4826  # makes it the standard deviation where values are normally distributed
_LEAST_SHARE = 0.01


def digest(check: Check) -> str:
    """Return the identity of a check's measure: baselines of one measure do not serve another.

    Thresholds are not part of it.
    """
    basis = check.basis
    rule = {f.name: getattr(basis.rule, f.name) for f in fields(basis.rule)}
    given = sorted((name, str(value)) for name, value in rule.items() if value)
    measured = (basis.metric.value, basis.columns, basis.where, given)
    return hashlib.sha256(repr(measured).encode()).hexdigest()[:32]


def comparable(check: Check, value: float, rows: int) -> float:
    """Return a measure in comparable form: a count of rows as a percentage of the rows."""
    if check.basis.metric not in OF_ROWS:
        return value
    return 100 * value / rows if rows else 0.0


def baseline(check: Check, measured: float, known: Baselines) -> Baseline:
    """Return the baseline of a comparable measure."""
    rule = digest(check)
    values = known.values(check.id, rule)
    if not values:
        return Baseline(rule, measured, 0)
    middle = median(values)
    distance = median(abs(value - middle) for value in values)
    return Baseline(rule, measured, len(values), middle, distance)


def deviation(check: Check, history: Baseline, rows: int) -> float:
    """Return the deviation of a measure in robust standard deviations.

    The unit is at least one row, for counts, and 1 % of the median, so that a constant measure may
    vary a little.
    """
    middle, mad = history.median or 0.0, history.mad or 0.0
    unit = max(_CONSISTENT * mad, _LEAST_SHARE * abs(middle), _one_row(check, rows))
    distance = abs(history.measured - middle)
    return distance / unit if unit else inf if distance else 0.0


def _one_row(check: Check, rows: int) -> float:
    metric = check.basis.metric
    if metric is Metric.ROWS:
        return 1.0
    return 100 / rows if metric in OF_ROWS and rows else 0.0
