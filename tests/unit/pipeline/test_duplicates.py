"""The same bytes again are published and reported, or held until a decision."""

from dataclasses import replace
from typing import Any

import pytest

from functions.model import merge_commit
from functions.model.audit_outcome import AuditOutcome
from functions.model.contract_terms import ContractTerms
from functions.model.ingestion import IN_FLIGHT, Ingestion, State
from functions.model.messages.alert import Kind
from functions.pipeline.publication.duplicates import original
from functions.pipeline.start.landing_order import OUT_OF_ORDER
from functions.pipeline.verdict.complete import resume
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import TABLE
from tests.fakes.faults import Fault
from tests.fakes.job import rejected
from tests.fakes.promises import publishing
from tests.fakes.scenario import KEY, Scenario

OTHER = "shop/orders/b.parquet"
EARLY, LATE = "2026-03-01T12:00:00.000+00:00", "2026-03-01T12:00:01.000+00:00"


def landed_twice(deployment: Scenario, first: str = KEY, second: str = OTHER) -> list[Ingestion]:
    """Return the ingestions of the same bytes, landed one after the other."""
    return [deployment.ended(key, b"the same") for key in (first, second)]


@pytest.mark.parametrize("second", [OTHER, KEY])
def test_the_same_bytes_again_are_published_with_a_notice(
    deployment: Scenario, second: str
) -> None:
    """The same bytes, under any key, are published, and a notice names the first file."""
    first, again = landed_twice(deployment, KEY, second)
    assert (first.state, first.audit.duplicate_of) == (State.PUBLISHED, "")
    assert (again.state, again.audit.duplicate_of) == (State.PUBLISHED, first.id)
    assert len(deployment.published_files()) == 2
    said = [merge_commit.published(c)[0] for c in publishing(deployment)[:2]]
    assert [each.duplicate_of for each in said] == [first.id, ""]
    ((channel, notice),) = deployment.alerts.posted
    assert channel == "#orders"
    assert notice.text.startswith("Published, but likely a duplicate: ")
    assert f"as `{first.landed.uri}`" in str(notice.blocks)
    assert "onDuplicate: hold" in str(notice.blocks)


def test_a_contract_can_hold_them(deployment: Scenario) -> None:
    """If the contract holds duplicates, they are rejected; branch and audit are kept."""
    deployment.ask(onDuplicate="hold")
    first, again = landed_twice(deployment)
    assert (first.state, again.state) == (State.PUBLISHED, State.REJECTED)
    assert again.audit.duplicate_of == first.id
    assert deployment.end(again) == "rejected LIKELY_DUPLICATE"
    assert first.landed.uri in deployment.message(again)
    assert deployment.catalog.head(again.branch) == again.audited_hash
    assert len(deployment.published_files()) == 1


def test_a_held_duplicate_is_published_if_approved() -> None:
    """Approved duplicates are published with the approver's name, even after another job run."""
    deployment = Scenario()
    deployment.ask(onDuplicate="hold")
    first, again = landed_twice(deployment)
    deployment.catalog.commit("main", TABLE, FakeTable("another"))
    deployment.publish_anyway(again, "Ada")
    deployment.settle()
    ended = deployment.ledger.get(again.id)
    assert (ended.state, ended.attempt) == (State.PUBLISHED, 2)
    (said,) = merge_commit.published(publishing(deployment)[0])
    assert (said.approved_by, said.duplicate_of) == ("Ada", first.id)
    kinds = [alert.kind for _, alert in deployment.alerts.posted]
    assert kinds == [Kind.FAILED, Kind.RECOVERED]


def rejected_twice(deployment: Scenario) -> list[Ingestion]:
    """Return two rejected files of the same bytes, the first published by an approval."""
    landed = [deployment.ended(key, b"the same", rejected) for key in (KEY, OTHER)]
    deployment.publish_anyway(landed[0], "Ada")
    return [deployment.ingestion(each) for each in landed]


def test_who_approves_failed_checks_has_not_approved_a_duplicate(deployment: Scenario) -> None:
    """A rejected file with the bytes of a published one is held until a second approval."""
    deployment.ask(onDuplicate="hold")
    first, again = rejected_twice(deployment)
    assert first.state is State.PUBLISHED
    deployment.publish_anyway(again, "Ada")
    assert deployment.end(again) == "rejected LIKELY_DUPLICATE"
    assert first.landed.uri in deployment.message(again)
    assert deployment.ingestion(again).audit.duplicate_of == first.id
    assert len(deployment.published_files()) == 1
    _, alert = deployment.alerts.posted[-1]
    assert "meant to be in the table twice" in str(alert.blocks)
    deployment.publish_anyway(again.landed, "Ada")
    assert deployment.ingestion(again).state is State.PUBLISHED
    assert len(deployment.published_files()) == 2


def test_an_approval_counts_for_the_reason_that_was_seen(deployment: Scenario) -> None:
    """Of two people who approve failed checks at once, neither approves the duplicate."""
    deployment.ask(onDuplicate="hold")
    _, again = rejected_twice(deployment)
    meanwhile = Fault(lambda: deployment.publish_anyway(again, "Bob"))
    deployment.journal.strike("ledger.save", meanwhile)
    with pytest.raises(LakegateError, match="another reason by now: s3:"):
        deployment.publish_anyway(again, "Ada")
    assert deployment.end(again) == "rejected LIKELY_DUPLICATE"


def test_they_are_held_after_another_job_run_as_well() -> None:
    """A rejected file that is approved, and whose job has to run again, is held by its audit."""
    deployment = Scenario()
    deployment.ask(onDuplicate="hold")
    deployment.ended("shop/orders/other.parquet", b"others")
    both = [deployment.ended(key, b"the same", rejected) for key in (KEY, OTHER)]
    deployment.catalog.commit("main", TABLE, FakeTable("another"))
    for each in reversed(both):
        deployment.publish_anyway(each, "Ada")
    assert deployment.states(*both) == [State.SUBMITTED] * 2
    deployment.settle()
    assert deployment.states(*both) == [State.PUBLISHED, State.REJECTED]
    assert deployment.end(both[1]) == "rejected LIKELY_DUPLICATE"


def test_an_approval_and_a_verdict_at_one_moment_double_nothing(deployment: Scenario) -> None:
    """Where a file is approved while the verdict on the same bytes is recorded, these are held."""
    deployment.ask(onDuplicate="hold")
    first = deployment.ended(KEY, b"the same", rejected)
    again = deployment.run(OTHER, b"the same")
    meanwhile = Fault(lambda: deployment.publish_anyway(first))
    deployment.journal.strike("ledger.save", meanwhile)
    deployment.settle()
    assert deployment.ingestion(first).state is State.PUBLISHED
    assert deployment.end(again) == "rejected LIKELY_DUPLICATE"
    assert len(deployment.published_files()) == 1


def test_an_approval_at_one_moment_doubles_no_member_of_a_group(deployment: Scenario) -> None:
    """So it is where main refuses another file, which they are registered again with."""
    deployment.ask(onDuplicate="hold")
    first = deployment.ended(KEY, b"the same", rejected)
    another = deployment.submit("shop/orders/c.parquet")
    again = deployment.run(OTHER, b"the same")
    meanwhile = Fault(lambda: deployment.publish_anyway(first))
    deployment.journal.strike_later("ledger.save", meanwhile, 1)
    deployment.deliver_together(0, 2)
    deployment.settle()
    assert [deployment.end(each) for each in (first, another, again)] == [
        "published CHECKS_FAILED",
        "published",
        "rejected LIKELY_DUPLICATE",
    ]
    assert deployment.ingestion(again).attempt == 2


def test_an_approval_publishes_them_without_a_hold(deployment: Scenario) -> None:
    """If the contract publishes duplicates, one approval of failed checks publishes the file."""
    _, again = rejected_twice(deployment)
    deployment.publish_anyway(again, "Ada")
    assert deployment.ingestion(again).state is State.PUBLISHED


def test_an_approved_duplicate_is_asked_about_once(deployment: Scenario) -> None:
    """Who approved a duplicate need not do so again once its order had to be approved, too."""
    deployment.replace_rows("upsert", onDuplicate="hold")
    _, again = rejected_twice(deployment)
    deployment.clock.pass_(5)
    deployment.ended("shop/orders/later.parquet", b"others")
    for reason in ("LIKELY_DUPLICATE", OUT_OF_ORDER):
        deployment.publish_anyway(again.landed)
        assert deployment.end(again) == f"rejected {reason}"
    deployment.publish_anyway(again.landed)
    deployment.settle()
    assert deployment.ingestion(again).state is State.PUBLISHED


def test_a_publication_that_was_not_recorded_is_no_duplicate(deployment: Scenario) -> None:
    """An approved file that main has already ends as published, whatever else is in flight."""
    deployment.ask(onDuplicate="hold")
    early = deployment.land_unannounced(KEY, b"the same")
    again = deployment.run(OTHER, b"the same", rejected)
    deployment.deliver()
    deployment.fail("ledger.save_each")
    assert deployment.publish_anyway(again).left
    deployment.send_upload(early)
    deployment.deliver()
    resume(deployment.adapters, deployment.ingestion(again))
    assert deployment.ingestion(again).state is State.PUBLISHED


def test_of_two_at_once_the_later_one_is_the_duplicate(deployment: Scenario) -> None:
    """Two duplicates that are audited at the same time do not hold each other."""
    deployment.ask(onDuplicate="hold")
    landed = [deployment.land(key, body=b"the same") for key in (OTHER, KEY)]
    deployment.settle()
    assert deployment.states(*landed) == [State.PUBLISHED, State.REJECTED]


def test_of_two_at_once_one_is_reported(deployment: Scenario) -> None:
    """Only one of two files that are audited at the same time is reported as a duplicate."""
    landed = [deployment.land(key, body=b"the same") for key in (KEY, OTHER)]
    deployment.go()
    for message in (1, 0):  # the later one is judged first
        deployment.deliver_one(message)
    deployment.settle()
    first, again = (deployment.ingestion(each) for each in landed)
    assert (first.audit.duplicate_of, again.audit.duplicate_of) == ("", first.id)
    assert len(deployment.alerts.posted) == 1


def test_a_file_named_by_its_duplicate_is_not_yet_published(deployment: Scenario) -> None:
    """A file without its branch does not count as published because its duplicate names it."""
    first = deployment.run(body=b"the same")
    deployment.kill("catalog.merge")
    deployment.deliver()
    again = deployment.land(OTHER, body=b"the same")
    assert deployment.ingestion(first).state is State.AUDITED
    deployment.catalog.delete_branch(deployment.ingestion(first).branch)
    deployment.fail("catalog.log", times=3)
    assert deployment.end_of(again).audit.duplicate_of == deployment.ingestion(first).id
    assert deployment.ingestion(first).state is State.PUBLISHED


def ingestion(
    id_: str, time: str, key: str = KEY, table: str = "shop.orders", **changes: Any
) -> Ingestion:
    """Return a published ingestion."""
    landed = LandedObject("landing", key, id_, "e1", 10, landed_at=time)
    found = Ingestion(id_, landed, state=State.PUBLISHED, terms=ContractTerms(table))
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
        ingestion("c", LATE, audit=AuditOutcome(duplicate_of="b")),
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


def test_a_replaced_version_is_no_original() -> None:
    """If versions replace each other, the same bytes under the same key are not a duplicate."""
    replacing = replace(LATER, terms=replace(LATER.terms, on_new_version="replace"))
    assert original(replacing, [ingestion("a", EARLY)]) is None
    assert original(replacing, [ingestion("a", EARLY, key=OTHER)]) is not None


@pytest.mark.parametrize("state", [*IN_FLIGHT, State.PUBLISHED])
def test_only_rows_that_were_on_main_are_retracted(state: State) -> None:
    """A file that main lost, and that is published again, counts in spite of its retraction."""
    earlier = ingestion("a", EARLY, state=state)
    found = original(LATER, [earlier], lambda _: True)
    assert found == (None if state is State.PUBLISHED else earlier)
