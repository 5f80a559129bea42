"""Find out when a branch was last written: the catalog does not record it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN
from functions.model.commits import Change

# The clocks of Nessie's servers may differ by this much; commits are compared by time.
_SKEW = timedelta(hours=1)


class MainLog:
    """Main's log, read only as far back as needed."""

    def __init__(self, log: Iterator[Change]) -> None:
        """Read the commits in `log`, newest first."""
        self._log = log
        self.read: dict[str, Change] = {}
        self._oldest: Change | None = None

    def holds(self, change: Change) -> bool:
        """Return whether main's log has this commit."""
        earliest = change.moment - _SKEW
        while change.hash not in self.read:
            is_past = self._oldest is not None and self._oldest.moment < earliest
            following = None if is_past else next(self._log, None)
            if following is None:
                return False
            self.read[following.hash] = self._oldest = following
        return True


@dataclass(frozen=True)
class Growth:
    """A branch's own commits, newest first, and the commit of main that it was created at."""

    own: tuple[Change, ...]
    fork: Change | None


def main_log(adapters: Adapters) -> MainLog:
    """Return main's current log."""
    return MainLog(adapters.catalog.changes(adapters.catalog.head(MAIN), ""))


def growth(main: MainLog, log: Iterable[Change]) -> Growth:
    """Return the own commits of the branch with this log.

    The branch was created at the first commit that main has. Merges belong to main, even if it lost
    them, as one that was set back does.
    """
    own: list[Change] = []
    for change in log:
        if change.is_merge or main.holds(change):
            return Growth(tuple(own), change)
        own.append(change)
    return Growth(tuple(own), None)


def last_written(main: MainLog, grown: Growth) -> datetime | None:
    """Return the latest time at which a branch can have been written; None where it is unknown.

    The catalog does not record when a branch was created. One without own commits was created from
    main's head, so before main's next commit.
    """
    if grown.own:
        return grown.own[0].moment
    if not grown.fork or not main.holds(grown.fork):
        return None
    following = None
    for change in main.read.values():
        if change.hash == grown.fork.hash:
            break
        following = change.moment
    return following
