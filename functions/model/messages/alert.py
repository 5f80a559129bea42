"""An alert: one message to the owners of a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Block = Mapping[str, Any]


class Kind(StrEnum):
    """The kind of a message: it decides where in a channel it is shown, and with which actions.

    `PLAIN` is the kind of a message that needs no place of its own.
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

    `about` names what happened; a repeated alert, after a crash, has the same name. `revision` is
    the ingestion's, by which an older message is recognised; 0 for an alert without a final state.
    `ingestion` is its id, if it is about one; `table` names each table of a batch. `cause` is the
    same for all alerts with the same reason. `token` is the state token of the ingestion; an
    answer's is "" once nothing more can be done. `page` is the ingestion's address on the quality
    page. `unreadable` names the rows that would be left out if it were published. Buttons stand
    after the first `lead` blocks, or at the end if that is 0; `commands` do what buttons do, for
    where nobody may press any. `also` are the ids of all ingestions that an answer about several
    resolves. What does not apply is "".
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
    lead: int = 0
    commands: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
