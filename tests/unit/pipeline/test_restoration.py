"""A table's rows go back to an earlier commit: once, as shown before, by a commit that says why."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.model import merge_commit
from functions.model.ingestion import Ingestion, State
from functions.operations.decisions.restore import Undo, restore, undo
from functions.operations.decisions.takeover import gate, takeover
from functions.operations.reconcile.compare import reconciled
from functions.pipeline.outcome.restorations import undoing
from functions.pipeline.start.intake import ask, retract
from lakegate.errors import LakegateError
from lakegate.job.change import Change, restoration
from lakegate.job.landing import LandedObject
from tests.fakes.deployment import OTHER_TABLE, TABLE
from tests.fakes.faults import ProcessDied, When
from tests.fakes.job import ROWS, Script, passed, rejected
from tests.fakes.others import rows_of
from tests.fakes.promises import check_promises, publishing, unwatched
from tests.fakes.scenario import KEY, Scenario

pytestmark = pytest.mark.usefixtures("quiet")
WHENS: list[When] = ["before", "after"]
OTHER, LATE = "shop/orders/other.parquet", "shop/orders/late.parquet"


def asked(deployment: Scenario, wanted: Undo, script: Script = passed) -> LandedObject:
    """Return the request of a restoration; the command is repeated if it fails."""
    landed = wanted.change().landed("lake")
    deployment.script(landed, script)
    for _ in range(3):
        with suppress(LakegateError, ProcessDied):
            restore(deployment.adapters, wanted, "Ann", "a bad load")
            break
    return landed


def restored(deployment: Scenario, to: str) -> Ingestion:
    """Return the restoration of shop.orders to a commit or a time, after it ended."""
    return deployment.end_of(asked(deployment, undo(deployment.adapters, TABLE, to)))


def files(deployment: Scenario) -> list[str]:
    """Return the addresses of the landed objects whose rows main has."""
    return [each.partition("@")[0] for each in deployment.published_files()]


def code(deployment: Scenario, to: str, table: str = TABLE) -> str:
    """Return the code of the error with which a restoration is refused; it says what to do."""
    with pytest.raises(LakegateError) as caught:
        undo(deployment.adapters, table, to)
    assert len(caught.value.message.splitlines()) == 2
    return caught.value.code


def test_a_commit_says_who_went_back_to_where_and_why(deployment: Scenario) -> None:
    """What came since is gone, what was there stays; log, ledger and reconcile agree."""
    first = deployment.ended()
    deployment.ended(OTHER)
    done = restored(deployment, first.merge_hash)
    assert (done.state, done.audit.rows, done.audit.replaced_rows) == (State.PUBLISHED, 0, ROWS)
    assert files(deployment) == [first.landed.uri]
    commit = merge_commit.commit_of(deployment.catalog.log(), done)
    (entry,) = merge_commit.published(commit)
    assert (entry.asked_by, entry.asked_because) == ("Ann", "a bad load")
    assert commit.message == (
        f"Restore shop.orders to {first.merge_hash[:12]}, 0 rows added, 3 removed, by Ann: "
        "a bad load"
    )
    found = reconciled(unwatched(deployment), thorough=True)
    assert (found.problems, found.remarks) == ((), ())


def test_a_commit_is_found_by_the_second_that_its_log_shows(deployment: Scenario) -> None:
    """`lakegate log` shows whole seconds: one of them means all of it, the commit included."""
    deployment.ended()
    deployment.clock.pass_(60)
    second = merge_commit.commit_of(deployment.catalog.log(), deployment.ended(OTHER))
    deployment.clock.pass_(60)
    deployment.ended(LATE)
    assert not second.at.endswith(".000+00:00")
    found = undo(deployment.adapters, TABLE, f"{second.at[:19]}.000+00:00").to
    there, wanted = (deployment.catalog.metadata(each.hash, TABLE) for each in (found, second))
    assert there == wanted


def test_rows_that_a_change_rewrote_come_back(deployment: Scenario) -> None:
    """Data files that are no longer listed are written again."""
    first = deployment.ended()
    deployment.end_of(deployment.change())
    done = restored(deployment, first.merge_hash)
    assert (done.state, done.audit.rows) == (State.PUBLISHED, ROWS)
    assert files(deployment) == [first.landed.uri]


def test_a_restoration_can_be_undone(deployment: Scenario) -> None:
    """Main's history is kept, so the state before a restoration is one to go back to."""
    first, second = deployment.ended(), deployment.ended(OTHER)
    restored(deployment, first.merge_hash)
    both = [first.id, second.id]
    assert list(undoing(deployment.adapters, TABLE, both)) == [second.id]
    assert restored(deployment, second.merge_hash).state is State.PUBLISHED
    assert sorted(files(deployment)) == sorted([first.landed.uri, second.landed.uri])
    assert undoing(deployment.adapters, TABLE, both) == {}


def test_a_time_means_mains_last_commit_then(deployment: Scenario) -> None:
    """The state at a time is that of the newest commit at that time."""
    first = deployment.ended()
    deployment.clock.pass_(60)
    at = deployment.clock.now()
    deployment.clock.pass_(60)
    deployment.ended(OTHER)
    wanted = undo(deployment.adapters, TABLE, at)
    assert undo(deployment.adapters, TABLE, wanted.to.hash).to == wanted.to
    assert deployment.catalog.table(wanted.to.hash, TABLE) == deployment.catalog.table(
        first.merge_hash, TABLE
    )
    assert wanted.commits == 1


def test_a_file_that_comes_meanwhile_is_not_lost(deployment: Scenario) -> None:
    """A restoration is for the state that was shown: a file that main took since refuses it."""
    first = deployment.ended()
    deployment.ended(OTHER)
    wanted = undo(deployment.adapters, TABLE, first.merge_hash)
    late = deployment.ended(LATE)
    with pytest.raises(
        LakegateError, match=r"lakegate restore shop\.orders --to .* --reason TEXT"
    ) as caught:
        restore(deployment.adapters, wanted, "Ann", "a bad load")
    assert caught.value.code == "TABLE_MOVED"
    ask(deployment.adapters, wanted.change("Ann", "without the check of the command"))
    deployment.settle()
    assert deployment.end(wanted.change().landed("lake")) == "errored TABLE_MOVED"
    assert late.landed.uri in files(deployment)


def test_a_file_that_wins_the_merge_refuses_it(deployment: Scenario) -> None:
    """If main changes while its job runs, main refuses the branch, and it is not made again."""
    first = deployment.ended()
    deployment.ended(OTHER)
    done = asked(deployment, undo(deployment.adapters, TABLE, first.merge_hash))
    deployment.go()
    deployment.move_main()
    deployment.settle()
    assert deployment.end(done) == "errored TABLE_MOVED"
    assert len(files(deployment)) == 2


def test_files_wait_for_a_restoration(deployment: Scenario) -> None:
    """A file that passes its audit while the restoration runs is published right after it."""
    first = deployment.ended()
    deployment.ended(OTHER)
    wanted = undo(deployment.adapters, TABLE, first.merge_hash)
    done = asked(deployment, wanted)
    deployment.deliver()
    late = deployment.land(LATE)
    deployment.deliver()
    deployment.run_one_job(1)  # the file's
    deployment.deliver()
    assert deployment.ingestion(late).state is State.AUDITED
    deployment.run_jobs()
    deployment.deliver()
    states = {deployment.ingestion(each).state for each in (done, late)}
    assert states == {State.PUBLISHED}
    assert sorted(files(deployment)) == sorted([first.landed.uri, late.uri])


def test_two_at_once_are_one_or_one_is_refused(deployment: Scenario) -> None:
    """The same restoration twice is made once; another from the same state is refused."""
    first, second = deployment.ended(), deployment.ended(OTHER)
    deployment.ended(LATE)
    wanted = undo(deployment.adapters, TABLE, first.merge_hash)
    other = undo(deployment.adapters, TABLE, second.merge_hash)
    done = asked(deployment, wanted)
    again = restore(deployment.adapters, wanted, "Bob", "me too")
    assert again.id == deployment.ingestion(done).id
    late = asked(deployment, other)
    ends = sorted([deployment.end(deployment.end_of(done)), deployment.end(late)])
    assert ends == ["errored TABLE_MOVED", "published"]
    assert len(publishing(deployment)) == 4


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("call", ["lake.put_change", "ledger.begin", "jobs.start", "catalog.merge"])
def test_a_crash_repeats_nothing(deployment: Scenario, call: str, when: When) -> None:
    """Wherever a process dies, the table goes back once."""
    first = deployment.ended()
    deployment.ended(OTHER)
    deployment.kill(call, when)
    assert restored(deployment, first.merge_hash).state is State.PUBLISHED
    assert files(deployment) == [first.landed.uri]
    assert len(publishing(deployment)) == 3


def test_undone_bytes_may_come_again(deployment: Scenario) -> None:
    """The same bytes are no duplicate of rows that a restoration took away, until they are back."""
    deployment.ask(onDuplicate="hold")
    first, second = deployment.ended(), deployment.ended(OTHER, b"the same")
    restored(deployment, first.merge_hash)
    again = deployment.ended("shop/orders/again.parquet", b"the same")
    assert (again.state, again.audit.duplicate_of) == (State.PUBLISHED, "")
    restored(deployment, second.merge_hash)
    assert deployment.ended(LATE, b"the same").audit.duplicate_of == second.id


def test_a_newer_version_does_not_look_for_undone_rows() -> None:
    """A new version of a key is published although the rows that it would replace are gone."""
    deployment = Scenario()
    deployment.ask(onNewVersion="replace")
    first = deployment.ended(OTHER)
    deployment.ended(KEY)
    restored(deployment, first.merge_hash)
    second = deployment.ended(KEY)
    assert (second.state, second.replaced) == (State.PUBLISHED, ())
    assert len(files(deployment)) == 2


def retracted_and_restored(deployment: Scenario) -> Ingestion:
    """Return a published file that was retracted, and whose rows a restoration brought back."""
    first = deployment.ended(KEY, b"the same")
    deployment.end_of(retract(deployment.adapters, first, "Ann", "by mistake").landed)
    assert files(deployment) == []
    restored(deployment, first.merge_hash)
    assert files(deployment) == [first.landed.uri]
    return first


def test_a_file_whose_retraction_is_undone_counts_again(deployment: Scenario) -> None:
    """The same bytes as rows that a restoration brought back are a duplicate of these."""
    deployment.ask(onDuplicate="hold")
    first = retracted_and_restored(deployment)
    again = deployment.ended(LATE, b"the same")
    assert (again.state, again.audit.duplicate_of) == (State.REJECTED, first.id)


def test_a_second_retraction_says_that_nothing_would_happen(deployment: Scenario) -> None:
    """It is one request for each file, which was published: so it must not look done."""
    first = retracted_and_restored(deployment)
    with pytest.raises(LakegateError, match=r"lakegate change shop\.orders") as caught:
        retract(deployment.adapters, first, "Ann", "again")
    assert caught.value.code == "UNDONE"


def test_what_was_undone_is_not_done_by_its_old_request(deployment: Scenario) -> None:
    """A change with the token of one that was undone is refused, and a takeover likewise."""
    first = deployment.ended()
    change = Change(TABLE, "DELETE FROM shop.orders", "token", "Ann")
    deployment.end_of(ask(deployment.adapters, change).landed)
    deployment.others.write_on_own_branch("write/nightly", TABLE)
    wanted = takeover(deployment.adapters, "write/nightly", by="Ann", because="nightly")
    deployment.end_of(gate(deployment.adapters, wanted).landed)
    restored(deployment, first.merge_hash)
    for asked_again in (change, wanted):
        with pytest.raises(LakegateError) as caught:
            ask(deployment.adapters, asked_again)
        assert caught.value.code == "UNDONE"
        assert len(caught.value.message.splitlines()) == 2


def test_a_newer_version_finds_rows_that_came_back(deployment: Scenario) -> None:
    """A version is not published beside the rows of an earlier one, which were written again."""
    deployment.ask(onNewVersion="replace")
    first = retracted_and_restored(deployment)
    assert deployment.end(deployment.ended(KEY)) == "rejected CANNOT_REPLACE"
    assert files(deployment) == [first.landed.uri]


def test_what_cannot_be_gone_back_to_is_refused(deployment: Scenario) -> None:
    """An unknown commit, one of a branch, one before the table, or the state of now is refused."""
    deployment.batch("monday", {"b.parquet": OTHER_TABLE})
    deployment.settle()
    before = deployment.catalog.head("main")
    first = deployment.ended()
    failed = deployment.ended(LATE, script=rejected)
    assert code(deployment, "ffffffffffffffff") == "NOT_ON_MAIN"
    assert code(deployment, failed.audited_hash) == "NOT_ON_MAIN"
    assert code(deployment, "2001-01-01T00:00:00.000+00:00") == "NOT_ON_MAIN"
    assert code(deployment, before) == "NO_TABLE_THEN"
    assert code(deployment, before, "shop.nothing") == "NO_TABLE_THEN"
    assert code(deployment, first.merge_hash) == "NOTHING_TO_RESTORE"
    assert code(deployment, deployment.clock.now()) == "NOTHING_TO_RESTORE"


def test_a_state_that_upkeep_may_have_deleted_is_refused(deployment: Scenario) -> None:
    """It names the oldest state that is kept, and that one is not refused."""
    first = deployment.ended()
    deployment.clock.pass_(60)
    second = deployment.ended(OTHER)
    deployment.clock.pass_(60)
    kept_since = deployment.clock.now()
    deployment.clock.pass_(60)
    deployment.ended(LATE)
    note = deployment.ledger.upkeep()
    deployment.ledger.save_upkeep(replace(note, kept_since=kept_since))
    with pytest.raises(LakegateError, match=f"--to {kept_since[:10]}.* --reason T") as caught:
        undo(deployment.adapters, TABLE, first.merge_hash)
    assert caught.value.code == "TOO_OLD"
    assert undo(deployment.adapters, TABLE, kept_since).to.hash
    assert undo(deployment.adapters, TABLE, second.merge_hash).commits == 1
    deployment.ledger.save_upkeep(replace(deployment.ledger.upkeep(), kept_since=""))


def test_only_its_command_asks_for_one(deployment: Scenario) -> None:
    """It needs a name and a reason, is no SQL, and cannot be retracted."""
    first = deployment.ended()
    deployment.ended(OTHER)
    wanted = undo(deployment.adapters, TABLE, first.merge_hash)
    with pytest.raises(LakegateError) as nameless:
        restore(deployment.adapters, wanted, "Ann", " ")
    assert nameless.value.code == "NAME_NEEDED"
    with pytest.raises(LakegateError) as no_sql:
        ask(deployment.adapters, replace(wanted.change(), token="another"))
    assert no_sql.value.code == "NOT_SQL"
    done = restored(deployment, first.merge_hash)
    with pytest.raises(LakegateError) as retracted:
        retract(deployment.adapters, done, "Ann", "wrong")
    assert retracted.value.code == "NOT_ONE_FILE"


def test_other_changes_restore_nothing() -> None:
    """SQL and retractions name no commits."""
    for change in (Change(TABLE, "DELETE FROM shop.orders", "t"), Change(TABLE, "RESTORE a", "t")):
        assert (change.restores, change.replaces) == ("", "")
    both = restoration(TABLE, "a" * 64, "b" * 64)
    assert (both.restores, both.replaces, both.retracts) == ("a" * 64, "b" * 64, "")


STEPS = st.lists(st.one_of(st.just("file"), st.just("change"), st.integers(0, 9)), max_size=7)


@given(STEPS)
def test_the_table_is_what_it_was_at_the_commit(steps: list[str | int]) -> None:
    """Whatever came since, a restoration brings back exactly the rows of then.

    A file counts as undone if and only if its rows are gone.
    """
    deployment = Scenario()
    known = [deployment.ended(KEY)]
    commits = [known[0].merge_hash]
    for number, step in enumerate(steps):
        if step == "file":
            known.append(deployment.ended(f"shop/orders/{number}.parquet"))
        elif step == "change":
            deployment.end_of(deployment.change(number))
        else:
            to = commits[int(step) % len(commits)]
            with suppress(LakegateError):  # nothing has changed since
                assert restored(deployment, to).state is State.PUBLISHED
            assert rows_of(deployment.catalog, "main") == rows_of(deployment.catalog, to)
        commits.append(deployment.catalog.head("main"))
    there = files(deployment)
    gone = {file.id for file in known if not any(file.landed.uri in each for each in there)}
    assert undoing(deployment.adapters, TABLE, [file.id for file in known]).keys() == gone
    check_promises(deployment)
