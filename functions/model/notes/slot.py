"""The slots of shared runs: each holds one run at a time."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from lakegate import times
from lakegate.job.shared_run import is_among

_TRUSTED = timedelta(seconds=10)  # how long a run that was seen up counts as up
_PREFIX = "shared-"


@dataclass(frozen=True)
class Slot:
    """A slot, and the shared run that holds it, or held it last.

    `name` is the run's name and client token, `run` its id once it was started. `checked_at` is
    when the run was last seen up, or given its name, "" once it ended. `name_before` and
    `run_before` are those of the run before it: what it judged may be recorded after its end.
    `apart` are the tables that the run may not touch, with spaces between. `revision` counts the
    saves.
    """

    number: int
    name: str = ""
    run: str = ""
    checked_at: str = ""
    name_before: str = ""
    run_before: str = ""
    apart: str = ""
    revision: int = 0

    def is_trusted(self, now: str) -> bool:
        """Return whether its run was up, or being started, a moment ago."""
        return self.checked_at > times.earlier(now, _TRUSTED)

    def id_of(self, name: str) -> str:
        """Return the id of the run of this name, "" for any but its last two runs."""
        return {self.name_before: self.run_before, self.name: self.run}.get(name, "")

    def may_touch(self, table: str) -> bool:
        """Return whether its run has rights to a table."""
        return not is_among(table, self.apart.split())

    def named(self, name: str, now: str, apart: Iterable[str] = ()) -> "Slot":
        """Return it with its next run, which has a name and is still to be started."""
        then = replace(self, name_before=self.name, run_before=self.run) if self.run else self
        return replace(then, name=name, run="", checked_at=now, apart=" ".join(apart))


def shared_name(number: int, now: str, token: str) -> str:
    """Return the name of a slot's next run, which no run had before: `shared-0-<time>-<token>`."""
    digits = "".join(filter(str.isdigit, now.partition("+")[0]))
    return f"{_PREFIX}{number}-{digits}-{token}"


def is_shared_name(name: str) -> bool:
    """Return whether a job run of this name is a shared run."""
    return name.startswith(_PREFIX)
