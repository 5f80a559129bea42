"""Files that replace rows of others are published one by one, in the order in which they landed."""

from dataclasses import replace

import pytest

from functions.model import merge_commit, queueing
from functions.model.ingestion import State
from functions.operations.reconcile.compare import reconciled
from functions.pipeline.start.intake import retract, take_in
from functions.pipeline.start.landing_order import OUT_OF_ORDER
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject, ingestion_id
from tests.fakes.deployment import OTHER_TABLE, RETURNS, SETTINGS, TABLE
from tests.fakes.job import ROWS, rejected, warned
from tests.fakes.promises import unwatched
from tests.fakes.scenario import FIRST, KEY, Scenario

pytestmark = pytest.mark.usefixtures("quiet")
MODES = ("upsert", "overwrite")


def landed(deployment: Scenario, *names: str) -> list[LandedObject]:
    return [deployment.land(f"shop/orders/{name}.parquet") for name in names]


def in_log(deployment: Scenario) -> list[str]:
    """Return the ids of the published files, in the order in which main got them."""
    log = list(deployment.catalog.log())[::-1]
    return [each.id for commit in log for each in merge_commit.published(commit) if each.mode]


def late(deployment: Scenario) -> LandedObject:
    """Return a file whose event was lost, after one that landed later was published."""
    deployment.replace_rows("upsert")
    deployment.ended(FIRST)
    early = deployment.land_unannounced("shop/orders/early.parquet")
    deployment.submit("shop/orders/late.parquet")
    deployment.run_jobs()
    deployment.deliver()
    deployment.settle()
    return early


def read_of_the_queue(files: int) -> int:
    """Return how much is read of a table's queue as one file ends, and the next is started."""
    deployment = Scenario()
    deployment.replace_rows("upsert")
    known = landed(deployment, *(f"{number:03}" for number in range(files)))
    deployment.deliver()
    deployment.run_jobs()
    deployment.ledger.listed = 0
    deployment.deliver()
    assert deployment.states(*known[:2]) == [State.PUBLISHED, State.SUBMITTED]
    return deployment.ledger.listed


def test_a_step_reads_no_more_where_many_files_are_held() -> None:
    """However many files wait behind it, a file is published, and the next one started."""
    assert read_of_the_queue(120) == read_of_the_queue(150) <= 120


def test_a_sweep_looks_for_traces_of_what_it_starts_alone() -> None:
    """However many files are held, a sweep lists the reports of the next one alone."""
    deployment = Scenario()
    deployment.replace_rows("upsert")
    known = landed(deployment, "a", "b", "c", "d")
    deployment.deliver()
    deployment.sweep()
    assert deployment.lake.searched == {deployment.ingestion(known[1]).id}
    deployment.check()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shared", [0, 1])
def test_files_come_one_by_one(deployment: Scenario, mode: str, shared: int) -> None:
    """A file is started when the one before it has its final state: none runs its job twice.

    If a shared run may take it, it waits for that.
    """
    deployment.share(shared)
    deployment.replace_rows(mode)
    files = landed(deployment, "a", "b", "c")
    deployment.deliver()
    assert [queueing.is_held(deployment.ingestion(each)) for each in files] == [False, True, True]
    assert deployment.ingestion(files[0]).is_shared == shared
    deployment.settle()
    known = [deployment.ingestion(each) for each in files]
    assert [(each.state, each.attempt) for each in known] == [(State.PUBLISHED, 1)] * 3
    assert in_log(deployment) == [each.id for each in known]
    assert deployment.on_main(*files) == [False, False, True]


def test_the_log_and_the_ledger_say_what_was_done(deployment: Scenario) -> None:
    """Main's log counts what was inserted, updated and deleted; reconcile agrees."""
    deployment.replace_rows("upsert")
    deployment.ended(FIRST)
    done = deployment.ended(script=warned)
    assert (done.audit.rows, done.audit.replaced_rows, done.audit.updated_rows) == (
        ROWS,
        ROWS,
        ROWS,
    )
    commit = merge_commit.commit_of(deployment.catalog.log(), done)
    words = "0 rows inserted, 3 updated, 0 deleted"
    assert commit.message == f"Publish a.parquet to shop.orders: {words}"
    assert words in deployment.told()[-1]
    found = reconciled(unwatched(deployment), thorough=True)
    assert (found.problems, found.remarks) == ((), ())


@pytest.mark.parametrize("mode", MODES)
def test_what_main_refuses_is_done_again(deployment: Scenario, mode: str) -> None:
    """If main's table changed, the job runs again on the new table: no file is registered there."""
    deployment.replace_rows(mode)
    deployment.ended(FIRST)
    file = deployment.run()
    deployment.others.append(TABLE)
    done = deployment.end_of(file)
    gone = ROWS if mode == "upsert" else 2 * ROWS  # the rows of others have no key
    assert (done.state, done.attempt, done.audit.replaced_rows) == (State.PUBLISHED, 2, gone)
    assert "tables.append_again" not in deployment.journal.calls


def test_a_failed_file_holds_up_no_other(deployment: Scenario) -> None:
    """A rejected file gives way at once; publishing it later is a decision on the order, too."""
    deployment.replace_rows("upsert")
    bad = deployment.land(FIRST, script=rejected)
    good = deployment.land("shop/orders/good.parquet")
    deployment.settle()
    assert deployment.states(bad, good) == [State.REJECTED, State.PUBLISHED]
    deployment.publish_anyway(bad)
    deployment.settle()
    assert deployment.end(bad) == f"rejected {OUT_OF_ORDER}"
    assert deployment.on_main(bad, good) == [False, True]
    deployment.publish_anyway(bad)
    deployment.settle()
    assert deployment.end(bad).startswith("published")
    assert deployment.on_main(bad, good) == [True, False]


def test_rows_that_were_not_merged_cannot_be_published(deployment: Scenario) -> None:
    """If a key is ambiguous, the refusal says that the rows are on the branch, and what to do."""
    deployment.replace_rows("upsert")
    bad = deployment.land(KEY, script=lambda report: replace(rejected(report), audited_hash=""))
    deployment.settle()
    with pytest.raises(LakegateError, match="a key is null or ambiguous") as caught:
        deployment.publish_anyway(bad)
    assert caught.value.code == "NO_ROWS"


def test_a_late_file_replaces_no_newer_rows(deployment: Scenario) -> None:
    """A file whose event came late waits for a decision, and its alert says why."""
    early = late(deployment)
    assert deployment.end(early) == f"rejected {OUT_OF_ORDER}"
    assert "late.parquet landed later" in deployment.message(early)
    assert any("to replace those of later files" in text for text in deployment.told())


def test_a_held_file_is_waited_for_however_long(deployment: Scenario) -> None:
    """A file is merged after one that is held, even if that one has not changed for long."""
    deployment.replace_rows("overwrite")
    stuck, held = (deployment.submit(f"shop/orders/{name}.parquet") for name in "ab")
    assert queueing.is_held(held)
    deployment.ledger.behind.update({stuck.id: 9, held.id: 9})
    later = deployment.submit("shop/orders/c.parquet")
    assert later.state is State.SUBMITTED
    deployment.ledger.behind.clear()
    deployment.clock.pass_(60 * SETTINGS.job_timeout_minutes + 3 * SETTINGS.grace_seconds)
    deployment.run_one_job(1)
    deployment.deliver()
    assert deployment.states(later) == [State.AUDITED]
    deployment.check()
    assert in_log(deployment) == [stuck.id, held.id, later.id]


def test_a_clock_that_is_behind_hides_no_later_file(deployment: Scenario) -> None:
    """If Nessie's clock is behind that of S3, a later file on main is found all the same."""
    deployment.replace_rows("upsert")
    deployment.ended(FIRST)
    early = deployment.land_unannounced("shop/orders/early.parquet")
    deployment.submit("shop/orders/late.parquet")
    deployment.clock.pass_(-30)
    deployment.run_jobs()
    deployment.deliver()
    deployment.clock.pass_(30)
    assert deployment.end_of(early).state is State.REJECTED
    assert deployment.end(early) == f"rejected {OUT_OF_ORDER}"


def test_of_two_files_of_one_moment_one_is_the_later(deployment: Scenario) -> None:
    """Files that landed at the same time have an order, too, so that neither is lost unseen."""
    deployment.replace_rows("upsert")
    deployment.ended(FIRST)
    first, second = sorted(
        (deployment.land_unannounced(f"shop/orders/{name}.parquet") for name in "ab"),
        key=ingestion_id,
    )
    at = deployment.clock.now()
    take_in(deployment.adapters, replace(second, landed_at=at))
    deployment.go(2)
    assert deployment.states(second) == [State.PUBLISHED]
    take_in(deployment.adapters, replace(first, landed_at=at))
    deployment.settle()
    assert deployment.end(first) == f"rejected {OUT_OF_ORDER}"


@pytest.mark.parametrize("other", ["a change", "another table"])
def test_only_later_files_of_the_table_decide(deployment: Scenario, other: str) -> None:
    """A change, or a file of another table, that came later does not keep a file from main."""
    deployment.replace_rows("upsert")
    deployment.upload_contract(RETURNS, OTHER_TABLE)
    deployment.ended(FIRST)
    early = deployment.land_unannounced("shop/orders/early.parquet")
    if other == "a change":
        later = deployment.change()
    else:
        later = deployment.land("shop/returns/late.parquet")
    for _ in range(3):
        deployment.go()
    assert deployment.states(later) == [State.PUBLISHED]
    assert deployment.end_of(early).state is State.PUBLISHED


def test_only_an_audited_file_is_judged_by_its_order(deployment: Scenario) -> None:
    """A file in flight when the contract changed runs again; then its audit comes first."""
    first = deployment.submit("shop/orders/a.parquet")
    deployment.submit("shop/orders/b.parquet")
    deployment.run_one_job(1)
    deployment.deliver()
    deployment.replace_rows("overwrite")
    deployment.check()
    assert deployment.end(first) == f"rejected {OUT_OF_ORDER}"
    history = deployment.ledger.history(first.id)
    assert State.AUDITED in {each.state for each in history if each.attempt == 2}


def test_who_publishes_an_older_version_is_told_the_risk(deployment: Scenario) -> None:
    """Rows that replace others do not come twice: the refusal says that they may be older."""
    deployment.replace_rows("upsert")
    old = deployment.ended(KEY, script=rejected)
    deployment.ended(KEY)
    with pytest.raises(LakegateError, match="may be older than those that they would replace"):
        deployment.publish_anyway(old)


def test_what_main_lost_replaces_no_newer_rows(deployment: Scenario) -> None:
    """A file that main lost, when it was set back, is not replayed over one that came since."""
    deployment.replace_rows("overwrite")
    deployment.ended(FIRST)
    lost = deployment.ended(KEY)
    log = [commit.hash for commit in deployment.catalog.log()]
    deployment.others.set_back(log.index(lost.merge_hash) + 1)
    new = deployment.ended("shop/orders/new.parquet")
    deployment.replay(lost)
    deployment.settle()
    assert deployment.end(lost) == f"rejected {OUT_OF_ORDER}"
    assert deployment.on_main(lost, new) == [False, True]


def test_an_approved_order_outlives_a_conflict(deployment: Scenario) -> None:
    """If main refuses an approved late file, its job runs again, and nobody is asked again."""
    early = late(deployment)
    deployment.others.append(TABLE)
    deployment.publish_anyway(early)
    deployment.check()
    done = deployment.ingestion(early)
    assert (done.state, done.attempt, done.decisions.approved_by) == (State.PUBLISHED, 2, "Ann")


def test_a_column_that_decides_needs_no_order(deployment: Scenario) -> None:
    """With `latestBy` a late file is merged: older rows do not replace newer ones."""
    deployment.replace_rows("upsert", latestBy="id")
    deployment.ended(FIRST)
    early = deployment.land_unannounced("shop/orders/early.parquet")
    deployment.ended("shop/orders/late.parquet")
    assert deployment.end_of(early).state is State.PUBLISHED


def test_a_batch_brings_no_such_file(deployment: Scenario) -> None:
    """A batch with a file of such a table ends errored, and says what to do."""
    deployment.replace_rows("upsert")
    batch = deployment.batch("monday", {"a.parquet": TABLE})
    deployment.settle()
    assert deployment.end(batch) == "errored NOT_IN_BATCH"
    assert "writeMode: upsert" in deployment.message(batch)


def test_rows_that_replaced_others_are_not_retracted(deployment: Scenario) -> None:
    """The request is refused, and names the commit before which the rows were there."""
    deployment.replace_rows("overwrite")
    done = deployment.ended()
    with pytest.raises(LakegateError, match=done.merge_hash) as caught:
        retract(deployment.adapters, done, "Ann", "wrong day")
    assert caught.value.code == "ROWS_REPLACED"
