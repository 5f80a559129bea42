"""Record what a shared run found in the files that it had taken, and publish those that passed.

The run's exit code says nothing about one file, so its report alone decides; the publisher counts
the rows of each branch once more before it merges it (publish.py).

    a report about one file → its verdict, as after a run of its own
    reports of a group → all members wait, and all their reports name the group's branch:
                         the branch becomes their common intent
                       → else the branch holds rows of a file that has another verdict:
                         those that name it run again, and it is deleted
    a file that must not share a run → the next attempt has a run of its own
    a file of a turn that was not begun → it is held again, as another attempt

An ingestion takes a verdict only while it waits for one of this attempt. So whatever comes twice,
late, or from two runs, each ingestion has one verdict and one intent.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from functions.adapters.all import Adapters
from functions.adapters.emr import JobRun, RunState
from functions.model import steps
from functions.model.ingestion import Ingestion, State
from functions.model.intent import Intent
from functions.model.merge_commit import AlreadyPublished, require_unpublished
from functions.pipeline.outcome.audit_history import take_late
from functions.pipeline.outcome.finish import end_taken
from functions.pipeline.outcome.reports import report_of, reports_at
from functions.pipeline.publication.duplicates import earlier
from functions.pipeline.publication.fresh_branch import run_unpublished_again
from functions.pipeline.publication.publish import publish_next
from functions.pipeline.publication.retry import run_again
from functions.pipeline.start.submit import submit
from functions.pipeline.verdict.complete import (
    audited,
    is_judged,
    record_report,
    record_verdict,
    resume,
)
from functions.pipeline.verdict.decision import Publish, decide, with_findings
from functions.telemetry import logger
from lakegate.audit.report import AuditReport, Verdict
from lakegate.errors import LakegateError, Permanent
from lakegate.job.landing import (
    branch_name,
    is_group_branch,
    parse_report_key,
    parse_run_name,
    report_key,
)
from lakegate.job.shared_run import Judged

_T = TypeVar("_T")


def conclude_judged(adapters: Adapters, message: Judged) -> None:
    """Complete the ingestions that a shared run judged: publish, reject, or run them again.

    What fails for one does not hold up the others; then raise its LakegateError at the end.
    """
    recorded = record_judged(adapters, message)
    units = {each.intent if each.group else each.id: each for each in recorded}
    _all_of([partial(_resume, adapters, first) for first in units.values()])
    now = adapters.ledger.together([each.id for each in recorded])
    _all_of([partial(_resume, adapters, each) for each in now if steps.unfinished(each)])


def _all_of(works: Iterable[Callable[[], _T]]) -> list[_T]:
    """Do all of the work; return the results, or raise the first LakegateError at the end."""
    done, failed = [], list[LakegateError]()
    for work in works:
        try:
            done.append(work())
        except LakegateError as error:
            logger.warning("the others go on", extra={"why": error.message})
            failed.append(error)
    if failed:
        raise failed[0]
    return done


def _resume(adapters: Adapters, ingestion: Ingestion) -> None:
    with logger.append_context_keys(ingestion=ingestion.id):
        if is_judged(ingestion):
            resume(adapters, ingestion)
        elif ingestion.state is State.SUBMITTED:  # by itself now, for which no turn need wait
            publish_next(adapters, ingestion)


def resume_waiting(adapters: Adapters, waiting: Ingestion) -> Ingestion:
    """Record the verdict of a file whose message was lost, or queue the file again."""
    if _has_report(adapters, waiting):
        conclude_judged(adapters, Judged("", (waiting.report_key,)))
    else:
        submit(adapters, waiting)
    return adapters.ledger.get(waiting.id)


def _has_report(adapters: Adapters, waiting: Ingestion) -> bool:
    try:
        return report_of(adapters, waiting) is not None
    except Permanent:
        return True  # which nobody can read: that is the verdict


def record_judged(adapters: Adapters, message: Judged) -> list[Ingestion]:
    """Record the verdicts only, so that all that passed can be published together.

    Return the ingestions as they are then; only reports of those that await a verdict are read.
    """
    run = JobRun(_run_id(adapters, message.run), message.run, RunState.SUCCESS)
    keys = {parse_report_key(key)[1:]: key for key in message.reports}
    known = adapters.ledger.together([id_ for id_, _ in keys])
    told = (i for i in known if keys.get((i.id, i.attempt)) == i.report_key)
    waiting = {i.id: i for i in told if i.awaits_shared_run}
    by_key = reports_at(adapters, [keys[id_, i.attempt] for id_, i in waiting.items()])
    reports = {id_: by_key.get(keys[id_, i.attempt]) for id_, i in waiting.items()}
    of_groups = {id_: r for id_, i in waiting.items() if _is_of_group(i, r := reports[id_])}
    groups = {r.group: r for r in of_groups.values() if r}
    singles = [i for id_, i in waiting.items() if id_ not in of_groups]
    works = [
        # First, so that main refuses few branches.
        *(partial(GroupVerdict(adapters, r, reports).record, run) for r in groups.values()),
        *(partial(_record_single, adapters, i, reports[i.id], run) for i in singles),
        *(partial(_run_alone, adapters, name) for name in message.alone),
        partial(_hold_again, adapters, message.again),
    ]
    recorded = [_with_late(adapters, i, keys) for i in known if i.id not in waiting]
    return recorded + [i for each in _all_of(works) for i in each]


def _with_late(
    adapters: Adapters, now: Ingestion, reported: Collection[tuple[str, int]]
) -> Ingestion:
    """Return it, with earlier attempts to record again whose run reported after a later one."""
    late = [n for id_, n in reported if id_ == now.id and n < now.attempt and n <= now.recorded]
    return take_late(adapters, now, min(late)) if late else now


def _is_of_group(waiting: Ingestion, report: AuditReport | None) -> bool:
    """Return whether a report is about the attempt that awaits it, as a member of a group."""
    if report is None or waiting.id not in report.group:
        return False
    if not is_group_branch(report.branch, waiting.table):
        return False
    return (report.ingestion, report.attempt) == (waiting.id, waiting.attempt)


def _run_id(adapters: Adapters, name: str) -> str:
    """Return the id of a shared run, "" if its slot has had two others since, or without a name."""
    slots = map(adapters.ledger.slot, range(adapters.settings.shared_runs)) if name else ()
    return next(filter(None, (slot.id_of(name) for slot in slots)), "")


def _record_single(
    adapters: Adapters, waiting: Ingestion, report: AuditReport | None, run: JobRun
) -> list[Ingestion]:
    """Record the verdict on one file; a report that is missing or unreadable is an error."""
    try:
        _require_new(adapters, [waiting])
    except AlreadyPublished as merged:
        named = _with_branch(waiting, report, run) if report else waiting  # to be deleted
        return [end_taken(adapters, named, merged.commits[waiting.id])]
    if report is None:  # or nobody can read it
        failed = replace(run, state=RunState.FAILED)
        return [record_verdict(adapters, waiting.but(job_run=run.id), failed)]
    has_passed = report.verdict is Verdict.PASSED
    ended = replace(run, state=RunState.SUCCESS if has_passed else RunState.FAILED)
    if not report.group:
        return [record_report(adapters, _with_branch(waiting, report, run), ended, report)]
    # It is about another attempt. So the group's branch is no evidence, and nobody may merge it.
    recorded = record_report(adapters, waiting.but(job_run=run.id), ended, report)
    if is_group_branch(report.branch, waiting.table):  # and no name that somebody made up
        adapters.catalog.delete_branch(report.branch)
    return [recorded]


def _run_alone(adapters: Adapters, name: str) -> list[Ingestion]:
    """Give a file that may have killed a run a run of its own."""
    id_, attempt = parse_run_name(name)
    ingestion = adapters.ledger.get(id_)
    if not _awaits(ingestion, attempt):
        return [ingestion]
    logger.warning("it must not share a run again", extra={"ingestion": id_})
    return [run_again(adapters, ingestion.but(failures=ingestion.failures + 1))]


def _hold_again(adapters: Adapters, names: Sequence[str]) -> list[Ingestion]:
    """Hold files of a turn again that no run began; none is nearer to its last attempt by that."""
    attempts = dict(map(parse_run_name, names))
    known = adapters.ledger.together(list(attempts))
    waiting = [each for each in known if _awaits(each, attempts[each.id])]
    if waiting:
        adapters.ledger.save_all([_held_again(each, adapters.now()) for each in waiting])
    return []


def _held_again(waiting: Ingestion, at: str) -> Ingestion:
    tried = {"attempt": waiting.attempt + 1, "tries_from": waiting.tries_from + 1}
    return waiting.step("held again", at, is_shared=False, **tried)


def _awaits(ingestion: Ingestion, attempt: int) -> bool:
    return ingestion.awaits_shared_run and ingestion.attempt == attempt


def _with_branch(ingestion: Ingestion, report: AuditReport, run: JobRun) -> Ingestion:
    """Return the ingestion with the branch that the run created for it, "" for any other."""
    table, id_ = ingestion.table, ingestion.id
    alone = branch_name(table, ingestion.landed.key, id_, ingestion.attempt)
    own = report.branch == alone or is_group_branch(report.branch, table)
    branch = report.branch if own else ""
    return ingestion.but(branch=branch, base_hash=report.base_hash, job_run=run.id)


def _require_new(adapters: Adapters, waiting: Sequence[Ingestion]) -> None:
    """Raise AlreadyPublished if main has an earlier attempt, whose branch may have been merged.

    Read after the new branch was created: main refuses that one if it publishes the earlier attempt
    from now on.
    """
    if repeated := [each for each in waiting if each.base_hash]:
        require_unpublished(adapters.catalog.log(), repeated)


class GroupVerdict:
    """The files whose rows a shared run appended to one branch."""

    def __init__(
        self,
        adapters: Adapters,
        report: AuditReport,
        given: Mapping[str, AuditReport | None],
    ) -> None:
        """Use the report of any member; `given` are the reports that were read, by ingestion."""
        self._adapters = adapters
        self._any = report
        self._given = given

    def record(self, run: JobRun) -> list[Ingestion]:
        """Make the branch the members' intent, or run again those that name it; return them.

        Each is saved alone, so some may have it already: it is merged only once all have it.
        """
        members = self._adapters.ledger.together(self._any.group)
        intent = Intent(self._any.branch, self._any.audited_hash)
        accepted = [member for member in members if member.intent == intent]
        others = [member for member in members if member.intent != intent]
        reports = self._reports(others)
        named = [each for each in others if self._is_named(each, reports[each.id])]
        if accepted and not named:
            return accepted
        if len(accepted) + len(named) < len(self._any.group):
            return accepted + self._run_again(named)
        pairs = [(each, report) for each in named if (report := reports[each.id])]
        return accepted + self._accept(run, pairs)

    def _reports(self, members: Sequence[Ingestion]) -> Mapping[str, AuditReport | None]:
        """Return the reports of the members' attempts, by ingestion; None without one."""
        others = [each for each in members if each.id not in self._given]
        keys = {each.id: report_key(each.table, each.id, each.attempt) for each in others}
        by_key = reports_at(self._adapters, keys.values())
        return {**self._given, **{id_: by_key.get(key) for id_, key in keys.items()}}

    def _is_named(self, member: Ingestion, report: AuditReport | None) -> bool:
        """Return whether it waits for a verdict, and its report names this branch."""
        if report is None or not _awaits(member, report.attempt):
            return False
        return (report.branch, report.audited_hash, report.group) == (
            self._any.branch,
            self._any.audited_hash,
            self._any.group,
        )

    def _accept(
        self, run: JobRun, pairs: Sequence[tuple[Ingestion, AuditReport]]
    ) -> list[Ingestion]:
        adapters, members = self._adapters, [ingestion for ingestion, _ in pairs]
        try:
            _require_new(adapters, members)
        except AlreadyPublished:
            return self._run_again(members)
        named = [
            (with_findings(_with_branch(each, report, run), report), report)
            for each, report in pairs
        ]
        tries = adapters.settings.max_crashes
        if not all(isinstance(decide(each, run, report, tries), Publish) for each, report in named):
            return self._run_again(members)
        passed = [audited(each, report, earlier(adapters, each)) for each, report in named]
        doubles = (each for each in passed if each.audit.duplicate_of)
        held = {each.id for each in doubles if each.terms.on_duplicate == "hold"}
        if held:  # which need branches of their own until a person decides
            return self._run_again([each.but(leaves_group=each.id in held) for each in members])
        group = self._any.group if len(self._any.group) > 1 else ()
        return adapters.ledger.save_each([each.but(group=group) for each in passed])

    def _run_again(self, members: Sequence[Ingestion]) -> list[Ingestion]:
        """Run the members again on other branches; nobody can merge this one any more.

        Those that main published are only recorded as published: the ledger had lost them.
        """
        logger.warning("a group is run again", extra={"branch": self._any.branch})
        # Since the first branch whose rows may be on main, which need not be this one.
        since = [each.but(base_hash=each.base_hash or self._any.base_hash) for each in members]
        if since:
            run_unpublished_again(self._adapters, since)
        self._adapters.catalog.delete_branch(self._any.branch)
        return self._adapters.ledger.together([member.id for member in members])
