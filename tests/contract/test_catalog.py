"""The catalog's references behave alike in memory and in Nessie."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import quote

import pytest
import requests

from functions.adapters.nessie import Catalog, MergeConflict, SetBack, UnknownBranch
from lakegate.errors import Transient
from lakegate.refusals import RightMissing
from tests.contract.conftest import Servers
from tests.fakes import wire
from tests.fakes.catalog import FakeCatalog, FakeTable
from tests.fakes.clock import FakeClock

NO_HASH = "0123456789abcdef" * 4


@dataclass(frozen=True)
class Lake:
    """The adapter, and functions by which another writer changes and reads a table on a branch.

    `write` takes branch, table and a word, and returns the branch's new head; `read` takes a branch
    and a table and returns the last word, or "". `set_back` takes the hash to which main is set.
    `bases` are the hashes at which branches were created.
    """

    catalog: Catalog | FakeCatalog
    write: Callable[[str, str, str], str]
    read: Callable[[str, str], str]
    set_back: Callable[[str], object]
    name: str
    bases: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """Return a table that no other test uses."""
        return f"{self.name}.orders"

    def branch(self, number: int = 1) -> str:
        """Return the name of a branch that no other test uses."""
        return f"ingest/{self.name}.orders/file-{number}"

    def written(self, number: int, table: str = "") -> tuple[str, str]:
        """Return a branch off main on which a table was changed, and its head."""
        branch = self.branch(number)
        self.bases[branch] = self.catalog.create_branch(branch)
        return branch, self.write(branch, table or self.table, f"word {number}")

    def merge(self, branch: str, at: str, base: str = "", **properties: str) -> str:
        """Merge everything since the branch was created, or since `base`."""
        base = base or self.bases.get(branch, NO_HASH)
        return self.catalog.merge(branch, at, base, f"Publish {branch}", properties or {"k": "v"})


class _Writer:
    """Nessie as a writer of tables uses it (REST API v2)."""

    def __init__(self, uri: str, token: str) -> None:
        self._trees = f"{uri}/api/v2/trees"
        self._headers = {"Authorization": f"Bearer {token}"}

    def write(self, branch: str, table: str, word: str) -> str:
        """Commit a new metadata address of the table."""
        namespace = table.split(".", maxsplit=1)[0]
        if self._content(branch, namespace) is None:
            content = {"type": "NAMESPACE", "elements": [namespace]}
            self._commit(branch, namespace, content)
        there = self._content(branch, table) or {"type": "ICEBERG_TABLE"}
        ids = dict.fromkeys(("snapshotId", "schemaId", "specId", "sortOrderId"), 1)
        return self._commit(branch, table, {**there, **ids, "metadataLocation": word})

    def read(self, branch: str, table: str) -> str:
        """Return the address of the table's metadata."""
        content = self._content(branch, table)
        return str(content["metadataLocation"]) if content else ""

    def _commit(self, branch: str, key: str, content: dict[str, Any]) -> str:
        operation = {"type": "PUT", "key": {"elements": key.split(".")}, "content": content}
        body = {"commitMeta": {"message": "write"}, "operations": [operation]}
        head = self._send("GET", quote(branch, safe=""))["reference"]["hash"]
        path = f"{quote(branch, safe='')}@{head}/history/commit"
        return str(self._send("POST", path, json=body)["targetBranch"]["hash"])

    def _content(self, branch: str, key: str) -> dict[str, Any] | None:
        path = f"{self._trees}/{quote(branch, safe='')}/contents/{key}"
        answer = requests.get(path, headers=self._headers, timeout=600)
        return dict(answer.json()["content"]) if answer.ok else None

    def _send(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        url = f"{self._trees}/{path}"
        answer = requests.request(method, url, headers=self._headers, timeout=600, **arguments)
        answer.raise_for_status()
        return dict(answer.json())


@pytest.fixture(params=["in memory", pytest.param("Nessie", marks=pytest.mark.stack)])
def lake(request: pytest.FixtureRequest) -> Lake:
    """Return a lake without this test's table."""
    name = f"t{uuid.uuid4().hex[:12]}"
    if request.param == "in memory":
        fake = FakeCatalog(FakeClock())
        return Lake(
            fake,
            lambda branch, table, word: fake.commit(branch, table, FakeTable(word)),
            lambda branch, table: getattr(fake.table(branch, table), "uuid", ""),
            lambda to: fake.reset("main", to),
            name,
        )
    servers: Servers = request.getfixturevalue("servers")
    writer = _Writer(servers.nessie, servers.tokens["publisher"])
    catalog = Catalog(servers.nessie, servers.tokens["publisher"])
    return Lake(catalog, writer.write, writer.read, servers.set_main_back, name)


def test_main_begins_once(lake: Lake) -> None:
    """A main that has commits stays unchanged."""
    before = lake.catalog.head("main")
    assert lake.catalog.begun()
    assert lake.catalog.begin("ops") is False
    assert lake.catalog.head("main") == before


def test_a_virgin_main_begins_once_in_memory() -> None:
    """Of several first commits of main one succeeds; branches can then be created and merged."""
    catalog = FakeCatalog(FakeClock(), virgin=True)
    assert not catalog.begun()
    assert [catalog.begin("ops") for _ in range(3)] == [True, False, False]
    assert len(list(catalog.log())) == 1


@pytest.mark.stack
def test_a_virgin_main_begins_once_in_nessie(servers: Servers) -> None:
    """Of several simultaneous first commits of main one succeeds and none fails."""
    assert sorted(servers.began) == [False, False, False, True]
    assert list(Catalog(servers.nessie, servers.tokens["reader"]).log())[-1].message == "Begin"


def test_a_branch_begins_at_main(lake: Lake) -> None:
    """A new branch is at main's head; creating it again returns its own head."""
    main = lake.catalog.head("main")
    branch, head = lake.written(1)
    assert lake.bases[branch] == main
    assert lake.catalog.create_branch(branch) == head
    assert lake.read(branch, lake.table) == "word 1"
    found = lake.catalog.references()
    assert (found[branch], found["main"]) == (head, main)


def test_a_write_on_a_branch_is_not_on_main(lake: Lake) -> None:
    """A write on a branch changes neither main nor another branch."""
    main = lake.catalog.head("main")
    lake.written(1)
    lake.catalog.create_branch(lake.branch(2))
    assert lake.catalog.head("main") == main
    assert lake.read("main", lake.table) == lake.read(lake.branch(2), lake.table) == ""


def test_a_deleted_branch_is_gone(lake: Lake) -> None:
    """A deleted branch has no head, but its hash stays readable; deleting twice is no error."""
    branch, head = lake.written(1)
    metadata = lake.catalog.metadata(head, lake.table)
    lake.catalog.delete_branch(branch)
    lake.catalog.delete_branch(branch)
    for unknown in (branch, lake.branch(2)):
        with pytest.raises(UnknownBranch, match="UNKNOWN_BRANCH"):
            lake.catalog.head(unknown)
    assert next(lake.catalog.changes(head, lake.table)).metadata == metadata
    assert lake.catalog.metadata(head, lake.table) == metadata
    assert lake.catalog.create_branch(branch) == lake.catalog.head("main")


def test_a_fresh_branch_has_one_maker(lake: Lake) -> None:
    """An existing publish branch is not reused, and stays."""
    name = f"publish/{lake.name}.orders/0a1b2c3d4e5f-0a1b2c"
    head = lake.catalog.create_branch(name)
    lake.merge(*lake.written(1))
    with pytest.raises(Transient, match="BRANCH_TAKEN"):
        lake.catalog.create_branch(name)
    assert lake.catalog.head(name) == head


def test_branches_are_found_by_how_they_begin(lake: Lake) -> None:
    """The branches with a prefix are listed in order, and no others."""
    for number in (2, 1, 10):
        lake.catalog.create_branch(lake.branch(number))
    lake.catalog.create_branch(f"{lake.branch(1)}-r.0a1b2c")
    names = [lake.branch(1), f"{lake.branch(1)}-r.0a1b2c", lake.branch(10), lake.branch(2)]
    assert lake.catalog.branches(f"ingest/{lake.name}.orders/") == sorted(names)
    assert lake.catalog.branches(lake.branch(2)) == [lake.branch(2)]
    assert lake.catalog.branches(f"{lake.branch(1)}-r.") == [f"{lake.branch(1)}-r.0a1b2c"]
    assert lake.catalog.branches(lake.branch(3)) == []
    both = lake.catalog.branches(lake.branch(2), f"{lake.branch(1)}-r.")
    assert both == [f"{lake.branch(1)}-r.0a1b2c", lake.branch(2)]
    assert lake.catalog.branches(f"{lake.name}.orders/") == []
    assert "main" in lake.catalog.branches("")


def test_a_merge_is_one_commit_on_main(lake: Lake) -> None:
    """A merge brings the branch's content to main with message, author and properties."""
    branch, head = lake.written(1)
    properties = {"lakegate.ingestion": lake.name, "lakegate.object": "s3://b/Flüge 1+1.csv"}
    base = lake.bases[branch]
    merged = lake.catalog.merge(branch, head, base, "Publish 3 rows", properties)
    commit = next(lake.catalog.log())
    assert commit.hash == merged == lake.catalog.head("main") != base
    assert lake.read("main", lake.table) == "word 1"
    assert lake.catalog.metadata(merged, lake.table) == lake.catalog.metadata(head, lake.table)
    assert commit.message == "Publish 3 rows"
    assert commit.author == "lakegate"
    assert commit.properties == properties
    assert commit.time.startswith("20")


def test_a_merge_is_done_once(lake: Lake) -> None:
    """Merging a merged hash again changes nothing, even if main changed the same table since."""
    branch, head = lake.written(1)
    main = lake.merge(branch, head)
    assert lake.merge(branch, head) == ""
    assert lake.catalog.head("main") == main
    lake.merge(*lake.written(2))
    assert lake.merge(branch, head) == ""
    assert lake.read("main", lake.table) == "word 2"


def test_an_empty_branch_changes_nothing(lake: Lake) -> None:
    """A branch without changes has nothing to merge."""
    head = lake.catalog.create_branch(lake.branch())
    assert lake.merge(lake.branch(), head, head) == ""


def test_only_what_was_named_is_merged(lake: Lake) -> None:
    """Changes after the named hash stay on the branch until they are named."""
    branch, head = lake.written(1)
    later = lake.write(branch, lake.table, "later")
    lake.merge(branch, head)
    assert lake.read("main", lake.table) == "word 1"
    assert lake.merge(branch, later, head) == lake.catalog.head("main")
    assert lake.read("main", lake.table) == "later"
    assert lake.merge(branch, head) == ""


@pytest.mark.parametrize("is_new", [False, True])
def test_a_table_that_moved_is_a_conflict_for_ever(lake: Lake, *, is_new: bool) -> None:
    """Of two branches that changed or created one table the second is always refused.

    The same change on a branch created since is merged.
    """
    if not is_new:
        lake.merge(*lake.written(0))
    first, second = lake.written(1), lake.written(2)
    lake.merge(*first)
    main = lake.catalog.head("main")
    for _ in range(2):
        with pytest.raises(MergeConflict, match="MERGE_CONFLICT"):
            lake.merge(*second)
    assert lake.catalog.head("main") == main
    assert lake.read("main", lake.table) == "word 1"
    assert lake.merge(*lake.written(3)) == lake.catalog.head("main")


def test_a_write_on_main_is_a_conflict(lake: Lake) -> None:
    """A change of a table on main conflicts with branches created before."""
    lake.merge(*lake.written(0))
    branch, head = lake.written(1)
    lake.write("main", lake.table, "by hand")
    with pytest.raises(MergeConflict):
        lake.merge(branch, head)
    assert lake.read("main", lake.table) == "by hand"


def test_a_merged_branchs_later_change_can_conflict(lake: Lake) -> None:
    """A branch that continues after its merge conflicts only with later changes of main."""
    branch, head = lake.written(1)
    lake.merge(branch, head)
    lake.merge(*lake.written(2))
    later = lake.write(branch, lake.table, "later")
    with pytest.raises(MergeConflict):
        lake.merge(branch, later, head)


def test_a_main_that_was_set_back_takes_no_branch_that_was_cut_before(lake: Lake) -> None:
    """Commits that main lost never return with another branch; a fresh branch is merged."""
    before = lake.catalog.head("main")
    lake.merge(*lake.written(1))
    branch, head = lake.written(2, f"{lake.name}.others")
    lake.set_back(before)
    for _ in range(2):
        with pytest.raises(SetBack, match="MAIN_SET_BACK"):
            lake.merge(branch, head)
    assert lake.catalog.head("main") == before
    lake.merge(*lake.written(3, f"{lake.name}.others"))
    assert lake.read("main", lake.table) == ""
    assert lake.read("main", f"{lake.name}.others") == "word 3"


def test_tables_that_differ_between_two_hashes_are_named(lake: Lake) -> None:
    """The difference of two hashes names the tables created, changed or dropped."""
    base = lake.catalog.head("main")
    branch, head = lake.written(1)
    assert lake.catalog.changed_tables(base, head) == {lake.table}
    later = lake.write(branch, f"{lake.name}.others", "word")
    assert lake.catalog.changed_tables(base, later) == {lake.table, f"{lake.name}.others"}
    assert lake.catalog.changed_tables(head, later) == {f"{lake.name}.others"}
    assert lake.catalog.changed_tables(head, head) == frozenset()


def test_other_tables_are_no_conflict(lake: Lake) -> None:
    """Branches that changed different tables are all merged, even if both created a namespace."""
    branches = [lake.written(n, f"{lake.name}.t{n}") for n in range(3)]
    for each in branches:
        assert lake.merge(*each) == lake.catalog.head("main")
    assert [lake.read("main", f"{lake.name}.t{n}") for n in range(3)] == [
        "word 0",
        "word 1",
        "word 2",
    ]


def test_a_branch_that_is_gone_cannot_be_merged(lake: Lake) -> None:
    """A branch that is deleted or never existed, and an unknown hash, are refused."""
    branch, head = lake.written(1)
    with pytest.raises(UnknownBranch):
        lake.merge(branch, NO_HASH)
    lake.catalog.delete_branch(branch)
    for name in (branch, lake.branch(2)):
        with pytest.raises(UnknownBranch, match="UNKNOWN_BRANCH"):
            lake.merge(name, head, lake.bases[branch])
    assert lake.read("main", lake.table) == ""


def test_a_hash_is_taken_through_any_branch(lake: Lake) -> None:
    """A known hash is merged even if the named branch does not lead to it."""
    branch, head = lake.written(1)
    lake.catalog.delete_branch(branch)
    lake.catalog.create_branch(branch)
    assert lake.merge(branch, head) == lake.catalog.head("main")
    assert lake.read("main", lake.table) == "word 1"


def test_the_log_goes_from_the_newest_back(lake: Lake) -> None:
    """Main's commits come in order, each naming its parent, down to the first."""
    begun = lake.catalog.head("main")
    merged = [lake.merge(*lake.written(number), k=str(number)) for number in range(2)]
    log = list(lake.catalog.log())
    assert [commit.hash for commit in log[:3]] == [merged[1], merged[0], begun]
    assert [commit.parent for commit in log[:2]] == [merged[0], begun]
    assert [commit.properties["k"] for commit in log[:2]] == ["1", "0"]
    assert len({commit.hash for commit in log}) == len(log)


def test_the_log_has_more_than_a_page(lake: Lake) -> None:
    """The log has all commits, however many pages they take."""
    made = [lake.write("main", lake.table, str(number)) for number in range(120)]
    log = (commit.hash for commit in lake.catalog.log())
    assert [next(log) for _ in made] == made[::-1]


def test_a_log_reports_what_became_of_a_table(lake: Lake) -> None:
    """Each commit of a log says which metadata it gave a table; merges are marked."""
    lake.merge(*lake.written(1))
    branch, _ = lake.written(2)
    lake.write(branch, f"{lake.name}.other", "other")
    head = lake.write(branch, lake.table, "word 3")
    newest, other, older, merge, *_ = lake.catalog.changes(head, lake.table)
    assert (newest.hash, newest.is_merge, other.metadata) == (head, False, "")
    assert (merge.hash, merge.is_merge) == (lake.catalog.head("main"), True)
    for each in (newest, older, merge):
        assert each.metadata == lake.catalog.metadata(each.hash, lake.table)
    assert len({newest.metadata, older.metadata, merge.metadata, ""}) == 4
    moments = [each.moment for each in (newest, other, older, merge)]
    assert moments == sorted(moments, reverse=True)


def test_main_says_how_far_it_is(lake: Lake) -> None:
    """Each commit on main raises its position by one; commits on branches do not."""
    before = lake.catalog.tip()
    branch, at = lake.written(1)
    assert lake.catalog.tip() == before
    merged = lake.merge(branch, at)
    after = lake.catalog.tip()
    assert (after.hash, after.position) == (merged, before.position + 1)


def test_a_table_that_is_not_there_has_no_metadata(lake: Lake) -> None:
    """A table has no metadata before its first commit; an unknown hash is unknown."""
    assert lake.catalog.metadata(lake.catalog.head("main"), lake.table) == ""
    with pytest.raises(UnknownBranch):
        lake.catalog.metadata(NO_HASH, lake.table)
    with pytest.raises(UnknownBranch):
        next(lake.catalog.changes(NO_HASH, lake.table))


def test_a_history_reports_what_was_changed(lake: Lake) -> None:
    """Each of main's commits names the tables that it changed, also for a merge."""
    branch, head = lake.written(1)
    lake.catalog.merge(branch, head, lake.bases[branch], "ours", {"ours": "1"})
    ours = lake.catalog.head("main")
    lake.merge(*lake.written(2, f"{lake.name}.others"))
    theirs = lake.catalog.head("main")
    by_hand = lake.write("main", lake.table, "by hand")
    log = islice(lake.catalog.history(), 3)
    found = {commit.hash: (commit.properties, names) for commit, names in log}
    assert list(found) == [by_hand, theirs, ours]
    assert found[by_hand][1] == {lake.table}
    assert f"{lake.name}.others" in found[theirs][1]
    assert (found[ours][0]["ours"], lake.table in found[ours][1]) == ("1", True)


def test_a_nessie_that_is_busy_refuses_no_merge() -> None:
    """An overloaded server answers 409, which is transient and not a conflict."""
    main = {"type": "BRANCH", "name": "main", "hash": NO_HASH}
    busy = {"status": 409, "errorCode": "REFERENCE_CONFLICT", "message": "retries exhausted"}
    answers = wire.json("200 OK", main), wire.json("409 Conflict", busy)
    with wire.answering(*answers) as url, pytest.raises(Transient, match="retries exhausted"):
        Catalog(url, "token").merge("ingest/x", NO_HASH, NO_HASH, "message", {})


@pytest.mark.stack
@pytest.mark.parametrize("role", ["uploader", "job", "reader"])
def test_only_the_publisher_merges(servers: Servers, role: str) -> None:
    """The other roles' tokens cannot merge into main: they lack a right, which may be given."""
    name = f"t{uuid.uuid4().hex[:12]}"
    publisher, other = (
        Catalog(servers.nessie, servers.tokens["publisher"]),
        Catalog(servers.nessie, servers.tokens[role]),
    )
    writer = _Writer(servers.nessie, servers.tokens["publisher"])
    branch = f"ingest/{name}.t/file"
    base = publisher.create_branch(branch)
    head = writer.write(branch, f"{name}.t", "word")
    main = publisher.head("main")
    with pytest.raises(RightMissing, match="Nessie's rules do not allow this"):
        other.merge(branch, head, base, "m", {})
    assert publisher.head("main") == main


@pytest.mark.stack
def test_the_uploader_cuts_and_deletes_branches(servers: Servers) -> None:
    """The upload Lambda's token suffices for everything that an ingestion does with it."""
    uploader = Catalog(servers.nessie, servers.tokens["uploader"])
    branch = f"ingest/t{uuid.uuid4().hex[:12]}/file"
    assert uploader.create_branch(branch) == uploader.head("main")
    assert uploader.branches(branch) == [branch]
    uploader.delete_branch(branch)
    assert uploader.branches(branch) == []
