from dataclasses import replace
from typing import Any

import pytest

from cli.local import slack, slack_messages
from functions.model.messages.action import Seen, Verb
from functions.notifications.alert_text import alert
from functions.notifications.slack import Place
from functions.notifications.slack_buttons import agreement
from functions.notifications.threads import Thread
from functions.on_alert import headline
from lakegate.errors import LakegateError
from tests.unit.cli.cli_examples import REJECTED
from tests.unit.cli.shown import shown


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def test_an_alert_can_be_read_on_a_terminal() -> None:
    """Each kind of alert is shown with its channel, text and commands."""
    sent = alert(REJECTED, None)

    text = shown(
        slack_messages.panel({"channel": "#orders", "text": sent.text, "blocks": list(sent.blocks)})
    )

    assert "Slack #orders" in text
    assert "shop.orders: [red] März.csv rejected, 1 of 3 checks failed" in text
    assert "Branch ingest/shop.orders/red-Marz-csv-0123456789ab" in text
    assert f"lakegate inspect {REJECTED.id}" in text


def test_slack_marks_are_shown_and_not_printed() -> None:
    """Slack's markup is rendered: bold, code, fences, crosses and escapes."""
    blocks = [section(":x: *id* on `a&amp;b`: 1 &lt; 2\n```x = null```")]

    text = shown(slack_messages.panel({"channel": "#orders", "blocks": blocks}))

    assert "✗ id on a&b: 1 < 2" in text
    assert "x = null" in text
    assert not set("*`") & set(text)


def test_a_thread_is_shown_with_its_count_its_buttons_and_its_replies() -> None:
    """A thread shows its first message with count and buttons, and its replies."""
    thread = Thread(Place("C1", "1.0"), alert(REJECTED, None), frozenset({"a", "b"}))
    sent = headline(thread)
    replies = [{"text": "Published after replay: b &lt;1&gt;"}]
    about = {"channel": "#orders", "text": "", "blocks": list(sent.blocks), "replies": replies}
    text = shown(slack_messages.panel(about))
    for part in ("2 with the same cause", "[Replay]", "↳ Published after replay: b <1>"):
        assert part in text


def test_the_buttons_for_all_files_of_a_thread_are_found() -> None:
    """The newest one is pressed: the first message's, or the yes to the question that followed."""
    thread = Thread(Place("C1", "1.0"), alert(REJECTED, None), frozenset({"a", "b"}))
    first: dict[str, Any] = {"ts": "1.0", "blocks": [*headline(thread).blocks]}
    seen = Seen(REJECTED.id, "2:x", is_group=True)
    question = {"ts": "2.0", "thread_ts": "1.0", "blocks": [agreement(Verb.REPLAY, seen, "?", 2)]}
    elsewhere = {**question, "ts": "3.0", "thread_ts": "0.5"}

    def pressed(*every: dict[str, Any], verb: Verb, everyone: bool) -> tuple[str, str]:
        return slack.newest_button([*every, elsewhere], REJECTED.id, verb, everyone=everyone)

    elsewhere["blocks"] = [agreement(Verb.REPLAY, replace(seen, ingestion="other"), "?", 2)]
    assert pressed(first, verb=Verb.REPLAY, everyone=False) == ("1.0", "Replay")
    assert pressed(first, verb=Verb.REPLAY, everyone=True) == ("1.0", "Replay all …")
    assert pressed(first, question, verb=Verb.REPLAY, everyone=True) == ("2.0", "Yes, replay 2")
    assert pressed(first, question, verb=Verb.DISCARD, everyone=True) == ("1.0", "Discard all …")
    with pytest.raises(LakegateError, match="NO_BUTTONS"):
        pressed(first, verb=Verb.SHOW, everyone=True)


def message(ts: str, text: str, **more: Any) -> dict[str, Any]:
    """Return a message as the local Slack keeps it."""
    return {"channel": "#orders", "ts": ts, "text": text, "blocks": [section(text)], **more}


_EVERY = [
    message("1772366412.000001", "a &lt;1&gt; rejected"),
    message("1772366413.000002", "b rejected", thread_ts="1772366412.000001"),
    message("1772366414.000003", "c rejected", channel="#returns"),
]


def test_messages_are_listed_newest_first() -> None:
    """A line has time, channel, text and number of replies; replies have none of their own."""
    found = slack.newest(_EVERY, "")
    assert [each["text"][0] for each in found] == ["c", "a"]
    assert [each["text"][0] for each in slack.newest(_EVERY, "#orders")] == ["a"]
    text = shown(slack.listed(found, _EVERY))
    assert "#returns c rejected" in text
    assert text.endswith("#orders a <1> rejected 1")


def test_the_messages_about_an_ingestion_are_shown_with_their_replies() -> None:
    """Every message that names the ingestion is shown; without one an error says so."""
    every: list[Any] = [*_EVERY, message("1772366415.000004", "a came again")]
    first, again = map(shown, slack.panels(every, "a "))
    assert "↳ b rejected" in first
    assert "a came again" in again
    with pytest.raises(LakegateError, match="NO_MESSAGE"):
        slack.panels(every, "d" * 32)
