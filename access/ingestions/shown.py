"""What an audit found, as people may see it: without what contracts hide by now.

Commands, page and programs get only such ingestions from the ledger (access/deployment). Where a
contract hides more than at the audit, the audit's words, such as a reason, are hidden as a whole.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from access.ingestions.concealment import Concealment, hidden_now, masked, stored_contract
from functions.adapters.all import Adapters
from functions.adapters.s3 import Lake, contract_key
from functions.model.ingestion import Ingestion, State
from functions.pipeline.outcome.reports import report_of
from lakegate.audit.diagnosis import HIDDEN
from lakegate.audit.report import AuditReport, Reason, Status, checks_of
from lakegate.contract.checks import OF_VALUES
from lakegate.errors import Permanent

_WORDS = "the words are hidden, because the contract hides more by now"
_COLUMNS = "file.columns"  # in checks' ids before the name of a column
_Known = Callable[[str, str], Concealment]  # by key and version of an audit's contract
_Hidden = Callable[[str], Concealment]  # by table


def shown(lake: Lake, ingestions: Sequence[Ingestion]) -> list[Ingestion]:
    """Return ingestions of the ledger as people may see them."""
    known = cache(partial(hidden_now, lake))
    return [_shown(each, partial(_hidden_of, known, each)) for each in ingestions]


def shown_report(adapters: Adapters, ingestion: Ingestion) -> AuditReport | None:
    """Return the last attempt's report as people may see it.

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
    known = cache(partial(hidden_now, adapters.lake))
    return _without(report, partial(_hidden_of, known, ingestion))


def _hidden_of(known: _Known, ingestion: Ingestion, table: str) -> Concealment:
    key, version = stored_contract(ingestion, table)
    return known(key or contract_key(table), version)


def _shown(one: Ingestion, hidden_of: _Hidden) -> Ingestion:
    """Return one as people may see it; why it was ignored quotes no data."""
    quotes = one.reason is not None and one.state is not State.IGNORED
    if not one.audit.checks and not quotes:
        return one
    checks = tuple(
        {**each, **_changes(each, hidden_of(each.get("table") or one.table))}
        for each in one.audit.checks
    )
    told = one.but(audit=replace(one.audit, checks=checks))
    if one.reason and quotes and any(hidden_of(table).grew for table in one.tables):
        return told.but(reason=_reason(one.reason, checks))
    return told


def _without(report: AuditReport, hidden_of: _Hidden) -> AuditReport:
    """Return a report without what is hidden, by its table or those of its parts."""
    if report.parts:
        parts = tuple(_without(part, hidden_of) for part in report.parts)
        kept = replace(report, parts=parts, checks=checks_of(parts, report.source.key))
        grew = any(hidden_of(part.table).grew for part in parts)
    else:
        hidden = hidden_of(report.table)
        checks = [replace(each, **_changes(vars(each), hidden)) for each in report.checks]
        kept, grew = replace(report, checks=tuple(checks)), hidden.grew
    if not grew:
        return kept
    reason = _reason(report.reason, map(vars, kept.checks)) if report.reason else None
    return replace(kept, reason=reason, wrong_columns=None)


def _reason(reason: Reason, checks: Iterable[Mapping[str, Any]]) -> Reason:
    """Return a reason without the words of the audit, but with the checks that failed."""
    failed = (each["id"] for each in checks if each["status"] in (Status.FAIL, Status.ERROR))
    names = ", ".join(dict.fromkeys(failed))
    return replace(reason, message=f"{names} failed; {_WORDS}" if names else _WORDS)


def _changes(check: Mapping[str, Any], hidden: Concealment) -> dict[str, Any]:
    """Return what of a check's result, of a report or of the ledger, is shown otherwise.

    A finding of drift says how far a measure is off; its baseline has the measure itself.
    """
    changes: dict[str, Any] = {}
    if "samples" in check:
        changes["samples"] = tuple(masked(row, hidden) for row in check["samples"])
    is_hidden = any(name.lower() in hidden.columns for name in check["columns"])
    if is_hidden or hidden.every:
        changes["baseline"] = None
    if (is_hidden or hidden.grew) and check["metric"] in OF_VALUES and check.get("value"):
        changes |= {"found": HIDDEN, "value": ""}
    return changes | _without_words(check) if hidden.grew else changes


def _without_words(check: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same of what may quote the file: names in its header, and errors."""
    changes: dict[str, Any] = {"is_told": False}
    before, columns, name = check["id"].partition(_COLUMNS)
    if name:
        changes |= {"id": before + columns, "columns": (), "found": HIDDEN}
    if check["status"] == Status.ERROR:
        changes["message"] = HIDDEN
    return changes
