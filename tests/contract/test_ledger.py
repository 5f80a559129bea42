"""The ledger behaves alike in memory and in DynamoDB."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from boto3.dynamodb.types import TypeSerializer
from botocore.config import Config
from botocore.stub import Stubber
from moto import mock_aws

from functions.adapters.ledger import Ledger, Moved, UnknownIngestion
from functions.adapters.ledger_items import SCHEMA, to_item
from functions.model.ingestion import Action, Approval, Ingestion, State
from functions.model.ingestion_summary import IngestionSummary
from lakegate.batch import BatchFile
from lakegate.change import Change
from lakegate.errors import Transient
from lakegate.landing import LandedObject
from lakegate.report import Reason
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger
from tests.template import ledger_table

ACCOUNT = {
    "region_name": "us-east-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
}
AnyLedger = Ledger | FakeLedger


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[Any]:
    """Yield DynamoDB in this process."""
    with mock_aws():
        yield boto3.resource("dynamodb", **ACCOUNT)


@pytest.fixture
def clock() -> FakeClock:
    """Return the clock of the process that writes the ledger."""
    return FakeClock()


@pytest.fixture(params=["in memory", "DynamoDB"])
def ledger(request: pytest.FixtureRequest, dynamodb: Any, clock: FakeClock) -> AnyLedger:
    """Return an empty ledger, in a table with the template's keys and indexes."""
    if request.param == "in memory":
        return FakeLedger(clock.now)
    return Ledger(new_table(dynamodb), clock.now)


def new_table(dynamodb: Any) -> Any:
    """Return an empty table with the template's keys and indexes."""
    return ledger_table(dynamodb, f"ledger-{uuid.uuid4().hex}")


PARTS = (BatchFile("ä.csv", "v1", "e1", 10**12, "shop.orders", "c", "v2", 3, "hash"),)
CHANGE = Change("a.b", "DELETE FROM a.b", "t", "Ann", "why")


def ingestion(number: int = 1, **changes: Any) -> Ingestion:
    """Return an ingestion whose object landed in that minute."""
    time = f"2026-03-01T12:{number:02}:00.000+00:00"
    landed = LandedObject("landing", f"shop/orders/{number}", "v1", "e1", 10, "s", time)
    begun = Ingestion(id=f"{number:032x}", landed=landed).step("landed", time)
    return replace(begun, **changes)


def ids(found: Iterator[Ingestion]) -> list[int]:
    """Return the numbers of the results, in order."""
    return [int(each.id, 16) for each in found]


def test_an_ingestion_begins_once(ledger: AnyLedger) -> None:
    """Beginning an ingestion again returns it in its current state."""
    begun = ledger.begin(ingestion())
    assert begun == replace(ingestion(), revision=1)
    moved = ledger.save(begun.step("branched", "2026-03-01T13", state=State.BRANCHED))
    assert ledger.begin(ingestion(channel="#other")) == moved


def test_an_unknown_ingestion_is_none(ledger: AnyLedger) -> None:
    """An ingestion that was never begun can be neither read nor saved."""
    with pytest.raises(UnknownIngestion, match=ingestion().id):
        ledger.get(ingestion().id)
    with pytest.raises(Transient, match="LEDGER_MOVED"):
        ledger.save(ingestion())
    assert list(ledger.all()) == []


def test_what_is_to_be_recorded_is_listed(ledger: AnyLedger) -> None:
    """Exactly the finished ingestions with due audit results are listed."""
    for number, (state, table, recorded) in enumerate(
        [
            (State.PUBLISHED, "shop.orders", 0),
            (State.REJECTED, "shop.orders", 1),
            (State.ERRORED, "shop.orders", 2),
            (State.ERRORED, "", 0),
            (State.SUBMITTED, "shop.orders", 0),
        ],
        1,
    ):
        begun = ledger.begin(ingestion(number, alerted=True, announced=True))
        ledger.save(replace(begun, state=state, table=table, attempt=2, recorded=recorded))
    needs_alert = replace(ingestion(6), state=State.REJECTED, table="shop.orders")
    ledger.begin(needs_alert)
    assert sorted(ids(ledger.needs_recording())) == [1, 2]
    ledger.save(replace(ledger.get(ingestion(2).id), recorded=2))
    assert ids(ledger.needs_recording()) == [1]


def test_everything_is_kept(ledger: AnyLedger) -> None:
    """Every field that is saved is read back the same."""
    full = Ingestion(
        id="f" * 32,
        landed=LandedObject("b", "Flüge/ä +.csv", "v", "e", 10**12, "0A", "2026-03-01T12"),
        state=State.ERRORED,
        attempt=3,
        failures=2,
        table="shop.orders",
        contract_key="contracts/shop.orders.yaml",
        contract_version="c1",
        channel="#orders",
        branch="ingest/shop.orders/x",
        base_hash="base",
        job_run="00run",
        report_key="reports/x",
        audited_hash="audited",
        group=("f" * 32, "e" * 32),
        merge_hash="merged",
        on_duplicate="hold",
        on_new_version="replace",
        duplicate_of="e" * 32,
        replaced=("c" * 32, "d" * 32),
        replaced_rows=4_000_000_000,
        rows=5_000_000_000,
        reason=Reason("CODE", "Weil's so ist"),
        check_counts={"pass": 7, "fail": 1},
        checks=({"id": "ü", "columns": ["a"], "status": "fail"},),
        alerted=True,
        cleaned=True,
        recorded=2,
        times={"landed": "2026-03-01T12", "ended": "2026-03-01T13"},
        actions=(Action("replay", "bö (U1)", "2026-03-01T13", 1),),
        approval=Approval("Ann", "weil's so ist", "2026-03-01T14", ("ü", "b")),
        tries_from=2,
        contract_pinned=True,
        discarded=True,
        branches_to_delete={"ingest/shop.orders/x": "hash"},
        parts=PARTS,
    )
    ledger.begin(full)
    kept = ledger.get(full.id)
    assert kept == replace(full, revision=1)
    assert list(map(type, vars(kept).values())) == list(map(type, vars(full).values()))


def test_a_save_counts(ledger: AnyLedger) -> None:
    """Each save increments the revision, and the next builds on it."""
    first = ledger.begin(ingestion())
    second = ledger.save(replace(first, rows=1))
    third = ledger.save(replace(second, rows=2))
    assert [each.revision for each in (first, second, third)] == [1, 2, 3]
    assert ledger.get(first.id) == third


def test_old_knowledge_is_not_saved(ledger: AnyLedger) -> None:
    """Of two saves of the same revision one succeeds; the other fails and changes nothing."""
    begun = ledger.begin(ingestion())
    won = ledger.save(replace(begun, branch="mine"))
    with pytest.raises(Transient, match="LEDGER_MOVED"):
        ledger.save(replace(begun, branch="yours"))
    assert ledger.get(begun.id) == won


def test_several_are_saved_together(ledger: AnyLedger) -> None:
    """Up to 100 are saved at once, each with its next revision."""
    begun = [ledger.begin(ingestion(number)) for number in range(60)]
    saved = ledger.save_all([replace(each, rows=7) for each in begun])
    assert saved == [replace(each, rows=7, revision=2) for each in begun]
    assert ledger.together([each.id for each in begun]) == saved


def test_several_are_saved_all_or_none(ledger: AnyLedger) -> None:
    """If another process changed some of them, none is saved, and the error names these."""
    begun = [ledger.begin(ingestion(number)) for number in range(4)]
    moved = [ledger.save(replace(begun[number], rows=1)) for number in (1, 3)]
    with pytest.raises(Moved) as refusal:
        ledger.save_all([replace(each, rows=2) for each in begun])
    assert refusal.value.ids == {each.id for each in moved}
    now = [begun[0], moved[0], begun[2], moved[1]]
    assert ledger.together([each.id for each in begun]) == now


def test_an_ingestion_that_never_began_is_not_saved_with_others(ledger: AnyLedger) -> None:
    """Several are saved only if each exists."""
    begun, never = ledger.begin(ingestion(1)), ingestion(2)
    with pytest.raises(Moved) as refusal:
        ledger.save_all([begun, never])
    assert refusal.value.ids == {never.id}
    assert ledger.together([never.id, begun.id]) == [begun]


def test_none_together_are_none(ledger: AnyLedger) -> None:
    """Reading no ids returns nothing."""
    assert ledger.together([]) == []


def test_the_audited_of_a_table_are_waiting(ledger: AnyLedger) -> None:
    """Only audited ingestions of one table are waiting, earliest landing first."""
    states = [State.AUDITED, State.AUDITED, State.PUBLISHED, State.SUBMITTED]
    for number, state in enumerate(states):
        ledger.begin(ingestion(number, state=state, table="a.b"))
    ledger.begin(ingestion(9, state=State.AUDITED, table="a.c"))
    assert ids(iter(ledger.waiting("a.b"))) == [0, 1]


def test_what_goes_first_is_found(ledger: AnyLedger) -> None:
    """Only refused ingestions of one table that are not audited again have priority."""
    states = [State.BRANCHED, State.SUBMITTED, State.AUDITED, State.REJECTED]
    again = {"reaudit_base": "b" * 64, "checks_whole_table": True}
    for number, state in enumerate(states):
        ledger.begin(ingestion(number, state=state, table="a.b", **again))
        ledger.begin(ingestion(number + 10, state=state, table="a.b"))
    ledger.begin(ingestion(9, state=State.SUBMITTED, table="a.c", **again))
    for number, attempt in ((5, 2), (6, 1)):
        tried = ingestion(number, state=State.SUBMITTED, table="a.b", change=CHANGE)
        ledger.begin(replace(tried, attempt=attempt))
    found = ledger.going_first("a.b")
    assert ids(iter(found)) == [0, 1, 5]
    assert [(each.reaudit_base, each.checks_whole_table) for each in found[:2]] == [
        ("b" * 64, True)
    ] * 2
    assert found[2].change == CHANGE


def test_a_batch_is_found_by_each_of_its_tables(ledger: AnyLedger) -> None:
    """A batch waits for each of its tables, and has priority in all of them after a retry."""
    parts = tuple(BatchFile("f", "v", "e", 1, table, "c", "v") for table in ("a.b", "a.c"))
    batch = {"table": "batch", "parts": parts, "checks_whole_table": True}
    ledger.begin(ingestion(1, state=State.AUDITED, **batch))
    ledger.begin(ingestion(2, state=State.SUBMITTED, attempt=2, **batch))
    for table in ("a.b", "a.c"):
        assert ids(iter(ledger.waiting(table))) == [1]
        assert ids(iter(ledger.going_first(table))) == [2]
    assert ledger.waiting("a.d") == ledger.going_first("a.d") == []


def test_the_known_are_distinguished_from_the_unknown(ledger: AnyLedger) -> None:
    """Of many ids, more than one request can take, exactly the saved ones are known."""
    for number in range(0, 250, 3):
        ledger.begin(ingestion(number))
    asked = [ingestion(number).id for number in range(250)]
    assert ledger.known(asked) == {ingestion(number).id for number in range(0, 250, 3)}
    assert ledger.known([]) == set()


@pytest.mark.parametrize(
    ("changes", "is_due"),
    [
        ({"state": State.LANDED}, True),
        ({"state": State.BRANCHED}, True),
        ({"state": State.SUBMITTED}, True),
        ({"state": State.AUDITED}, True),
        ({"state": State.PUBLISHED, "branch": "b"}, True),
        ({"state": State.PUBLISHED, "cleaned": True}, True),
        ({"state": State.PUBLISHED, "cleaned": True, "announced": True}, False),
        ({"state": State.PUBLISHED, "duplicate_of": "1", "announced": True}, True),
        (
            {"state": State.PUBLISHED, "duplicate_of": "1", "announced": True, "alerted": True},
            False,
        ),
        ({"state": State.REJECTED}, True),
        ({"state": State.REJECTED, "alerted": True}, True),
        ({"state": State.REJECTED, "alerted": True, "announced": True}, False),
        ({"state": State.ERRORED, "announced": True}, True),
        ({"state": State.ERRORED, "alerted": True, "announced": True}, False),
        ({"state": State.IGNORED}, False),
        ({"state": State.IGNORED, "branch": "b"}, True),
        ({"state": State.IGNORED, "branch": "b", "cleaned": True}, False),
    ],
)
def test_due_is_what_has_a_step_left(
    ledger: AnyLedger, changes: dict[str, Any], is_due: bool
) -> None:
    """Due are ingestions in flight, not cleaned up, or with a missing notification."""
    begun = ledger.begin(ingestion())
    ledger.save(replace(begun, **changes))
    assert ids(ledger.unfinished("2026-03-02")) == [1] * is_due


def test_the_recent_is_not_due(ledger: AnyLedger, clock: FakeClock) -> None:
    """Due are only those last saved before the given time, oldest first."""
    for number in (1, 2, 3):
        ledger.begin(ingestion(number))
        clock.pass_(60)
    assert ids(ledger.unfinished("2026-03-01T12:02:00.000+00:00")) == [1, 2]
    first = ledger.get(ingestion(1).id)
    ledger.save(first.step("branched", clock.now(), state=State.BRANCHED))
    assert ids(ledger.unfinished("2026-03-01T12:03:00.000+00:00")) == [2, 3]


@pytest.mark.parametrize("elsewhere", ["2026-02-01T12", "2026-03-01T13"])
def test_an_ingestion_was_saved_when_the_ledger_wrote_it(
    ledger: AnyLedger, clock: FakeClock, elsewhere: str
) -> None:
    """The ledger's own clock decides when an ingestion is due, not an event's or a driver's."""
    landed = replace(ingestion().landed, landed_at=elsewhere)
    begun = ledger.begin(Ingestion(id=ingestion().id, landed=landed).step("landed", elsewhere))
    saved = ledger.save(begun.step("audited", elsewhere, state=State.AUDITED))
    assert ledger.get(begun.id).saved_at == saved.saved_at > begun.saved_at
    assert not list(ledger.unfinished(saved.saved_at))
    assert ids(ledger.unfinished(clock.now())) == [1]


def test_a_state_lists_its_own(ledger: AnyLedger) -> None:
    """Each state lists its current ingestions, newest landing first."""
    for number in (2, 3, 1):
        ledger.begin(ingestion(number))
    ledger.save(replace(ledger.get(ingestion(2).id), state=State.REJECTED))
    assert ids(ledger.in_state(State.LANDED)) == [3, 1]
    assert ids(ledger.in_state(State.REJECTED)) == [2]
    assert ids(ledger.in_state(State.PUBLISHED)) == []


def test_what_landed_is_listed_in_brief(ledger: AnyLedger) -> None:
    """Everything that landed in a period is listed in its current state, newest first."""
    for day, hour in ((1, 23), (2, 0), (2, 12), (4, 12), (4, 13)):
        time = f"2026-03-0{day}T{hour:02}:00:00.000+00:00"
        landed = replace(ingestion().landed, landed_at=time)
        ledger.begin(ingestion(day * 100 + hour, landed=landed, table="a.b", channel="#c"))
    ended = replace(ledger.get(ingestion(212).id), rows=7, branch="b", discarded=True)
    reason, at = Reason("CHECKS_FAILED", "3 of 4"), "2026-03-02T12:01:00.000+00:00"
    ledger.save(ended.step("rejected", at, state=State.REJECTED, reason=reason))
    found = list(ledger.landed("2026-03-02T00:00:00.000+00:00", "2026-03-04T13:00:00.000+00:00"))
    assert [int(each.id, 16) for each in found] == [412, 212, 200]
    assert found[1] == IngestionSummary(
        id=ingestion(212).id,
        name="1",
        table="a.b",
        state=State.REJECTED,
        rows=7,
        landed_at="2026-03-02T12:00:00.000+00:00",
        ended_at=at,
        reason_code="CHECKS_FAILED",
        branch="b",
        channel="#c",
        discarded=True,
    )
    assert found[0] == IngestionSummary.of(ledger.get(ingestion(412).id))
    assert not found[0].ended


def test_a_batch_is_listed_with_its_tables(ledger: AnyLedger) -> None:
    """A batch is listed with the rows of each of its tables."""
    tables = [("a.b", 3), ("c.d", 4), ("a.b", 5)]
    parts = tuple(
        BatchFile(f"{number}.csv", "v", "e", 1, table, "", "", rows=rows)
        for number, (table, rows) in enumerate(tables)
    )
    ledger.begin(ingestion(table="batch", parts=parts, rows=12))
    (found,) = ledger.landed("2026-03-01", "2026-03-02")
    assert found.tables == ("a.b", "c.d")
    assert [found.rows_for(table) for table in found.tables] == [8, 4]


def test_what_failed_and_is_open_is_listed(ledger: AnyLedger) -> None:
    """Open failures are neither discarded nor superseded, oldest first."""
    states = [State.ERRORED, State.REJECTED, State.ERRORED, State.PUBLISHED, State.REJECTED]
    for number, state in enumerate([*states, State.REJECTED]):
        ledger.begin(ingestion(number, state=state))
    ledger.save(replace(ledger.get(ingestion(1).id), discarded=True))
    ledger.save(replace(ledger.get(ingestion(5).id), superseded_by=ingestion(3).id))
    found = list(ledger.open_failures())
    assert found == [IngestionSummary.of(ledger.get(ingestion(number).id)) for number in (0, 2, 4)]


def test_the_same_content_is_found(ledger: AnyLedger) -> None:
    """All other ingestions with one etag and size are listed, earliest first."""
    numbers = [*range(59, 0, -1), *range(60, 120)]
    for number in numbers:
        landed = replace(ingestion(1).landed, landed_at=f"2026-03-01T{1000 + number}")
        ledger.begin(ingestion(number, landed=landed))
    landed = ingestion(1).landed
    ledger.begin(ingestion(125, landed=replace(landed, etag="e2")))
    ledger.begin(ingestion(126, landed=replace(landed, size=11)))
    found = ids(ledger.same_content(ledger.get(ingestion(3).id)))
    assert found == [number for number in range(1, 120) if number != 3]
    assert ids(ledger.same_content(ingestion(3, landed=replace(landed, etag="e3")))) == []


def test_the_same_content_shows_how_far_it_is(ledger: AnyLedger) -> None:
    """Ingestions with the same content are listed in their current state."""
    begun = ledger.begin(ingestion())
    saved = ledger.save(replace(begun, state=State.REJECTED))
    assert list(ledger.same_content(ingestion(2))) == [saved]


def test_the_versions_of_a_key_are_found(ledger: AnyLedger) -> None:
    """All ingestions of a key in its bucket are listed in their current state."""
    key = ingestion(1).landed
    for number in range(1, 120):
        ledger.begin(ingestion(number, landed=replace(key, version=f"v{number}")))
    ledger.begin(ingestion(120, landed=replace(key, key="shop/orders/10")))
    ledger.begin(ingestion(121, landed=replace(key, bucket="another")))
    saved = ledger.save(replace(ledger.get(ingestion(7).id), state=State.PUBLISHED))
    found = ledger.versions(key)
    assert sorted(ids(iter(found))) == list(range(1, 120))
    assert saved in found


def test_an_ingestion_has_a_time(ledger: AnyLedger) -> None:
    """An ingestion without a landing time is refused, because it could not be listed."""
    timeless = ingestion(landed=replace(ingestion().landed, landed_at=""))
    with pytest.raises(Transient, match="LEDGER_UNAVAILABLE"):
        ledger.begin(timeless)


def test_content_that_nobody_knows_is_like_no_other(ledger: AnyLedger) -> None:
    """An ingestion that was restored without its etag matches no other content."""
    unknown = ledger.begin(ingestion(landed=replace(ingestion().landed, etag="", sequencer="")))
    assert ledger.get(unknown.id) == unknown
    assert ids(ledger.same_content(ingestion(2))) == []
    assert ids(ledger.same_content(unknown)) == []


def test_an_item_of_an_older_release_is_read(dynamodb: Any) -> None:
    """An item of an older release is read with that release's meaning."""
    table = new_table(dynamodb)
    ledger = Ledger(table, FakeClock().now)
    begun = ledger.begin(ingestion(state=State.REJECTED))
    added = ("replaced", "replaced_rows", "duplicate_of", "on_duplicate", "on_new_version", "brief")
    table.update_item(Key={"id": begun.id}, UpdateExpression="REMOVE " + ", ".join(added))
    assert ledger.get(begun.id) == begun
    assert list(ledger.open_failures()) == [IngestionSummary.of(begun)]


def test_two_releases_at_once_lose_nothing(dynamodb: Any) -> None:
    """An older release keeps the fields that a newer one wrote."""
    table = new_table(dynamodb)
    older = newer = Ledger(table, FakeClock().now)
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


def test_what_a_newer_release_means_is_not_guessed(dynamodb: Any) -> None:
    """An item of an incompatible newer release is neither read nor written."""
    table = new_table(dynamodb)
    ledger = Ledger(table, FakeClock().now)
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


@pytest.mark.parametrize(
    ("state", "announced"),
    [(State.PUBLISHED, True), (State.REJECTED, True), (State.AUDITED, False)],
)
def test_what_ended_before_there_were_consumers_is_not_announced(
    dynamodb: Any, state: State, announced: bool
) -> None:
    """Ingestions finished before there were consumers are not announced; later ones are."""
    table = new_table(dynamodb)
    ledger = Ledger(table, FakeClock().now)
    begun = ledger.begin(ingestion(state=state, alerted=True, cleaned=True))
    table.update_item(Key={"id": begun.id}, UpdateExpression="REMOVE announced")
    assert ledger.get(begun.id).announced is announced
    ledger.save(ledger.get(begun.id))
    assert ids(ledger.unfinished("2026-03-02")) == [1] * (not announced)


def test_all_are_all(ledger: AnyLedger) -> None:
    """Every ingestion is listed, on however many pages."""
    checks = ({"message": "x" * 20_000},)
    for number in range(60):
        ledger.begin(ingestion(number, checks=checks))
    assert sorted(ids(ledger.all())) == list(range(60))
    assert sorted(ids(ledger.in_state(State.LANDED))) == list(range(60))
    assert ids(ledger.unfinished("2026-03-02")) == list(range(60))


@pytest.mark.parametrize(
    "code", ["ProvisionedThroughputExceededException", "InternalServerError", "AccessDenied"]
)
def test_what_dynamodb_refuses_is_tried_again(code: str) -> None:
    """Throttling and other refusals of DynamoDB are transient, under the ledger's code."""
    table = boto3.resource("dynamodb", **ACCOUNT).Table("ledger")
    with Stubber(table.meta.client) as stubber:
        for operation in (
            "put_item",
            "put_item",
            "get_item",
            "batch_get_item",
            "query",
            "scan",
            "query",
            "query",
            "query",
            "query",
        ):
            stubber.add_client_error(operation, code)
        for call in calls(Ledger(table, FakeClock().now)):
            with pytest.raises(Transient, match=f"LEDGER_UNAVAILABLE.*{code}"):
                call()


def test_what_decides_is_read_as_last_saved(stubbed: tuple[Ledger, Stubber]) -> None:
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
        lambda: ledger.versions(ingestion().landed),
        lambda: list(ledger.same_content(ingestion(2))),
    ):
        stubber.add_response("query", {"Items": [stored(item)]})
        stubber.add_response("batch_get_item", found(item), {"RequestItems": wanted})
        assert read() == [ingestion()]


def test_what_dynamodb_left_out_is_asked_for_again(stubbed: tuple[Ledger, Stubber]) -> None:
    """Keys that an answer left out are requested again, unchanged."""
    ledger, stubber = stubbed
    first, second = ingestion(1), ingestion(2)
    left = {"ledger": {"Keys": [{"id": second.id}], "ConsistentRead": True}}
    keys = {"ledger": {"Keys": [stored({"id": second.id})], "ConsistentRead": True}}
    stubber.add_response("batch_get_item", found(to_item(first)) | {"UnprocessedKeys": keys})
    stubber.add_response("batch_get_item", found(to_item(second)), {"RequestItems": left})
    assert ledger.together([first.id, second.id]) == [first, second]


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


def test_a_dynamodb_that_is_away_is_tried_again() -> None:
    """If DynamoDB is unreachable every call is a transient error."""
    once = Config(retries={"total_max_attempts": 1})
    address = "http://127.0.0.1:9"
    dynamodb = boto3.resource("dynamodb", endpoint_url=address, config=once, **ACCOUNT)
    for call in calls(Ledger(dynamodb.Table("ledger"), FakeClock().now)):
        with pytest.raises(Transient, match="LEDGER_UNAVAILABLE"):
            call()


def calls(ledger: Ledger) -> list[Any]:
    """Return each of the ledger's methods as a call."""
    return [
        lambda: ledger.begin(ingestion()),
        lambda: ledger.save(ingestion()),
        lambda: ledger.get("x"),
        lambda: ledger.known(["x"]),
        lambda: list(ledger.unfinished("2026")),
        lambda: list(ledger.all()),
        lambda: list(ledger.same_content(ingestion())),
        lambda: ledger.versions(ingestion().landed),
        lambda: list(ledger.open_failures()),
        lambda: list(ledger.landed("2026-03-01T00", "2026-03-01T12")),
    ]
