"""Build an alert's buttons and the form to publish anyway, and read what they send back.

Limits: 2,000 characters a button's value, 300 the question before it is pressed, 3,000 a form's
private metadata (Slack, "Button element", "Confirmation dialog object", "Modal views").
"""

import html
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from functions.model.messages.action import Seen, Verb
from functions.model.messages.alert import Alert, Block, Kind
from functions.notifications.blocks import cut
from lakegate.text import one_line

LONGEST_REASON = 500
REASON = "reason"  # the modal's one block with an input, and the input
PREFIX = "lakegate."
BUTTONS = f"{PREFIX}actions"  # the block of one ingestion's
OF_ALL = GROUP, AGREEMENT = f"{PREFIX}group", f"{PREFIX}agreement"
LONGEST_SUMMARY, LONGEST_TITLE = 600, 200  # each character may take two in a button's value


def buttons(alert: Alert) -> tuple[Block, ...]:
    """Return the block with an alert's buttons; none where no action is left.

    Rows without a verdict cannot be published. Show is a link if there is a quality page.
    """
    if alert.kind is not Kind.FAILED or not alert.token:
        return ()
    # The message's text may come to count other files, so each button names its own.
    title = cut(html.unescape(alert.text), LONGEST_TITLE)
    seen = {"ingestion": alert.ingestion, "token": alert.token, "title": title}
    shown = _button(Verb.SHOW, {**seen, "summary": one_line(alert.cause)[:LONGEST_SUMMARY]})
    if alert.page:
        shown["url"] = alert.page
    _, rows, _ = Seen(alert.ingestion, alert.token).parts
    verbs = (Verb.REPLAY, Verb.PUBLISH, Verb.DISCARD) if rows else (Verb.REPLAY, Verb.DISCARD)
    values = {Verb.PUBLISH: {**seen, "unreadable": alert.unreadable}} if alert.unreadable else {}
    elements = [*(_button(verb, values.get(verb, seen)) for verb in verbs), shown]
    return ({"type": "actions", "block_id": BUTTONS, "elements": elements},)


_OF_GROUP = {
    Verb.REPLAY: "Replay all …",
    Verb.PUBLISH: "Publish all …",
    Verb.DISCARD: "Discard all …",
}


def group_buttons(alert: Alert, ingestion: str) -> tuple[Block, ...]:
    """Return the block with the buttons for all files with an alert's cause; none as `buttons`.

    `ingestion` is one that waits, "" if none does. A press is answered by a question, as only the
    ledger knows how many wait.
    """
    if not ingestion or not alert.token:
        return ()
    value = asdict(Seen(ingestion, "", is_group=True))
    _, rows, _ = Seen(alert.ingestion, alert.token).parts
    verbs = [verb for verb in _OF_GROUP if rows or verb is not Verb.PUBLISH]
    elements = [_plain_button(verb, _OF_GROUP[verb], value) for verb in verbs]
    return ({"type": "actions", "block_id": GROUP, "elements": elements},)


def agreement(verb: Verb, seen: Seen, question: str, files: int) -> Block:
    """Return the block with the button that answers a question about a group of files by yes."""
    value = {**asdict(seen), "title": cut(question, LONGEST_TITLE)}
    button = _plain_button(verb, f"Yes, {verb} {files:,}", value) | {"style": "danger"}
    return {"type": "actions", "block_id": AGREEMENT, "elements": [button]}


def modal(seen: Seen, title: str, unreadable: str = "") -> Block:
    """Return the form that asks why rows are published although their audit failed.

    `unreadable` describes the rows that are left out.
    """
    words = title if seen.is_group else f"{title}\nIngestion {seen.ingestion}"
    if unreadable:
        command = f"lakegate publish {seen.ingestion} --by NAME --reason TEXT --null-unreadable"
        words += f"\n\n{unreadable} `{command}` publishes them, too, with null in such cells."
    return {
        "type": "modal",
        "callback_id": f"{PREFIX}{Verb.PUBLISH}",
        "private_metadata": _json(asdict(seen)),
        "title": _plain("Publish anyway"),
        "submit": _plain("Publish"),
        "close": _plain("Cancel"),
        "blocks": [
            {"type": "section", "text": _plain(words)},
            {
                "type": "input",
                "block_id": REASON,
                "label": _plain("Why, although its audit failed?"),
                "hint": _plain("Main's log keeps the reason, and your name."),
                "element": {
                    "type": "plain_text_input",
                    "action_id": REASON,
                    "multiline": True,
                    "max_length": LONGEST_REASON,
                },
            },
        ],
    }


LABELS = {
    Verb.REPLAY: "Replay",
    Verb.PUBLISH: "Publish anyway",
    Verb.DISCARD: "Discard",
    Verb.SHOW: "Show",
}


def _button(verb: Verb, value: Mapping[str, Any]) -> dict[str, Any]:
    button = _plain_button(verb, LABELS[verb], value)
    if verb is Verb.DISCARD:
        button |= {"style": "danger", "confirm": _question(value["title"])}
    return button


def _plain_button(verb: Verb, label: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "button",
        "action_id": f"{PREFIX}{verb}",
        "text": _plain(label),
        "value": _json(value),
    }


def _question(title: str) -> Block:
    return {
        "title": _plain("Discard it?"),
        "text": _plain(f"{title}\nDeletes its branch with its rows; keeps the original."),
        "confirm": _plain("Discard"),
        "deny": _plain("Keep it"),
        "style": "danger",
    }


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}
