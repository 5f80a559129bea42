"""An ingestion as it is entered into the ledger again, from each kind of what is left of it."""

from datetime import datetime

from functions.commits import Published
from functions.decisions import with_findings
from functions.history import Commit
from functions.ingestion import Approval, Ingestion, State
from functions.job_run import JobRun, RunState
from functions.traces import Trace
from lakegate import times
from lakegate.batch import Part, folder
from lakegate.jobspec import JobSpec
from lakegate.landing import LandedObject, branch_name, parse_report_key
from lakegate.report import AuditReport, Verdict

_ENDS = {Verdict.REJECTED: State.REJECTED, Verdict.ERRORED: State.ERRORED}


def published(
    one: Published, commit: Commit, report: AuditReport | None, trace: Trace
) -> Ingestion:
    """From the commit that published it; what only the report tells is left out without it.

    Where none of its branches is left, no clean-up is due.
    """
    at = times.text(datetime.fromisoformat(commit.time))
    table, _, attempt = parse_report_key(one.report)
    landed = (report.source if report else trace.landed) or _landed(one, at)
    contract_key, _, contract_version = one.contract.rpartition("@")
    found = Ingestion(
        id=one.id,
        landed=landed,
        state=State.PUBLISHED,
        attempt=attempt,
        table=table,
        contract_key=contract_key,
        contract_version=contract_version,
        branch=branch_name(table, landed.key, one.id, attempt),
        job_run=one.job_run,
        report_key=one.report,
        merge_hash=commit.hash,
        approval=_approval(one, at),
        cleaned=not trace.branches,
        change=one.change(table),
        parts=one.parts,
    )
    return _told(found, report).step(
        "published",
        at,
        audited_hash=one.audited_hash,
        rows=one.rows,
        despite=one.despite,
        duplicate_of=one.duplicate_of,
        replaced=one.replaced,
        replaced_rows=one.replaced_rows,
    )


def submitted(spec: JobSpec, run: JobRun, trace: Trace) -> Ingestion:
    """From its newest job run: the sweep then judges the run as if it had just ended."""
    found = Ingestion(
        id=spec.ingestion,
        landed=spec.landed,
        state=State.SUBMITTED,
        attempt=spec.attempt,
        failures=_failures(trace, spec.attempt),
        table=spec.table,
        contract_key=spec.contract_key,
        contract_version=spec.contract_version,
        branch=spec.branch,
        base_hash=spec.base_hash,
        job_run=run.id,
        report_key=spec.report_key,
        parts=spec.parts,
    )
    return _told(found, None)


def ended(report: AuditReport, key: str) -> Ingestion:
    """From the report of a file that was not published, whose job run nobody knows any more."""
    found = Ingestion(
        id=report.ingestion,
        landed=report.source,
        state=_ENDS[report.verdict],
        attempt=report.attempt,
        table=report.table,
        branch=report.branch,
        base_hash=report.base_hash,
        report_key=key,
        reason=report.reason,
        parts=tuple(_part(report, each) for each in report.parts),
    )
    return _told(found, report).step(found.state, report.finished_at)


def landed_again(id_: str, landed: LandedObject, trace: Trace, head: str) -> Ingestion:
    """From a branch alone, or a pass that nobody can confirm: the job runs on a fresh branch.

    What main takes after `head` is looked at once more when that branch is cut.
    """
    attempt = trace.attempt + 1
    found = Ingestion(
        id=id_,
        landed=landed,
        attempt=attempt,
        failures=_failures(trace, attempt),
        base_hash=head,
    )
    return _told(found, None)


def is_end(report: AuditReport) -> bool:
    """Whether a report says by itself how its ingestion ended."""
    return report.verdict in _ENDS and report.reason is not None


def _part(report: AuditReport, part: AuditReport) -> Part:
    """A batch's file as the report names it; its contract's text is not known."""
    landed = part.source
    key = landed.key.removeprefix(folder(report.source.key))
    return Part(key, landed.version, landed.etag, landed.size, part.table, "", "")


def _approval(one: Published, at: str) -> Approval | None:
    if not one.approved_by:
        return None
    return Approval(by=one.approved_by, reason=one.approved_because, at=at, checks=())


def _landed(one: Published, at: str) -> LandedObject:
    bucket, _, key = one.object.removeprefix("s3://").partition("/")
    return LandedObject(bucket, key, one.version, etag="", size=0, landed_at=at)


def _told(ingestion: Ingestion, report: AuditReport | None) -> Ingestion:
    """With what a report tells, where there is one."""
    found = ingestion.step("landed", ingestion.landed.landed_at)
    return with_findings(found, report).step("audited", report.finished_at) if report else found


def _failures(trace: Trace, attempt: int) -> int:
    """The attempts before this one whose runs failed without a report."""
    return sum(
        run.state is RunState.FAILED
        for number, run in trace.runs.items()
        if number < attempt and number not in trace.reports
    )
