"""Delete branches and the files that only they need.

A file is needed if main, now or at any earlier commit of its log, or any other branch or tag
reaches it. A branch wrote the files in the table states that its own commits made. Every other
state is read too, and its files are kept. In doubt a file is kept, with the reason.

A table may have files in the folders of other tables of its name, each created on a branch of its
own (docs/adr/0032-files-of-another-table.md).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN, UnknownBranch
from functions.model.commits import Change

if TYPE_CHECKING:
    from functions.adapters.iceberg_files import TableFiles

WAREHOUSE = "warehouse/"
UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# The clocks of Nessie's servers may differ by this much; commits are compared by time.
_SKEW = timedelta(hours=1)


@dataclass(frozen=True)
class Removal:
    """The addresses of the files to delete, in this order, and of those to keep.

    `kept` maps each kept file that the branches wrote to the reason.
    """

    files: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)


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
        while change.hash not in self.read and self._is_after(earliest):
            following = next(self._log, None)
            if following is None:
                return False
            self.read[following.hash] = self._oldest = following
        return change.hash in self.read

    def read_back_to(self, moment: datetime) -> None:
        """Read on until a commit is older than that."""
        while self._is_after(moment) and (following := next(self._log, None)):
            self.read[following.hash] = self._oldest = following

    def _is_after(self, moment: datetime) -> bool:
        return self._oldest is None or self._oldest.moment >= moment


@dataclass(frozen=True)
class Growth:
    """A branch's own commits, newest first, and the commit of main that it was created at."""

    own: tuple[Change, ...]
    fork: Change | None


def main_log(adapters: Adapters, table: str) -> MainLog:
    """Return main's current log, with the changes of `table`."""
    return MainLog(adapters.catalog.changes(adapters.catalog.head(MAIN), table))


def growth(main: MainLog, log: Iterable[Change], bases: Collection[str] = ()) -> Growth:
    """Return the own commits of the branch with this log.

    The branch was created at the first commit that main has, or that is one of `bases`: main may
    have been set back since. Merges belong to main, even if it lost them.
    """
    own: list[Change] = []
    for change in log:
        if change.hash in bases or change.is_merge or main.holds(change):
            return Growth(tuple(own), change)
        own.append(change)
    return Growth(tuple(own), None)


def remove(
    adapters: Adapters,
    tables: Sequence[str],
    branches_to_delete: Mapping[str, str],
    bases: Collection[str] = (),
) -> Removal:
    """Delete branches of some tables, then the files that only they reached.

    `branches_to_delete` maps each branch to its last hash. Branches are deleted first, so that no
    other branch can be created from them between the search and the deletion. Their files are found
    by the hashes, so this can be repeated after a crash.
    """
    for branch in branches_to_delete:
        adapters.catalog.delete_branch(branch)
    removal = plan(adapters, tables, branches_to_delete, bases)
    root = f"s3://{adapters.settings.lake_bucket}/"
    adapters.lake.delete_objects([file.removeprefix(root) for file in removal.files])
    return removal


def plan(
    adapters: Adapters,
    tables: Sequence[str],
    branches_to_delete: Mapping[str, str],
    bases: Collection[str] = (),
    ignored: Collection[str] = (),
) -> Removal:
    """Return what to delete and keep for the hashes in `branches_to_delete`; see `remove`.

    Branches in `ignored` are treated as deleted.
    """
    found = [_of_table(adapters, table, branches_to_delete, bases, ignored) for table in tables]
    kept = {path: why for each in found for path, why in each.kept.items()}
    return Removal(tuple(path for each in found for path in each.files), kept)


def _of_table(
    adapters: Adapters,
    table: str,
    branches_to_delete: Mapping[str, str],
    bases: Collection[str],
    ignored: Collection[str],
) -> Removal:
    main = main_log(adapters, table)
    grown = [_grown(adapters, main, head, table, bases) for head in branches_to_delete.values()]
    written = [change.metadata for each in grown for change in each.own if change.metadata]
    if not written:
        return Removal()
    found = _FilesOfBranches(f"s3://{adapters.settings.lake_bucket}/{WAREHOUSE}", table)
    for metadata in dict.fromkeys(written):
        found.add(adapters.tables().files(metadata))
    if why := next(filter(None, (_why_unclear(adapters, each) for each in grown)), ""):
        return found.keep_all(why)
    forks = [each.fork for each in grown if each.fork]
    for fork in forks:
        if metadata := adapters.catalog.metadata(fork.hash, table):
            found.exclude(adapters.tables().files(metadata))
    for holder, metadata in _others(adapters, table, main, forks, ignored):
        found.keep(holder, adapters.tables().files(metadata))
        if not found.undecided:
            break
    return found.removal()


def _grown(
    adapters: Adapters, main: MainLog, head: str, table: str, bases: Collection[str]
) -> Growth:
    try:
        return growth(main, adapters.catalog.changes(head, table), bases)
    except UnknownBranch:
        return Growth((), None)  # purged from the catalog


def _why_unclear(adapters: Adapters, grown: Growth) -> str:
    """Return why it is unclear what a branch wrote, "" if it is not.

    A commit that main lost, and that had put a table back, looks like the branch's own; but its
    state was written before the branch was created, and older commits may have the same one.
    """
    if not grown.fork:
        return "its branch shares no commit with main"
    earliest = grown.fork.moment - _SKEW
    written = (adapters.lake.written_at(each.metadata) for each in grown.own if each.metadata)
    if any(at and at < earliest for at in written):
        return "a commit of its branch restored what is older than the branch"
    return ""


def _others(
    adapters: Adapters, table: str, main: MainLog, forks: list[Change], ignored: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the table states of main since the first fork and of all other references.

    A state older than the forks cannot name a file that was written after them.
    """
    earliest = min(fork.moment for fork in forks) - _SKEW
    main.read_back_to(earliest)
    yield from ((MAIN, change.metadata) for change in main.read.values() if change.metadata)
    seen = set(main.read)
    for name, head in sorted(adapters.catalog.references().items()):
        if name in ignored:
            continue
        for change in adapters.catalog.changes(head, table):
            if change.hash in seen or change.moment < earliest:
                break
            seen.add(change.hash)
            if change.metadata:
                yield name, change.metadata


class _FilesOfBranches:
    """The files that branches wrote, sorted into those to keep and those to delete."""

    def __init__(self, warehouse: str, table: str) -> None:
        self._warehouse = warehouse
        named = re.escape(f"{warehouse}{table.replace('.', '/')}")
        self._other_folder = re.compile(f"{named}_{UUID}/data/")  # as Nessie names it
        self._levels: list[dict[str, None]] = [{}, {}, {}, {}]
        self._kept: dict[str, str] = {}
        self.undecided: set[str] = set()

    def add(self, files: "TableFiles") -> None:
        """Add the files of a state that a branch's own commit made."""
        for level, paths in zip(self._levels, files.levels, strict=True):
            level.update(dict.fromkeys(sorted(paths)))
        self.undecided |= files.paths
        own = f"{files.location}/" if files.location.startswith(self._warehouse) else ""
        for path in files.paths:
            if not (own and path.startswith(own)) and not self._other_folder.match(path):
                self._keep(path, "it lies outside the table's folders in the lake bucket")

    def exclude(self, files: "TableFiles") -> None:
        """Exclude the files that existed when a branch was created: no branch wrote them.

        Keep all files where these are unknown: upkeep deletes what only old commits reach.
        """
        if files.missing:
            self.keep_all(f"the files before it are unknown: {min(files.missing)} is missing")
            return
        self.undecided -= files.paths
        for path in files.paths & self._kept.keys():
            del self._kept[path]

    def keep(self, holder: str, files: "TableFiles") -> None:
        """Keep the files that another reference needs; keep all of them where that is unknown."""
        for path in self.undecided & files.paths:
            self._keep(path, f"{holder} needs it")
        if files.missing:
            gone = min(files.missing)
            self.keep_all(f"the files that {holder} needs are unknown: {gone} is missing")

    def keep_all(self, why: str) -> Removal:
        """Keep every file that is still undecided."""
        for path in sorted(self.undecided):
            self._keep(path, why)
        return self.removal()

    def removal(self) -> Removal:
        """Return the files to delete, leaves first, and those to keep."""
        goes = (path for level in self._levels for path in level if path in self.undecided)
        return Removal(tuple(dict.fromkeys(goes)), dict(sorted(self._kept.items())))

    def _keep(self, path: str, why: str) -> None:
        self._kept.setdefault(path, why)
        self.undecided.discard(path)
