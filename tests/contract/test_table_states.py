"""The files and rows of a table at a commit are read, in memory and in Iceberg."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from functions.adapters.iceberg.errors import CannotRebase, MetadataGone
from functions.adapters.iceberg.files import TableChange, TableFiles, TableRows
from functions.model.commits import Content, UnknownContent
from functions.model.intent import Intent
from lakegate.errors import LakegateError, Transient
from lakegate.job.upkeep import FEWEST
from tests.contract.lakes import PLACES, Lake, lake_of
from tests.fakes.rows import ROWS_A_FILE


@pytest.fixture(params=PLACES)
def lake(request: pytest.FixtureRequest) -> Lake:
    """Return a lake whose main has the test's table with one file, `old`."""
    return lake_of(request)


def files(lake: Lake, at: str) -> TableFiles:
    """Return all files of the table as it is at a hash."""
    return lake.tables.files(lake.catalog.metadata(at, lake.table))


def names(paths: Iterable[str]) -> list[str]:
    """Return the names of files, without where they lie."""
    return sorted(path.rpartition("/")[2] for path in paths)


def data_of(paths: Iterable[str]) -> set[str]:
    """Return the data files among files."""
    return {path for path in paths if "/metadata/" not in path}


def test_a_state_consists_of_its_files(lake: Lake) -> None:
    """A state has data files, manifests, lists and the metadata file under its location."""
    _, at = lake.written("file")
    found = files(lake, at)
    root = lake.catalog.metadata(at, lake.table)
    assert names(data_of(found.paths)) == ["file", "old"]
    assert len(found.manifests) == 2
    assert {root, *found.manifests} <= found.paths
    place = root.partition("/metadata/")[0]
    assert place.startswith("s3://lake/warehouse/")
    assert all(path.startswith(f"{place}/") for path in found.paths)
    assert found.missing == frozenset()


def test_known_manifests_are_not_looked_into_again(lake: Lake) -> None:
    """Of a state only the data files are read that manifests name which are new."""
    metadata = lake.catalog.metadata(lake.written("file")[1], lake.table)
    every = lake.tables.files(metadata)
    for _ in range(2):
        again = lake.tables.files(metadata, known=every.manifests)
        assert again.paths == every.paths - data_of(every.paths)
        assert again.missing == frozenset()
        lake.delete(max(every.manifests))  # nor whether they are there


def test_files_of_a_branch_are_distinguished_from_mains(lake: Lake) -> None:
    """A branch's state has one data file and its metadata beside those of main."""
    before = files(lake, lake.catalog.head("main"))
    source, at = lake.written("file")
    own = files(lake, at).paths - before.paths
    assert "file" in names(own)
    assert "old" not in names(own)
    lake.publish(source, at)
    assert own <= files(lake, lake.catalog.head("main")).paths


def test_files_that_were_registered_again_are_shared(lake: Lake) -> None:
    """A rebased branch and its source share data files, and nothing else."""
    before = files(lake, lake.catalog.head("main")).paths
    source, at = lake.written("file")
    fresh = lake.branch("fresh")
    lake.enter(fresh, (source, at))
    shared = files(lake, at).paths & files(lake, lake.catalog.head(fresh)).paths - before
    assert names(shared) == ["file"]


def test_a_file_that_is_gone_is_reported(lake: Lake) -> None:
    """A state with a deleted manifest or metadata file reports it, with what remains."""
    before = files(lake, lake.catalog.head("main"))
    _, at = lake.written("file")
    metadata = lake.catalog.metadata(at, lake.table)
    (manifest,) = files(lake, at).manifests - before.manifests
    lake.delete(manifest)
    found = lake.tables.files(metadata)
    assert manifest in found.missing
    assert manifest in found.paths
    assert "file" not in names(found.paths)
    lake.delete(metadata)
    assert lake.tables.files(metadata).missing == {metadata}


def test_a_table_says_how_many_rows_it_has(lake: Lake) -> None:
    """Rows and identity of a table are read from metadata at a branch or a commit of main."""
    before = lake.catalog.head("main")
    branch, at = lake.written("file")
    lake.publish(branch, at)
    then, now = lake.tables.rows(lake.table, f"main@{before}"), lake.tables.rows(lake.table, "main")
    assert (then.records, now.records, now.live) == (ROWS_A_FILE, 2 * ROWS_A_FILE, 2 * ROWS_A_FILE)
    assert (now.position_deletes, now.equality_deletes) == (0, 0)
    assert then.uuid == now.uuid != ""
    assert lake.tables.rows(lake.table, branch) == now


def test_a_table_that_is_not_there_has_no_rows(lake: Lake) -> None:
    """Before its first commit, and after it was dropped, a table has no rows and no identity."""
    lake.writer.drop("main")
    assert lake.tables.rows(lake.table, "main") == TableRows()
    assert lake.tables.rows("nowhere.nothing", "main") == TableRows()
    assert lake.tables.doubled(lake.table, "main") == []


def test_rows_at_a_commit_that_is_not_there_are_tried_again(lake: Lake) -> None:
    """An unknown hash is an error, not a missing table."""
    with pytest.raises(LakegateError):
        lake.tables.rows(lake.table, "main@" + "0123456789abcdef" * 4)


def test_a_state_whose_metadata_is_gone_has_no_rows_to_compare(lake: Lake) -> None:
    """An old state without its metadata is an error of its own; newer states are read as ever."""
    before = lake.catalog.head("main")
    gone = files(lake, before)
    commits = [lake.writer.append("main", name) for name in ("a", "b")]
    for path in gone.paths - gone.manifests - data_of(gone.paths):
        lake.delete(path)
    old, first, second = (f"main@{commit}" for commit in (before, *commits))
    for read in (lake.tables.rows, lambda table, at: lake.tables.change(table, at, first)):
        with pytest.raises(Transient, match="METADATA_GONE"):
            read(lake.table, old)
    assert lake.tables.change(lake.table, first, second).rows == ROWS_A_FILE


def test_a_branch_whose_files_were_deleted_cannot_be_counted_or_registered(lake: Lake) -> None:
    """The rows of a branch that is gone with its files are not counted, nor can they be entered."""
    source, at = lake.written("file")
    own = files(lake, at).paths - files(lake, lake.catalog.head("main")).paths
    for path in own:
        lake.delete(path)
    intent, fresh = Intent(source, at), lake.branch("fresh")
    refused = lake.tables.append_again(lake.table, [intent], fresh)
    assert isinstance(refused[intent], CannotRebase)
    lake.catalog.delete_branch(source)
    with pytest.raises(MetadataGone):
        lake.tables.rows(lake.table, f"main@{at}")


def test_a_file_that_is_there_twice_is_found(lake: Lake) -> None:
    """A data file that is registered twice is named, with its rows."""
    lake.publish(*lake.written("file"))
    assert lake.tables.doubled(lake.table, "main") == []
    before = lake.catalog.head("main")
    lake.writer.append("main", "file")
    [doubled] = lake.tables.doubled(lake.table, "main")
    assert doubled.path.endswith("file")
    assert (doubled.rows, doubled.times) == (ROWS_A_FILE, 2)
    assert lake.tables.doubled(lake.table, f"main@{before}") == []


def test_a_commits_change_of_a_table_is_reported(lake: Lake) -> None:
    """A commit's added and removed data files are counted, with their rows."""
    commits = [lake.catalog.head("main")]
    for name in ("a", "b", "a"):
        lake.writer.append("main", name)
        commits.append(lake.catalog.head("main"))
    lake.replace(lake.branch("next"), lake.written("c"), "b")
    first, _, second, third = (f"main@{commit}" for commit in commits)
    found = lake.tables.change(lake.table, first, third)
    names = {path.rpartition("/")[2]: times for path, times in found.added.items()}
    assert (names, dict(found.removed), found.rows) == ({"a": 2, "b": 1}, {}, 3 * ROWS_A_FILE)
    again = lake.tables.change(lake.table, second, third)
    assert (list(again.added.values()), again.rows) == ([1], ROWS_A_FILE)
    branch = f"ingest/{lake.table}/next"
    replaced = lake.tables.change(lake.table, third, branch)
    paths = [path.rpartition("/")[2] for path in (*replaced.added, *replaced.removed)]
    assert (paths, replaced.rows) == (["c", "b"], 0)
    nothing = lake.tables.change(lake.table, third, third)
    assert (nothing.rows, dict(nothing.added), dict(nothing.removed)) == (0, {}, {})
    assert lake.tables.change("nowhere.nothing", first, third) == TableChange()


def test_the_data_files_of_a_table_are_listed(lake: Lake) -> None:
    """All data files or a sample are listed; none for a missing table."""
    for name in ("a", "b", "c"):
        lake.writer.append("main", name)
    every = list(lake.tables.listed(lake.table, "main"))
    assert sorted(path.rpartition("/")[2] for path in every) == ["a", "b", "c", "old"]
    some = list(lake.tables.listed(lake.table, "main", most=2))
    assert set(some) <= set(every)
    assert 0 < len(some) < 4
    assert list(lake.tables.listed("nowhere.nothing", "main")) == []


LONG_AGO, SOON = (datetime(year, 1, 1, tzinfo=UTC) for year in (2000, 2200))


def states(lake: Lake, at: str, since: datetime, known: set[str] | None = None) -> set[str]:
    """Return the states of the test's table alone: the servers have other tests' tables."""
    found = lake.catalog.states(at, since, set() if known is None else known)
    mine = (each.metadata for each in found if each.is_table)
    return {state for state in mine if lake.table.replace(".", "/") in state}


def test_all_states_of_a_log_are_named(lake: Lake) -> None:
    """Each commit's metadata file is named, a dropped table's too; later commits' are not."""
    commits = [lake.catalog.head("main")]
    for name in ("a", "b"):
        lake.writer.append("main", name)
        commits.append(lake.catalog.head("main"))
    every = {lake.catalog.metadata(commit, lake.table) for commit in commits}
    lake.writer.drop("main")
    assert every <= states(lake, lake.catalog.head("main"), LONG_AGO)
    assert states(lake, lake.catalog.head("main"), SOON) == set()
    assert states(lake, commits[1], SOON) == {lake.catalog.metadata(commits[1], lake.table)}
    assert states(lake, commits[1], LONG_AGO) & every == every - {
        lake.catalog.metadata(commits[2], lake.table)
    }


def test_a_views_metadata_is_named(lake: Lake) -> None:
    """A view is named as what reaches no other file, at a hash and in its log."""
    branch = lake.branch("view")
    view = f"{lake.table}_view"
    at = lake.writer.put(branch, view, "ICEBERG_VIEW")
    metadata = lake.catalog.metadata(at, view)
    later = lake.writer.append(branch, "file")
    for since in (LONG_AGO, SOON):
        assert Content(metadata, is_table=False) in lake.catalog.states(later, since, set())
    assert Content(lake.catalog.metadata(later, lake.table)) in lake.catalog.states(
        later, LONG_AGO, set()
    )


def test_content_of_an_unknown_type_is_an_error(lake: Lake) -> None:
    """What has files that nobody finds is named, at a hash and in its log."""
    branch = lake.branch("delta")
    name = f"{lake.table}_delta"
    at = lake.writer.put(branch, name, "DELTA_LAKE_TABLE")
    for since in (LONG_AGO, SOON):
        with pytest.raises(UnknownContent, match=rf"{name} is of the type DELTA_LAKE_TABLE"):
            list(lake.catalog.states(at, since, set()))
    lake.catalog.delete_branch(branch)


def test_a_repository_stays_itself(lake: Lake) -> None:
    """The identity of a catalog does not change with its commits."""
    before = lake.catalog.identity()
    lake.writer.append("main", "a")
    assert lake.catalog.identity() == before != ""


def test_a_known_log_is_not_read_again(lake: Lake) -> None:
    """A branch adds its own states to those of main, and its head's even if all is known."""
    known: set[str] = set()
    head = lake.catalog.head("main")
    states(lake, head, LONG_AGO, known)
    lake.writer.append("main", "a")
    lake.writer.append("main", "b")
    fresh = states(lake, lake.catalog.head("main"), LONG_AGO, known)
    assert len(fresh) == 2
    assert states(lake, head, LONG_AGO, known) == {lake.catalog.metadata(head, lake.table)}


def test_an_unknown_commit_has_no_states(lake: Lake) -> None:
    """The states of an unknown hash are an error, not none."""
    with pytest.raises(LakegateError):
        states(lake, "0123456789abcdef" * 4, LONG_AGO)


def test_small_data_files_are_counted(lake: Lake) -> None:
    """Few small files are no reason to compact; many in one partition are."""
    few = lake.tables.size(lake.table, "main")
    assert (few.files, few.small, few.scattered) == (1, 1, 0)
    for number in range(FEWEST):
        lake.writer.append("main", f"file-{number}")
    many = lake.tables.size(lake.table, "main")
    assert (many.files, many.small, many.scattered) == (FEWEST + 1, FEWEST + 1, FEWEST + 1)
    assert many.bytes > few.bytes
