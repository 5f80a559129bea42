"""Changes on main by other writers, and the rows that they added and removed."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from functions.model.commits import Commit
from functions.model.merge_commit import published, tables
from tests.fakes.catalog import VIEW, FakeCatalog, FakeTable
from tests.fakes.rows import AND, rewritten, rows_of_file, rows_of_source, sources_in

Row = tuple[str, str]


def rows_of(catalog: FakeCatalog, at: str) -> Counter[Row]:
    """Return the count of each row in the tables at a branch or a hash, history excluded."""
    names = (name for name in catalog.names(at) if not name.startswith("ops."))
    tables = ((name, catalog.table(at, name)) for name in names)
    return Counter(row for name, table in tables if table for row in rows_in_table(name, table))


def rows_in_table(name: str, table: FakeTable) -> Iterator[Row]:
    """Yield the rows in a state of a table."""
    return ((name, row) for file in table.files for row in rows_of_file(file))


def rows_replaced(catalog: FakeCatalog, commits: Iterable[Commit]) -> Counter[Row]:
    """Return the rows that these commits removed because a file replaces rows of its table.

    Those that an upsert did not take over from its file count as well.
    """
    found: Counter[Row] = Counter()
    for commit in commits:
        replacing = [each for each in published(commit) if each.mode]
        if replacing:
            (name,) = tables(commit)
            before, after = catalog.table(commit.parent, name), catalog.table(commit.hash, name)
            found.update(rows_in_table(name, before) if before else ())
            found.subtract(rows_in_table(name, after) if after else ())
        for each in replacing:
            found.update((name, row) for row in rows_of_source(f"{each.object}@{each.version}"))
    return found


def rows_copied(catalog: FakeCatalog, commits: Iterable[Commit]) -> Counter[Row]:
    """Return how often more than once an upsert wrote a row: its key was there several times."""
    found: Counter[Row] = Counter()
    for commit in commits:
        for each in published(commit):
            if each.mode:
                (name,) = tables(commit)
                own = [(name, row) for row in rows_of_source(f"{each.object}@{each.version}")]
                after = catalog.table(commit.hash, name)
                there = Counter(rows_in_table(name, after)) if after else Counter[Row]()
                found.update({row: there[row] - 1 for row in own if there[row] > 1})
    return found


class Others:
    """Other writers that use main's tables independently of Lakegate, and the results.

    `brought` and `took` count rows. `dropped` are the branches that they dropped, `forged` those
    that they made, and `brought_back` those that had been deleted and that a backup had. `undid` is
    true after they restored something; `withdrawn` counts the ingestions that main no longer named
    then, and `lost` are the commits that it lost. `idle` is true as long as they left main
    unchanged. `on_branches` are the rows that their own branches add to main, by their hashes, and
    `drops` the tables that they dropped from main, by commit.
    """

    def __init__(self, catalog: FakeCatalog) -> None:
        self._catalog = catalog
        self.brought: Counter[Row] = Counter()
        self.took: Counter[Row] = Counter()
        self.dropped: set[str] = set()
        self.forged: set[str] = set()
        self.brought_back: set[str] = set()
        self.withdrawn: Counter[str] = Counter()
        self.lost: set[str] = set()
        self.undid = False
        self.idle = True
        self.on_branches: dict[str, tuple[Row, ...]] = {}
        self.drops: dict[str, str] = {}

    def append(self, table: str) -> None:
        """Write a row of their own; the first one creates the table."""
        row = f"row {self.brought.total()} of others"
        current = self._catalog.table("main", table) or self._new_table()
        self._commit(table, current.append(row))
        self.brought[table, row] += 1

    def delete(self, table: str) -> None:
        """Delete the oldest row."""
        if (current := self._catalog.table("main", table)) and (rows := _rows(current)):
            self.took.update((table, row) for row in rows_of_source(rows[0]))
            self._write(table, current, rows[1:])

    def compact(self, table: str) -> None:
        """Rewrite all files as one."""
        if (current := self._catalog.table("main", table)) and (rows := _rows(current)):
            self._write(table, current, [AND.join(rows)])

    def add_column(self, table: str) -> None:
        """Add an optional column: files written without it still fit."""
        self._add_column(table, "")

    def require_column(self, table: str) -> None:
        """Add a required column: files written without it no longer fit."""
        self._add_column(table, "!")

    def drop(self, table: str) -> None:
        """Drop the table with all its rows."""
        if current := self._catalog.table("main", table):
            self.took.update(rows_in_table(table, current))
            self._commit(table, None)
            self.drops[self._catalog.head("main")] = table

    def recreate(self, table: str) -> None:
        """Drop the table with all its rows and create another one of the same name."""
        self.drop(table)
        self._commit(table, self._new_table())

    def make_view(self, table: str) -> None:
        """Make a view of the table, or another one in its place."""
        number = len(list(self._catalog.log()))
        self._commit(f"{table}_view", FakeTable(f"uuid of view {number}", kind=VIEW))

    def write_on_own_branch(self, branch: str, table: str, *, rewrites: bool = False) -> None:
        """Add a row on a branch of their own, which begins at main, if the table is there.

        If it `rewrites` rows, all others are in another data file after that.
        """
        before = self._catalog.create_branch(branch)
        if current := self._catalog.table(branch, table):
            added = (*self.on_branches.get(before, ()), (table, f"row on {branch} after {before}"))
            files = [rewritten(current.files, f"by {before}")] if rewrites else current.files
            changed = replace(current, files=tuple(filter(None, files))).append(added[-1][1])
            self.on_branches[self._catalog.commit(branch, table, changed)] = added

    def write_on_branch(self, branch: str, table: str) -> None:
        """Write a row on an ingestion's branch; it must never reach main."""
        current = self._catalog.table(branch, table) or self._new_table()
        self._catalog.commit(branch, table, current.append("unaudited"))

    def drop_branch(self, branch: str) -> None:
        """Drop an ingestion's branch."""
        self._catalog.delete_branch(branch)
        self.dropped.add(branch)

    def put_back(self, table: str, commits: int) -> None:
        """Restore main's table from this number of commits ago."""
        log = [commit.hash for commit in self._catalog.log()]
        with self._undoing():
            self._catalog.put_back(table, log[commits % len(log)])

    def set_back(self, commits: int) -> None:
        """Set main back by this number of commits, as if they had never existed."""
        log = list(self._catalog.log())
        lost = log[: commits % len(log)]
        self.took.update(rows_replaced(self._catalog, lost))
        with self._undoing():
            self._catalog.reset("main", log[len(lost)].hash)
        self.withdrawn.update(each.id for commit in lost for each in published(commit))
        self.lost.update(commit.hash for commit in lost)

    @contextmanager
    def _undoing(self) -> Iterator[None]:
        """Count rows that disappear by it as taken, and rows that return as brought."""
        self.took.update(rows_of(self._catalog, "main"))
        yield
        self.took.subtract(rows_of(self._catalog, "main"))
        self.undid, self.idle = True, False

    def _add_column(self, table: str, mark: str) -> None:
        if current := self._catalog.table("main", table):
            new = f"column@{current.last_id + 1}{mark}"
            self._commit(table, current.with_columns(*current.columns, new))

    def _commit(self, table: str, changed: FakeTable | None) -> None:
        self._catalog.commit("main", table, changed)
        self.idle = False

    def _write(self, table: str, current: FakeTable, files: Iterable[str]) -> None:
        self._commit(table, replace(current, files=tuple(files), added=()))

    def _new_table(self) -> FakeTable:
        return FakeTable(f"made by others after {self._catalog.head('main')}")


def _rows(table: FakeTable) -> list[str]:
    return [line for file in table.files for line in sources_in(file)]
