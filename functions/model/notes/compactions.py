"""Compactions under way, as the ledger has them: no others are ever published."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256

from lakegate.job.upkeep import UPKEEP

_MOMENT = "%Y%m%dT%H%M%S"
_TOKEN = 16  # hexadecimal digits
_REMEMBERED = 1_000  # tables


@dataclass(frozen=True)
class Compaction:
    """A compaction that began at the time `at` (ISO 8601); small workers suffice for a `small` one.

    Its branch was created at the hash `base`, and `rewriting` is the id of the job run that writes
    there: both are "" before that run is started. `rewritten` is the branch's head after the run,
    and `comparing` the id of the run that compares it with `base`: "" until it comes to that.
    """

    table: str
    id: str
    at: str
    small: bool = False
    base: str = ""
    rewriting: str = ""
    rewritten: str = ""
    comparing: str = ""

    @property
    def branch(self) -> str:
        """Return the name of its branch."""
        return f"{UPKEEP}{self.table}/{self.id}"

    @property
    def report_key(self) -> str:
        """Return the key of its report in the lake bucket, where objects expire after a day."""
        return f"{UPKEEP}{self.id}.json"


def begin(table: str, at: str, token: str, *, small: bool = False) -> Compaction:
    """Return a new compaction; `token` sets it apart from another one of the same moment.

    Its id says when it began, and has no 32 digits in a row: the policy of another job run, which
    allows keys that contain the id of an ingestion, allows none of its report.
    """
    moment = datetime.fromisoformat(at).astimezone(UTC).strftime(_MOMENT)
    digest = sha256(f"{table}\0{at}\0{token}".encode()).hexdigest()[:_TOKEN]
    return Compaction(table, f"upkeep-{moment}-{digest}", at, small)


@dataclass(frozen=True)
class Compactions:
    """The compactions under way.

    `since` is the time from which on the ledger knows every compaction: "" before the first, and
    after it was lost. `last` has when that of each table began last, of a thousand tables.
    `revision` counts the saves.
    """

    under_way: tuple[Compaction, ...] = ()
    since: str = ""
    last: Mapping[str, str] = field(default_factory=dict)
    revision: int = field(default=0, compare=False)

    def with_one(self, begun: Compaction) -> "Compactions":
        """Return them with one more."""
        last = sorted(({**self.last, begun.table: begun.at}).items(), key=lambda each: each[1])
        return replace(
            self,
            under_way=(*self.under_way, begun),
            since=self.since or begun.at,
            last=dict(last[-_REMEMBERED:]),
        )

    def exchanged(self, old: Compaction, new: Compaction | None) -> "Compactions":
        """Return them with `new` in the place of `old`, or nothing there."""
        others = tuple(each for each in self.under_way if each != old)
        return replace(self, under_way=(*others, new) if new else others)

    def to_json(self) -> str:
        """Return them as JSON, without the revision and when each table's began last."""
        return json.dumps([self.since, [asdict(each) for each in self.under_way]])

    @classmethod
    def from_json(cls, text: str, last: Mapping[str, str], revision: int) -> "Compactions":
        """Return what `to_json` wrote, with what is kept beside it."""
        since, under_way = json.loads(text)
        return cls(tuple(Compaction(**each) for each in under_way), since, last, revision)
