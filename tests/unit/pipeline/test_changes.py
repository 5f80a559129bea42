"""Changes, which are audited and published once in the table queue, and reported like files."""

from dataclasses import replace

import pytest

from functions.adapters.ledger.items import from_item, to_item
from functions.model import merge_commit
from functions.model.decisions import Approval, Decisions
from functions.model.ingestion import Ingestion, State
from functions.operations.reconcile.compare import reconciled
from functions.operations.recovery.rebuild_ledger import rebuild
from functions.pipeline.start.intake import ask
from functions.pipeline.verdict.complete import judge
from lakegate.errors import LakegateError, Permanent
from lakegate.job.change import Change
from lakegate.job.landing import LandedObject
from tests.fakes.deployment import TABLE
from tests.fakes.faults import Fault, die
from tests.fakes.job import Script, passed, rejected
from tests.fakes.promises import unwatched
from tests.fakes.scenario import FIRST, Scenario

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture(autouse=True)
def _first(deployment: Scenario) -> None:
    """Publish a first file of the table."""
    deployment.ended(FIRST)


def refused_once(deployment: Scenario) -> LandedObject:
    """Return a change that main refused, since a file came first; its second run is in flight."""
    deployment.land("shop/orders/a.parquet")
    deployment.deliver()
    change = deployment.change()
    deployment.run_jobs()
    deployment.deliver()
    again = deployment.ingestion(change)
    assert (again.state, again.attempt) == (State.SUBMITTED, 2)
    return change


def overtaking(deployment: Scenario, *names: str) -> list[LandedObject]:
    """Return files that land while the change's second run is in flight, and pass their audit."""
    files = [deployment.land(f"shop/orders/{name}.parquet") for name in names]
    deployment.deliver()
    for _ in files:
        deployment.run_one_job(1)  # that of a file: the change's was started before
    deployment.deliver()
    return files


def test_a_change_is_published_by_a_commit_that_reports_it(deployment: Scenario) -> None:
    """Main's log has the statement, who requested it and why, and the rows; reconcile agrees."""
    done = deployment.end_of(deployment.change())
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


def test_a_change_asked_for_twice_is_made_once(deployment: Scenario) -> None:
    """One token is one change, however often it is given; another token is another one."""
    runs = []
    for token in (1, 1, 2):
        deployment.end_of(deployment.change(token))
        runs.append(len(deployment.jobs.runs()))
    assert runs == [2, 2, 3]


def test_the_sweep_continues_a_change_whose_command_died(deployment: Scenario) -> None:
    """The sweep ingests a change whose text is stored, even if the command died."""
    change = Change(TABLE, "DELETE FROM shop.orders", "token", "Ann", "why")
    deployment.adapters.lake.put_change(change)
    landed = change.landed("lake")
    deployment.script(landed, lambda report: report)
    done = deployment.end_of(landed)
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
    deployment: Scenario, change: Change, code: str
) -> None:
    """A change that cannot be run is refused at once, and leaves nothing."""
    with pytest.raises(LakegateError) as caught:
        ask(deployment.adapters, change)
    assert caught.value.code == code
    assert list(deployment.lake.changes()) == []


def test_a_group_of_files_leaves_a_change_out(deployment: Scenario) -> None:
    """Files that wait together are registered again without the change that waits with them."""
    first, change = deployment.land("shop/orders/a.parquet"), deployment.change()
    second = deployment.land("shop/orders/b.parquet")
    deployment.run("shop/orders/another.parquet")
    deployment.fail("catalog.merge", times=3)
    deployment.deliver()
    deployment.publish(first)
    groups = [deployment.ingestion(each).group for each in (first, second, change)]
    assert groups[0] == groups[1]
    assert len(groups[0]) == 2
    assert groups[2] == ()


@pytest.mark.parametrize(
    ("script", "end", "names"),
    [(passed, State.PUBLISHED, "xyz"), (rejected, State.REJECTED, "x")],
)
def test_files_wait_for_a_change_that_was_refused(
    deployment: Scenario, script: Script, end: State, names: str
) -> None:
    """A refused change ends although files keep coming; they follow without a sweep."""
    change = refused_once(deployment)
    deployment.script(change, script)
    files = overtaking(deployment, *names)
    assert deployment.states(*files) == [State.AUDITED] * len(names)
    deployment.run_jobs()
    deployment.deliver()
    assert deployment.states(change, *files) == [end, *[State.PUBLISHED] * len(names)]


def test_files_do_not_wait_for_a_stuck_change(deployment: Scenario) -> None:
    """Files do not wait for a change that has been stuck for longer than a job may take."""
    change = refused_once(deployment)
    deployment.clock.pass_(60 * 60 + 2 * deployment.settings.grace_seconds + 1)
    (file,) = overtaking(deployment, "x")
    assert deployment.states(file, change) == [State.PUBLISHED, State.SUBMITTED]


def test_a_refused_version_is_not_taken_from_rewritten_files(deployment: Scenario) -> None:
    """If a change rewrote an earlier version's files, the newer version needs a decision."""
    deployment.ask(onNewVersion="replace")
    deployment.ended("shop/orders/v.parquet")
    deployment.end_of(deployment.change())
    newer = deployment.ended("shop/orders/v.parquet")
    assert deployment.end(newer) == "rejected CANNOT_REPLACE"


def test_a_try_to_replace_leaves_nothing_when_a_change_comes_between(
    deployment: Scenario,
) -> None:
    """The branch of a publisher that died is gone once its version needs a decision."""
    deployment.ask(onNewVersion="replace")
    deployment.ended("shop/orders/v.parquet")
    newer = deployment.run("shop/orders/v.parquet")
    deployment.journal.strike_later("ledger.save", Fault(die), 1)
    deployment.deliver()
    assert len(deployment.catalog.branches("publish/")) == 1
    change = deployment.change()
    deployment.run_jobs()
    judge(deployment.adapters, deployment.ingestion(change).job_run)
    deployment.publish(change)
    assert deployment.end_of(newer).state is State.REJECTED


def test_a_change_of_versions_replaces_none(deployment: Scenario) -> None:
    """Settings for files that come again do not apply to a change."""
    deployment.ask(onNewVersion="replace", onDuplicate="hold")
    done = deployment.end_of(deployment.change())
    assert (done.state, done.terms.on_new_version, done.terms.on_duplicate) == (
        "published",
        "add",
        "publish",
    )


def test_a_rejected_change_can_be_approved(deployment: Scenario) -> None:
    """The alert shows the statement and who requested it; approved, the change is on main."""
    failed = deployment.end_of(deployment.change(script=rejected))
    ((_, told),) = deployment.alerts.posted
    assert told.text.startswith("shop.orders: change of shop.orders rejected, ")
    assert "UPDATE shop.orders SET id = id + 1" in str(told.blocks)
    assert "*Change* by Ann" in str(told.blocks)
    again = deployment.end_of(deployment.replay(failed).ingestion)
    assert (again.state, again.attempt) == (State.REJECTED, 2)
    assert deployment.publish_anyway(again).ingestion.state is State.PUBLISHED


def test_a_change_that_only_removes_can_be_published_anyway() -> None:
    """A change that only removes rows can be published; a change without any rows cannot."""
    change = Change(TABLE, "DELETE FROM shop.orders", "t")
    failed = Ingestion(id="a", landed=change.landed("lake"), change=change, branch="b")
    assert replace(failed, audit=replace(failed.audit, replaced_rows=3)).has_rows
    assert not failed.has_rows
    assert not replace(failed, change=None, audit=replace(failed.audit, replaced_rows=3)).has_rows


def test_a_change_whose_text_is_gone_is_never_taken_for_a_file(deployment: Scenario) -> None:
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
    kept = replace(kept, decisions=Decisions(approval=Approval("Ann", "why", "now", ())))
    assert from_item(to_item(kept)) == kept
