"""Find out when a branch was last written: the catalog does not record it."""

from datetime import datetime, timedelta

from functions.adapters.all import Adapters
from functions.model.commits import Commit

# The clocks of Nessie's servers may differ by this much; commits are compared by time.
_SKEW = timedelta(hours=1)


class MainLog:
    """Main's log, read only as far back as needed."""

    def __init__(self, adapters: Adapters) -> None:
        """Read main's current log, newest first."""
        self._log = adapters.catalog.log()
        self._read: dict[str, Commit] = {}
        self._oldest: Commit | None = None

    def last_written(self, newest: Commit) -> datetime | None:
        """Return the latest time at which a branch with this commit as its head was written.

        A branch without commits of its own was created from main's head, so before main's next
        commit. None where that is unknown. Merges belong to main, even if it lost them, as one that
        was set back does.
        """
        if not self._holds(newest):
            return None if newest.is_merge else newest.moment
        following = None
        for commit in self._read.values():
            if commit.hash == newest.hash:
                break
            following = commit.moment
        return following

    def _holds(self, commit: Commit) -> bool:
        """Return whether main's log has this commit."""
        earliest = commit.moment - _SKEW
        while commit.hash not in self._read:
            is_past = self._oldest is not None and self._oldest.moment < earliest
            following = None if is_past else next(self._log, None)
            if following is None:
                return False
            self._read[following.hash] = self._oldest = following
        return True
