from typing import Any

from cli import slack
from functions.notifications.alert_text import alert
from functions.notifications.slack import Place
from functions.notifications.threads import Thread
from functions.on_alert import headline
from tests.unit.cli.cli_examples import REJECTED
from tests.unit.cli.test_terminal import shown


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def test_an_alert_can_be_read_on_a_terminal() -> None:
    """Each kind of alert is shown with its channel, text and commands."""
    sent = alert(REJECTED, None)

    text = shown(
        slack.panel({"channel": "#orders", "text": sent.text, "blocks": list(sent.blocks)})
    )

    assert "Slack #orders" in text
    assert "Rejected: [red] März.csv (CHECKS_FAILED)" in text
    assert "Branch ingest/shop.orders/red-Marz-csv-0123456789ab" in text
    assert f"lakegate show {REJECTED.id}" in text


def test_slack_marks_are_shown_and_not_printed() -> None:
    """Slack's markup is rendered: bold, code, fences, crosses and escapes."""
    blocks = [section(":x: *id* on `a&amp;b`: 1 &lt; 2\n```x = null```")]

    text = shown(slack.panel({"channel": "#orders", "blocks": blocks}))

    assert "✗ id on a&b: 1 < 2" in text
    assert "x = null" in text
    assert not set("*`") & set(text)


def test_a_thread_is_shown_with_its_count_its_buttons_and_its_replies() -> None:
    """A thread shows its first message with count and buttons, and its replies."""
    thread = Thread(Place("C1", "1.0"), alert(REJECTED, None), frozenset({"a", "b"}))
    sent = headline(thread)
    replies = [{"text": "Published after replay: b &lt;1&gt;"}]
    about = {"channel": "#orders", "text": "", "blocks": list(sent.blocks), "replies": replies}
    text = shown(slack.panel(about))
    for part in ("2 with the same cause", "[Replay]", "↳ Published after replay: b <1>"):
        assert part in text
