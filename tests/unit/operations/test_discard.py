"""The deletion of a branch's files, which never affects a file that a query can reach."""

from dataclasses import replace
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from functions.adapters.nessie import MergeConflict
from functions.adapters.s3 import StoredObject
from functions.operations.discard import plan, remove
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import TABLE
from tests.fakes.files_in_the_lake import check_files
from tests.fakes.scenario import Scenario

DAY = 24 * 60 * 60
NAMES = [f"{where}/{TABLE}/{n}" for where in ("ingest", "publish") for n in range(3)]
BRANCH = st.sampled_from(NAMES)
ANY = st.sampled_from([*NAMES, "main"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("cut"), BRANCH, ANY),
        st.tuples(st.just("append"), ANY, st.just("")),
        st.tuples(st.just("append"), BRANCH, st.just("")),
        st.tuples(st.just("compact"), ANY, st.just("")),
        st.tuples(st.just("empty"), ANY, st.just("")),
        st.tuples(st.just("merge"), BRANCH, st.just("")),
        st.tuples(st.just("rebase"), BRANCH, BRANCH),
        st.tuples(st.just("delete"), BRANCH, st.just("")),
        st.tuples(st.just("set back"), st.just("main"), st.just("")),
        st.tuples(st.just("wait"), BRANCH, st.just("")),
        st.tuples(st.just("remove"), BRANCH, st.just("")),
    ),
    max_size=40,
)


class Story:
    """A catalog with a history of operations; impossible ones are skipped."""

    def __init__(self) -> None:
        self.deployment = Scenario()
        self.catalog = self.deployment.catalog
        self._files = 0

    def tell(self, what: str, name: str, other: str) -> None:
        references = self.catalog.references()
        if what == "cut":
            if name not in references and other in references:
                self.catalog.fork(name, other)
        elif name in references:
            getattr(self, f"_{what.replace(' ', '_')}")(name, other)

    def _table(self, name: str) -> FakeTable:
        return self.catalog.table(name, TABLE) or FakeTable("one")

    def _append(self, name: str, _: str) -> None:
        self._files += 1
        self.catalog.commit(name, TABLE, self._table(name).append(f"file-{self._files}"))

    def _compact(self, name: str, _: str) -> None:
        self._files += 1
        one = (f"compact-{self._files}",)
        self.catalog.commit(
            name, TABLE, replace(self._table(name), files=one, added=one, manifests=())
        )

    def _empty(self, name: str, _: str) -> None:
        self.catalog.commit(name, TABLE, replace(self._table(name), files=(), manifests=()))

    def _merge(self, name: str, _: str) -> None:
        try:
            head = self.catalog.head(name)
            self.catalog.merge(name, head, self.catalog.common_ancestor(head), "Publish", {})
        except MergeConflict:
            return

    def _rebase(self, name: str, other: str) -> None:
        if other in self.catalog.references():
            added = self._table(name).added
            self.catalog.commit(other, TABLE, self._table(other).append(*added))

    def _delete(self, name: str, _: str) -> None:
        self.catalog.delete_branch(name)

    def _set_back(self, name: str, _: str) -> None:
        parents = list(self.catalog.changes(self.catalog.head(name), TABLE))
        if len(parents) > 1:
            self.catalog.reset(name, parents[1].hash)

    def _wait(self, _: str, __: str) -> None:
        self.deployment.clock.pass_(3000)

    def _remove(self, name: str, _: str) -> None:
        branches_to_delete = {name: self.catalog.head(name)}
        planned = plan(
            self.deployment.adapters, [TABLE], branches_to_delete, ignored=branches_to_delete
        )
        assert not set(planned.files) & set(planned.kept)
        assert remove(self.deployment.adapters, [TABLE], branches_to_delete) == planned


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_reachable_files_are_never_deleted(steps: list[tuple[str, str, str]]) -> None:
    """After any sequence of operations no reachable file is deleted."""
    story = Story()
    for step in steps:
        story.tell(*step)
        check_files(story.deployment)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 3), st.booleans())
def test_all_that_only_the_branch_reaches_is_deleted(appends: int, moves: bool) -> None:
    """All files that only the discarded branch uses are deleted."""
    story = Story()
    story.tell("append", "main", "")
    story.tell("cut", NAMES[0], "main")
    for _ in range(appends):
        story.tell("append", NAMES[0], "")
    if moves:
        story.tell("compact", "main", "")
    story.tell("remove", NAMES[0], "")
    names = [key.rpartition("/")[2] for key in story.deployment.lake.deleted]
    data = [f"file-{n + 2}" for n in range(appends)]
    assert sorted(name for name in names if name.startswith("file")) == data
    assert len(names) == 3 * appends


def test_earlier_states_of_a_branch_stay() -> None:
    """A branch created from the deleted one keeps its earlier states, also after a compaction."""
    story = Story()
    story.tell("cut", NAMES[0], "main")
    story.tell("append", NAMES[0], "")
    story.tell("cut", NAMES[1], NAMES[0])
    story.tell("compact", NAMES[1], "")
    story.tell("remove", NAMES[0], "")
    assert story.deployment.lake.deleted == {}


def test_files_of_a_main_that_was_set_back_stay() -> None:
    """A branch created from a main that was set back keeps main's files."""
    story = Story()
    story.tell("cut", NAMES[0], "main")
    story.tell("append", NAMES[0], "")
    story.tell("merge", NAMES[0], "")
    story.tell("delete", NAMES[0], "")
    story.tell("cut", NAMES[1], "main")
    story.tell("append", NAMES[1], "")
    story.tell("set back", "main", "")
    story.tell("remove", NAMES[1], "")
    gone = [key for key in story.deployment.lake.deleted if "/data/" in key]
    assert [key.rpartition("/")[2] for key in gone] == ["file-2"]


def test_the_leaves_are_deleted_first() -> None:
    """Files that name others are deleted after them, so that a repeated run finds them."""
    story = Story()
    story.tell("cut", NAMES[0], "main")
    story.tell("append", NAMES[0], "")
    story.tell("append", NAMES[0], "")
    story.tell("remove", NAMES[0], "")
    kinds = [key.rpartition(".")[2] for key in story.deployment.lake.deleted]
    ranks = ["avro", "json"]
    order = [ranks.index(kind) if kind in ranks else -1 for kind in kinds]
    assert order == sorted(order)
    assert len(order) == 6


def test_unreadable_states_keep_all_files() -> None:
    """If a reachable table state cannot be read, nothing is deleted."""
    story = Story()
    story.tell("cut", NAMES[0], "main")
    story.tell("append", NAMES[0], "")
    story.tell("append", "main", "")
    lost = story.catalog.metadata(story.catalog.head("main"), TABLE)
    story.deployment.lake.delete_objects([lost.removeprefix("s3://lake/")])
    branches_to_delete = {NAMES[0]: story.catalog.head(NAMES[0])}
    removal = remove(story.deployment.adapters, [TABLE], branches_to_delete)
    assert removal.files == ()
    assert all("that main needs are unknown" in why for why in removal.kept.values())
    assert len(removal.kept) == 3


def test_an_unreadable_fork_keeps_all_files() -> None:
    """If the state at which a branch was created is gone, what it wrote is unknown, and kept."""
    story = Story()
    story.tell("append", "main", "")
    lost = story.catalog.metadata(story.catalog.head("main"), TABLE)
    story.tell("cut", NAMES[0], "main")
    story.tell("append", NAMES[0], "")
    story.deployment.lake.delete_objects([lost.removeprefix("s3://lake/")])
    branches_to_delete = {NAMES[0]: story.catalog.head(NAMES[0])}
    removal = remove(story.deployment.adapters, [TABLE], branches_to_delete)
    assert removal.files == ()
    assert all("the files before it are unknown" in why for why in removal.kept.values())


def test_a_table_that_lost_main_had_restored_is_not_the_branchs() -> None:
    """After main was set back from a commit that restored a table, older commits keep its files."""
    story = Scenario()
    catalog, branch = story.catalog, f"ingest/{TABLE}/late"
    old = catalog.commit("main", TABLE, FakeTable("one").append("old"))
    state = catalog.table(old, TABLE)
    assert state
    key = state.metadata.removeprefix("s3://lake/")
    written = datetime.fromisoformat(story.clock.now())
    story.lake.data[key] = StoredObject(key, 1, written)
    story.clock.pass_(DAY)
    dropped = catalog.commit("main", TABLE, None)
    story.clock.pass_(DAY)
    catalog.put_back(TABLE, old)
    catalog.fork(branch, "main")
    head = catalog.commit(branch, TABLE, state.append("late"))
    catalog.reset("main", dropped)
    removed = remove(story.adapters, [TABLE], {branch: head})
    assert removed.files == ()
    assert set(removed.kept.values()) == {
        "a commit of its branch restored what is older than the branch"
    }


def test_states_just_before_the_branch_are_looked_at() -> None:
    """What main had within the clocks' difference before the branch is needed as well."""
    story = Scenario()
    catalog, branch = story.catalog, f"ingest/{TABLE}/late"
    old = catalog.commit("main", TABLE, FakeTable("one").append("old"))
    state = catalog.table(old, TABLE)
    assert state
    dropped = catalog.commit("main", TABLE, None)
    story.clock.pass_(DAY)
    catalog.put_back(TABLE, old)
    catalog.fork(branch, "main")
    head = catalog.commit(branch, TABLE, state.append("late"))
    catalog.reset("main", dropped)
    removed = remove(story.adapters, [TABLE], {branch: head})
    assert state.metadata not in removed.files
    assert not any(path.endswith("/old") for path in removed.files)
    assert any(path.endswith("/late") for path in removed.files)
