"""Rebuild a lost ingestion from its traces outside the ledger."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from functions.adapters.all import Adapters
from functions.adapters.emr import JobRun, RunState
from functions.adapters.s3 import Missing, StoredContract
from functions.model.commits import Commit
from functions.model.contract_terms import ContractTerms
from functions.model.decisions import Approval, Decisions
from functions.model.ingestion import Ingestion, State
from functions.model.merge_commit import Published
from functions.pipeline.verdict.decision import with_findings
from lakegate.audit.report import AuditReport, Verdict
from lakegate.contract.model import ContractInvalid
from lakegate.errors import Permanent
from lakegate.job.batch import BatchFile, folder
from lakegate.job.change import Change, parse_change_key
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import (
    ID_PART,
    LandedObject,
    branch_name,
    fresh_branch,
    ingestion_id,
    is_group_branch,
    parse_branch_name,
    parse_report_key,
    parse_run_name,
)

_T = TypeVar("_T")
_ByAttempt = Mapping[int, _T]


@dataclass(frozen=True)
class Trace:
    """The traces of one ingestion: job runs, report keys and branches, each by attempt.

    `landed` is None where its landed object is gone.
    """

    landed: LandedObject | None = None
    runs: _ByAttempt[JobRun] = field(default_factory=dict)
    reports: _ByAttempt[str] = field(default_factory=dict)
    branches: _ByAttempt[str] = field(default_factory=dict)

    @property
    def attempt(self) -> int:
        """Return the newest attempt with a trace."""
        return max({*self.runs, *self.reports, *self.branches}, default=0)

    @property
    def tables(self) -> set[str]:
        """Return the tables that the ingestion may have written to."""
        of_reports = {parse_report_key(key)[0] for key in self.reports.values()}
        return of_reports | {parse_branch_name(name)[0] for name in self.branches.values()}


def traces(
    adapters: Adapters,
    landed: Iterable[LandedObject],
    runs_since: str = "",
    wanted: Mapping[str, Collection[str]] | None = None,
) -> dict[str, Trace]:
    """Return the traces of ingestions by their ids; at least those of the `wanted` ones.

    Each of these comes with the tables that its reports are likely about.
    `landed` are the landed objects to search. A branch's name has only a part of the id, so it is
    found only if its object is among them. Job runs are listed from the time `runs_since` on.
    """
    runs = _by_attempt(adapters.jobs.runs(runs_since), lambda run: parse_run_name(run.name))
    reports = _by_attempt(adapters.lake.reports(wanted), lambda key: parse_report_key(key)[1:])
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
    items: Iterable[_T], parse: Callable[[_T], tuple[str, int]]
) -> dict[str, dict[int, _T]]:
    made: defaultdict[str, dict[int, _T]] = defaultdict(dict)
    for each in items:
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
    """Rebuild a published ingestion from its commit, and from its report if there is one.

    If none of its branches is left, no clean-up is due.
    """
    at = commit.at
    table, _, attempt = parse_report_key(one.report)
    landed = (report.source if report else trace.landed) or _landed(one, at)
    contract_key, _, contract_version = one.contract.rpartition("@")
    ingestion = Ingestion(
        id=one.id,
        landed=landed,
        state=State.PUBLISHED,
        attempt=attempt,
        terms=ContractTerms(
            table=table,
            contract_key=contract_key,
            contract_version=contract_version,
            write_mode=one.mode or "append",
        ),
        branch=branch_name(table, landed.key, one.id, attempt),
        job_run=one.job_run,
        report_key=one.report,
        merge_hash=commit.hash,
        decisions=Decisions(approval=_approval(one, at), despite=one.despite),
        cleaned=not trace.branches,
        change=one.change(table),
        parts=one.parts,
        mends=one.mended,
    )
    audited = _with_report(ingestion, report)
    return audited.step(
        "published",
        at,
        audited_hash=one.audited_hash,
        audit=replace(one.counted(audited.audit), duplicate_of=one.duplicate_of),
        replaced=one.replaced,
    )


def submitted(spec: JobSpec, run: JobRun, trace: Trace) -> Ingestion:
    """Rebuild an ingestion from its newest job run; the sweep then processes the run's result."""
    ingestion = Ingestion(
        id=spec.ingestion,
        landed=spec.landed,
        state=State.SUBMITTED,
        attempt=spec.attempt,
        failures=_failures(trace, spec.attempt),
        terms=ContractTerms(
            table=spec.table, contract_key=spec.contract_key, contract_version=spec.contract_version
        ),
        branch=spec.branch,
        base_hash=spec.base_hash,
        job_run=run.id,
        report_key=spec.report_key,
        parts=spec.parts,
    )
    return _with_report(ingestion, None)


def ended(report: AuditReport, key: str) -> Ingestion:
    """Rebuild a failed ingestion from its report when its job run is unknown."""
    ingestion = Ingestion(
        id=report.ingestion,
        landed=report.source,
        state=_ENDS[report.verdict],
        attempt=report.attempt,
        terms=ContractTerms(table=report.table),
        branch=_own_branch(report),
        base_hash=report.base_hash,
        report_key=key,
        reason=report.reason,
        parts=tuple(_part(report, each) for each in report.parts),
    )
    return _with_report(ingestion, report).step(ingestion.state, report.finished_at)


def _own_branch(report: AuditReport) -> str:
    """Return a report's branch if it is that of its own attempt, or of a group; else ""."""
    branch, table, id_ = report.branch, report.table, report.ingestion
    alone = branch_name(table, report.source.key, id_, report.attempt)
    ours = branch == alone or is_group_branch(branch, table)
    return branch if ours or branch.startswith(fresh_branch(table, id_, "")) else ""


def landed_again(id_: str, landed: LandedObject, trace: Trace, head: str) -> Ingestion:
    """Rebuild an ingestion whose result is unknown; its job runs again on a fresh branch.

    Main's commits after `head` are read again when that branch is created.
    """
    attempt = trace.attempt + 1
    ingestion = Ingestion(
        id=id_,
        landed=landed,
        attempt=attempt,
        failures=_failures(trace, attempt),
        base_hash=head,
    )
    return _with_report(ingestion, None)


def is_end(report: AuditReport) -> bool:
    """Return whether a report alone determines the ingestion's final state."""
    return report.verdict in _ENDS and report.reason is not None


def _part(report: AuditReport, part: AuditReport) -> BatchFile:
    """Return a batch's file as the report names it; its contract is unknown."""
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


def _with_report(ingestion: Ingestion, report: AuditReport | None) -> Ingestion:
    """Add a report's findings, if there is a report."""
    landed = ingestion.step("landed", ingestion.landed.landed_at)
    return with_findings(landed, report).step("audited", report.finished_at) if report else landed


def _failures(trace: Trace, attempt: int) -> int:
    """Return how many earlier runs failed without a report."""
    return sum(
        run.state is RunState.FAILED
        for number, run in trace.runs.items()
        if number < attempt and number not in trace.reports
    )


def in_force(adapters: Adapters) -> dict[str, StoredContract]:
    """Return the contracts in force by table."""
    try:
        return {stored.contract.table: stored for stored in adapters.lake.contracts()}
    except ContractInvalid:
        return {}  # alerts then go to the default channel


def with_terms(
    adapters: Adapters, contracts: Mapping[str, StoredContract], ingestion: Ingestion
) -> Ingestion:
    """Add the terms of the contracts in force, and the change that it runs, if any."""
    pinned = _with_contracts(contracts, ingestion) if ingestion.parts else ingestion
    return _with_change(adapters, _with_contract(contracts.get(ingestion.table), pinned))


def _with_contract(stored: StoredContract | None, ingestion: Ingestion) -> Ingestion:
    """Add the terms of the contract in force; its requirements are unknown for another version."""
    if stored is None:
        return ingestion
    terms = stored.terms(is_change=ingestion.change is not None)
    if (stored.key, stored.version) != ingestion.terms.contract:
        # The requirements of the version that its branch was created under are not known.
        terms = replace(
            ingestion.terms,
            channel=terms.channel,
            owner=terms.owner,
            on_duplicate=terms.on_duplicate,
            on_new_version=terms.on_new_version,
            write_mode=terms.write_mode,
            latest_by=terms.latest_by,
        )
    if ingestion.state is State.PUBLISHED:  # whatever the contract says by now
        terms = replace(terms, write_mode=ingestion.terms.write_mode)
    return ingestion.but(terms=terms)


def _with_contracts(contracts: Mapping[str, StoredContract], batch: Ingestion) -> Ingestion:
    """Return a batch with the terms of its contracts in force.

    Other versions of the contracts may have other requirements: then its job runs again where main
    refuses its branch.
    """
    stored = [contracts[table] for table in batch.tables if table in contracts]
    terms = ContractTerms.of_batch([each.contract for each in stored])
    if set(batch.contracts) != {(each.key, each.version) for each in stored}:
        terms = replace(terms, requirements_digest="unknown")
    return batch.but(terms=terms)


def _with_change(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Add the change that it runs, if any."""
    if ingestion.change or ingestion.landed.bucket != adapters.lake.bucket:
        return ingestion
    try:
        change = adapters.lake.change(ingestion.landed.key)
    except (Missing, Permanent) as error:  # it is a change all the same, and never a file
        change = Change(parse_change_key(ingestion.landed.key)[0], error.message, token="")
    terms = replace(ingestion.terms, on_duplicate="publish", on_new_version="add")
    return ingestion.but(change=change, terms=terms)
