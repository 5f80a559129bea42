"""Decide what an ended job run means: publish, run again, reject or report an error. Pure.

The run's exit code gates and its report explains. Only a run that EMR calls a success, together
with a report that says "passed" and names what it audited, leads to main. Every other pair of the
two leads to an alert, contradictions included. A run that failed without a report is first run
again: by us, since EMR Serverless's own retries would also repeat every rejection. An approval may
allow an ingestion that failed to be published. If the job then has to run again, the approval holds
for the failed checks that it names, and for no others.
"""

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

from functions.adapters.emr import JobRun, RunState
from functions.model.audit_outcome import AuditOutcome
from functions.model.decisions import Approval
from functions.model.ingestion import Ingestion, State
from lakegate.audit.report import AuditReport, CheckResult, Reason, Status, Verdict
from lakegate.job.batch import BatchFile
from lakegate.refusals import RIGHT_MISSING, named_in

_OUT_OF_MEMORY = "OUT_OF_MEMORY"
# The report has all of it; an item of the ledger is read often, and has 400 KB at most.
_MOST_CHECKS, _MOST_COLUMNS, _LONGEST = 20, 5, 250
_LARGE = ("samples", "query")


@dataclass(frozen=True)
class Publish:
    """Merge exactly the audited hash."""

    report: AuditReport


@dataclass(frozen=True)
class Refuse:
    """End the ingestion in `state` (rejected or errored) and alert its owners."""

    state: State
    reason: Reason


@dataclass(frozen=True)
class RunAgain:
    """Run the job once more on a fresh branch: the cause of the failure may be gone."""

    reason: Reason


@dataclass(frozen=True)
class AwaitRight:
    """Run the job again until its role has the right that it lacked, however often that takes."""

    reason: Reason


def decide(
    ingestion: Ingestion, run: JobRun, report: AuditReport | None, tries: int
) -> Publish | Refuse | RunAgain | AwaitRight:
    """Return what to do now that the job run has ended.

    `report` is None if the run left none; `tries` is how many failed runs are too many.
    """
    if passing := _passing_failure(ingestion, run, report, tries):
        return passing
    if report is None:
        return _errored(*_without_report(run))
    if not belongs(report, ingestion):
        return _errored("FOREIGN_REPORT", "the audit report belongs to another run")
    if report.verdict is Verdict.PASSED:
        return _passed(ingestion, run, report)
    approval = ingestion.decisions.approval
    if approval and _is_approved(approval, ingestion, run, report):
        return Publish(report)
    return _refused(report)


def _passing_failure(
    ingestion: Ingestion, run: JobRun, report: AuditReport | None, tries: int
) -> RunAgain | AwaitRight | None:
    """Return how the run is repeated if another may succeed; after a failure workers are larger."""
    if run.state is not RunState.FAILED:
        return None
    if lacking := _lacking_right(ingestion, run, report):
        return AwaitRight(lacking)
    if ingestion.failures + 1 >= tries:
        return None
    if report is None:
        return RunAgain(Reason(*_without_report(run)))
    if report.reason and report.reason.code == _OUT_OF_MEMORY and not ingestion.failures:
        return RunAgain(report.reason)
    return None


def _lacking_right(ingestion: Ingestion, run: JobRun, report: AuditReport | None) -> Reason | None:
    """Return which right the failed run lacked, by its report or else by its last exception."""
    if report is None:
        lacking = named_in(run.details)
        return Reason(RIGHT_MISSING, lacking) if lacking else None
    told = report.reason is not None and report.reason.code == RIGHT_MISSING
    return report.reason if told and belongs(report, ingestion) else None


def with_findings(ingestion: Ingestion, report: AuditReport) -> Ingestion:
    """Return the ingestion with what the ledger keeps of a report."""
    return ingestion.but(
        # In a re-audit it is the hash at which the files were registered, whatever the report says.
        audited_hash=ingestion.audited_hash if ingestion.is_reaudit else report.audited_hash,
        replaced=(),
        parts=_as_reported(ingestion.parts, report.parts),
        audit=_outcome(ingestion.audit, report),
    )


def _outcome(before: AuditOutcome, report: AuditReport) -> AuditOutcome:
    remarkable = [check for check in report.checks if check.status is not Status.PASS]
    kept = sorted(remarkable, key=_rank)[:_MOST_CHECKS]
    return replace(
        before,
        rows=report.rows_written,
        replaced_rows=report.effect.removed if report.effect else 0,
        updated_rows=report.effect.updated if report.effect else 0,
        check_counts=Counter(check.status.value for check in report.checks),
        checks=tuple(
            {name: _brief(value) for name, value in asdict(check).items() if name not in _LARGE}
            for check in kept
        ),
    )


def _rank(check: CheckResult) -> int:
    """Return 0 for a blocking check, 1 for a warning, 2 for others, to keep the first few."""
    if check.status in (Status.ERROR, Status.FAIL):
        return 0
    return 1 if check.status is Status.WARN and check.severity != "info" else 2


def _as_reported(
    parts: tuple[BatchFile, ...], reports: tuple[AuditReport, ...]
) -> tuple[BatchFile, ...]:
    """Return the files with their rows and hashes, unchanged if the report has other files."""
    if len(parts) != len(reports):
        return parts
    pairs = zip(parts, reports, strict=True)
    return tuple(replace(part, rows=r.rows_written, hash=r.audited_hash) for part, r in pairs)


def _brief(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_brief, value[:_MOST_COLUMNS]))
    return value[:_LONGEST] if isinstance(value, str) else value


def _passed(ingestion: Ingestion, run: JobRun, report: AuditReport) -> Publish | Refuse:
    if run.state is not RunState.SUCCESS:
        message = f"the report says passed, yet the job run ended {run.state}: {run.details}"
        return _errored("CONTRADICTION", message)
    if any(_is_unfounded(single) for single in report.singles):
        return _errored("CONTRADICTION", "the report says passed, yet its checks do not")
    if _is_strange(report, ingestion):
        return _errored("CONTRADICTION", "the report names another hash than was to be audited")
    if _is_unwritten(report, ingestion):
        return _errored("CONTRADICTION", "the report says passed, yet nothing was written")
    if any(_misses_rows(single) for single in report.singles):
        return _errored("CONTRADICTION", "the report's data files do not hold its rows")
    return Publish(report)


def _refused(report: AuditReport) -> Refuse:
    if report.reason is None:
        return _errored("CONTRADICTION", f"the report says {report.verdict}, yet not why")
    state = State.REJECTED if report.verdict is Verdict.REJECTED else State.ERRORED
    return Refuse(state, report.reason)


def _is_unfounded(report: AuditReport) -> bool:
    if report.verdict is not Verdict.PASSED or report.failed:
        return True
    return all(check.status is Status.SKIPPED for check in report.checks)


def _is_unwritten(report: AuditReport, ingestion: Ingestion) -> bool:
    """Return whether some file of it is not on the branch."""
    return any(
        each.audited_hash in ("", ingestion.base_hash) or each.audited_hash == each.base_hash
        for each in (report, *report.parts)
    )


def _misses_rows(report: AuditReport) -> bool:
    return bool(report.files) and sum(f.rows for f in report.files) != report.rows_written


def _is_approved(
    approval: Approval, ingestion: Ingestion, run: JobRun, report: AuditReport
) -> bool:
    """Return whether the approval covers all failed checks, and there is something to publish."""
    failed = {check.id for check in report.failed}
    return (
        report.verdict is Verdict.REJECTED
        and run.state is RunState.FAILED
        and bool(failed)
        and failed <= set(approval.checks)
        and _has_effect(report)
        and not _is_unwritten(report, ingestion)
        and not _is_strange(report, ingestion)
    )


def _has_effect(report: AuditReport) -> bool:
    return report.rows_written > 0 or bool(report.effect and report.effect.removed)


def _is_strange(report: AuditReport, ingestion: Ingestion) -> bool:
    """Return whether the report of a re-audit names another hash than was to be audited."""
    return ingestion.is_reaudit and report.audited_hash != ingestion.audited_hash


def _without_report(run: JobRun) -> tuple[str, str]:
    if run.state is RunState.SUCCESS:
        return "NO_REPORT", "the job run succeeded, yet it left no audit report"
    if run.state is RunState.CANCELLED:
        return "JOB_CANCELLED", f"the job run was cancelled or timed out: {run.details}"
    return "JOB_FAILED", f"the job run failed and left no audit report: {run.details}"


def belongs(report: AuditReport, ingestion: Ingestion) -> bool:
    """Return whether a report, and those of its parts, are about the ingestion's attempt.

    They are about exactly what landed, and judged it by its contract: whoever may queue files for
    shared runs could name another object there, or an older version of the contract.
    """
    known = ingestion.id, ingestion.attempt, ingestion.branch
    named = {(r.ingestion, r.attempt, r.branch) for r in (report, *report.parts)}
    landed, read = ingestion.landed, report.source
    if (read.bucket, read.key, read.version) != (landed.bucket, landed.key, landed.version):
        return False
    if not _is_by_contract(report, ingestion.terms.contract_sha256):
        return False
    files = [(r.source.key, r.source.version, r.table) for r in report.parts]
    return named == {known} and files == _own_files(ingestion)


def _is_by_contract(report: AuditReport, sha256: str) -> bool:
    """Return whether a contract's text judged it; a run that errs may not have read one."""
    unread = report.verdict is Verdict.ERRORED and not report.contract_sha256
    return not sha256 or unread or report.contract_sha256 == sha256


def _own_files(ingestion: Ingestion) -> list[tuple[str, str, str]]:
    """Return key, version and table of each file of a batch."""
    landed = [(part.landed(ingestion.landed), part.table) for part in ingestion.parts]
    return [(each.key, each.version, table) for each, table in landed]


def _errored(code: str, message: str) -> Refuse:
    return Refuse(State.ERRORED, Reason(code, message))
