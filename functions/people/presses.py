"""What people did with the buttons, as Slack tells it.

Shapes: Slack, "block_actions payload", "View interaction payloads".
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from functions.people.buttons import (
    LONGEST_REASON,
    LONGEST_SUMMARY,
    LONGEST_TITLE,
    PREFIX,
    REASON,
    Seen,
    Verb,
)
from lakegate.errors import Permanent
from lakegate.visible import one_line

_ID = re.compile(r"[UW][A-Z0-9]{1,30}")
_LONGEST_NAME = 80


@dataclass(frozen=True)
class Person:
    """Somebody in Slack, by id and by name."""

    id: str
    name: str

    def __str__(self) -> str:
        """What is put on record."""
        return f"{self.name} ({self.id})"


@dataclass(frozen=True)
class Press:
    """A button was pressed. `trigger` opens a modal, within 3 seconds; `title` is what failed.

    `unreadable` names the rows that would be left out. `answers` is where Slack takes what only
    this person is to see. Of a button that `is_link` they see what it leads to.
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
    """The modal was submitted."""

    seen: Seen
    person: Person
    team: str
    reason: str


class NotUnderstood(Permanent):
    """What Slack sent is none of our buttons."""

    def __init__(self, what: str) -> None:
        super().__init__("NOT_UNDERSTOOD", f"Slack sent what no button of ours sends: {what}")


def parsed(payload: Any) -> Press | Submission:
    """What somebody did in Slack. Raises NotUnderstood."""
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
        seen=_seen(value),
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
        seen=_seen(json.loads(view["private_metadata"])),
        person=_person(payload),
        team=_team(payload),
        reason=one_line(" ".join(str(reason).split()))[:LONGEST_REASON],
    )


def _seen(value: Mapping[str, Any]) -> Seen:
    return Seen(str(value["ingestion"]), str(value["token"]))


def _person(payload: Mapping[str, Any]) -> Person:
    user = payload["user"]
    if not _ID.fullmatch(user["id"]):
        raise NotUnderstood("a user's id that is none")
    name = one_line(str(user.get("username") or user.get("name") or "")).strip()
    return Person(user["id"], name[:_LONGEST_NAME] or user["id"])


def _team(payload: Mapping[str, Any]) -> str:
    """The workspace; an app that a whole organization has is sent none beside its user's."""
    return str((payload.get("team") or {}).get("id") or payload["user"].get("team_id") or "")
