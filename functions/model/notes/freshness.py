"""When tables last got files, and which tables wait for one that is overdue."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lakegate import times


@dataclass(frozen=True)
class Freshness:
    """The tables that expect files, by main's log up to `checked_at`.

    `arrived` is when each last got a file, or when it was first looked at without one. `overdue`
    are those whose owners were told that the next file is missing. `revision` counts the saves.
    """

    checked_at: str = ""
    arrived: Mapping[str, str] = field(default_factory=dict)
    overdue: tuple[str, ...] = ()
    revision: int = 0

    def after(
        self, published: Mapping[str, str], longest: Mapping[str, timedelta], now: str
    ) -> "Freshness":
        """Return it after another look at main.

        `published` has the time of each table's newest file, `longest` the time after which the
        next one is overdue, for the tables that expect files.
        """
        arrived = {t: max(published.get(t, ""), self.arrived.get(t, now)) for t in longest}
        moment = datetime.fromisoformat(now)
        overdue = (t for t, at in arrived.items() if times.text(moment - longest[t]) > at)
        return replace(self, checked_at=now, arrived=arrived, overdue=tuple(sorted(overdue)))

    def changed(self, before: "Freshness") -> list[str]:
        """Return the tables that became overdue, or got their file, since the look `before`.

        A table whose contract allows more time by now did neither.
        """
        came = {t for t in before.overdue if self.arrived.get(t, "") > before.arrived[t]}
        return sorted(set(self.overdue) - set(before.overdue) | came - set(self.overdue))

    def since(self) -> dict[str, str]:
        """Return the overdue tables, each with the time of its last file."""
        return {table: self.arrived[table] for table in self.overdue}

    def to_json(self) -> str:
        """Return it as JSON, without the revision."""
        return json.dumps([self.checked_at, dict(self.arrived), list(self.overdue)])

    @classmethod
    def from_json(cls, text: str, revision: int) -> "Freshness":
        """Return what `to_json` wrote."""
        checked_at, arrived, overdue = json.loads(text)
        return cls(checked_at, arrived, tuple(overdue), revision)
