"""What goes with a branch: the files that only it reaches.

A reader reaches a file through main, now or at any earlier commit of its log, or through any other
branch or tag. What a branch wrote lies in the states of the table that its own commits made; every
state that somebody else reaches is read too, and what is in one of those stays. In doubt a
file stays, and the reason is told.
"""

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
# By how much the clocks of Nessie's servers may differ: commits are compared by their times.
_SKEW = timedelta(hours=1)


@dataclass(frozen=True)
class Removal:
    """The addresses of the files that go, in the order of their deletion, and those that stay.

    `kept` maps a file that the branches wrote to why it stays.
    """

    files: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)


class Trunk:
    """Main's log, read only as far back as is asked for."""

    def __init__(self, log: Iterator[Change]) -> None:
        """`log` is newest first."""
        self._log = log
        self.read: dict[str, Change] = {}
        self._reached: Change | None = None

    def holds(self, change: Change) -> bool:
        """Whether main's log has this commit."""
        earliest = change.moment - _SKEW
        while change.hash not in self.read and self._is_after(earliest):
            following = next(self._log, None)
            if following is None:
                return False
            self.read[following.hash] = self._reached = following
        return change.hash in self.read

    def _is_after(self, moment: datetime) -> bool:
        return self._reached is None or self._reached.moment >= moment


@dataclass(frozen=True)
class Growth:
    """What a branch has that main has not: its own commits, newest first, and where it was cut."""

    own: tuple[Change, ...]
    fork: Change | None


def trunk(adapters: Adapters, table: str) -> Trunk:
    """Main's log as it is now, as far as it is about `table`."""
    return Trunk(adapters.catalog.changes(adapters.catalog.head(MAIN), table))


def growth(main: Trunk, log: Iterable[Change], bases: Collection[str] = ()) -> Growth:
    """What the branch with this log has of its own.

    It was cut at the first commit that main has, or that is one of `bases`: main may have been
    put back since. Merges are main's too, whether or not it still has them.
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

    `branches_to_delete` maps each branch to the hash that it stands, or stood, at. The branches go
    first: so
    nobody can cut another one off them between the last look at who reaches what and the
    deletion. What they wrote is found by their hashes, so after a crash this can be done again.
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
    """What of some tables only the hashes in `branches_to_delete` lead to; see `remove`.

    As if the branches in `ignored` were not there.
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
    main = trunk(adapters, table)
    grown = [_grown(adapters, main, head, table, bases) for head in branches_to_delete.values()]
    written = [change.metadata for each in grown for change in each.own if change.metadata]
    if not written:
        return Removal()
    found = _Sorted(f"s3://{adapters.settings.lake_bucket}/{WAREHOUSE}")
    for metadata in dict.fromkeys(written):
        found.add(adapters.tables().files(metadata))
    forks = [each.fork for each in grown if each.fork]
    if len(forks) < len(grown):
        return found.keep_all("its branch has no commit in common with main")
    for fork in forks:
        if metadata := adapters.catalog.metadata(fork.hash, table):
            found.take_out(adapters.tables().files(metadata))
    for holder, metadata in _others(adapters, table, main, forks, ignored):
        found.keep(holder, adapters.tables().files(metadata))
        if not found.undecided:
            break
    return found.removal()


def _grown(
    adapters: Adapters, main: Trunk, head: str, table: str, bases: Collection[str]
) -> Growth:
    try:
        return growth(main, adapters.catalog.changes(head, table), bases)
    except UnknownBranch:
        return Growth((), None)  # purged from the catalog since it was deleted


def _others(
    adapters: Adapters, table: str, main: Trunk, forks: list[Change], ignored: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Who reaches which table state: main since the first fork, and every other branch and tag.

    What is older than the forks cannot name a file that was written after them.
    """
    yield from ((MAIN, change.metadata) for change in main.read.values() if change.metadata)
    earliest = min(fork.moment for fork in forks) - _SKEW
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


class _Sorted:
    """The files that branches wrote, while it is found out which of them stay."""

    def __init__(self, warehouse: str) -> None:
        self._warehouse = warehouse
        self._levels: list[dict[str, None]] = [{}, {}, {}, {}]
        self._kept: dict[str, str] = {}
        self.undecided: set[str] = set()

    def add(self, files: "TableFiles") -> None:
        """Files that a state of the branches' own reaches."""
        for level, paths in zip(self._levels, files.levels, strict=True):
            level.update(dict.fromkeys(sorted(paths)))
        self.undecided |= files.paths
        inside = files.location.startswith(self._warehouse)
        for path in files.paths:
            if not (inside and path.startswith(files.location + "/")):
                self._keep(path, "it lies outside the table's place in the lake's warehouse")

    def take_out(self, files: "TableFiles") -> None:
        """Files that were there when a branch was cut: no branch wrote them."""
        self.undecided -= files.paths
        for path in files.paths & self._kept.keys():
            del self._kept[path]

    def keep(self, holder: str, files: "TableFiles") -> None:
        """Files that somebody else reaches; where that cannot be told, all of them stay."""
        for path in self.undecided & files.paths:
            self._keep(path, f"{holder} reaches it")
        if files.missing:
            gone = min(files.missing)
            self.keep_all(f"what {holder} reaches cannot be told: {gone} is missing")

    def keep_all(self, why: str) -> Removal:
        """Let everything stay that is not decided yet."""
        for path in sorted(self.undecided):
            self._keep(path, why)
        return self.removal()

    def removal(self) -> Removal:
        """What goes, the leaves first, and what stays."""
        goes = (path for level in self._levels for path in level if path in self.undecided)
        return Removal(tuple(dict.fromkeys(goes)), dict(sorted(self._kept.items())))

    def _keep(self, path: str, why: str) -> None:
        self._kept.setdefault(path, why)
        self.undecided.discard(path)
