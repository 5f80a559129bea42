"""The same bytes again are published and reported, or held until a decision."""

from dataclasses import replace
from typing import Any

import pytest

from functions.model import merge_commit
from functions.model.alert import Kind
from functions.model.ingestion import Ingestion, State
from functions.operations.failed import publish_anyway, replay
from functions.pipeline.duplicates import original
from lakegate.landing import LandedObject, ingestion_id
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.faults import Fault, die, unavailable
from tests.fakes.job import rejected
from tests.fakes.promises import check_promises, publishing

KEY, OTHER = "shop/orders/a.parquet", "shop/orders/b.parquet"
EARLY, LATE = "2026-03-01T12:00:00.000+00:00", "2026-03-01T12:00:01.000+00:00"


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment where nothing has landed."""
    return Deployment()


def landed_twice(deployment: Deployment, first: str = KEY, second: str = OTHER) -> list[Ingestion]:
    """Return the ingestions of the same bytes, landed one after the other."""
    both = []
    for key in (first, second):
        both.append(deployment.land(key, body=b"the same"))
        deployment.settle()
    check_promises(deployment)
    return [deployment.ingestion(landed) for landed in both]


@pytest.mark.parametrize("second", [OTHER, KEY])
def test_the_same_bytes_again_are_published_with_a_notice(
    deployment: Deployment, second: str
) -> None:
    """The same bytes, under any key, are published, and a notice names the first file."""
    first, again = landed_twice(deployment, KEY, second)
    assert (first.state, first.duplicate_of) == (State.PUBLISHED, "")
    assert (again.state, again.duplicate_of) == (State.PUBLISHED, first.id)
    assert len(deployment.published_files()) == 2
    said = [merge_commit.published(c)[0] for c in publishing(deployment)[:2]]
    assert [each.duplicate_of for each in said] == [first.id, ""]
    ((channel, notice),) = deployment.alerts.posted
    assert channel == "#orders"
    assert notice.text.startswith("Published, but likely a duplicate: ")
    assert f"as `{first.landed.uri}`" in str(notice.blocks)
    assert "onDuplicate: hold" in str(notice.blocks)


def test_a_contract_can_hold_them(deployment: Deployment) -> None:
    """If the contract holds duplicates, they are rejected; branch and audit are kept."""
    deployment.ask(onDuplicate="hold")
    first, again = landed_twice(deployment)
    assert (first.state, again.state) == (State.PUBLISHED, State.REJECTED)
    assert again.duplicate_of == first.id
    assert again.reason is not None
    assert again.reason.code == "LIKELY_DUPLICATE"
    assert first.landed.uri in again.reason.message
    assert deployment.catalog.head(again.branch) == again.audited_hash
    assert len(deployment.published_files()) == 1


def test_a_held_duplicate_is_published_if_approved(deployment: Deployment) -> None:
    """Approved duplicates are published with the approver's name, even after another job run."""
    deployment.ask(onDuplicate="hold")
    first, again = landed_twice(deployment)
    deployment.catalog.commit("main", TABLE, FakeTable("another"))
    publish_anyway(deployment.adapters, again, "Ada", "meant twice")
    deployment.settle()
    ended = deployment.ledger.get(again.id)
    assert (ended.state, ended.attempt) == (State.PUBLISHED, 2)
    (said,) = merge_commit.published(publishing(deployment)[0])
    assert (said.approved_by, said.duplicate_of) == ("Ada", first.id)
    kinds = [alert.kind for _, alert in deployment.alerts.posted]
    assert kinds == [Kind.FAILED, Kind.RECOVERED]


def test_a_replay_is_held_again(deployment: Deployment) -> None:
    """A replay is not an approval, so the duplicate is held again."""
    deployment.ask(onDuplicate="hold")
    _, again = landed_twice(deployment)
    replay(deployment.adapters, again)
    deployment.run_jobs()
    deployment.settle()
    check_promises(deployment)
    assert deployment.ledger.get(again.id).state is State.REJECTED
    assert len(deployment.published_files()) == 1


def test_of_two_at_once_the_later_one_is_the_duplicate(deployment: Deployment) -> None:
    """Two duplicates that are audited at the same time do not hold each other."""
    deployment.ask(onDuplicate="hold")
    landed = [deployment.land(key, body=b"the same") for key in (OTHER, KEY)]
    deployment.settle()
    check_promises(deployment)
    states = [deployment.ingestion(each).state for each in landed]
    assert states == [State.PUBLISHED, State.REJECTED]


@pytest.mark.parametrize(
    ("asked", "state"), [("hold", State.REJECTED), ("publish", State.PUBLISHED)]
)
def test_the_file_taken_in_late_is_the_duplicate(
    deployment: Deployment, asked: str, state: State
) -> None:
    """A file that landed first but is ingested late is the duplicate of the published one."""
    deployment.ask(onDuplicate=asked)
    deployment.loses_events = True
    late = deployment.land(KEY, body=b"the same")
    deployment.loses_events = False
    deployment.clock.pass_(5)
    published = deployment.land(OTHER, body=b"the same")
    deployment.settle()
    check_promises(deployment)
    ended = deployment.ingestion(late)
    assert (ended.state, ended.duplicate_of) == (state, ingestion_id(published))
    assert deployment.ingestion(published).duplicate_of == ""
    assert len(deployment.alerts.posted) == 1


def test_a_file_that_waits_for_main_precedes(deployment: Deployment) -> None:
    """A file that passed its audit and waits for main precedes a file that landed earlier."""
    deployment.ask(onDuplicate="hold")
    deployment.loses_events = True
    late = deployment.land(KEY, body=b"the same")
    deployment.loses_events = False
    waits = deployment.land(OTHER, body=b"the same")
    deployment.deliver()
    deployment.run_jobs()
    deployment.journal.strike("catalog.merge", Fault(unavailable, times=5))
    deployment.deliver()
    assert deployment.ingestion(waits).state is State.AUDITED
    deployment.send_upload(late)
    deployment.settle()
    check_promises(deployment)
    states = [deployment.ingestion(each).state for each in (late, waits)]
    assert states == [State.REJECTED, State.PUBLISHED]


def test_of_two_at_once_one_is_reported(deployment: Deployment) -> None:
    """Only one of two files that are audited at the same time is reported as a duplicate."""
    landed = [deployment.land(key, body=b"the same") for key in (KEY, OTHER)]
    deployment.deliver()
    deployment.run_jobs()
    for message in (1, 0):  # the later one is judged first
        deployment.deliver_one(message)
    deployment.settle()
    check_promises(deployment)
    first, again = (deployment.ingestion(each) for each in landed)
    assert (first.duplicate_of, again.duplicate_of) == ("", first.id)
    assert len(deployment.alerts.posted) == 1


def test_a_rejected_file_is_no_original(deployment: Deployment) -> None:
    """The same bytes as a rejected file are not a duplicate."""
    deployment.land(KEY, body=b"the same", script=rejected)
    deployment.settle()
    again = deployment.land(OTHER, body=b"the same")
    deployment.settle()
    check_promises(deployment)
    assert deployment.ingestion(again).state is State.PUBLISHED
    assert deployment.ingestion(again).duplicate_of == ""


def test_to_be_named_is_not_to_be_published(deployment: Deployment) -> None:
    """A file without its branch does not count as published because its duplicate names it."""
    first = deployment.land(KEY, body=b"the same")
    deployment.deliver()
    deployment.run_jobs()
    deployment.journal.strike("catalog.merge", Fault(die))
    deployment.deliver()
    again = deployment.land(OTHER, body=b"the same")
    assert deployment.ingestion(first).state is State.AUDITED
    deployment.catalog.delete_branch(deployment.ingestion(first).branch)
    deployment.journal.strike("catalog.log", Fault(unavailable, times=3))
    deployment.settle()
    check_promises(deployment)
    assert deployment.ingestion(again).duplicate_of == deployment.ingestion(first).id
    assert deployment.ingestion(first).state is State.PUBLISHED


def test_a_notice_waits_for_slack(deployment: Deployment) -> None:
    """While Slack is down the file is published all the same; the notice follows."""
    deployment.land(KEY, body=b"the same")
    deployment.settle()
    deployment.journal.strike("alerts.post", Fault(unavailable, times=float("inf")))
    again = deployment.land(OTHER, body=b"the same")
    for _ in range(8):
        deployment.deliver()
        deployment.run_jobs()
    assert deployment.ingestion(again).state is State.PUBLISHED
    assert deployment.catalog.branches("ingest/") == []
    assert deployment.alerts.posted == []
    deployment.journal.repair("alerts.post")
    deployment.settle()
    check_promises(deployment)
    assert len(deployment.alerts.posted) == 1


def ingestion(id_: str, time: str, key: str = KEY, **changes: Any) -> Ingestion:
    """Return a published ingestion of shop.orders."""
    landed = LandedObject("landing", key, id_, "e1", 10, landed_at=time)
    found = Ingestion(id=id_, landed=landed, state=State.PUBLISHED, table="shop.orders")
    return replace(found, **changes)


LATER = ingestion("b", LATE)
ON_MAIN = (State.AUDITED, State.PUBLISHED)


@pytest.mark.parametrize(
    "state", [s for s in State if s not in (State.REJECTED, State.ERRORED, State.IGNORED)]
)
def test_an_earlier_file_counts_while_it_may_be_published(state: State) -> None:
    """An earlier file in flight counts like a published one."""
    earlier = ingestion("a", EARLY, state=state)
    assert original(LATER, [earlier]) == earlier


@pytest.mark.parametrize("state", State)
def test_a_later_file_counts_once_it_passed(state: State) -> None:
    """A file that landed later counts once it passed its audit."""
    later = ingestion("c", LATE, state=state)
    assert original(LATER, [later]) == (later if state in ON_MAIN else None)


@pytest.mark.parametrize(
    "other",
    [
        LATER,
        ingestion("a", EARLY, table="shop.returns"),
        ingestion("a", EARLY, state=State.REJECTED),
        ingestion("a", EARLY, state=State.ERRORED),
        ingestion("a", EARLY, state=State.IGNORED),
        ingestion("c", LATE, state=State.SUBMITTED),
        ingestion("c", LATE, duplicate_of="b"),
    ],
    ids=[
        *("itself", "another table", "rejected", "errored", "ignored"),
        *("on its way, at that time, greater id", "its own duplicate"),
    ],
)
def test_others_do_not_count(other: Ingestion) -> None:
    """A file that adds no rows to the table, or that comes later, is not an original."""
    assert original(LATER, [other]) is None


def test_the_earliest_is_the_original() -> None:
    """The original is the earliest file, or of two at the same time the one with the smaller id."""
    first, second = ingestion("c", EARLY), ingestion("a", LATE)
    assert original(LATER, [first, second]) == first
    assert original(LATER, [second]) == second


def test_what_replaces_its_like_doubles_nothing() -> None:
    """If versions replace each other, the same bytes under the same key are not a duplicate."""
    replacing = replace(LATER, on_new_version="replace")
    assert original(replacing, [ingestion("a", EARLY)]) is None
    assert original(replacing, [ingestion("a", EARLY, key=OTHER)]) is not None
