"""One ingestion: facts, timeline, and its report check by check."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from access.ingestions.outcomes import branch, job_run, published_together
from access.ingestions.shown_report import concealed
from access.ingestions.undone import undone
from dashboard.formatting import size
from dashboard.timeline import Step, timeline
from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing
from functions.model.ingestion import ALERTED, Ingestion, State
from lakegate.audit.diagnosis import WrongColumns
from lakegate.audit.report import AuditReport, CheckResult, Status
from lakegate.errors import Permanent
from lakegate.times import moment

MARKS = {
    Status.FAIL: "✗ failed",
    Status.ERROR: "✗ not evaluated",
    Status.WARN: "! warning",
    Status.PASS: "✓ passed",
    Status.SKIPPED: "- skipped",
}


@dataclass(frozen=True)
class Account:
    """An ingestion, its last attempt's report or why there is none, and its rows' removal."""

    ingestion: Ingestion
    report: AuditReport | None
    no_report: str = ""
    undone: str = ""

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return its timeline."""
        return timeline(self.ingestion, self.report)

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        """Return the report's checks, blocking ones first."""
        ranked = list(MARKS)
        checks = self.report.checks if self.report else ()
        return tuple(sorted(checks, key=lambda check: ranked.index(check.status)))

    @property
    def is_failed(self) -> bool:
        """Return if an alert was sent and a person may decide."""
        return self.ingestion.state in ALERTED

    @property
    def is_comparable(self) -> bool:
        """Return if its rows are on a branch and can be compared with main's."""
        one = self.ingestion
        return self.is_failed and bool(one.audited_hash) and not one.decisions.discarded


def account(adapters: Adapters, ingestion: Ingestion) -> Account:
    """Return the known facts of an ingestion."""
    removal = undone(adapters, ingestion)
    if not ingestion.report_key:
        return Account(ingestion, None, "It has not come as far as to be audited.", removal)
    try:
        report = adapters.lake.report(ingestion.report_key)
        return Account(ingestion, concealed(adapters, ingestion, report), undone=removal)
    except Missing as error:
        why = _missing(ingestion, error.code)
    except Permanent as error:
        why = f"{error.message} ({error.code})."
    anew = " A replay makes a new one." if ingestion.state in ALERTED else ""
    return Account(ingestion, None, f"{why[:1].upper()}{why[1:]}{anew}", removal)


def facts(told: Account) -> dict[str, tuple[str, ...]]:
    """Return names and the lines of their values, without empty ones."""
    one = told.ingestion
    landed, decided = one.landed, one.decisions
    approval = decided.approval
    lines: dict[str, str | tuple[str, ...]] = {
        "file": "" if one.change else landed.uri,
        "version": "" if one.change else landed.version,
        "size": "" if one.change else size(landed.size),
        "asked for": one.change.statement if one.change else "",
        "by": one.change.by if one.change else "",
        "files": tuple(f"{part.key} for {part.table}" for part in one.parts),
        "landed": moment(landed.landed_at),
        "contract": _key_and_version(one.terms.contract_key, one.terms.contract_version),
        "channel": one.terms.channel,
        "branch": branch(one),
        "branched from": one.base_hash,
        "audited at": one.audited_hash,
        "merge commit": one.merge_hash,
        "published": published_together(one),
        "removal of rows": told.undone,
        "job run": job_run(one),
        "attempt": f"{one.attempt}" if one.attempt > 1 else "",
        "duplicate of": one.audit.duplicate_of,
        "superseded by": one.superseded_by,
        "published despite": decided.despite,
        "published by": f"{approval.by}: {approval.reason}" if approval else "",
        "done by people": tuple(f"{a.what} by {a.by}, {moment(a.at)}" for a in decided.actions),
        "report": one.report_key,
        "ingestion": one.id,
    }
    return {n: each if isinstance(each, tuple) else (each,) for n, each in lines.items() if each}


def head(told: Account) -> Iterator[str]:
    """Return when it landed, of which size and by whom, and by which contract it was judged."""
    one = told.ingestion
    yield f"landed {moment(one.landed.landed_at)}"
    if not one.change:
        yield size(one.landed.size)
    if owner := one.change.by if one.change else one.terms.owner or one.terms.channel:
        yield f"by {owner}" if one.change else f"owner {owner}"
    if told.report and not told.report.parts:
        yield f"contract {told.report.contract_id} {told.report.contract_version}"
    if one.mends:
        by = f" by {one.mends.by}" if one.mends.by else ""
        yield f"mended with {one.mends.file}{by}"


def wrong_columns(wrong: WrongColumns) -> list[dict[str, str]]:
    """Return a row for each expected column that is missing, and for each one that is unexpected.

    A missing one is beside the unexpected one that it perhaps is, with how alike they are.
    """
    meant = {each.column: each for each in wrong.renames}
    rows = []
    for name in wrong.missing:
        alike = meant.get(name)
        perhaps = f"{alike.found} ({alike.score:.0%} alike)" if alike else ""
        padded = f"{name} with spaces around it" if name in wrong.padded else ""
        rows.append({"expected": name, "found": padded, "perhaps": perhaps})
    renamed = {each.found for each in wrong.renames}
    others = [name for name in wrong.unexpected if name not in renamed]
    unexpected = [*others, *(f"{name}, again" for name in wrong.repeated)]
    return [*rows, *({"expected": "", "found": name, "perhaps": ""} for name in unexpected)]


def _missing(ingestion: Ingestion, code: str) -> str:
    if not ingestion.ended:
        return f"Its {'shared run' if ingestion.is_shared else 'job'} has left no audit report yet."
    known = ingestion.audit.check_counts or ingestion.state is not State.ERRORED
    left = "Its" if known else "Its job left no audit report, or its"
    return f"{left} audit report {ingestion.report_key} is no longer in the lake bucket ({code})."


def rows(checks: tuple[CheckResult, ...]) -> list[dict[str, Any]]:
    """Return the checks as a table's rows."""
    return [
        {
            "result": MARKS[check.status],
            "check": check.id,
            "columns": ", ".join(check.columns),
            "expected": check.expected,
            "found": check.found,
            "message": check.message,
        }
        for check in checks
    ]


def _key_and_version(key: str, version: str) -> str:
    return f"{key} (version {version})" if version else key
