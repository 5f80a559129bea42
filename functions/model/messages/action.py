"""An action that a person requested by a button of Slack."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from lakegate.errors import Permanent


class Verb(StrEnum):
    """The action of a button."""

    REPLAY = "replay"
    PUBLISH = "publish"
    DISCARD = "discard"
    SHOW = "show"


@dataclass(frozen=True)
class Seen:
    """The state that an alert showed: an ingestion, and the alert's state token.

    Of a group it is one of its ingestions, with the group's version; "" before anybody asked.
    """

    ingestion: str
    token: str
    is_group: bool = False

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "Seen":
        """Return it from a button's value. Raises KeyError."""
        of_group = bool(value.get("is_group"))
        return cls(str(value["ingestion"]), str(value["token"]), of_group)

    @property
    def parts(self) -> tuple[str, str, str]:
        """Return attempt, publishable hash and time."""
        attempt, rows, since = self.token.split(":", 2)
        return attempt, rows, since


@dataclass(frozen=True)
class ActionRequest:
    """An action requested on an ingestion as its alert showed it; `reason` is for publishing.

    On a group it is executed in parts, once somebody agreed to what it has: `ids`, none before. Of
    them the first `tried` had their turn; `refused` counts those that could not be decided about,
    `refusals` are the first ones' reasons, and `since` is when it began.
    """

    what: Verb
    seen: Seen
    by: str
    reason: str = ""
    ids: tuple[str, ...] = ()
    tried: int = 0
    refused: int = 0
    refusals: tuple[str, ...] = ()
    since: str = ""

    def text(self) -> str:
        """Return the request as a message's body."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @property
    def same(self) -> str:
        """Return what equal requests have in common, and no other one."""
        same = [self.what, self.by, *asdict(self.seen).values()]
        return json.dumps([*same, bool(self.ids), self.tried])

    @classmethod
    def of(cls, body: str) -> "ActionRequest":
        """Return the request in a message's body. Raises Permanent BAD_REQUEST."""
        try:
            request = json.loads(body)
            return cls(
                Verb(request["what"]),
                Seen.of(request["seen"]),
                str(request["by"]),
                str(request["reason"]),
                ids=tuple(map(str, request.get("ids", ()))),
                tried=int(request.get("tried", 0)),
                refused=int(request.get("refused", 0)),
                refusals=tuple(map(str, request.get("refusals", ()))),
                since=str(request.get("since", "")),
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"this message is not an action request ({error!r}): {body[:300]}"
            raise Permanent("BAD_REQUEST", message) from error
