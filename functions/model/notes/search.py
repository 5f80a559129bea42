"""How far the sweep's search for landed objects without an ingestion has come."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Self

from lakegate import times

_OVERLAP = timedelta(days=1)  # S3 dates a multipart upload by its start
_THOROUGH = timedelta(days=7)


@dataclass(frozen=True)
class Search:
    """A round through the landing bucket, which takes several sweeps if the bucket is large.

    It began at `began` and has listed all versions up to `position`, "" for none. Of these it looks
    up in the ledger what landed from `since` on: earlier rounds found the others there. `thorough`
    is when the last round began that looked up everything; its `since` is "". `is_complete` says
    that the ledger has everything that the round found so far. `token` names the save that it
    follows.
    """

    began: str
    thorough: str
    since: str = ""
    position: str = ""
    is_complete: bool = True
    token: str = field(default="", compare=False)

    @classmethod
    def first(cls, at: str) -> Self:
        """Return a thorough round that begins at this time (ISO 8601, UTC)."""
        return cls(began=at, thorough=at)

    def after(self, position: str, at: str, *, is_complete: bool) -> "Search":
        """Return the search after all up to `position` was found, "" for the whole bucket.

        The round after an incomplete one looks up the same again.
        """
        is_complete = is_complete and self.is_complete
        if position:
            return replace(self, position=position, is_complete=is_complete)
        if not is_complete:
            return replace(self, began=at, position="", is_complete=True)
        if times.earlier(at, _THOROUGH) >= self.thorough:
            return replace(Search.first(at), token=self.token)
        since = times.earlier(self.began, _OVERLAP)
        return replace(self, began=at, since=since, position="", is_complete=True)
