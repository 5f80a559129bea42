"""The ledger in DynamoDB reads consistently, and understands items of other releases."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import boto3
import pytest
from boto3.dynamodb.types import TypeSerializer
from botocore.stub import Stubber
from moto import mock_aws

from functions.adapters.dynamodb import PAUSES, together
from functions.adapters.ledger.items import SCHEMA, to_item
from functions.adapters.ledger.ledger import Ledger
from functions.adapters.ledger.notes import Moved
from functions.model.audit_outcome import AuditOutcome
from functions.model.contract_terms import ContractTerms
from functions.model.decisions import Decisions
from functions.model.ingestion import State
from functions.model.notes.freshness import Freshness
from functions.model.notes.upkeep_note import TableUpkeep, UpkeepNote
from lakegate.audit.report import CheckResult, Reason, Status
from lakegate.errors import Transient
from tests.contract.aws import ACCOUNT
from tests.contract.ledgers import PARTS, ingestion, new_table
from tests.fakes.clock import FakeClock

GROUP = tuple(f"{number:032x}" for number in range(100))
IN_GROUP: dict[str, Any] = {
    "group": GROUP,
    "terms": ContractTerms("a.b", channel="#b"),
    "branch": "ingest/a.b/group-1",
    "audited_hash": "1a",
}
_NOT_KEPT = ("samples", "query")


@pytest.fixture
def table() -> Iterator[Any]:
    """Yield an empty table with the template's keys and indexes, in this process."""
    with mock_aws():
        yield new_table(boto3.resource("dynamodb", **ACCOUNT))


@pytest.fixture
def ledger(table: Any) -> Ledger:
    """Return a ledger in the table."""
    return Ledger(table, FakeClock().now)


def test_two_releases_at_once_lose_nothing(table: Any, ledger: Ledger) -> None:
    """An older release keeps the fields that a newer one wrote."""
    older = newer = ledger
    begun = newer.begin(ingestion(parts=PARTS, group=("f" * 32,)))
    written = {":added": ["of", "a", "newer", "release"]}
    adding = {"UpdateExpression": "SET added = :added", "ExpressionAttributeValues": written}
    table.update_item(Key={"id": begun.id}, **adding)
    seen = older.get(begun.id).step("branched", "2026-03-01T13", state=State.BRANCHED)
    (saved,) = older.save_all([replace(older.save(seen), state=State.IGNORED)])
    item = table.get_item(Key={"id": begun.id})["Item"]
    assert item["added"] == ["of", "a", "newer", "release"]
    assert newer.get(begun.id) == saved
    assert "unfinished" not in item  # what this release knows is as it says, also where it is gone


def test_a_note_of_thousands_of_tables_is_kept(ledger: Ledger) -> None:
    """What is noted of 6,000 tables fits into one item, and is read as it was saved."""
    at = "2026-03-01T13:00:00.000+00:00"
    tables = {f"finance.customer_events_{n:05}": n * 7919 for n in range(6_000)}
    upkeep = {name: TableUpkeep(n, n // 3, n * 11, n * 997, n, at) for name, n in tables.items()}
    ledger.save_upkeep(UpkeepNote(at, tables=upkeep))
    assert ledger.upkeep() == UpkeepNote(at, tables=upkeep, revision=1)
    arrived = dict.fromkeys((f"{name}_of_the_north" for name in tables), at)
    ledger.save_freshness(Freshness(at, arrived))
    assert ledger.freshness() == Freshness(at, arrived, revision=1)


def test_a_newer_releases_item_is_neither_read_nor_written(table: Any, ledger: Ledger) -> None:
    """An item of an incompatible newer release is neither read nor written."""
    begun = ledger.begin(ingestion(state=State.AUDITED, table="a.b"))
    raising = {"UpdateExpression": "SET #schema = :newer", "ReturnValues": "ALL_NEW"}
    names, values = {"#schema": "schema"}, {":newer": SCHEMA + 1}
    raised = table.update_item(
        Key={"id": begun.id},
        ExpressionAttributeNames=names,
        ExpressionAttributeValues=values,
        **raising,
    )
    for call in (
        lambda: ledger.get(begun.id),
        lambda: ledger.begin(ingestion()),
        lambda: ledger.waiting("a.b"),
        lambda: list(ledger.unfinished("2027")),
    ):
        with pytest.raises(Transient, match=rf"NEWER_RELEASE.*{begun.id}.*deploy"):
            call()
    assert table.get_item(Key={"id": begun.id})["Item"] == raised["Attributes"]


def test_an_item_has_only_what_is_not_as_usual(table: Any, ledger: Ledger) -> None:
    """What has its default takes no space, and an item with every field is read the same."""
    begun = ledger.begin(ingestion())
    item = table.get_item(Key={"id": begun.id})["Item"]
    assert not {"approval", "group", "actions", "branch", "discarded"} & item.keys()
    usual = {"approval": "null", "group": "[]", "actions": "[]", "branch": "", "discarded": False}
    table.put_item(Item=item | usual)
    assert ledger.get(begun.id) == begun
    assert list(ledger.open_failures()) == []


def test_decided_failures_cost_the_list_of_open_ones_nothing(table: Any, ledger: Ledger) -> None:
    """Failures stay for ever, so only open ones are read; those of older releases are left out."""
    scanned: list[int] = []
    events = table.meta.client.meta.events
    events.register("after-call.dynamodb.Query", lambda parsed, **_: scanned.append(_count(parsed)))
    why, gone = Reason("CHECKS_FAILED", "why"), Decisions(discarded=True)
    for number in range(20):
        begun = ledger.begin(ingestion(number, state=State.REJECTED, reason=why))
        closed = ledger.save(begun.but(decisions=gone)) if number else begun
        assert ledger.get(begun.id).reason == closed.reason == why
    old = table.get_item(Key={"id": closed.id})["Item"]
    table.put_item(Item=old | {"reason_code": "CHECKS_FAILED"})
    assert [each.id for each in ledger.open_failures()] == [ingestion(0).id]
    assert sorted(scanned) == [0, 2]
    assert len([*ledger.in_state(State.REJECTED)]) == 20


def _count(parsed: dict[str, Any]) -> int:
    return int(parsed["ScannedCount"])


def test_what_a_large_group_has_alike_is_stored_once(table: Any, ledger: Ledger) -> None:
    """Its ids and intent are two items, each read once."""
    begun = [ledger.begin(ingestion(number)) for number in range(2)]
    ledger.save_all([each.but(**IN_GROUP) for each in begun])
    items = {each["id"]: each for each in table.scan()["Items"]}
    (ids_,) = (id_ for id_ in items if id_.startswith("group-"))
    (alike,) = (id_ for id_ in items if id_.startswith("common-"))
    named = [items[each.id] for each in begun]
    assert {each["common"] for each in named} == {alike}
    assert not {"group", "branch", "audited_hash", "channel"} & named[0].keys()
    saved = ledger.together([each.id for each in begun])
    for id_ in (ids_, alike):
        table.delete_item(Key={"id": id_})
        with pytest.raises(Transient, match=f"lacks the item {id_}"):
            Ledger(table, FakeClock().now).get(begun[0].id)
        saved = ledger.save_all(saved)
        assert Ledger(table, FakeClock().now).get(begun[0].id) == saved[0]


def test_what_many_groups_have_alike_is_read_together(table: Any, ledger: Ledger) -> None:
    """To read all of a ledger takes a few requests for a hundred files, however many groups."""
    for number in range(120):
        ids = tuple(f"{number:031x}{each}" for each in range(3))
        for id_ in ids:
            ledger.begin(replace(ingestion(id=id_), group=ids, branch=f"ingest/{number}"))
    asked: list[str] = []
    told = table.meta.client.meta.events
    told.register("before-call.dynamodb", lambda model, **_: asked.append(model.name))
    found = list(Ledger(table, FakeClock().now).all())
    assert {(each.branch, *each.group) for each in found} == {
        (f"ingest/{number}", *(f"{number:031x}{each}" for each in range(3)))
        for number in range(120)
    }
    assert len(found) == 360
    assert len(asked) <= 12
    asked.clear()
    assert len(list(Ledger(table, FakeClock().now).outlines())) == 360
    assert asked == ["Scan"]


@pytest.mark.parametrize("group", [GROUP[:2], GROUP], ids=["small", "large"])
def test_a_member_is_read_as_it_was_saved(ledger: Ledger, group: tuple[str, ...]) -> None:
    """Times, checks and report's key come back the same, usual or not."""
    check = CheckResult("a", "drift", (), "warning", Status.SKIPPED, "at most 4", "skipped")
    told = {name: value for name, value in asdict(check).items() if name not in _NOT_KEPT}
    begun = ledger.begin(ingestion(table="a.b"))
    landed_at = begun.landed.landed_at
    odd = {"landed": landed_at, "audited": "2026-03-01T11:59:59.999+00:00", "ended": "2026-03-01"}
    for changes in (
        {"report_key": "reports/a.b/" + begun.id + "/1.json"},
        {"report_key": ""},
        {"report_key": "another", "attempt": 2},
        {
            "times": odd,
            "audit": AuditOutcome(checks=({**told, "columns": []}, {**told, "columns": ["x"]})),
        },
        {"branch": "a", "audited_hash": "b", "merge_hash": "c", "terms": ContractTerms("a.b")},
    ):
        begun = ledger.save(begun.but(group=group, **changes))
        assert ledger.get(begun.id) == begun


def test_decisions_are_based_on_consistent_reads(stubbed: tuple[Ledger, Stubber]) -> None:
    """Every item that a decision is based on is read consistently, even one from an index."""
    ledger, stubber = stubbed
    id_, item = ingestion().id, to_item(ingestion())
    wanted = {"ledger": {"Keys": [{"id": id_}], "ConsistentRead": True}}
    item_asked = {"TableName": "ledger", "Key": {"id": id_}, "ConsistentRead": True}
    stubber.add_response("get_item", {"Item": stored(item)}, item_asked)
    assert ledger.get(id_) == ingestion()
    stubber.add_response("batch_get_item", found(item), {"RequestItems": wanted})
    assert ledger.together([id_]) == [ingestion()]
    only_id = {"ledger": {**wanted["ledger"], "ProjectionExpression": "id"}}
    stubber.add_response("batch_get_item", found({"id": id_}), {"RequestItems": only_id})
    assert ledger.known([id_], consistent=True) == {id_}
    for read in (
        lambda: list(ledger.versions(ingestion().landed)),
        lambda: list(ledger.same_content(ingestion(2))),
        lambda: list(ledger.unfinished("2027")),
    ):
        stubber.add_response("query", {"Items": [stored(item)]})
        stubber.add_response("batch_get_item", found(item), {"RequestItems": wanted})
        assert read() == [ingestion()]


def test_keys_that_an_answer_left_out_are_requested_again(stubbed: tuple[Ledger, Stubber]) -> None:
    """Keys that an answer left out are requested again, unchanged."""
    ledger, stubber = stubbed
    first, second = ingestion(1), ingestion(2)
    left = {"ledger": {"Keys": [{"id": second.id}], "ConsistentRead": True}}
    keys = {"ledger": {"Keys": [stored({"id": second.id})], "ConsistentRead": True}}
    stubber.add_response("batch_get_item", found(to_item(first)) | {"UnprocessedKeys": keys})
    stubber.add_response("batch_get_item", found(to_item(second)), {"RequestItems": left})
    assert ledger.together([first.id, second.id]) == [first, second]


def test_a_throttled_table_is_asked_ever_more_slowly() -> None:
    """Keys that answers leave out are requested after longer pauses, and not without end."""
    table, pauses = boto3.resource("dynamodb", **ACCOUNT).Table("ledger"), list[float]()
    with Stubber(table.meta.client) as stubber:
        for _ in range(len(PAUSES) + 1):
            left = {"UnprocessedKeys": {"ledger": {"Keys": [stored({"id": "b"})]}}}
            stubber.add_response("batch_get_item", found({"id": "a"}) | left)
        with pytest.raises(Transient, match="throttled"):
            list(together(table, ["a", "b"], "LEDGER_UNAVAILABLE", pauses.append))
        stubber.assert_no_pending_responses()
    assert tuple(pauses) == PAUSES == tuple(sorted(PAUSES))


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError"])
def test_a_transaction_that_met_another_one_is_tried_again(
    stubbed: tuple[Ledger, Stubber], code: str
) -> None:
    """Only a failed condition means that another process was faster; all else is transient."""
    ledger, stubber = stubbed
    both = [ingestion(1), ingestion(2)]
    cancel(stubber, "None", code)
    with pytest.raises(Transient, match="LEDGER_UNAVAILABLE"):
        ledger.save_all(both)
    cancel(stubber, code, "ConditionalCheckFailed")
    with pytest.raises(Moved) as refusal:
        ledger.save_all(both)
    assert refusal.value.ids == {both[1].id}


@pytest.fixture
def stubbed() -> Iterator[tuple[Ledger, Stubber]]:
    """Yield a ledger with stubbed answers, which compares its requests."""
    table = boto3.resource("dynamodb", **ACCOUNT).Table("ledger")
    with Stubber(table.meta.client) as stubber:
        yield Ledger(table, FakeClock().now), stubber
        stubber.assert_no_pending_responses()


def stored(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as DynamoDB sends it."""
    return {name: TypeSerializer().serialize(value) for name, value in item.items()}


def found(*items: dict[str, Any]) -> dict[str, Any]:
    """Return DynamoDB's answer with these items."""
    return {"Responses": {"ledger": [stored(item) for item in items]}}


def cancel(stubber: Stubber, *codes: str) -> None:
    """Make DynamoDB cancel the next transaction for these reasons."""
    reasons = [{"Code": code} for code in codes]
    name, answer = "TransactionCanceledException", {"CancellationReasons": reasons}
    stubber.add_client_error("transact_write_items", name, modeled_fields=answer)
