"""Read what Slack sends when somebody presses a button or submits a form.

Slack, "block_actions payload", "View interaction payloads".
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from functions.model.messages.action import Seen, Verb
from functions.notifications.slack_buttons import (
    LONGEST_REASON,
    LONGEST_SUMMARY,
    LONGEST_TITLE,
    PREFIX,
    REASON,
)
from lakegate.errors import Permanent
from lakegate.text import one_line

_ID = re.compile(r"[UW][A-Z0-9]{1,30}")
_LONGEST_NAME = 80


@dataclass(frozen=True)
class Person:
    """A Slack user, by id and by name."""

    id: str
    name: str

    def __str__(self) -> str:
        """Return the text for records."""
        return f"{self.name} ({self.id})"


@dataclass(frozen=True)
class Press:
    """A pressed button. `trigger` opens a form within 3 seconds; `title` names the failed file.

    `unreadable` describes the rows that would be left out. `answers` is the address for replies
    that only this person sees. A button that `is_link` opens a page itself.
    """

    verb: Verb
    seen: Seen
    person: Person
    team: str
    trigger: str
    answers: str
    title: str
    summary: str
    unreadable: str = ""
    is_link: bool = False


@dataclass(frozen=True)
class Submission:
    """The submitted form."""

    seen: Seen
    person: Person
    team: str
    reason: str


class NotUnderstood(Permanent):
    """The request does not come from our buttons."""

    def __init__(self, what: str) -> None:
        super().__init__("NOT_UNDERSTOOD", f"Slack sent what no button of ours sends: {what}")


def parsed(payload: Any) -> Press | Submission:
    """Return the press or submission in Slack's request. Raises NotUnderstood."""
    try:
        match payload:
            case {"type": "block_actions", "actions": [action, *_]}:
                return _press(payload, action)
            case {"type": "view_submission", "view": {"callback_id": "lakegate.publish"} as view}:
                return _submission(payload, view)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotUnderstood(repr(error)[:200]) from error
    raise NotUnderstood(f"type {str(payload)[:100]}")


def _press(payload: Mapping[str, Any], action: Mapping[str, Any]) -> Press:
    prefix, verb = action["action_id"][: len(PREFIX)], action["action_id"][len(PREFIX) :]
    if prefix != PREFIX or verb not in set(Verb):
        raise NotUnderstood(f"action {action['action_id'][:100]!r}")
    value = json.loads(action["value"])
    return Press(
        verb=Verb(verb),
        seen=Seen.of(value),
        person=_person(payload),
        team=_team(payload),
        trigger=str(payload.get("trigger_id", "")),
        answers=str(payload.get("response_url", "")),
        title=str(value.get("title") or "This file")[:LONGEST_TITLE],
        summary=str(value.get("summary", ""))[:LONGEST_SUMMARY],
        unreadable=str(value.get("unreadable", ""))[:LONGEST_SUMMARY],
        is_link="url" in action,
    )


def _submission(payload: Mapping[str, Any], view: Mapping[str, Any]) -> Submission:
    reason = view["state"]["values"][REASON][REASON].get("value") or ""
    return Submission(
        seen=Seen.of(json.loads(view["private_metadata"])),
        person=_person(payload),
        team=_team(payload),
        reason=one_line(" ".join(str(reason).split()))[:LONGEST_REASON],
    )


def _person(payload: Mapping[str, Any]) -> Person:
    user = payload["user"]
    if not _ID.fullmatch(user["id"]):
        raise NotUnderstood("a user's id that is none")
    name = one_line(str(user.get("username") or user.get("name") or "")).strip()
    return Person(user["id"], name[:_LONGEST_NAME] or user["id"])


def _team(payload: Mapping[str, Any]) -> str:
    """Return the workspace; an app of a whole organization gets it only with its user."""
    return str((payload.get("team") or {}).get("id") or payload["user"].get("team_id") or "")
