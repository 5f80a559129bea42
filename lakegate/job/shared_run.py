"""A shared run: one job run that takes waiting files from the work queue, many of them.

A message of the work queue is the job spec of one attempt, without branch and base: the run creates
the branch. Or it is a turn: the job specs of files of one table that follow each other. The run
writes a report for each file and names it at once in a message of the verdict queue.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from itertools import accumulate, takewhile
from typing import Any

from lakegate.job.jobspec import JobSpec
from lakegate.text import load_json

MOST_FILES = 100  # of a group: as many ingestions as one write to the ledger takes
MOST_BYTES = 64 << 20  # of the files of a turn, which one process has in memory
MOST_TEXT = 200_000  # characters of a turn's message, all ASCII: SQS takes 256 KiB
ALL = "*"  # the pattern of all tables
_SHARED, _JUDGED, _TURN = "shared_run", "judged", "turn"


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
        fields = load_json(argument).get(_SHARED)
        return cls(**fields | {"apart": tuple(fields.get("apart", ()))}) if fields else None


@dataclass(frozen=True)
class Turn:
    """Files of one table, in the order in which their rows replace those of others.

    They are one message, so that one run has all of them and none comes before another.
    """

    specs: tuple[JobSpec, ...]

    @classmethod
    def of(cls, specs: Sequence[JobSpec]) -> "Turn":
        """Return the turn of the first of these, at least one, that a message and a run can hold.

        All must be of one table.
        """
        files = accumulate(spec.landed.size for spec in specs)
        texts = accumulate(len(spec.to_argument()) + 1 for spec in specs)
        room = (a <= MOST_BYTES and b <= MOST_TEXT for a, b in zip(files, texts, strict=True))
        fit = sum(1 for _ in takewhile(bool, room))
        return cls(tuple(specs[: max(1, min(fit, MOST_FILES))]))

    def to_argument(self) -> str:
        """Return it as a message's body."""
        return f'{{"{_TURN}":[{",".join(spec.to_argument() for spec in self.specs)}]}}'

    @classmethod
    def from_argument(cls, argument: str) -> "Turn | None":
        """Return the value that `to_argument` wrote, None for the body of another message.

        Raises ValueError or TypeError for a text that is no JSON object, and for a turn without
        files or with files of several tables.
        """
        document = load_json(argument)
        if _TURN not in document:
            return None
        specs = tuple(JobSpec.from_argument(json.dumps(each)) for each in document[_TURN])
        if len({spec.table for spec in specs}) != 1:
            raise ValueError("the files of a turn are of one table")
        return cls(specs)


@dataclass(frozen=True)
class Judged:
    """A message of the verdict queue: what a shared run did with files that it had taken.

    `reports` are the keys of the audit reports that it wrote. `alone` are the names
    (`landing.run_name`) of attempts that must not share a run: a run died while it had such a file
    alone in work, or the file has no place in a shared run. `again` are the names of attempts of a
    turn that the run did not begin: they are to come in a later turn.
    """

    run: str
    reports: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    again: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return it as a message's body."""
        return json.dumps({_JUDGED: asdict(self)})

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> "Judged | None":
        """Return what `to_json` wrote, None for another message. Raises ValueError, TypeError."""
        if _JUDGED not in message:
            return None
        fields = message[_JUDGED]
        again = fields.get("again", ())  # a run of an older release, still up, has no turns
        lists = {"reports": fields["reports"], "alone": fields["alone"], "again": again}
        return cls(str(fields["run"]), **{name: tuple(map(str, x)) for name, x in lists.items()})
