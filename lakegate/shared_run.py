"""A shared run: one job run that takes waiting files from the work queue, many of them.

A message of the work queue is the job spec of one attempt, without branch and base: the run creates
the branch. It writes a report for each file and names it at once in a message of the verdict queue.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from lakegate.text import load_json

MOST_FILES = 100  # of a group: as many ingestions as one write to the ledger takes
ALL = "*"  # the pattern of all tables
_SHARED, _JUDGED = "shared_run", "judged"


def is_among(table: str, patterns: Iterable[str]) -> bool:
    """Return if a pattern names the table: `shop.orders`, `shop.*` or `*`."""
    return any(fnmatchcase(table, pattern) for pattern in patterns)


@dataclass(frozen=True)
class SharedRun:
    """The input of a shared run. It holds no secret, only a secret's name.

    `work_queue` and `verdict_queue` are addresses. The run ends when no file came for
    `idle_seconds`, and takes no more files shortly before `timeout_minutes`. It has no rights to
    the tables that `apart` names (`shop.orders`), or all of a namespace (`shop.*`), or all (`*`).
    """

    name: str
    work_queue: str
    verdict_queue: str
    lake_bucket: str
    nessie_uri: str
    token_secret: str
    timeout_minutes: int
    idle_seconds: int
    apart: tuple[str, ...] = ()

    def may_touch(self, table: str) -> bool:
        """Return if the run has rights to a table."""
        return not is_among(table, self.apart)

    def to_argument(self) -> str:
        """Return this value as one JSON text, the only argument of the run."""
        return json.dumps({_SHARED: asdict(self)}, separators=(",", ":"))

    @classmethod
    def from_argument(cls, argument: str) -> "SharedRun | None":
        """Return the value that `to_argument` wrote, None for the argument of another run.

        Raises ValueError or TypeError for a text that is no JSON object.
        """
        found = load_json(argument).get(_SHARED)
        return cls(**found | {"apart": tuple(found.get("apart", ()))}) if found else None


@dataclass(frozen=True)
class Judged:
    """A message of the verdict queue: what a shared run did with files that it had taken.

    `reports` are the keys of the audit reports that it wrote. `alone` are the names
    (`landing.run_name`) of attempts that must not share a run: a run died while it had such a file
    alone in work, or the file has no place in a shared run.
    """

    run: str
    reports: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return it as a message's body."""
        return json.dumps({_JUDGED: asdict(self)})

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> "Judged | None":
        """Return what `to_json` wrote, None for another message. Raises ValueError, TypeError."""
        if _JUDGED not in message:
            return None
        found = message[_JUDGED]
        lists = {name: tuple(map(str, found[name])) for name in ("reports", "alone")}
        return cls(run=str(found["run"]), **lists)
