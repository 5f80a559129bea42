"""Versions of a key add up on main, or the newest one replaces the others."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.model import merge_commit
from functions.model.ingestion import Ingestion, State
from functions.operations.reconcile.compare import reconciled
from functions.pipeline.outcome.versions import is_newer, status_among
from functions.pipeline.verdict.complete import conclude
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject, ingestion_id
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import TABLE
from tests.fakes.faults import Fault, ProcessDied, When
from tests.fakes.job import ROWS, rejected
from tests.fakes.promises import left_behind, publishing
from tests.fakes.scenario import KEY, Scenario

pytestmark = pytest.mark.usefixtures("quiet")

WHENS: list[When] = ["before", "after"]


@pytest.fixture
def deployment() -> Scenario:
    """Return a deployment whose table has a file of another key, and replaces versions."""
    return replacing()


def replacing() -> Scenario:
    deployment = Scenario()
    deployment.ask(onNewVersion="replace")
    deployment.ended("shop/orders/other.parquet")
    return deployment


def on_main(deployment: Scenario) -> list[str]:
    """Return the versions of the key whose rows are on main."""
    return [f.partition("@")[2] for f in deployment.published_files() if f"/{KEY}@" in f]


def test_a_new_version_replaces_the_earlier_one(deployment: Scenario) -> None:
    """A new version's rows replace the earlier one's in one commit, and main's log keeps both."""
    first, second, third = (deployment.ended() for _ in range(3))
    assert on_main(deployment) == ["v3"]
    assert (second.replaced, second.audit.replaced_rows) == ((first.id,), ROWS)
    assert (third.replaced, third.audit.replaced_rows) == ((second.id,), ROWS)
    said = [merge_commit.published(c)[0] for c in publishing(deployment)[:2]]
    assert [(each.id, each.replaced, each.replaced_rows) for each in said] == [
        (third.id, (second.id,), ROWS),
        (second.id, (first.id,), ROWS),
    ]
    assert deployment.alerts.posted == []
    assert left_behind(deployment) == []


def test_the_sum_takes_account_of_what_was_replaced(deployment: Scenario) -> None:
    """Reconcile subtracts replaced rows, so that landing, ledger, log and rows agree."""
    for _ in range(3):
        deployment.ended()
    found = reconciled(deployment.adapters, thorough=True)
    assert found.problems == ()
    (table,) = found.balances
    assert (table.published, table.rows.live, table.off) == (2 * ROWS, 2 * ROWS, 0)


def test_versions_add_up_where_nothing_else_is_asked(deployment: Scenario) -> None:
    """Without the setting, versions add up."""
    deployment.ask()
    deployment.ended()
    deployment.ended()
    assert on_main(deployment) == ["v1", "v2"]


def test_all_earlier_versions_are_replaced(deployment: Scenario) -> None:
    """A contract that begins to replace also replaces versions that added up before."""
    deployment.ask()
    earlier = [deployment.ended() for _ in range(2)]
    deployment.ask(onNewVersion="replace")
    newest = deployment.ended()
    assert on_main(deployment) == ["v3"]
    assert set(newest.replaced) == {each.id for each in earlier}
    assert newest.audit.replaced_rows == 2 * ROWS


def test_an_older_version_that_comes_late_is_ignored(deployment: Scenario) -> None:
    """An older version ends superseded if a newer one is published, and leaves nothing."""
    deployment.loses_events = True
    late = deployment.land(KEY)
    deployment.loses_events = False
    newer = deployment.land(KEY)
    deployment.go(2)
    assert deployment.end_of(newer).state is State.PUBLISHED
    ended = deployment.ingestion(late)
    assert (ended.state, on_main(deployment)) == (State.IGNORED, ["v2"])
    assert deployment.end(ended) == "ignored SUPERSEDED"
    assert deployment.alerts.posted == []
    assert left_behind(deployment) == []


def test_an_older_version_waits_for_a_newer_one_that_the_ledger_lost(deployment: Scenario) -> None:
    """It does not come beside a version that main has, until the sweep has restored that one."""
    older, newer = deployment.submit(), deployment.submit()
    deployment.run_one_job(1)
    deployment.deliver()
    assert deployment.ingestion(newer).state is State.PUBLISHED
    deployment.ledger.lose(newer.id)
    deployment.run_one_job(0)
    deployment.deliver()
    deployment.settle()
    assert deployment.states(older, newer) == [State.IGNORED, State.PUBLISHED]
    assert on_main(deployment) == ["v2"]


def test_a_rejected_version_replaces_nothing(deployment: Scenario) -> None:
    """A version that was rejected leaves the earlier version's rows where they are."""
    deployment.ended()
    deployment.ended(script=rejected)
    assert on_main(deployment) == ["v1"]
    deployment.ended()
    assert on_main(deployment) == ["v3"]


def test_the_same_bytes_again_replace_their_like(deployment: Scenario) -> None:
    """A version that was dropped twice is not a duplicate, and its rows are on main once."""
    deployment.ask(onNewVersion="replace", onDuplicate="hold")
    for _ in range(2):
        assert deployment.ended(body=b"the same").state is State.PUBLISHED
    assert on_main(deployment) == ["v2"]
    assert deployment.alerts.posted == []


def test_a_first_version_that_main_refuses_is_rebased(deployment: Scenario) -> None:
    """A first version has nothing to replace, and is rebased by metadata alone."""
    landed = deployment.run()
    deployment.move_main()
    ingestion = deployment.end_of(landed)
    assert (ingestion.state, ingestion.attempt) == (State.PUBLISHED, 1)
    assert on_main(deployment) == ["v1"]


def test_a_version_that_replaces_joins_no_group(deployment: Scenario) -> None:
    """A version that has to replace earlier versions joins no group of files."""
    deployment.ended()
    deployment.ask()
    other = deployment.land("shop/orders/b.parquet")
    deployment.deliver()
    deployment.ask(onNewVersion="replace")
    version = deployment.land(KEY)
    deployment.deliver()
    deployment.ask()
    quick = deployment.run("shop/orders/c.parquet")
    deployment.kill("ledger.versions")
    deployment.kill("catalog.merge")
    deployment.deliver()
    assert deployment.states(other, version) == [State.AUDITED] * 2
    assert deployment.states(quick) == [State.PUBLISHED]
    deployment.publish(other)
    assert deployment.states(other, version) == [State.PUBLISHED, State.AUDITED]
    deployment.ask(onNewVersion="replace")  # the contract in force decides whether it replaces
    deployment.settle()
    assert on_main(deployment) == ["v2"]


def compacted(deployment: Scenario) -> None:
    """Let another process rewrite all of the table's files on main into one."""
    table = deployment.main()
    deployment.catalog.commit("main", TABLE, FakeTable(table.uuid, ("compacted#1",)))


def test_rows_that_cannot_be_found_need_a_decision(deployment: Scenario) -> None:
    """After a compaction nothing is published, and an alert says what to do."""
    deployment.ended()
    compacted(deployment)
    held = deployment.ended()
    assert (held.state, deployment.published_files()) == (State.REJECTED, ["compacted"])
    assert deployment.end(held) == "rejected CANNOT_REPLACE"
    ((_, alert),) = deployment.alerts.posted
    assert held.branch in str(alert.blocks)
    assert f"lakegate publish {held.id}" in str(alert.commands)
    assert deployment.catalog.head(held.branch) == held.audited_hash
    assert deployment.catalog.branches("publish/") == []


def test_a_version_of_a_dropped_table_needs_a_decision(deployment: Scenario) -> None:
    """If the table with the earlier rows was dropped, an alert follows after one job run."""
    deployment.ended()
    newer = deployment.run()
    runs = len(deployment.jobs.runs())
    deployment.others.drop(TABLE)
    ended = deployment.end_of(newer)
    assert deployment.end(ended) == "rejected CANNOT_REPLACE"
    assert len(deployment.jobs.runs()) == runs


def test_an_approved_version_of_a_dropped_table_makes_it_again(deployment: Scenario) -> None:
    """Whoever publishes it although the table is gone gets a table with its rows."""
    deployment.ended()
    newer = deployment.run()
    deployment.others.drop(TABLE)
    held = deployment.end_of(newer)
    deployment.publish_anyway(held, "Ada")
    deployment.settle()
    assert deployment.end(held) == "published CANNOT_REPLACE"
    assert deployment.published_files() == [f"s3://landing/{KEY}@v2"]
    assert deployment.ended().state is State.PUBLISHED
    assert deployment.published_files() == [f"s3://landing/{KEY}@v3"]


def test_an_approval_settles_rows_that_cannot_be_found(deployment: Scenario) -> None:
    """A published-anyway version removes all earlier rows that are left, and the next is normal."""
    deployment.ended()
    compacted(deployment)
    held = deployment.ended()
    settled = deployment.publish_anyway(held, "Ada").ingestion
    assert settled.state is State.PUBLISHED
    said = merge_commit.published(publishing(deployment)[0])
    assert [each.approved_by for each in said] == ["Ada"]
    assert deployment.published_files() == ["compacted", f"s3://landing/{KEY}@v2"]
    assert settled.audit.replaced_rows == 0
    assert deployment.ended().state is State.PUBLISHED
    assert deployment.published_files() == ["compacted", f"s3://landing/{KEY}@v3"]


def test_an_approval_of_checks_does_not_cover_earlier_rows(deployment: Scenario) -> None:
    """An approval of failed checks does not cover earlier rows that cannot be found."""
    deployment.ended()
    compacted(deployment)
    bad = deployment.ended(script=rejected)
    ended = deployment.publish_anyway(bad, "Ada").ingestion
    assert deployment.end(ended) == "rejected CANNOT_REPLACE"
    assert deployment.published_files() == ["compacted"]


def test_a_report_that_names_no_files_needs_a_decision(deployment: Scenario) -> None:
    """A version whose data files are unknown needs a decision."""
    deployment.ended(script=lambda report: replace(report, files=()))
    held = deployment.ended()
    assert deployment.end(held) == "rejected CANNOT_REPLACE"
    assert on_main(deployment) == ["v1"]


def audited(deployment: Scenario, versions: int) -> dict[str, str]:
    """Return the job runs of versions of the key, all ended but not yet judged."""
    landed = [deployment.land(KEY) for _ in range(versions)]
    deployment.go()
    runs = {run.name: run.id for run in deployment.jobs.runs()}
    return {each.version: runs[f"{ingestion_id(each)}-1"] for each in landed}


def concluded(deployment: Scenario, run: str) -> None:
    """Conclude the job run in one process; leave what fails to others."""
    try:
        conclude(deployment.adapters, run)
    except (LakegateError, ProcessDied):
        return


def check(deployment: Scenario, newest: str, where: str) -> None:
    """Check that only the newest version's rows are on main at rest, and every promise."""
    deployment.check()
    assert on_main(deployment) == [newest], where
    assert len(deployment.published_files()) == len(on_main(deployment)) + 1, where


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("order", list(permutations(["v1", "v2", "v3"])), ids="-".join)
def test_versions_that_meet_anywhere_leave_the_newest(
    order: tuple[str, ...], when: When, *, begun: bool
) -> None:
    """A publisher that hangs at any call while the next works leaves only the newest version.

    The next one works before or after its verdict.
    """
    for number, call, paused in _struck(order, when, begun=begun):
        check(paused, "v3", f"a pause {when} call {number}, {call}")


HANGS = st.tuples(st.sampled_from(["v1", "v2", "v3"]), st.integers(0, 24), st.sampled_from(WHENS))


@settings(max_examples=250, deadline=None)
@given(st.lists(HANGS, min_size=2, max_size=5))
def test_publishers_that_hang_within_each_other_leave_the_newest(
    hangs: list[tuple[str, int, When]],
) -> None:
    """Publishers that hang within each other leave only the newest version.

    This also holds for two publishers of one version.
    """
    deployment = replacing()
    runs = audited(deployment, 3)

    def work(left: list[tuple[str, int, When]]) -> None:
        if left:
            version, number, when = left[0]
            pause = Fault(partial(work, left[1:]), when)
            deployment.journal.strike_at(len(deployment.journal.calls) + number, pause)
            concluded(deployment, runs[version])

    work(hangs)
    check(deployment, "v3", str(hangs))


def _struck(
    order: tuple[str, ...], when: When, *, begun: bool
) -> Iterator[tuple[int, str, Scenario]]:
    """Yield, for each call of the second publisher, that call during which the third one works.

    With `begun`, the third one's version is audited, and its publisher died.
    """
    number, left = 0, True
    while left:
        deployment = replacing()
        runs = audited(deployment, 3)
        first, second, third = (runs[version] for version in order)
        concluded(deployment, first)
        if begun:
            deployment.kill("ledger.versions")
            concluded(deployment, third)
        start = len(deployment.journal.calls)
        met: list[str] = []
        effect = partial(_meet, deployment, met, partial(concluded, deployment, third))
        deployment.journal.strike_at(start + number, Fault(effect, when))
        concluded(deployment, second)
        left = bool(met)
        concluded(deployment, third)
        if left:
            yield number, met[0], deployment
        number += 1


def _meet(deployment: Scenario, met: list[str], effect: Callable[[], None]) -> None:
    met.append(deployment.journal.calls[-1])
    effect()


def version(number: int, sequencer: str, landed_at: str, name: str = "") -> Ingestion:
    """Return a version of the key."""
    landed = LandedObject("landing", KEY, name or f"{number}", "e", 1, sequencer, landed_at)
    return Ingestion(id=f"{number}", landed=landed)


def test_sequencers_are_numbers() -> None:
    """Sequencers compare as hexadecimal numbers, regardless of length, case and the clock."""
    assert is_newer(version(1, "10", "2026"), version(2, "F", "2027"))
    assert not is_newer(version(1, "0a", "2027"), version(2, "0B", "2026"))
    assert not is_newer(version(1, "00F", "2026"), version(1, "F", "2026"))


def test_without_sequencers_the_time_decides() -> None:
    """Without sequencers, as for listed versions, times decide, and then the version ids."""
    assert is_newer(version(1, "", "2027"), version(2, "F", "2026"))
    assert is_newer(version(1, "", "2026", "b"), version(2, "", "2026", "a"))


VERSIONS = st.builds(
    version,
    st.integers(0, 9),
    st.sampled_from(["", "A", "0B", "10"]),
    st.sampled_from(["2026", "2027"]),
)


@given(VERSIONS, VERSIONS)
def test_one_of_two_is_newer(one: Ingestion, other: Ingestion) -> None:
    """Exactly one of two versions is newer, unless all compared fields are equal."""
    if one.landed.version != other.landed.version:
        assert is_newer(one, other) != is_newer(other, one)
    assert not is_newer(one, one)


def test_replaced_versions_are_not_live() -> None:
    """A new version replaces only the versions that are still live."""
    older = [version(n, f"{n}", "2026") for n in range(1, 4)]
    older[1] = replace(older[1], replaced=("1",))
    status = status_among(version(4, "4", "2026"), older)
    assert [each.id for each in status.live] == ["2", "3"]
    assert not status.newer
    assert status_among(older[0], older[1:]).newer
