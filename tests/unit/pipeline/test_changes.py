"""Changes, which are audited and published once in the table queue, and reported like files."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from functions.adapters.ledger_items import from_item, to_item
from functions.model import merge_commit
from functions.model.ingestion import Approval, Ingestion, State
from functions.operations.failed import discard, publish_anyway, replay
from functions.operations.rebuild_ledger import rebuild
from functions.operations.reconcile import reconciled
from functions.pipeline.complete import judge
from functions.pipeline.intake import ask
from functions.pipeline.publish import publish
from lakegate.change import Change
from lakegate.errors import LakegateError, Permanent
from lakegate.landing import LandedObject
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.faults import Fault, die, unavailable
from tests.fakes.job import crashed, rejected
from tests.fakes.promises import check_promises, left_behind, unwatched

pytestmark = pytest.mark.usefixtures("quiet")

FIRST = "shop/orders/first.parquet"


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """Return a table with one file; check every promise at the end."""
    deployment = Deployment()
    deployment.land(FIRST)
    deployment.settle()
    yield deployment
    deployment.settle()
    check_promises(deployment)
    assert left_behind(deployment) == []


def refused_once(deployment: Deployment) -> LandedObject:
    """Return a change that main refused, since a file came first; its second run is in flight."""
    deployment.land("shop/orders/a.parquet")
    deployment.deliver()
    change = deployment.change()
    deployment.run_jobs()
    deployment.deliver()
    assert deployment.ingestion(change).attempt == 2
    assert deployment.ingestion(change).state is State.SUBMITTED
    return change


def judged(deployment: Deployment, landed: LandedObject) -> Ingestion:
    """Return an ingestion whose ended job run is judged, and which is still to be published."""
    found = judge(deployment.adapters, deployment.ingestion(landed).job_run)
    assert found is not None
    return found


def test_a_change_is_published_by_a_commit_that_reports_it(deployment: Deployment) -> None:
    """Main's log has the statement, who requested it and why, and the rows; reconcile agrees."""
    landed = deployment.change()
    deployment.settle()
    done = deployment.ingestion(landed)
    assert done.state is State.PUBLISHED
    commit = merge_commit.commit_of(deployment.catalog.log(), done)
    (entry,) = merge_commit.published(commit)
    assert (entry.kind, entry.statement) == ("change", "UPDATE shop.orders SET id = id + 1")
    assert (entry.asked_by, entry.rows, entry.replaced_rows) == ("Ann", 3, 0)
    assert commit.message == (
        "Change shop.orders, 3 rows added, 0 removed: UPDATE shop.orders SET id = id + 1"
    )
    found = reconciled(unwatched(deployment), thorough=True)
    assert (found.problems, found.remarks, found.landed) == ((), (), 2)


def test_a_change_asked_for_twice_is_made_once(deployment: Deployment) -> None:
    """One token is one change, however often it is given; another token is another one."""
    landed = deployment.change()
    deployment.settle()
    runs = len(deployment.jobs.runs())
    assert deployment.change() == landed
    deployment.settle()
    assert len(deployment.jobs.runs()) == runs
    assert deployment.change(2) != landed
    deployment.settle()
    assert len(deployment.jobs.runs()) == runs + 1


def test_the_sweep_continues_a_change_whose_command_died(deployment: Deployment) -> None:
    """The sweep ingests a change whose text is stored, even if the command died."""
    change = Change(TABLE, "DELETE FROM shop.orders", "token", "Ann", "why")
    deployment.adapters.lake.put_change(change)
    landed = change.landed("lake")
    deployment.script(landed, lambda report: report)
    deployment.settle()
    done = deployment.ingestion(landed)
    assert (done.state, done.change) == (State.PUBLISHED, change)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (Change("shop.nothing", "DELETE FROM shop.nothing", "t"), "NO_CONTRACT"),
        (Change(TABLE, "  ", "t"), "NO_STATEMENT"),
        (Change(TABLE, "DELETE" * 2000, "t"), "STATEMENT_TOO_LONG"),
    ],
)
def test_a_change_that_cannot_run_is_refused_at_once(
    deployment: Deployment, change: Change, code: str
) -> None:
    """A change that cannot be run is refused at once, and leaves nothing."""
    with pytest.raises(LakegateError) as caught:
        ask(deployment.adapters, change)
    assert caught.value.code == code
    assert list(deployment.lake.changes()) == []


def test_a_change_that_main_refuses_runs_again(deployment: Deployment) -> None:
    """A change that main refused runs again; it is never registered by metadata alone."""
    change = refused_once(deployment)
    deployment.settle()
    assert deployment.ingestion(change).state is State.PUBLISHED
    assert "tables.append_again" not in deployment.journal.calls


def test_a_group_of_files_leaves_a_change_out(deployment: Deployment) -> None:
    """Files that wait together are registered again without the change that waits with them."""
    first, change = deployment.land("shop/orders/a.parquet"), deployment.change()
    second = deployment.land("shop/orders/b.parquet")
    deployment.land("shop/orders/another.parquet")
    deployment.deliver()
    deployment.run_jobs()
    deployment.journal.strike("catalog.merge", Fault(unavailable, times=3))
    deployment.deliver()
    publish(deployment.adapters, deployment.ingestion(first))
    groups = [deployment.ingestion(each).group for each in (first, second, change)]
    assert groups[0] == groups[1]
    assert len(groups[0]) == 2
    assert groups[2] == ()


def test_files_wait_for_a_change_that_was_refused(deployment: Deployment) -> None:
    """A refused change is published although files keep coming; they follow without a sweep."""
    change = refused_once(deployment)
    files = [deployment.land(f"shop/orders/{name}.parquet") for name in "xyz"]
    deployment.deliver()
    for _ in files:
        deployment.run_one_job(1)  # that of a file: the change's was started before
    deployment.deliver()
    assert {deployment.ingestion(file).state for file in files} == {State.AUDITED}
    deployment.run_jobs()
    deployment.deliver()
    assert deployment.ingestion(change).state is State.PUBLISHED
    assert {deployment.ingestion(file).state for file in files} == {State.PUBLISHED}


def test_files_do_not_wait_for_a_stuck_change(deployment: Deployment) -> None:
    """Files do not wait for a change that has been stuck for longer than a job may take."""
    change = refused_once(deployment)
    deployment.clock.pass_(60 * 60 + 2 * deployment.settings.grace_seconds + 1)
    file = deployment.land("shop/orders/x.parquet")
    deployment.deliver()
    deployment.run_one_job(1)
    deployment.deliver()
    assert deployment.ingestion(file).state is State.PUBLISHED
    assert deployment.ingestion(change).state is State.SUBMITTED


def test_files_are_published_when_the_change_fails(deployment: Deployment) -> None:
    """Files that waited for a change are published at once when it fails."""
    change = refused_once(deployment)
    deployment.script(change, rejected)
    file = deployment.land("shop/orders/x.parquet")
    deployment.deliver()
    deployment.run_one_job(1)
    deployment.deliver()
    assert deployment.ingestion(file).state is State.AUDITED
    deployment.run_jobs()
    deployment.deliver()
    assert deployment.ingestion(change).state is State.REJECTED
    assert deployment.ingestion(file).state is State.PUBLISHED


def test_a_refused_version_is_not_taken_from_rewritten_files(deployment: Deployment) -> None:
    """If a change rewrote an earlier version's files, the newer version needs a decision."""
    deployment.ask(onNewVersion="replace")
    deployment.land("shop/orders/v.parquet")
    deployment.settle()
    deployment.change()
    deployment.settle()
    newer = deployment.land("shop/orders/v.parquet")
    deployment.settle()
    reason = deployment.ingestion(newer).reason
    assert reason is not None
    assert reason.code == "CANNOT_REPLACE"


def test_a_try_to_replace_leaves_nothing_when_a_change_comes_between(
    deployment: Deployment,
) -> None:
    """The branch of a publisher that died is gone once its version needs a decision."""
    deployment.ask(onNewVersion="replace")
    deployment.land("shop/orders/v.parquet")
    deployment.settle()
    newer = deployment.land("shop/orders/v.parquet")
    deployment.deliver()
    deployment.run_jobs()
    deployment.journal.strike_later("ledger.save", Fault(die), 1)
    deployment.deliver()
    assert len(deployment.catalog.branches("publish/")) == 1
    change = deployment.change()
    deployment.run_jobs()
    publish(deployment.adapters, judged(deployment, change))
    deployment.settle()
    assert deployment.ingestion(newer).state is State.REJECTED


def test_a_change_of_versions_replaces_none(deployment: Deployment) -> None:
    """Settings for files that come again do not apply to a change."""
    deployment.ask(onNewVersion="replace", onDuplicate="hold")
    landed = deployment.change()
    deployment.settle()
    done = deployment.ingestion(landed)
    assert (done.state, done.on_new_version, done.on_duplicate) == ("published", "add", "publish")


def test_a_rejected_change_can_be_approved(deployment: Deployment) -> None:
    """The alert shows the statement and who requested it; approved, the change is on main."""
    landed = deployment.change(script=rejected)
    deployment.settle()
    failed = deployment.ingestion(landed)
    assert failed.state is State.REJECTED
    ((_, told),) = deployment.alerts.posted
    assert told.text == "Rejected: change of shop.orders (CHECKS_FAILED)"
    assert "UPDATE shop.orders SET id = id + 1" in str(told.blocks)
    assert "*Change* by Ann" in str(told.blocks)
    replayed = replay(deployment.adapters, failed).ingestion
    assert replayed.state is State.SUBMITTED
    deployment.settle()
    published = publish_anyway(
        deployment.adapters, deployment.ingestion(landed), "Bob", "it is right"
    )
    assert published.ingestion.state is State.PUBLISHED


def test_a_change_that_only_removes_can_be_published_anyway() -> None:
    """A change that only removes rows can be published; a change without any rows cannot."""
    change = Change(TABLE, "DELETE FROM shop.orders", "t")
    failed = Ingestion(id="a", landed=change.landed("lake"), change=change, branch="b")
    assert replace(failed, replaced_rows=3).has_rows
    assert not failed.has_rows
    assert not replace(failed, change=None, replaced_rows=3).has_rows


def test_a_rejected_change_is_discarded(deployment: Deployment) -> None:
    """A discarded change has no branch, and main stays unchanged."""
    landed = deployment.change(script=rejected)
    deployment.settle()
    outcome = discard(deployment.adapters, deployment.ingestion(landed))
    assert outcome.ingestion.discarded
    assert deployment.catalog.branches("ingest/") == []


@pytest.mark.parametrize("script", [rejected, crashed])
def test_a_lost_change_is_restored_as_a_change(deployment: Deployment, script: object) -> None:
    """A lost change is restored from its text, main's log and its runs, and does not run twice."""
    done, bad = deployment.change(), deployment.change(2, script=script)  # type: ignore[arg-type]
    deployment.settle()
    before = {i.id: (i.state, i.change, i.rows) for i in deployment.ledger.all()}
    deployment.ledger.lose()
    assert len(list(rebuild(deployment.adapters))) == 3
    deployment.settle()
    assert {i.id: (i.state, i.change, i.rows) for i in deployment.ledger.all()} == before
    assert deployment.ingestion(done).change is not None
    assert deployment.ingestion(bad).change is not None


def test_a_change_whose_text_is_gone_is_never_taken_for_a_file(deployment: Deployment) -> None:
    """A ledger restored without the text still knows that it is a change."""
    landed = deployment.change()
    deployment.ledger.lose()
    deployment.lake.lose_change(landed.key)
    list(rebuild(deployment.adapters))
    found = deployment.ingestion(landed)
    assert found.change is not None
    assert found.change.table == TABLE
    deployment.lake.put_change(Change(TABLE, "UPDATE shop.orders SET id = id + 1", "token 1"))


def test_a_text_that_is_another_one_is_refused() -> None:
    """The key of a change's text must follow from its content."""
    change = Change(TABLE, "DELETE FROM shop.orders WHERE id = 1", "token", "Ann", "Größe")
    assert Change.from_json(change.to_json(), change.key) == change
    for text in (replace(change, statement="DELETE FROM shop.orders").to_json(), "{}", "[", "1"):
        with pytest.raises(Permanent, match="BAD_CHANGE"):
            Change.from_json(text, change.key)


def test_the_ledger_keeps_a_change() -> None:
    """The ledger keeps a change with any text."""
    change = Change(TABLE, "DELETE FROM shop.orders\nWHERE name = 'Ö'", "t", "Ann", '"why"')
    kept = Ingestion(id="a", landed=change.landed("lake", "2026-01-01"), change=change)
    kept = replace(kept, approval=Approval("Ann", "why", "now", ()))
    assert from_item(to_item(kept)) == kept
