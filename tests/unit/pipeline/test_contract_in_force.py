"""A file enters its table as the contract in force says, whichever one it ran under."""

from functools import partial

import pytest

from functions.model.ingestion import Ingestion, State
from functions.operations.recovery.rebuild_ledger import rebuild
from functions.pipeline.start.landing_order import OUT_OF_ORDER
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject
from tests.fakes.deployment import ORDERS, TABLE
from tests.fakes.faults import Fault
from tests.fakes.job import passed, rejected
from tests.fakes.scenario import FIRST, FOREVER, KEY, Scenario

pytestmark = pytest.mark.usefixtures("quiet")
IBAN = "      - {name: iban, logicalType: string}\n"
SECOND = "shop/orders/b.parquet"


def overtaken(deployment: Scenario, **settings: str) -> tuple[LandedObject, LandedObject]:
    """Return a file that waits for a shared run, and a later one that is upserted before it."""
    deployment.share(1)
    deployment.ended(FIRST)
    early = deployment.land(KEY)
    deployment.deliver()
    deployment.replace_rows("upsert", **settings)
    deployment.clock.pass_(1)
    deployment.share(0)
    late = deployment.land(SECOND)
    deployment.deliver()
    deployment.share(1)
    while deployment.states(late) != [State.PUBLISHED]:
        deployment.run_one_job(0)
        deployment.deliver()
    assert deployment.ingestion(early).terms.write_mode == "append"
    return early, late


def audited(deployment: Scenario, key: str = KEY) -> Ingestion:
    """Return a file that passed its audit, and that no process has published yet."""
    landed = deployment.run(key)
    deployment.fail("catalog.merge", times=FOREVER)
    deployment.deliver()
    deployment.journal.repair("catalog.merge")
    assert deployment.states(landed) == [State.AUDITED]
    return deployment.ingestion(landed)


def test_a_file_that_waited_is_not_appended_to_an_upsert_table(deployment: Scenario) -> None:
    """Rows of before do not stand beside the newer ones of their keys: a person decides."""
    early, late = overtaken(deployment)
    deployment.settle()
    assert deployment.end(early) == f"rejected {OUT_OF_ORDER}"
    assert deployment.on_main(early, late) == [False, True]


def test_a_file_that_waited_is_upserted_itself(deployment: Scenario) -> None:
    """Where a column decides between rows, it is run again and merged by its key."""
    early, _ = overtaken(deployment, latestBy="id")
    now = deployment.end_of(early)
    assert (now.state, now.terms.write_mode, now.attempt) == (State.PUBLISHED, "upsert", 2)
    assert len(deployment.main().files) == 1  # the fake puts each file in the place of all others


def test_a_contract_that_is_pushed_after_the_verdict_counts(deployment: Scenario) -> None:
    """An audited file is not merged in another way than the contract in force says."""
    deployment.ended(FIRST)
    waiting = audited(deployment)
    deployment.replace_rows("upsert")
    now = deployment.publish(waiting)
    assert (now.state, now.terms.write_mode, now.attempt) == (State.SUBMITTED, "upsert", 2)
    assert waiting.branch not in deployment.catalog.branches("ingest/")


def test_a_contract_that_is_pushed_during_a_rebase_counts(deployment: Scenario) -> None:
    """Files that were registered on a fresh branch meanwhile run again, all of them."""
    landed = deployment.wait_together(2)
    push = Fault(partial(deployment.replace_rows, "upsert"), "after")
    deployment.journal.strike("tables.append_again", push)
    deployment.publish(landed[0])
    assert {deployment.ingestion(each).terms.write_mode for each in landed} == {"upsert"}
    assert not any(deployment.on_main(*landed))
    assert deployment.catalog.branches("publish/") == []


def test_a_contract_that_is_pushed_during_a_re_audit_counts(deployment: Scenario) -> None:
    """A file that is audited against main's new files is run whole, if its columns changed."""
    deployment.look_beyond()
    deployment.ended(FIRST)
    file = deployment.run()
    deployment.others.append(TABLE)
    deployment.deliver()
    assert deployment.ingestion(file).is_reaudit
    deployment.upload_contract(ORDERS.replace("integer", "string"))
    deployment.go(2)
    now = deployment.ingestion(file)
    assert (now.state, now.attempt, now.is_reaudit) == (State.SUBMITTED, 3, False)


def test_a_dropped_column_does_not_come_back(deployment: Scenario) -> None:
    """A file under a contract that still has the column runs again under the one without it."""
    deployment.upload_contract(ORDERS + IBAN)
    deployment.ended(FIRST)
    waiting = audited(deployment)
    deployment.ask(droppedColumns="[iban]")
    now = deployment.publish(waiting)
    assert now.attempt == 2
    assert now.terms.contract_version != waiting.terms.contract_version


@pytest.mark.parametrize(
    "text",
    [ORDERS, ORDERS + IBAN, ORDERS.replace("required: true", "required: true, unique: true")],
    ids=["the same", "a new column", "another check"],
)
def test_a_contract_that_moves_no_row_runs_nothing_again(deployment: Scenario, text: str) -> None:
    """A version that asks otherwise, but lets rows enter as before, leaves the verdict valid."""
    waiting = audited(deployment)
    deployment.upload_contract(text)
    now = deployment.publish(waiting)
    assert (now.state, now.attempt) == (State.PUBLISHED, 1)


def test_what_main_has_already_is_not_run_again(deployment: Scenario) -> None:
    """A file that was merged, but not recorded, under the contract of then is published."""
    landed = deployment.run()
    deployment.fail("catalog.merge", "after")
    deployment.deliver()
    deployment.replace_rows("upsert")
    now = deployment.publish(landed)
    assert (now.state, now.attempt, now.terms.write_mode) == (State.PUBLISHED, 1, "append")
    assert deployment.on_main(landed) == [True]


def test_a_contract_that_was_withdrawn_publishes_nothing(deployment: Scenario) -> None:
    """If no contract is in force any more, the file ends errored, and says so."""
    waiting = audited(deployment)
    deployment.lake.lose(f"contracts/{TABLE}.yaml")
    assert deployment.publish(waiting).state is State.ERRORED
    assert deployment.end(waiting) == "errored NO_CONTRACT"
    deployment.upload_contract(ORDERS)


def test_a_verdict_of_an_older_way_into_the_table_is_none(deployment: Scenario) -> None:
    """A file that fails because its table moved on runs again before anybody is told."""
    file = deployment.run(script=rejected)
    deployment.script(file, passed)
    deployment.replace_rows("upsert")
    now = deployment.end_of(file)
    assert (now.state, now.attempt, now.has_failed) == (State.PUBLISHED, 2, False)
    assert deployment.told() == []


def test_a_rejection_without_a_contract_in_force_keeps_its_evidence(deployment: Scenario) -> None:
    """Where there is no contract to run the file again by, the audit's verdict and branch stay."""
    file = deployment.run(script=rejected)
    deployment.lake.lose(f"contracts/{TABLE}.yaml")
    now = deployment.end_of(file)
    assert (now.state, now.attempt) == (State.REJECTED, 1)
    assert now.branch in deployment.catalog.references()
    deployment.upload_contract(ORDERS)


@pytest.mark.parametrize("asks", [False, True], ids=["plain", "original"])
def test_a_replay_by_the_original_keeps_the_write_mode(deployment: Scenario, asks: bool) -> None:
    """By the original contract it is refused across write modes; a plain replay takes the order."""
    deployment.ended(FIRST)
    old = deployment.ended(script=rejected)
    deployment.replace_rows("upsert")
    deployment.clock.pass_(1)
    new = deployment.ended(SECOND)
    deployment.script(old, passed)
    if asks:
        with pytest.raises(LakegateError, match=f"writeMode.*\n.*`lakegate replay {old.id}`") as no:
            deployment.replay(old, original=True)
        assert no.value.code == "CONTRACT_OUTDATED"
        assert deployment.ingestion(old) == old
    else:
        deployment.replay(old)
        deployment.settle()
        assert deployment.end(old) == f"rejected {OUT_OF_ORDER}"
    assert deployment.on_main(old, new) == [False, True]


def test_a_replay_by_the_original_goes_by_a_contract_pushed_since(deployment: Scenario) -> None:
    """If the way into the table changes while it runs, it is run again as a plain replay."""
    old = deployment.ended(script=rejected)
    deployment.script(old, passed)
    deployment.require_more()
    deployment.replay(old, original=True)
    deployment.replace_rows("upsert")
    deployment.go(2)
    now = deployment.ingestion(old)
    assert (now.attempt, now.terms.write_mode, now.contract_pinned) == (3, "upsert", False)


def test_a_file_whose_contract_is_unknown_runs_again(deployment: Scenario) -> None:
    """After the ledger was lost nobody knows what its rows were audited by, also if approved."""
    bad = deployment.ended(script=rejected)
    deployment.script(bad, passed)
    for run in deployment.jobs.runs():
        deployment.jobs.lose(run.id)
    deployment.ledger.lose()
    list(rebuild(deployment.adapters))
    assert deployment.ingestion(bad).terms.contract_key == ""
    deployment.publish_anyway(bad)
    deployment.settle()
    assert (deployment.states(bad), deployment.ingestion(bad).attempt) == ([State.PUBLISHED], 2)
