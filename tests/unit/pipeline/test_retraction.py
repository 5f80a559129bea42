"""A published file's rows are removed on request: once, by a commit that names who and why."""

from contextlib import suppress
from dataclasses import replace

import pytest

from functions.model import merge_commit
from functions.model.ingestion import Ingestion, State
from functions.model.notes.upkeep_note import UpkeepNote
from functions.operations.reconcile.compare import reconciled
from functions.pipeline.start.intake import ask, retract
from lakegate.errors import LakegateError
from lakegate.job.change import Change, retraction
from lakegate.job.landing import ingestion_id
from tests.fakes.deployment import OTHER_TABLE, RETURNS, TABLE
from tests.fakes.faults import ProcessDied, When
from tests.fakes.job import ROWS, rejected
from tests.fakes.promises import publishing, unwatched
from tests.fakes.scenario import KEY, Scenario

pytestmark = pytest.mark.usefixtures("quiet")
WHENS: list[When] = ["before", "after"]
OTHER = "shop/orders/other.parquet"


def retracted(deployment: Scenario, published: Ingestion) -> Ingestion:
    """Return the request after it ended; the command is repeated if it fails."""
    landed = retraction(TABLE, published.id).landed("lake")
    deployment.script(landed, lambda report: report)
    for _ in range(3):
        with suppress(LakegateError, ProcessDied):
            retract(deployment.adapters, published, "Ann", "wrong day")
            break
    deployment.settle()
    return deployment.ingestion(landed)


def test_a_files_rows_are_removed_by_a_commit_that_says_why(deployment: Scenario) -> None:
    """Its rows are gone and those of others stay; log, ledger and reconcile agree."""
    other, file = deployment.ended(OTHER), deployment.ended()
    done = retracted(deployment, file)
    assert (done.state, done.audit.rows, done.audit.replaced_rows) == (State.PUBLISHED, 0, ROWS)
    assert [each.partition("@")[0] for each in deployment.published_files()] == [other.landed.uri]
    commit = merge_commit.commit_of(deployment.catalog.log(), done)
    (entry,) = merge_commit.published(commit)
    assert (entry.statement, entry.asked_by, entry.asked_because) == (
        f"RETRACT {file.id}",
        "Ann",
        "wrong day",
    )
    assert commit.message == (
        f"Retract {ROWS} rows of {file.id[:12]} from shop.orders, by Ann: wrong day"
    )
    found = reconciled(unwatched(deployment), thorough=True)
    assert (found.problems, found.remarks) == ((), ())


def test_it_happens_once(deployment: Scenario) -> None:
    """A second request, by whomever, is the first one."""
    file = deployment.ended()
    first = retracted(deployment, file)
    again = retract(deployment.adapters, file, "Bob", "me too")
    assert (again.id, again.change) == (first.id, first.change)
    assert len(publishing(deployment)) == 2


def test_only_a_published_file_of_one_table_is_retracted(deployment: Scenario) -> None:
    """What is not on main, changes and batches are refused with the reason, as is a blank name."""
    failed = deployment.ended(OTHER, script=rejected)
    file = deployment.ended()
    change = deployment.end_of(deployment.change())
    batch = deployment.end_of(
        deployment.batch("monday", {"a.parquet": TABLE, "b.parquet": "shop.returns"})
    )
    for refused, by, code in (
        (failed, "Ann", "NOT_PUBLISHED"),
        (change, "Ann", "NOT_ONE_FILE"),
        (batch, "Ann", "NOT_ONE_FILE"),
        (file, " ", "NAME_NEEDED"),
    ):
        with pytest.raises(LakegateError) as caught:
            retract(deployment.adapters, refused, by, "wrong")
        assert caught.value.code == code
    with pytest.raises(LakegateError) as caught:
        ask(deployment.adapters, Change(TABLE, f"RETRACT {file.id}", "another token"))
    assert caught.value.code == "NOT_SQL"


def test_another_tables_contract_stops_no_request(deployment: Scenario) -> None:
    """A contract that cannot be read stops changes of its own table, and of no other."""
    file = deployment.ended()
    deployment.upload_contract(RETURNS.replace("integer", "intger"), OTHER_TABLE)
    assert retracted(deployment, file).state is State.PUBLISHED
    with pytest.raises(LakegateError, match="intger"):
        ask(deployment.adapters, Change(OTHER_TABLE, "DELETE FROM x", "a token"))


def test_a_newer_version_does_not_look_for_retracted_rows() -> None:
    """A new version of a key is published although the rows that it would replace are gone."""
    deployment = Scenario()
    deployment.ask(onNewVersion="replace")
    first = deployment.ended()
    retracted(deployment, first)
    second = deployment.ended()
    assert (second.state, second.replaced) == (State.PUBLISHED, ())
    assert len(deployment.published_files()) == 1


def test_retracted_bytes_may_come_again(deployment: Scenario) -> None:
    """The same bytes are no duplicate of rows that were removed."""
    deployment.ask(onDuplicate="hold")
    first = deployment.ended(KEY, b"the same")
    assert deployment.ended(OTHER, b"the same").state is State.REJECTED
    retracted(deployment, first)
    again = deployment.ended("shop/orders/again.parquet", b"the same")
    assert (again.state, again.audit.duplicate_of) == (State.PUBLISHED, "")


def test_rows_that_were_rewritten_are_not_guessed(deployment: Scenario) -> None:
    """After a change rewrote the files, the retraction ends with an alert, and nothing changes.

    The alert says at which commit the file's rows are still apart.
    """
    file = deployment.ended()
    deployment.ended(OTHER)
    apart = deployment.catalog.head("main")
    deployment.end_of(deployment.change())
    before = deployment.published_files()
    done = retracted(deployment, file)
    assert deployment.end(done) == "errored ROWS_SCATTERED"
    assert deployment.published_files() == before
    reason = deployment.ingestion(done).reason
    assert reason
    assert f"lakegate query --ref main@{apart} SQL" in reason.message


@pytest.mark.parametrize("is_deleted", [False, True])
def test_where_rows_are_apart_is_not_guessed(deployment: Scenario, is_deleted: bool) -> None:
    """If main's log cannot be compared any more, the request ends the same, without a commit."""
    file = deployment.ended()
    deployment.end_of(deployment.change())
    if is_deleted:
        deployment.ledger.save_upkeep(UpkeepNote(kept_since="9999"))
    else:
        deployment.fail("tables.change")
    done = retracted(deployment, file)
    assert deployment.end(done) == "errored ROWS_SCATTERED"
    reason = deployment.ingestion(done).reason
    assert reason
    assert "main@" not in reason.message
    deployment.ledger.save_upkeep(replace(deployment.ledger.upkeep(), kept_since=""))


def test_a_file_that_lands_after_a_compaction_can_be_retracted() -> None:
    """A compacted file is refused with the commit before that; a later file is apart."""
    lake = Scenario()
    first = lake.ended()
    apart = lake.catalog.head("main")
    table = lake.main()
    lake.catalog.commit("main", TABLE, replace(table, files=()).append("compacted"))
    later = lake.ended(OTHER)
    reason = lake.ingestion(retracted(lake, first)).reason
    assert reason
    assert f"main@{apart}" in reason.message
    assert retracted(lake, later).state is State.PUBLISHED
    assert lake.main().files == ("compacted",)


def test_the_requests_id_is_that_of_its_text(deployment: Scenario) -> None:
    """Whoever knows a file can find out whether it was retracted."""
    file = deployment.ended()
    landed = retraction(TABLE, file.id, "x", "y").landed("lake")
    assert ingestion_id(landed) == retracted(deployment, file).id
