"""The ledger behaves alike in memory and in DynamoDB."""

from dataclasses import replace
from typing import Any

import pytest

from functions.adapters.ledger.notes import Moved
from functions.adapters.ledger.reads import UnknownIngestion
from functions.model.audit_outcome import AuditOutcome
from functions.model.contract_terms import ContractTerms
from functions.model.decisions import Action, Approval, Decisions
from functions.model.ingestion import Ingestion, State
from functions.model.ingestion_summary import IngestionSummary
from lakegate.audit.report import Reason
from lakegate.errors import Transient
from lakegate.job.batch import BatchFile
from lakegate.job.change import Change
from lakegate.job.landing import LandedObject
from tests.contract.ledgers import PARTS, AnyLedger, ids, ingestion
from tests.fakes.clock import FakeClock

CHANGE = Change("a.b", "DELETE FROM a.b", "t", "Ann", "why")


def test_an_ingestion_begins_once(ledger: AnyLedger) -> None:
    """Beginning an ingestion again returns it in its current state."""
    begun = ledger.begin(ingestion())
    assert begun == replace(ingestion(), revision=1)
    moved = ledger.save(begun.step("branched", "2026-03-01T13", state=State.BRANCHED))
    assert ledger.begin(ingestion(terms=ContractTerms(channel="#other"))) == moved


def test_an_unknown_ingestion_is_none(ledger: AnyLedger) -> None:
    """An ingestion that the ledger lacks cannot be read, and one that it lost not be saved."""
    with pytest.raises(UnknownIngestion, match=ingestion().id):
        ledger.get(ingestion().id)
    with pytest.raises(Transient, match="LEDGER_MOVED"):
        ledger.save(ingestion(revision=1))
    assert list(ledger.all()) == []


def test_the_first_save_begins_an_ingestion(ledger: AnyLedger) -> None:
    """An ingestion without a revision is added, by one of several processes."""
    assert ledger.save(ingestion(audit=AuditOutcome(rows=1))) == ingestion(
        audit=AuditOutcome(rows=1), revision=1
    )
    with pytest.raises(Transient, match="LEDGER_MOVED"):
        ledger.save(ingestion(audit=AuditOutcome(rows=2)))
    assert ledger.save_all([ingestion(2), ingestion(3)]) == [
        ingestion(2, revision=1),
        ingestion(3, revision=1),
    ]
    with pytest.raises(Moved) as refusal:
        ledger.save_all([ingestion(4), ingestion(3)])
    assert refusal.value.ids == {ingestion(3).id}
    assert ledger.get(ingestion().id).audit.rows == 1
    assert ledger.known([ingestion(4).id]) == set()


def test_due_audit_results_are_listed(ledger: AnyLedger) -> None:
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
        ledger.save(
            replace(
                begun,
                state=state,
                terms=replace(begun.terms, table=table),
                attempt=2,
                recorded=recorded,
            )
        )
    needs_alert = replace(
        ingestion(6), state=State.REJECTED, terms=replace(ingestion(6).terms, table="shop.orders")
    )
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
        terms=ContractTerms(
            table="shop.orders",
            contract_key="contracts/shop.orders.yaml",
            contract_version="c1",
            channel="#orders",
            on_duplicate="hold",
            on_new_version="replace",
        ),
        branch="ingest/shop.orders/x",
        base_hash="base",
        job_run="00run",
        report_key="reports/x",
        audited_hash="audited",
        group=("f" * 32, "e" * 32),
        merge_hash="merged",
        audit=AuditOutcome(
            duplicate_of="e" * 32,
            replaced_rows=4_000_000_000,
            rows=5_000_000_000,
            check_counts={"pass": 7, "fail": 1},
            checks=({"id": "ü", "columns": ["a"], "status": "fail"},),
        ),
        replaced=("c" * 32, "d" * 32),
        reason=Reason("CODE", "Weil's so ist"),
        alerted=True,
        cleaned=True,
        recorded=2,
        times={"landed": "2026-03-01T12", "ended": "2026-03-01T13"},
        decisions=Decisions(
            actions=(Action("replay", "bö (U1)", "2026-03-01T13", 1),),
            approval=Approval("Ann", "weil's so ist", "2026-03-01T14", ("ü", "b")),
            discarded=True,
            branches_to_delete={"ingest/shop.orders/x": "hash"},
        ),
        tries_from=2,
        contract_pinned=True,
        leaves_group=True,
        parts=PARTS,
    )
    ledger.begin(full)
    kept = ledger.get(full.id)
    assert kept == replace(full, revision=1)
    assert list(map(type, vars(kept).values())) == list(map(type, vars(full).values()))


def test_old_knowledge_is_not_saved(ledger: AnyLedger) -> None:
    """Each save increments the revision; a second save of one revision changes nothing."""
    begun = ledger.begin(ingestion())
    won = ledger.save(replace(begun, branch="mine"))
    with pytest.raises(Transient, match="LEDGER_MOVED"):
        ledger.save(replace(begun, branch="yours"))
    assert ledger.get(begun.id) == won
    next_ = ledger.save(replace(won, audit=replace(won.audit, rows=2)))
    assert [each.revision for each in (begun, won, next_)] == [1, 2, 3]


def test_several_are_saved_together(ledger: AnyLedger) -> None:
    """Up to 100 are saved at once, each with its next revision."""
    begun = [ledger.begin(ingestion(number)) for number in range(60)]
    saved = ledger.save_all([replace(each, audit=replace(each.audit, rows=7)) for each in begun])
    assert saved == [replace(each, audit=replace(each.audit, rows=7), revision=2) for each in begun]
    assert ledger.together([each.id for each in begun]) == saved
    assert ledger.together([]) == []


def test_an_id_may_be_asked_twice(ledger: AnyLedger) -> None:
    """Each place in the list has the ingestion, and a repeated id is no error."""
    one, other = ledger.begin(ingestion(1)), ledger.begin(ingestion(2))
    assert ledger.together([one.id, other.id, one.id]) == [one, other, one]


def test_several_are_saved_all_or_none(ledger: AnyLedger) -> None:
    """If some of them changed or are lost, none is saved, and the error names these."""
    begun, lost = [ledger.begin(ingestion(number)) for number in range(4)], ingestion(4, revision=1)
    moved = [
        ledger.save(replace(begun[number], audit=replace(begun[number].audit, rows=1)))
        for number in (1, 3)
    ]
    with pytest.raises(Moved) as refusal:
        ledger.save_all(
            [replace(each, audit=replace(each.audit, rows=2)) for each in (*begun, lost)]
        )
    assert refusal.value.ids == {each.id for each in (*moved, lost)}
    now = [begun[0], moved[0], begun[2], moved[1]]
    assert ledger.together([each.id for each in (*begun, lost)]) == now
    with pytest.raises(Moved):
        ledger.save_all([begun[0], lost])


def test_each_is_saved_unless_another_process_was_faster(ledger: AnyLedger) -> None:
    """What changed meanwhile, or is lost, keeps no other from being saved."""
    begun, lost = (
        [ledger.begin(ingestion(number)) for number in range(20)],
        ingestion(30, revision=1),
    )
    moved = ledger.save(replace(begun[1], audit=replace(begun[1].audit, rows=1)))
    saved = ledger.save_each(
        [replace(each, audit=replace(each.audit, rows=2)) for each in (*begun, lost)]
    )
    assert [each.id for each in saved] == [each.id for each in begun if each.id != moved.id]
    assert {each.revision for each in saved} == {2}
    now = [saved[0], moved, *saved[1:]]
    assert ledger.together([each.id for each in (*begun, lost)]) == now
    assert ledger.save_each([]) == []


def waiting(ledger: AnyLedger, table: str) -> list[int]:
    """Return the numbers of a table's waiting ingestions, sorted."""
    return sorted(ids(iter(ledger.waiting(table))))


def test_the_audited_of_a_table_are_waiting(ledger: AnyLedger) -> None:
    """Of one table the audited ingestions are waiting, until they end."""
    states = [State.AUDITED, State.AUDITED, State.PUBLISHED, State.SUBMITTED]
    for number, state in enumerate(states):
        ledger.begin(ingestion(number, state=state, table="a.b"))
    ledger.begin(ingestion(9, state=State.AUDITED, table="a.c"))
    assert waiting(ledger, "a.b") == [0, 1]
    ledger.save(replace(ledger.get(ingestion(0).id), state=State.PUBLISHED))
    assert waiting(ledger, "a.b") == [1]


def test_the_first_of_a_queue_are_those_that_landed_first(ledger: AnyLedger) -> None:
    """Of a table's queue so many are found as are asked for, in the order of landing."""
    for number in (3, 1, 2, 0):
        made = ingestion(number, state=State.AUDITED, table="a.b")
        landed = replace(made.landed, landed_at=f"2026-03-01T12:00:0{number}.000+00:00")
        ledger.begin(replace(made, landed=landed))
    assert ids(iter(ledger.first_waiting("a.b", 3))) == [0, 1, 2]
    assert ids(iter(ledger.first_waiting("a.b", 9))) == [0, 1, 2, 3]
    assert ledger.first_waiting("a.c", 3) == []


def test_ingestions_with_priority_are_waiting(ledger: AnyLedger) -> None:
    """Refused ingestions of a table are waiting while their job runs again."""
    states = [State.BRANCHED, State.SUBMITTED, State.AUDITED, State.REJECTED]
    whole = ContractTerms("a.b", checks_whole_table=True)
    again: dict[str, Any] = {"reaudit_base": "b" * 64, "terms": whole}
    for number, state in enumerate(states):
        ledger.begin(ingestion(number, state=state, **again))
        ledger.begin(ingestion(number + 10, state=state, table="a.b"))
    elsewhere = {**again, "terms": replace(whole, table="a.c")}
    ledger.begin(ingestion(9, state=State.SUBMITTED, **elsewhere))
    for number, attempt in ((5, 2), (6, 1)):
        tried = ingestion(number, state=State.SUBMITTED, table="a.b", change=CHANGE)
        ledger.begin(replace(tried, attempt=attempt))
    times = {"published": "2026-03-01T12:00:00.000+00:00"}
    for number, state in ((7, State.LANDED), (8, State.PUBLISHED)):
        ledger.begin(ingestion(number, "a.b", state=state, times=times))
    assert waiting(ledger, "a.b") == [0, 1, 2, 5, 7, 12]
    found = {int(each.id, 16): each for each in ledger.waiting("a.b")}
    assert (found[0].reaudit_base, found[0].terms.checks_whole_table) == ("b" * 64, True)
    assert found[5].change == CHANGE


def test_of_what_landed_later_only_what_may_come_first_is_waiting(ledger: AnyLedger) -> None:
    """Of many held files those before a time are listed; and changes, re-audits, what main lost."""
    upsert = ContractTerms("a.b", write_mode="upsert")
    later: dict[int, dict[str, Any]] = {
        1: {},
        2: {},
        3: {"change": CHANGE, "state": State.AUDITED},
        4: {"reaudit_base": "b" * 64, "state": State.SUBMITTED},
        5: {"times": {"published": "2026-03-01T12:00:00.000+00:00"}},
        6: {"parts": (BatchFile("f", "v", "e", 1, "a.b", "c", "v"),), "state": State.AUDITED},
        7: {},
    }
    for number, changes in later.items():
        made = ingestion(number, **{"terms": upsert, **changes})
        landed = replace(made.landed, landed_at=at(number))
        ledger.begin(replace(made, landed=landed))
    assert sorted(ids(iter(ledger.waiting("a.b", at(1))))) == [1, 3, 4, 5, 6]
    assert sorted(ids(iter(ledger.waiting("a.b", at(2))))) == [1, 2, 3, 4, 5, 6]
    assert ids(ledger.waiting_in_order("a.b", at(2))) == [2, 3, 4, 5, 7]


def test_a_queue_is_read_in_order_as_far_as_needed(ledger: AnyLedger) -> None:
    """Files of one moment come in the order of their ids, as everywhere."""
    for number, second in ((4, 1), (3, 0), (1, 1), (2, 1)):
        made = ingestion(number, "a.b", state=State.AUDITED)
        landed = replace(made.landed, landed_at=at(second))
        ledger.begin(replace(made, landed=landed))
    assert ids(ledger.waiting_in_order("a.b")) == [3, 1, 2, 4]
    assert ids(ledger.waiting_in_order("a.b", at(1))) == [1, 2, 4]
    assert ids(ledger.waiting_in_order("a.c")) == []


def at(second: int) -> str:
    """Return a time of landing."""
    return f"2026-03-01T12:00:0{second}.000+00:00"


def test_a_batch_is_found_by_each_of_its_tables(ledger: AnyLedger) -> None:
    """A batch waits for each of its tables, and has priority in all of them after a retry."""
    parts = tuple(BatchFile("f", "v", "e", 1, table, "c", "v") for table in ("a.b", "a.c"))
    terms = ContractTerms("batch", checks_whole_table=True)
    batch: dict[str, Any] = {"parts": parts, "terms": terms}
    ledger.begin(ingestion(1, state=State.AUDITED, **batch))
    ledger.begin(ingestion(2, state=State.SUBMITTED, attempt=2, **batch))
    for table in ("a.b", "a.c"):
        assert waiting(ledger, table) == [1, 2]
    assert waiting(ledger, "a.d") == waiting(ledger, "batch") == []


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
        (
            {"state": State.PUBLISHED, "audit": AuditOutcome(duplicate_of="1"), "announced": True},
            True,
        ),
        (
            {
                "state": State.PUBLISHED,
                "audit": AuditOutcome(duplicate_of="1"),
                "announced": True,
                "alerted": True,
            },
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
    """Due are only those last saved before the given time, earliest landing first."""
    for number in (2, 1, 3):
        ledger.begin(ingestion(number))
        clock.pass_(60)
    assert ids(ledger.unfinished("2026-03-01T12:02:00.000+00:00")) == [1, 2]
    first = ledger.get(ingestion(1).id)
    ledger.save(first.step("branched", clock.now(), state=State.BRANCHED))
    assert ids(ledger.unfinished("2026-03-01T12:03:00.000+00:00")) == [2, 3]


def test_what_is_unfinished_has_a_place_by_its_landing(ledger: AnyLedger) -> None:
    """The landings of unfinished ingestions before a time are listed, earliest first."""
    days = [f"2026-03-0{day}T12:00:00.000+00:00" for day in range(1, 5)]
    for number in (2, 0, 1, 3):
        one = ingestion(number)
        landed = replace(one.landed, landed_at=days[number])
        state = State.IGNORED if number == 1 else State.LANDED
        ledger.begin(replace(one, landed=landed, state=state))
    assert ledger.due_landings(days[3]) == [days[0], days[2]]


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
    """Each state lists its current ingestions, whatever is still due and why it failed."""
    done: dict[str, Any] = {"alerted": True, "announced": True}
    ledger.begin_search("2026-03-01")
    for number in range(20):
        ledger.begin(ingestion(number, **done if number % 2 else {}))
    for number, state in enumerate([*State, *State]):
        reason = Reason(f"CODE {number}", "why") if state is not State.ERRORED else None
        ledger.save(replace(ledger.get(ingestion(number).id), state=state, reason=reason))
    found = {state: sorted(ids(ledger.in_state(state))) for state in State}
    assert found.pop(State.LANDED) == [0, 8, 16, 17, 18, 19]
    others = enumerate([*State][1:], 1)
    assert found == {state: [number, number + 8] for number, state in others}


def test_the_silent_are_listed(ledger: AnyLedger, clock: FakeClock) -> None:
    """Listed are those that ended without a report and were saved since then."""
    reasons = ["NO_REPORT", "JOB_FAILED", "CHECKS_FAILED", "JOB_LOST"]
    for number, code in enumerate(reasons):
        ledger.begin(ingestion(number, table="a.b", alerted=True, announced=True))
        ended = ledger.get(ingestion(number).id).but(state=State.ERRORED, reason=Reason(code, ""))
        ledger.save(ended.but(recorded=1) if number else ended)
        clock.pass_(60)
    assert ids(ledger.silent("2026-03-01T12")) == [1, 3]
    assert ids(ledger.silent("2026-03-01T12:02:00.000+00:00")) == [3]
    assert ids(ledger.needs_recording()) == [0]


def test_landed_objects_are_listed_in_brief(ledger: AnyLedger) -> None:
    """Everything that landed in a period is listed in its current state, newest first."""
    for day, hour in ((1, 23), (2, 0), (2, 12), (4, 12), (4, 13)):
        time = f"2026-03-0{day}T{hour:02}:00:00.000+00:00"
        landed = replace(ingestion().landed, landed_at=time)
        ledger.begin(
            ingestion(day * 100 + hour, landed=landed, terms=ContractTerms("a.b", channel="#c"))
        )
    begun = ledger.get(ingestion(212).id)
    outcome, decisions = replace(begun.audit, rows=7), Decisions(discarded=True)
    ended = replace(begun, audit=outcome, branch="b", decisions=decisions)
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
    ledger.begin(ingestion(table="batch", parts=parts, audit=AuditOutcome(rows=12)))
    (found,) = ledger.landed("2026-03-01", "2026-03-02")
    assert found.tables == ("a.b", "c.d")
    assert [found.rows_for(table) for table in found.tables] == [8, 4]


def test_open_failures_are_listed(ledger: AnyLedger) -> None:
    """Open failures are neither discarded nor superseded, oldest first."""
    states = [State.ERRORED, State.REJECTED, State.ERRORED, State.PUBLISHED, State.REJECTED]
    for number, state in enumerate([*states, State.REJECTED]):
        ledger.begin(ingestion(number, state=state))
    ledger.save(ledger.get(ingestion(1).id).but(decisions=Decisions(discarded=True)))
    ledger.save(replace(ledger.get(ingestion(5).id), superseded_by=ingestion(3).id))
    found = list(ledger.open_failures())
    assert found == [IngestionSummary.of(ledger.get(ingestion(number).id)) for number in (0, 2, 4)]


def test_the_same_content_is_found(ledger: AnyLedger) -> None:
    """All other ingestions with one etag and size are listed as they are, earliest first."""
    numbers = [*range(59, 0, -1), *range(60, 120)]
    for number in numbers:
        landed = replace(ingestion(1).landed, landed_at=f"2026-03-01T{1000 + number}")
        ledger.begin(ingestion(number, landed=landed))
    landed = ingestion(1).landed
    ledger.begin(ingestion(125, landed=replace(landed, etag="e2")))
    ledger.begin(ingestion(126, landed=replace(landed, size=11)))
    saved = ledger.save(replace(ledger.get(ingestion(1).id), state=State.REJECTED))
    found = list(ledger.same_content(ledger.get(ingestion(3).id)))
    assert ids(iter(found)) == [number for number in range(1, 120) if number != 3]
    assert found[0] == saved
    assert ids(ledger.same_content(ingestion(3, landed=replace(landed, etag="e3")))) == []


def test_the_versions_of_a_key_are_found(ledger: AnyLedger) -> None:
    """All ingestions of a key in its bucket are yielded as they are, the newest landing first."""
    key = ingestion(1).landed
    for number in range(1, 120):
        at = f"2026-03-01T12:{number // 60:02}:{number % 60:02}.000+00:00"
        ledger.begin(ingestion(number, landed=replace(key, version=f"v{number}", landed_at=at)))
    ledger.begin(ingestion(120, landed=replace(key, key="shop/orders/10")))
    ledger.begin(ingestion(121, landed=replace(key, bucket="another")))
    saved = ledger.save(replace(ledger.get(ingestion(7).id), state=State.PUBLISHED))
    found = list(ledger.versions(key))
    assert found == sorted(found, key=lambda each: each.landed.landed_at, reverse=True)
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


def test_all_are_all(ledger: AnyLedger) -> None:
    """Every ingestion is listed, on however many pages."""
    checks = ({"message": "x" * 20_000},)
    for number in range(60):
        ledger.begin(ingestion(number, audit=AuditOutcome(checks=checks)))
    assert sorted(ids(ledger.all())) == list(range(60))
    assert sorted(ids(ledger.in_state(State.LANDED))) == list(range(60))
    assert ids(ledger.unfinished("2026-03-02")) == list(range(60))
    outlines = sorted(ledger.outlines())
    saved = list(ledger.read(each.id for each in outlines))
    assert outlines == [(each.id, each.state, each.saved_at, True) for each in saved]
    assert ids(iter(saved)) == list(range(60))


def test_an_outline_tells_whether_a_step_is_due(ledger: AnyLedger) -> None:
    """An ingestion whose last step is done is not unfinished any more."""
    begun = ledger.begin(ingestion())
    ended = ledger.save(replace(begun, state=State.PUBLISHED, announced=True))
    assert list(ledger.outlines()) == [(ended.id, State.PUBLISHED, ended.saved_at, False)]
