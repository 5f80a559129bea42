"""For any report, Slack and SQS accept the alert, and its text stays text."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.adapters.sqs import QueuedAlert
from functions.model.decisions import Approval, Decisions
from functions.model.ingestion import Ingestion, State
from functions.model.messages.alert import Alert
from functions.notifications.alert_text import alert, duplicate, recovered, unreadable_event, warned
from functions.notifications.email import words
from functions.notifications.slack import Place
from functions.notifications.threads import Thread
from functions.on_alert import headline, shown
from infra.local.slack.blocks import problems
from lakegate.audit.report import Reason, Status
from lakegate.job.change import Change
from tests.fakes.examples import FAILED, INGESTION, REPORT

HOSTILE = (
    *("<!channel>", "<!here|x>", "<@U1>", "<#C1>", "<https://evil|click>", "&lt;!channel&gt;"),
    *("```", "`", "*", "_", "~", ":x:", "|", "\u202e", "\u2066", "\x00", "\ud800", "\U0001f600"),
)
TEXT = st.text(max_size=60) | st.builds(
    lambda parts, times: "".join(parts) * times,
    st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=6),
    st.sampled_from([1, 50, 1000]),
)


def every(ingestion: Ingestion, found: str, cell: str) -> list[Alert]:
    """Return each kind of message about the ingestion, with a report that says this."""
    check = replace(
        FAILED,
        id=found,
        columns=(cell,) * 3,
        expected=cell,
        found=found,
        message=cell,
        samples=({found: cell, "other": None},) * 9,
    )
    notice = alert(ingestion, replace(REPORT, checks=(check,) * 20), "https://page")
    change = Change(ingestion.table, statement=found, token="", by=cell, message=found)
    warning = {**vars(check), "status": "warn"}
    approval = Approval(cell, found, "2026-03-01", ())
    return [
        notice,
        shown(notice),
        headline(Thread(Place("C", "1"), notice, frozenset("abc"), frozenset("a"))),
        alert(replace(ingestion, change=change), None),
        duplicate(ingestion, ingestion, "https://page"),
        recovered(
            replace(
                ingestion,
                state=State.PUBLISHED,
                decisions=Decisions(approval=approval),
            )
        ),
        warned(
            replace(
                ingestion,
                state=State.PUBLISHED,
                audit=replace(ingestion.audit, checks=(warning,) * 20),
            ),
            replace(REPORT, checks=(replace(check, status=Status.WARN),) * 20),
        ),
        recovered(replace(ingestion, state=State.IGNORED)),
        recovered(replace(ingestion, decisions=Decisions(discarded=True))),
        unreadable_event("uploads-dead", cell, found),
    ]


@settings(max_examples=60, deadline=None)
@given(TEXT, TEXT, TEXT, TEXT)
def test_every_message_is_taken_and_says_only_what_we_say(
    name: str, reason: str, found: str, cell: str
) -> None:
    """Each is within the limits of Slack and SQS, has no link but our own and turns no line."""
    ingestion = replace(
        INGESTION,
        landed=replace(INGESTION.landed, key=f"shop/{name}"),
        terms=replace(INGESTION.terms, owner=cell),
        reason=Reason(found[:100], reason),
    )
    for notice in every(ingestion, found, cell):
        _fits(notice)
        marked = tuple(block for block in notice.blocks if block["type"] != "header")
        for text in (notice.text, *words(marked)):
            _is_plain(text)


def _fits(notice: Alert) -> None:
    assert problems([dict(block) for block in notice.blocks]) == []
    assert 0 < len(notice.text) <= 3100
    body = QueuedAlert("#orders", notice).to_json()
    assert len(body.encode()) <= 256 * 1024
    assert QueuedAlert.from_json(body).alert == notice


def _is_plain(text: str) -> None:
    """Raise AssertionError for a link or a mention that is not ours, or what acts on a line."""
    bare = text.replace(f"<https://page/ingestion?id={INGESTION.id}|", "")
    assert "<" not in bare
    assert text.count(">") == text.count("<")
    assert not {"\u202e", "\u2066", "\x00"} & set(text)
    assert text.count("```") % 2 == 0
    assert not re.search(r"&(?!amp;|lt;|gt;)(?=\w+;)", text)


def test_the_largest_event_is_reported() -> None:
    """An event that fills a queue's 256 KB can be alerted."""
    event = "\x01" * 256 * 1024
    notice, other = (unreadable_event("uploads-dead", event[n:], "unreadable") for n in (0, 1))
    assert len(QueuedAlert("", notice).to_json().encode()) < 10_000
    assert notice.about != other.about


@pytest.mark.parametrize("before", range(5))
def test_a_long_statement_ends_in_no_half_of_a_sign(before: int) -> None:
    """Where a statement is cut, its last `<` is whole, and a mark says that more follows."""
    statement = "x" * before + "<" * 1000
    change = Change("shop.orders", statement, token="")
    texts = words(alert(replace(INGESTION, change=change), None).blocks)
    (told,) = (text for text in texts if "&lt;" in text)
    assert re.search(r"```x*(&lt;)+…```", told)
