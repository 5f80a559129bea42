"""Text and JSON output of `lakegate ledger realign`."""

from dataclasses import replace

from cli.ledger.realign import document, lines
from functions.operations.recovery.realign import Done, Realigned
from functions.operations.recovery.realign_plan import Decision, Kind
from tests.unit.cli.cli_examples import PUBLISHED, REJECTED

GONE = replace(PUBLISHED, id=32 * "1")
DONE = Realigned(
    [
        Done(Decision(PUBLISHED, (Kind.PUBLISH_AGAIN,))),
        Done(Decision(GONE, (Kind.LOST,), "its landed object is gone")),
        Done(Decision(REJECTED, (Kind.RECORD_AGAIN, Kind.BRANCH_GONE)), overtaken=True),
    ],
    ["upkeep/shop.orders/upkeep-1"],
)


def test_every_loss_is_named() -> None:
    """The text counts each kind and names what is lost, with the tables and the next steps."""
    said = list(lines(DONE, dry_run=False))
    assert "        1 published again from their landed objects" in said
    assert "        1 branches of compactions that had ended, deleted again" in said
    [lost] = [line for line in said if line.startswith("lost: ")]
    assert GONE.id in lost
    assert "its landed object is gone" in lost
    assert [line for line in said if line.startswith("branch gone: ")]
    assert f"{PUBLISHED.table}: main lost 2 files and 0 changes" in said
    assert "Other processes changed 1 of them meanwhile: run the command again." in said
    assert "`lakegate reconcile --full --thorough`" in said[-1]


def test_a_dry_run_says_that_nothing_changed() -> None:
    """A dry run says so, and names no next steps."""
    said = list(lines(DONE, dry_run=True))
    assert said[0].startswith("Nothing was changed")
    assert "sweep" not in said[-1]


def test_branches_of_compactions_alone_are_a_difference() -> None:
    """They are counted although no ingestion has to do with them."""
    said = list(lines(Realigned([], DONE.compactions), dry_run=True))
    assert said[1:] == ["        1 branches of compactions that had ended, deleted again"]


def test_no_difference_is_said_in_one_line() -> None:
    """Without a difference there is one line."""
    (said,) = lines(Realigned(), dry_run=False)
    assert said == "Ledger and main agree: there is nothing to do."


def test_the_document_has_each_decision() -> None:
    """`--json` has each ingestion with what was done to it."""
    found = document(DONE)
    assert [each["kinds"] for each in found] == [
        ["publish again"],
        ["lost"],
        ["record again", "branch gone"],
        ["delete branches"],
    ]
    assert [each["overtaken"] for each in found] == [False, False, True, False]
    assert found[-1]["branches"] == DONE.compactions
    assert found[1]["ingestion"]["id"] == GONE.id
