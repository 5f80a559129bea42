"""Why tables cannot be changed by metadata alone, for callers that need no pyiceberg."""

from collections.abc import Iterable

from lakegate.errors import LakegateError, Transient


class CannotRebase(LakegateError):
    """The table on main cannot take the branch's files as they are: the job must run again."""


class FilesGone(LakegateError):
    """The table lacks some of the named data files; `paths` are those it lacks."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = frozenset(paths)
        names = ", ".join(sorted(self.paths))
        super().__init__("FILES_GONE", f"the table no longer lists these data files: {names}")


class MetadataGone(Transient):
    """The metadata of a table's state was deleted, with the branch or the commits that had it."""
