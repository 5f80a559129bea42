"""What the ledger keeps beside the ingestions is alike in memory and in DynamoDB."""

from dataclasses import replace

import pytest

from functions.adapters.ledger.notes import Claimed, Moved
from functions.model.budget import Charge, Spending
from functions.model.notes.brought import Brought
from functions.model.notes.compactions import Compaction, Compactions
from functions.model.notes.freshness import Freshness
from functions.model.notes.search import Search
from functions.model.notes.upkeep_note import Look, TableUpkeep, UpkeepNote
from tests.contract.ledgers import AnyLedger, ids


def test_a_slot_keeps_its_last_two_runs(ledger: AnyLedger) -> None:
    """A slot is read back as it was saved, and a copy that was read before cannot be saved."""
    unused = ledger.slot(1)
    first = replace(ledger.save_slot(unused.named("shared-a", "2026-03-01")), run="00a")
    ledger.save_slot(ledger.save_slot(first).named("shared-b", "2026-03-02"))
    found = ledger.slot(1)
    assert (found.name, found.name_before, found.run_before) == ("shared-b", "shared-a", "00a")
    assert [found.id_of(name) for name in ("shared-a", "shared-b", "shared-c")] == ["00a", "", ""]
    with pytest.raises(Moved):
        ledger.save_slot(first)


def test_what_runs_cost_is_summed_by_day(ledger: AnyLedger) -> None:
    """A day's sums are those of its charges, each once, and are no ingestions."""
    fresh = ledger.charge("run-1")
    assert fresh == Charge("run-1")
    assert ledger.save_charge(fresh, fresh.holding("2026-03-01", 700_000), 1)
    held = ledger.charge("run-1")
    ledger.note_unmeasured("2026-03-01", "00run1")
    ledger.note_unmeasured("2026-03-01", "00run2")
    assert ledger.spending("2026-03-01") == Spending(
        "2026-03-01", 0, 700_000, frozenset({"00run1", "00run2"})
    )
    ended = held.counted("2026-03-02", "00run1", 2_000)
    assert ledger.save_charge(held, ended)
    with pytest.raises(Moved):
        ledger.save_charge(held, ended)
    assert ledger.spending("2026-03-01") == Spending("2026-03-01", 2_000, 0, frozenset({"00run2"}))
    assert ledger.spending("2026-03-02") == Spending("2026-03-02")
    assert ledger.charge("run-1") == replace(ended, revision=2)
    assert ids(ledger.all()) == ids(ledger.unfinished("2027")) == []


def test_a_day_takes_charges_only_below_its_budget(ledger: AnyLedger) -> None:
    """What is used and held bounds what is held further; what ended is counted in any case."""
    day = "2026-03-01"
    for name, amount, is_taken in (("a", 999_999, True), ("b", 1, True), ("c", 1, False)):
        fresh = ledger.charge(name)
        assert ledger.save_charge(fresh, fresh.holding(day, amount), 1) is is_taken
    assert ledger.charge("c") == Charge("c")
    first = ledger.charge("a")
    assert ledger.save_charge(first, first.counted(day, "00a", 2_000_000))
    assert ledger.spending(day) == Spending(day, 2_000_000, 1)


def test_the_search_is_kept_beside_the_ingestions(ledger: AnyLedger) -> None:
    """The search is read back as it was saved last, and is no ingestion."""
    assert ledger.search() is None
    read = ledger.begin_search("2026-03-02")
    assert ledger.search() == read == Search.first("2026-03-02")
    for position in ("", '["ä+ b", "v1"]'):
        search = Search("2026-03-02", "2026-03-01", "2026-02-28", position, is_complete=False)
        ledger.save_search(replace(search, token=read.token))
        read = ledger.search() or read
        assert read == search
    assert ids(ledger.all()) == ids(ledger.unfinished("2027")) == []


def test_a_search_that_begins_again_is_not_undone(ledger: AnyLedger) -> None:
    """A sweep that read an earlier search saves over nothing."""
    read = ledger.begin_search("2026-03-02")
    ledger.begin_search("2026-03-03")
    with pytest.raises(Moved):
        ledger.save_search(read)
    assert ledger.search() == Search.first("2026-03-03")


def test_the_note_of_upkeep_is_kept_beside_the_ingestions(ledger: AnyLedger) -> None:
    """The last note is read back as saved; a save from an older one is refused."""
    first = ledger.upkeep()
    assert first == UpkeepNote()
    look = Look("2026", "a catalog", "a commit")
    note = UpkeepNote("2026", "2025", {"a.b": TableUpkeep(8, 4, 1, 2, 3, "2024")}, look, "in doubt")
    ledger.save_upkeep(UpkeepNote("2020"))
    with pytest.raises(Moved):
        ledger.save_upkeep(first)
    ledger.save_upkeep(replace(note, revision=1))
    assert ledger.upkeep() == replace(note, revision=2)
    assert list(ledger.all()) == []


def test_compactions_under_way_are_kept_beside_the_ingestions(ledger: AnyLedger) -> None:
    """They are read back as saved; a save from an older state is refused."""
    first = ledger.compactions()
    assert first == Compactions()
    begun = Compaction("a.b", "upkeep-1", "2026", base="b" * 64, rewriting="00run")
    ledger.save_compactions(first.with_one(begun))
    with pytest.raises(Moved):
        ledger.save_compactions(first)
    assert ledger.compactions() == Compactions((begun,), "2026", {"a.b": "2026"})
    ledger.save_compactions(ledger.compactions().exchanged(begun, None))
    assert ledger.compactions() == Compactions((), "2026", {"a.b": "2026"})
    assert list(ledger.all()) == []


def test_what_was_compacted_is_kept_beside_the_ingestions(ledger: AnyLedger) -> None:
    """The ledger knows the compactions that were noted, and no others."""
    ledger.note_compacted("upkeep/a.b/1")
    ledger.note_compacted("upkeep/a.b/1")
    assert ledger.was_compacted("upkeep/a.b/1")
    assert not ledger.was_compacted("upkeep/a.b/2")
    assert list(ledger.all()) == []


def test_the_freshness_of_tables_is_kept_beside_the_ingestions(ledger: AnyLedger) -> None:
    """The freshness is read back as saved; a save from an older one is refused."""
    first = ledger.freshness()
    assert first == Freshness()
    ledger.save_freshness(replace(first, checked_at="2026", arrived={"a.b": "2025"}))
    with pytest.raises(Moved):
        ledger.save_freshness(first)
    assert ledger.freshness() == Freshness("2026", {"a.b": "2025"}, (), 1)
    assert ids(ledger.all()) == ids(ledger.unfinished("2027")) == []


def test_one_holder_has_a_claim(ledger: AnyLedger) -> None:
    """A claim is refused to others until it is released or over; its holder may prolong it."""
    ledger.claim("work", "a", "2026-01-01", "2026-01-03")
    with pytest.raises(Moved):
        ledger.claim("work", "b", "2026-01-02", "2026-01-09")
    ledger.claim("work", "a", "2026-01-02", "2026-01-04")
    ledger.claim("other", "b", "2026-01-02", "2026-01-04")
    ledger.release("work", "b")
    with pytest.raises(Claimed) as refused:
        ledger.claim("work", "b", "2026-01-03", "2026-01-09")
    assert refused.value.until == "2026-01-04"
    ledger.release("work", "a")
    ledger.claim("work", "b", "2026-01-03", "2026-01-04")
    ledger.claim("work", "a", "2026-01-05", "2026-01-06")
    assert ids(ledger.all()) == []


def test_a_source_has_one_copy_for_each_table(ledger: AnyLedger) -> None:
    """A copy is kept by table and source, whatever the source's name, and is no ingestion."""
    source = f"s3://old/{'ü' * 900}.csv"
    begun = Brought("mark", "shop/orders/ü.csv")
    assert ledger.brought("shop.orders", source) is None
    saved = ledger.save_brought("shop.orders", source, begun)
    assert ledger.brought("shop.orders", source) == saved == replace(begun, revision=1)
    ended = replace(saved, version="v1", etag="e", size=5)
    assert ledger.save_brought("shop.orders", source, ended) == replace(ended, revision=2)
    assert ledger.brought("shop.orders", source) == replace(ended, revision=2)
    assert ledger.brought("shop.returns", source) is None
    assert ledger.brought("shop.orders", f"{source}2") is None
    assert ids(ledger.all()) == []
    assert list(ledger.versions(ended.as_landed("landing"))) == []


def test_a_copy_that_another_backfill_saved_is_not_replaced(ledger: AnyLedger) -> None:
    """Of two that know the same, or nothing, of a source only one saves its copy."""
    first, other = Brought("mark", "a.csv"), Brought("mark", "b.csv")
    saved = ledger.save_brought("shop.orders", "s3://old/a.csv", first)
    for late in (other, replace(other, revision=2)):
        with pytest.raises(Moved):
            ledger.save_brought("shop.orders", "s3://old/a.csv", late)
    assert ledger.brought("shop.orders", "s3://old/a.csv") == saved
