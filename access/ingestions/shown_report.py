"""An ingestion's audit report as people may see it: without what contracts hide by now."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing, contract_key
from functions.model.ingestion import Ingestion
from functions.pipeline.outcome.reports import report_of
from lakegate.audit.diagnosis import HIDDEN, WHOLE, cell_told
from lakegate.audit.report import ADDRESS, PLACE, TIMES, AuditReport, CheckResult
from lakegate.contract.checks import OF_VALUES
from lakegate.contract.model import Contract, ContractInvalid
from lakegate.errors import Permanent


@dataclass(frozen=True)
class Concealment:
    """The data to hide: `every` row, or else the values of `columns` (lower-case names).

    With neither it `reveals` everything, because a person asked for that.
    """

    every: bool
    columns: frozenset[str]
    reveals: bool = False

    @classmethod
    def by(cls, contracts: Iterable[Contract]) -> "Concealment":
        """Return everything that any of the contracts hides."""
        each = tuple(contracts)
        return cls(
            every=not all(contract.allow_samples for contract in each),
            columns=frozenset(name.lower() for contract in each for name in contract.concealed),
        )

    def hides(self, column: str) -> bool:
        """Return whether the column's values must be hidden; case does not matter."""
        return self.every or column.lower() in self.columns


_Hidden = Callable[[str], Concealment]
_NOTHING = Concealment(every=False, columns=frozenset())
_EVERYTHING = Concealment(every=True, columns=frozenset())


def shown_report(adapters: Adapters, ingestion: Ingestion) -> AuditReport | None:
    """Return the last attempt's report, without values and measures that contracts in force hide.

    None if there is no report. Raise Permanent if it cannot be read.
    """
    report = report_of(adapters, ingestion) if ingestion.report_key else None
    return concealed(adapters, ingestion, report) if report else None


def shown_or_why(adapters: Adapters, ingestion: Ingestion) -> tuple[AuditReport | None, str]:
    """Return the same, and "" or why the report cannot be read."""
    try:
        return shown_report(adapters, ingestion), ""
    except Permanent as error:
        return None, f"its audit report cannot be read: {error.message} ({error.code})"


def concealed(adapters: Adapters, ingestion: Ingestion, report: AuditReport) -> AuditReport:
    """Return an ingestion's report without what the contracts in force hide."""
    return _without(report, partial(_hidden_of, adapters, ingestion))


def _without(report: AuditReport, hidden_of: _Hidden) -> AuditReport:
    """Return a report without the values that are hidden, by its table or those of its parts."""
    parts = tuple(_without(part, hidden_of) for part in report.parts)
    if parts:
        both = zip(report.checks, (c for part in parts for c in part.checks), strict=True)
        checks = [replace(own, **_told(part)) for own, part in both]
    else:
        hidden = hidden_of(report.table)
        checks = [_masked_check(check, hidden) for check in report.checks]
    return replace(report, parts=parts, checks=tuple(checks))


def _told(check: CheckResult) -> dict[str, Any]:
    return {name: getattr(check, name) for name in ("found", "value", "baseline", "samples")}


def _masked_check(check: CheckResult, hidden: Concealment) -> CheckResult:
    """Return a check's result without rows and measures of hidden values.

    A finding of drift says how far such a measure is off; its baseline has the measure itself.
    """
    shown = replace(check, samples=tuple(masked(row, hidden) for row in check.samples))
    is_of_hidden = any(name.lower() in hidden.columns for name in check.columns)
    if is_of_hidden and check.metric in OF_VALUES and check.value:
        return replace(shown, found=HIDDEN, value="")
    return replace(shown, baseline=None) if is_of_hidden or hidden.every else shown


def _hidden_of(adapters: Adapters, ingestion: Ingestion, table: str) -> Concealment:
    """Return what the contract in force of a table hides: everything if that cannot be read."""
    known = {part.table: part.contract_key for part in ingestion.parts}
    key = known.get(table) or ingestion.terms.contract_key or contract_key(table)
    try:
        return Concealment.by((adapters.lake.contract_at(key, "").contract,))
    except Missing:
        return _NOTHING
    except ContractInvalid:
        return _EVERYTHING


def masked(sample: Mapping[str, Any], hidden: Concealment) -> Mapping[str, Any]:
    """Return a report's sample row without the values that are hidden by now."""
    if cell_told(sample):
        whole = hidden.every or (hidden.columns and sample["column"] == WHOLE)
        hides = whole or hidden.hides(sample["column"] or "")
        return {**sample, "value": HIDDEN} if hides else sample
    kept = (PLACE, TIMES, *ADDRESS)
    return {n: HIDDEN if n not in kept and hidden.hides(n) else v for n, v in sample.items()}
