"""An ingestion as it is entered into the ledger again, from each kind of what is left of it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from functions.adapters.all import Adapters
from functions.adapters.emr import JobRun, RunState
from functions.adapters.s3 import Missing, StoredContract
from functions.model.commits import Commit
from functions.model.ingestion import Approval, Ingestion, State
from functions.model.merge_commit import Published
from functions.pipeline.batches import terms
from functions.pipeline.complete import with_findings
from lakegate import times
from lakegate.batch import BatchFile, folder
from lakegate.change import Change, parse_change_key
from lakegate.contract.model import ContractInvalid
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.landing import (
    ID_PART,
    LandedObject,
    branch_name,
    ingestion_id,
    parse_branch_name,
    parse_report_key,
    parse_run_name,
)
from lakegate.report import AuditReport, Verdict

# What ingestions leave behind outside the ledger: job runs, audit reports and branches.

_T = TypeVar("_T")
_ByAttempt = Mapping[int, _T]


@dataclass(frozen=True)
class Trace:
    """What is left of one ingestion: job runs, keys of reports and branches, each by attempt.

    `landed` is None where its landed object is gone.
    """

    landed: LandedObject | None = None
    runs: _ByAttempt[JobRun] = field(default_factory=dict)
    reports: _ByAttempt[str] = field(default_factory=dict)
    branches: _ByAttempt[str] = field(default_factory=dict)

    @property
    def attempt(self) -> int:
        """The newest attempt of which something is left."""
        return max({*self.runs, *self.reports, *self.branches}, default=0)

    @property
    def tables(self) -> set[str]:
        """The tables that the ingestion may have written to."""
        of_reports = {parse_report_key(key)[0] for key in self.reports.values()}
        return of_reports | {parse_branch_name(name)[0] for name in self.branches.values()}


def traces(adapters: Adapters, landed: Iterable[LandedObject], since: str = "") -> dict[str, Trace]:
    """What is left of ingestions, by their ids; those without a trace are not in it.

    `landed` are the landed objects to look for. A branch names only a part of the id: it is found
    only where its object is among them. Job runs are looked for from the time `since` on.
    """
    runs = _by_attempt(adapters.jobs.runs(since), lambda run: parse_run_name(run.name))
    reports = _by_attempt(adapters.lake.reports(), lambda key: parse_report_key(key)[1:])
    branches = _by_attempt(
        adapters.catalog.branches("ingest/"), lambda name: parse_branch_name(name)[1:]
    )
    objects = {
        id_: each
        for each in landed
        if (id_ := ingestion_id(each)) in runs or id_ in reports or id_[:ID_PART] in branches
    }
    return {
        id_: Trace(
            landed=objects.get(id_),
            runs=runs.get(id_, {}),
            reports=reports.get(id_, {}),
            branches=branches.get(id_[:ID_PART], {}),
        )
        for id_ in {*runs, *reports, *objects}
    }


def _by_attempt(
    found: Iterable[_T], parse: Callable[[_T], tuple[str, int]]
) -> dict[str, dict[int, _T]]:
    made: defaultdict[str, dict[int, _T]] = defaultdict(dict)
    for each in found:
        try:
            id_, attempt = parse(each)
        except ValueError:
            continue  # not one of ours
        made[id_][attempt] = each
    return dict(made)


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


def _part(report: AuditReport, part: AuditReport) -> BatchFile:
    """A batch's file as the report names it; its contract's text is not known."""
    landed = part.source
    key = landed.key.removeprefix(folder(report.source.key))
    return BatchFile(key, landed.version, landed.etag, landed.size, part.table, "", "")


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


# What no trace of a lost ingestion tells: what contracts say of it, what a person asked for.


def in_force(adapters: Adapters) -> dict[str, StoredContract]:
    """The contracts in force by their tables."""
    try:
        return {stored.contract.table: stored for stored in adapters.lake.contracts()}
    except ContractInvalid:
        return {}  # alerts then go to the default channel


def with_terms(
    adapters: Adapters, contracts: Mapping[str, StoredContract], ingestion: Ingestion
) -> Ingestion:
    """With what the contracts in force say of it, by their tables, and the change that it is of."""
    told = _together(contracts, ingestion) if ingestion.parts else ingestion
    return _asked(adapters, _under(contracts.get(ingestion.table), told))


def _under(stored: StoredContract | None, ingestion: Ingestion) -> Ingestion:
    """With what the contract in force says; its demands are other ones in another version."""
    if stored is None:
        return ingestion
    told = replace(
        ingestion,
        channel=stored.contract.channel,
        owner=stored.contract.owner,
        on_duplicate=stored.contract.on_duplicate,
        on_new_version=stored.contract.on_new_version,
    )
    if (stored.key, stored.version) != (told.contract_key, told.contract_version):
        return told
    contract = stored.contract
    return replace(
        told,
        requirements_digest=contract.requirements_digest,
        checks_whole_table=contract.checks_whole_table,
        reads_others=contract.reads_others or told.change is not None,
    )


def _together(contracts: Mapping[str, StoredContract], batch: Ingestion) -> Ingestion:
    """A batch with what its contracts say; they ask other things than is known in other versions.

    Its job then runs again where main refuses its branch.
    """
    stored = [contracts[table] for table in batch.tables if table in contracts]
    told = terms(stored)
    if set(batch.contracts) != {(each.key, each.version) for each in stored}:
        told["requirements_digest"] = "unknown"
    return replace(batch, **told)


def _asked(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """With the change that a person asked for, where it is one."""
    if ingestion.change or ingestion.landed.bucket != adapters.lake.bucket:
        return ingestion
    try:
        change = adapters.lake.change(ingestion.landed.key)
    except (Missing, Permanent) as error:  # it is a change all the same, and never a file
        change = Change(parse_change_key(ingestion.landed.key)[0], error.message, token="")
    return replace(ingestion, change=change, on_duplicate="publish", on_new_version="add")
