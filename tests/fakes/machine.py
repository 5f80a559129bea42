"""A deployment in which any event may happen, in any order.

`tell` applies the events of a story (tests/fakes/events.py), then runs everything until nothing is
left to do (faults that have not struck yet strike then), and checks every promise.
"""

from collections import Counter

from functions.model.ingestion import ALERTED, State
from functions.operations.upkeep.expire import expire
from lakegate.job.landing import fresh_branch
from tests.fakes.backfills import check_backfills
from tests.fakes.deployment import Deployment
from tests.fakes.promises import check_promises, left_behind, unknown_groups, unwatched
from tests.fakes.stage import A_DAY, File, Stage, Story, happen
from tests.fakes.upkeep_events import clean_up_orphans

_DECIDED = ("published", "rejected SUPERSEDED", "ignored SUPERSEDED")


def tell(story: Story, stage: Stage | None = None) -> Stage:
    """Apply a story and run everything to its end. Raise AssertionError if a promise is broken."""
    stage = stage or Stage()
    try:
        happen(story, stage)
        for process in stage.processes:
            process.end()
    finally:
        for process in stage.processes:
            process.kill()
    stage.deployment.loses_events = False
    stage.deployment.settle()
    if stage.deployment.others.forged:
        stage.deployment.sweep()  # which might take it for its own
        stage.deployment.settle()
    if any(ingestion.decisions.branches_to_delete for ingestion in stage.deployment.ledger.all()):
        list(expire(unwatched(stage.deployment), 30))  # completes a discard that failed
        stage.deployment.settle()
    check_backfills(stage)
    check_promises(stage.deployment)
    _ends_as_it_should(stage)
    _runs_once_an_attempt(stage.deployment)
    assert not stage.replaced, f"merged, and what it replaced is still there: {stage.replaced}"
    _leaves_nothing_behind(stage)
    _went_by_the_contract_in_force(stage)
    _expiry_deletes_unknown_groups(stage)
    stage.had_orphans = clean_up_orphans(stage.deployment)
    return stage


def _ends_as_it_should(stage: Stage) -> None:
    """Raise AssertionError if a fault changed the final state of a file."""
    excused = set(stage.excused)
    if stage.deployment.others.dropped:
        excused.add(File.CRASHING.end)
    if max(stage.deployment.drivers.values(), default=0) > 1:  # of one run, only one of them failed
        excused |= {File.CRASHING.end, File.CONTRADICTED.end}
    known = [each for each in stage.deployment.ledger.all() if each.id in stage.files]
    for ingestion in known:  # without what a command could not record
        id_, file = ingestion.id, stage.files[ingestion.id]
        end = f"{ingestion.state} {ingestion.reason.code}" if ingestion.reason else ingestion.state
        may = {file.end, *excused, *(_DECIDED if id_ in stage.decided else ())}
        end = ingestion.state if ingestion.state is State.PUBLISHED else end
        assert end in may, f"{file} must not end {end}: {ingestion}"


def _leaves_nothing_behind(stage: Stage) -> None:
    """Raise AssertionError if a branch is left that can be deleted.

    A failed ingestion may leave an empty branch, on which it was about to register its files.
    tests/fakes/promises.py covers processes that hung while others finished.
    """
    failed = [i for i in stage.deployment.ledger.all() if i.state in ALERTED]
    tried = tuple(fresh_branch(i.table, i.id, "") for i in failed)
    left = [name for name in left_behind(stage.deployment) if not name.startswith(tried)]
    assert stage.hung or not left, f"left behind: {left}"


def _expiry_deletes_unknown_groups(stage: Stage) -> None:
    """Let expiry run a day later where the branch of a group is left that nobody knows.

    Raise AssertionError unless it is deleted then. It may stay where ledger or main lost anything:
    expiry restores an ingestion first, and cannot tell how old a branch of a lost commit is. Nor
    can it tell the age of an empty branch at main's head.
    """
    deployment, others = stage.deployment, stage.deployment.others
    has_lost = deployment.ledger.has_lost or others.undid or others.brought_back
    if has_lost or not unknown_groups(deployment):
        return
    deployment.clock.pass_(A_DAY)
    list(expire(unwatched(deployment), 0))
    head = deployment.catalog.head
    left = [name for name in unknown_groups(deployment) if head(name) != head("main")]
    assert not left, "a group that nobody knows outlives a day"


def _went_by_the_contract_in_force(stage: Stage) -> None:
    """Raise AssertionError if a rebase used a contract older than its fresh branch."""
    lake, last = stage.deployment.lake, stage.contract_version
    for each in stage.deployment.ledger.all():
        for then in stage.deployment.ledger.history(each.id):
            if then.branch in stage.cut_under and not then.contract_pinned:
                versions = range(stage.cut_under[then.branch], last + 1)
                stored = (lake.contract_at(then.terms.contract_key, f"v{n}") for n in versions)
                right = then.terms.requirements_digest in {
                    contract.contract.requirements_digest for contract in stored
                }
                assert right, f"published by a contract of before: {then}"


def _runs_once_an_attempt(deployment: Deployment) -> None:
    """Raise AssertionError if two job runs belong to one attempt."""
    names = Counter(run.name for run in deployment.jobs.runs())
    assert not (twice := names - Counter(set(names))), f"run more than once: {twice}"
