"""An alert: one message to the owners of a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Block = Mapping[str, Any]


class Kind(StrEnum):
    """What a message is: it decides where in a channel it is shown, and what can be done there.

    `PLAIN` is that of a message whose sender, an older release, said nothing of the kind.
    """

    PLAIN = ""
    FAILED = "failed"
    RECOVERED = "recovered"
    NOTICE = "notice"
    WARNING = "warning"
    DIGEST = "digest"
    ANSWER = "answer"


@dataclass(frozen=True)
class Alert:
    """One message: `text` is what notifications show, `blocks` what the channel shows.

    `about` names what happened: whoever tells it again, after a crash, gives it the same name.
    `revision` is the ingestion's that it tells of, by which an older message is known; 0 where it
    tells of no end.
    `ingestion` is the one that it is about, "" where it is about none; `table` names each table of
    a batch. `cause` is the same for all that has the same reason. `token` says what was seen of the
    ingestion, as `seen` writes it; an answer's is "" once there is nothing more to be done. `page`
    is the ingestion's address on the quality page, "" without one. `unreadable` names the rows that
    would be left out if it were published, "" where there are none.
    """

    text: str
    blocks: tuple[Block, ...]
    about: str = ""
    kind: Kind = Kind.PLAIN
    ingestion: str = ""
    table: str = ""
    cause: str = ""
    token: str = ""
    page: str = ""
    unreadable: str = ""
    revision: int = 0
