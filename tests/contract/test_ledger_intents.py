"""Large groups, and the intents that their members have, are alike in memory and in DynamoDB."""

from collections.abc import Sequence
from contextlib import suppress

import pytest

from functions.adapters.ledger.ledger import Room
from functions.adapters.ledger.notes import Moved
from functions.model.audit_outcome import AuditOutcome
from functions.model.ingestion import Ingestion, State
from functions.model.intent import Intent, SharedIntent
from tests.contract.ledgers import AnyLedger, ingestion


def test_a_large_group_is_known_to_each_member(ledger: AnyLedger) -> None:
    """Members of a large group are read and saved with its ids, and nothing else is listed."""
    begun = [ledger.begin(ingestion(number, table="a.b")) for number in range(40)]
    group = tuple(each.id for each in begun)
    saved = ledger.save_all([each.but(group=group, state=State.AUDITED) for each in begun])
    assert {each.group for each in ledger.together(group)} == {group}
    one = ledger.save(ledger.get(begun[0].id).but(audit=AuditOutcome(rows=7)))
    assert ledger.get(one.id).group == group
    found = sorted((one, *saved[1:]), key=lambda each: each.id)
    now = sorted(ledger.all(), key=lambda each: each.id)
    assert [each.but(revision=0) for each in now] == [each.but(revision=0) for each in found]
    assert {each.group for each in ledger.waiting("a.b")} == {group}


OLD, NEW = Intent("ingest/a.b/group-1", "h1"), Intent("publish/a.b/2", "h2")


def audited_group(ledger: AnyLedger, first: int, size: int = 3) -> list[Ingestion]:
    """Return the audited members of a group with numbers from `first` on."""
    numbers = range(first, first + size)
    begun = [ledger.begin(ingestion(n % 60, "a.b").but(id=f"{n:032x}")) for n in numbers]
    group = tuple(each.id for each in begun) if size > 1 else ()
    intent = {"branch": f"{OLD.branch}{first}", "audited_hash": OLD.hash, "base_hash": "b1"}
    return ledger.save_each([i.but(state=State.AUDITED, group=group, **intent) for i in begun])


def as_saved(ledger: AnyLedger, members: Sequence[Ingestion]) -> list[Ingestion]:
    return ledger.together([each.id for each in members])


def test_more_files_than_one_write_takes_get_an_intent_together(ledger: AnyLedger) -> None:
    """Groups, and files that are alone, get the same intent, however many files these are."""
    first, second = audited_group(ledger, 0, 90), audited_group(ledger, 100, 90)
    members = [*first, *audited_group(ledger, 200, 1), *audited_group(ledger, 300, 2), *second]
    ledger.rebase(members, NEW, "b2")
    now = as_saved(ledger, members)
    assert {(each.intent, each.base_hash) for each in now} == {(NEW, "b2")}
    assert {each.group for each in now} == {tuple(each.id for each in members)}
    assert all(each.times["rebased"] for each in now)
    assert [each.id for each in ledger.waiting("a.b")] == [members[0].id]
    later = Intent("publish/a.b/3", "h3")
    ledger.rebase(now, later, "b3")
    again = as_saved(ledger, now)
    assert {(each.intent, each.base_hash) for each in again} == {(later, "b3")}
    ended = [each.but(state=State.PUBLISHED, merge_hash="m") for each in again]
    assert {each.id for each in ledger.save_each(ended)} == {each.id for each in members}
    done = as_saved(ledger, ended)
    assert {(i.state, i.intent) for i in done} == {(State.PUBLISHED, later)}
    assert not any(each.shared_intent.id for each in done)  # no write about it any more


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_group_is_listed_whoever_gave_it_an_intent(ledger: AnyLedger, first: int) -> None:
    """Others find a group that waits, whichever member the process began with."""
    members = audited_group(ledger, 0)
    began = [members[first], *(each for each in members if each.id != members[first].id)]
    ledger.rebase(began, NEW, "b2")
    assert [each.intent for each in ledger.waiting("a.b")] == [NEW]


def test_a_commit_has_room_for_five_groups_of_a_hundred(ledger: AnyLedger) -> None:
    """Groups join as long as their files, and what is said about them, stay few enough."""
    group, room = audited_group(ledger, 0, 100), Room()
    assert [room.takes(group) for _ in range(6)] == [True] * 5 + [False]
    alone = [each.but(shared_intent=SharedIntent()) for each in group]
    room = Room()
    assert [room.takes(each) for each in (alone, group, alone[:1])] == [True, False, False]


@pytest.mark.parametrize("saves", ["save", "save_all", "save_each"])
def test_old_knowledge_of_an_intent_is_not_saved(ledger: AnyLedger, saves: str) -> None:
    """Who read a member before its group got another intent takes it no way of its own."""
    members = audited_group(ledger, 0)
    ledger.rebase(members, NEW, "b2")
    gone = members[1].but(state=State.LANDED, group=(), branch="")
    with suppress(Moved):
        assert getattr(ledger, saves)(gone if saves == "save" else [gone]) == []
    assert {(i.state, i.intent) for i in as_saved(ledger, members)} == {(State.AUDITED, NEW)}


@pytest.mark.parametrize("state", [State.LANDED, State.PUBLISHED])
@pytest.mark.parametrize("saves", ["save", "save_all", "save_each"])
def test_a_group_that_a_member_left_gets_no_intent(
    ledger: AnyLedger, saves: str, state: State
) -> None:
    """If a member went another way since the group was read, nobody gets the new intent."""
    members, others = audited_group(ledger, 0), audited_group(ledger, 10)
    gone = members[1].but(state=state)
    getattr(ledger, saves)(gone if saves == "save" else [gone])
    with pytest.raises(Moved) as refusal:
        ledger.rebase([*members, *others], NEW, "b2")
    assert gone.id in refusal.value.ids
    assert not refusal.value.ids & {each.id for each in others}
    now = as_saved(ledger, [*members, *others])
    assert NEW not in {each.intent for each in now}
    assert [each.state for each in now].count(State.AUDITED) == 5


def test_a_member_that_was_read_as_it_left_is_no_member(ledger: AnyLedger) -> None:
    """A closed group moves only with the revisions of all of its members."""
    members = audited_group(ledger, 0)
    ledger.save(members[1].but(state=State.LANDED, group=(), branch=""))
    first, gone, last = as_saved(ledger, members)
    shared = first.shared_intent  # which was read after the member had left
    late = members[1].but(revision=members[1].revision + shared.revision, shared_intent=shared)
    with pytest.raises(Moved):
        ledger.rebase([first, late, last], NEW, "b2")
    assert ledger.get(gone.id).state is State.LANDED
    ledger.rebase([first, last], NEW, "b2")
    assert [each.intent for each in as_saved(ledger, [first, last])] == [NEW, NEW]


def test_a_remark_on_a_member_leaves_it_in_its_group(ledger: AnyLedger) -> None:
    """It stays with the others, which are no more changed by one write for all."""
    members = audited_group(ledger, 0, 4)
    ledger.save(members[2].step("overdue", "2026-03-01T13:00:00.000+00:00"))
    now = as_saved(ledger, members)
    assert {(each.intent, each.group) for each in now} == {(members[0].intent, members[0].group)}
    assert not any(each.shared_intent.is_open for each in now)
    with pytest.raises(Moved):
        ledger.rebase(members, NEW, "b2")
    ledger.rebase(now, NEW, "b2")
    assert {each.intent for each in as_saved(ledger, members)} == {NEW}


def test_members_that_leave_together_are_saved_one_by_one(ledger: AnyLedger) -> None:
    """None of them is news to the others, but to whoever read them before."""
    members = audited_group(ledger, 0)
    ledger.rebase(members, Intent("publish/a.b/1", "h1"), "b1")
    read = as_saved(ledger, members)
    for each in ledger.leave(read):
        ledger.save(each.but(state=State.LANDED, group=(), branch=""))
    assert {each.state for each in as_saved(ledger, members)} == {State.LANDED}
    for late in (read, members):
        with pytest.raises(Moved):
            ledger.leave(late)
    assert ledger.leave(as_saved(ledger, members)) == as_saved(ledger, members)
