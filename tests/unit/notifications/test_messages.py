"""Alerts have all required facts, within Slack's limits, as plain text."""

import re
from dataclasses import replace

import pytest

from functions.model.decisions import Approval, Decisions
from functions.model.ingestion import State
from functions.model.messages.alert import Alert
from functions.notifications.alert_text import (
    alert,
    digest,
    duplicate,
    recovered,
    unreadable_event,
    without_buttons,
)
from functions.notifications.blocks import cut, escaped, plain
from functions.notifications.slack import Place
from functions.notifications.threads import Thread
from functions.on_alert import headline
from lakegate.audit.diagnosis import BadCell
from lakegate.audit.report import Reason
from tests.fakes.examples import FAILED, INGESTION, REPORT, WRONG, WRONG_FILE


def texts(message: Alert) -> list[str]:
    """Return the text of each section."""
    return [block["text"]["text"] for block in message.blocks if block["type"] == "section"]


def shown(message: Alert) -> str:
    """Return all that the channel shows."""
    return "\n".join(block["text"]["text"] for block in message.blocks)


def test_a_rejection_says_what_and_why() -> None:
    """A rejection has file, table, branch, reason and the failed check's values."""
    text = shown(alert(INGESTION, REPORT))
    for part in (
        "shop.orders: a.csv rejected, 1 of 2 checks failed: carrier; main unchanged",
        "`CHECKS_FAILED`",
        "1 of 2 checks failed: carrier",
        "`s3://landing/shop/orders/a.csv`",
        "`shop.orders`",
        "`ingest/shop.orders/a-csv-aaaaaaaaaaaa`",
        "*carrier* on `carrier, flight`: 2 rows: two characters",
        "carrier Zürich, flight (empty)\ncarrier x2, flight 7",
    ):
        assert part in text
    assert "fine" not in text


def test_an_alert_says_what_to_do_first() -> None:
    """Title and advice come before the details; the latter name the rows' command."""
    message = alert(INGESTION, REPORT)
    kinds = [block["type"] for block in message.blocks[: message.lead]]
    assert kinds == ["header", "section"]
    assert texts(message)[0].startswith("Drop a corrected file, or correct the contract")
    assert "publish it anyway" in texts(message)[0]
    assert "publish it anyway" not in shown(alert(replace(INGESTION, audited_hash=""), REPORT))
    assert texts(message)[-1] == f"`lakegate inspect {'a' * 32}` shows the rows that break it."


def test_an_alert_offers_no_publishing_of_a_file_without_rows() -> None:
    """Nothing of an empty file could be published: neither advice nor a command says otherwise."""
    empty = replace(INGESTION, audit=replace(INGESTION.audit, rows=0))
    message = alert(empty, REPORT)
    assert "publish it anyway" not in shown(message)
    assert not any("lakegate publish" in each for each in message.commands)


def test_commands_stand_where_nobody_may_press_buttons() -> None:
    """Commands that do what buttons do are shown only without buttons."""
    message = alert(INGESTION, REPORT)
    assert not any(each in shown(message) for each in message.commands)
    plain = without_buttons(message)
    verbs = ("show", "publish", "replay", "discard")
    listed = plain.blocks[message.lead]["text"]["text"].split("```")[1].splitlines()
    assert [line.split()[1] for line in listed] == [*verbs]
    assert plain.blocks[: message.lead] == message.blocks[: message.lead]


@pytest.mark.parametrize(("name", "table"), [("a" * 300 + ".csv", "shop.orders"), ("a", "b" * 99)])
def test_a_long_name_hides_neither_state_nor_main(name: str, table: str) -> None:
    """A title is cut in its names and its cause, and fits Slack's header."""
    landed = replace(INGESTION.landed, key=f"shop/{name}")
    wordy = replace(
        INGESTION,
        landed=landed,
        terms=replace(INGESTION.terms, table=table),
        reason=Reason("X", "word " * 99),
    )
    (header, *_) = alert(wordy, REPORT).blocks
    assert " rejected, word word" in header["text"]["text"]
    assert header["text"]["text"].endswith("…; main unchanged")


def test_a_recovery_names_who_decided() -> None:
    """The title of a recovery names who discarded, replayed or approved."""
    acted = {what: Decisions().acted(what, "Ada", "2026", 1) for what in ("discard", "replay")}
    times = {"discarded": "2026", "replayed": "2026"}
    approval = Approval("Ada", "a refund", "2026", ())
    for each, title in (
        (
            INGESTION.but(decisions=replace(acted["discard"], discarded=True), times=times),
            "Discarded by Ada: a.csv",
        ),
        (
            replace(INGESTION, decisions=Decisions(discarded=True)),
            "Discarded: a.csv",
        ),
        (
            INGESTION.but(decisions=acted["replay"], state=State.PUBLISHED, times=times),
            "Published after replay by Ada: a.csv",
        ),
        (replace(INGESTION, state=State.PUBLISHED), "Published after all: a.csv"),
        (
            replace(
                INGESTION,
                state=State.PUBLISHED,
                decisions=Decisions(approval=approval),
            ),
            "Published anyway by Ada: a.csv",
        ),
    ):
        assert recovered(each).text == title


def test_a_resolved_message_looks_resolved() -> None:
    """A resolved first message says who resolved it, and has neither advice nor buttons."""
    first = replace(alert(INGESTION, REPORT), token="1:x:")
    mine = frozenset({INGESTION.id})
    open_ = headline(Thread(Place("C", "1"), first, mine))
    done = headline(Thread(Place("C", "1"), first, mine, mine, "Discarded by Ada: a.csv"))
    assert [block["type"] for block in open_.blocks[:3]] == ["header", "section", "actions"]
    assert done.blocks[0]["text"]["text"] == "✓ Resolved: shop.orders"
    note, before = (block["elements"][0]["text"] for block in done.blocks[1:3])
    assert note == ":white_check_mark: Resolved · Discarded by Ada: a.csv"
    assert before == f"Before: {first.text}"
    assert done.blocks[3:] == first.blocks[first.lead :]
    assert "Drop a corrected file" not in str(done.blocks)


def test_a_thread_with_open_files_is_not_resolved() -> None:
    """While other files are open, the title of a resolved first message counts them."""
    first = alert(INGESTION, REPORT)
    members = frozenset({INGESTION.id, "b", "c"})
    some = headline(Thread(Place("C", "1"), first, members, frozenset({INGESTION.id})))
    every = headline(Thread(Place("C", "1"), first, members, members))
    assert some.blocks[0]["text"]["text"] == "2 of 3 still open: shop.orders"
    assert every.blocks[0]["text"]["text"] == "✓ All 3 resolved: shop.orders"
    assert every.text == f"Resolved: {first.text} (and 2 more)"


def test_a_notice_of_a_duplicate_says_of_what() -> None:
    """A notice of a duplicate has both files, the rows and the commands to see either."""
    first = replace(INGESTION, id="b" * 32, landed=replace(INGESTION.landed, key="shop/first.csv"))
    message = duplicate(
        replace(INGESTION, state=State.PUBLISHED, audit=replace(INGESTION.audit, rows=1842)), first
    )
    for part in (
        "Published, but likely a duplicate: a.csv",
        "as `s3://landing/shop/first.csv`",
        "*File* `s3://landing/shop/orders/a.csv`",
        "`shop.orders`, 1,842 rows",
        f"lakegate show {'a' * 32}\nlakegate show {'b' * 32}",
    ):
        assert part in shown(message)


def test_nobody_is_sent_to_an_empty_branch() -> None:
    """Without written rows there is no command to inspect them."""
    empty = replace(INGESTION, audited_hash="")
    assert "lakegate inspect" not in shown(alert(empty, REPORT))
    assert "lakegate inspect" not in shown(alert(replace(INGESTION, state=State.ERRORED), None))


def test_an_error_needs_no_report() -> None:
    """An ingestion without a branch or a report is alerted."""
    early = replace(
        INGESTION,
        state=State.ERRORED,
        terms=replace(INGESTION.terms, table=""),
        branch="",
        reason=Reason("X", "why"),
    )
    text = shown(alert(early, None))
    assert "no table: a.csv errored, why; main unchanged" in text
    assert "*Table* `none`" in text
    assert "*Branch* `none created`" in text


def test_many_failed_checks_are_counted_not_shown() -> None:
    """More than ten failed checks are counted and not listed."""
    report = replace(REPORT, checks=tuple(replace(FAILED, id=f"check {n}") for n in range(60)))
    message = alert(INGESTION, report)
    assert len(message.blocks) <= 50
    assert "check 9*" in shown(message)
    assert "check 10*" not in shown(message)
    assert "and 50 more failed checks" in shown(message)


def test_bad_cells_are_a_line_each() -> None:
    """An alert has a line for each cell that could not be read, all ten of them."""
    cells = tuple(BadCell(f"line {n}", "amount", "x\ny", "not a number") for n in range(1, 11))
    check = replace(FAILED, samples=tuple(cell.sample for cell in cells))
    text = shown(alert(INGESTION, replace(REPORT, checks=(check,))))
    lines = [line for line in text.splitlines() if "not a number" in line]
    assert len(lines) == 10
    assert "line 10: amount 'x\\ny': not a number" in lines[-1]


def test_a_wrong_file_is_one_sentence() -> None:
    """Columns that the reason names are not repeated check by check."""
    wrong = replace(INGESTION, reason=WRONG_FILE.reason, audited_hash="")
    message = alert(wrong, WRONG_FILE)
    assert WRONG.sentence in shown(message)
    assert shown(message).count("carrier") == 1
    assert "file.columns" not in shown(message)


def test_a_few_samples_are_enough() -> None:
    """At most three sample rows are shown."""
    samples = tuple({"n": f"row {n}"} for n in range(9))
    text = shown(alert(INGESTION, replace(REPORT, checks=(replace(FAILED, samples=samples),))))
    assert "row 2" in text
    assert "row 3" not in text


def test_a_long_reason_hides_no_branch() -> None:
    """A long reason leaves room for file, table, branch and ingestion."""
    wordy = replace(INGESTION, reason=Reason("CONTRACT_INVALID", "a problem\n" * 900))
    what_happened = texts(alert(wordy, None))[1]
    for part in ("a problem", "a.csv", "shop.orders", INGESTION.branch, INGESTION.id):
        assert part in what_happened


@pytest.mark.parametrize("length", range(2990, 3010))
def test_a_cut_closes_what_it_opened(length: int) -> None:
    """Truncated samples still close their code block."""
    check = replace(FAILED, expected="x" * (length - 600), samples=({"n": "y" * 2000},))
    for text in texts(alert(INGESTION, replace(REPORT, checks=(check,)))):
        assert text.count("```") % 2 == 0


@pytest.mark.parametrize("length", range(1490, 1502))
def test_a_cut_leaves_no_half_of_an_escaped_character(length: int) -> None:
    """What is kept of "&", escaped for Slack, is all of it or nothing."""
    for text in (plain("x" * length + "&<" * 9), cut("x" * length + escaped("&<" * 9), 1500)):
        assert re.search("&(?!amp;|lt;)", text) is None


def test_an_unreadable_event_says_where_it_came_from() -> None:
    """The alert for an invalid message has its queue, its text and the reason."""
    text = shown(unreadable_event("uploads-dead", '{"x": 1}', "no records"))
    for part in ("uploads-dead", '{"x": 1}', "no records"):
        assert part in text


def test_an_unreadable_event_is_about_its_body() -> None:
    """The same invalid body of the same queue is one alert."""
    first, again, other = (unreadable_event("q", body, "why").about for body in ("a", "a", "b"))
    assert first == again == f"q {digest('a')}"
    assert first != other
