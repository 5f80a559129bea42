"""A branch's files are registered in main's newer table, in memory and in Iceberg."""

import pytest

from functions.adapters.iceberg.errors import CannotRebase
from functions.model.intent import Intent
from lakegate.errors import Transient
from tests.contract.lakes import MERGED, PLACES, IcebergWriter, Lake, lake_of
from tests.fakes.rows import ROWS_A_FILE


@pytest.fixture(params=PLACES)
def lake(request: pytest.FixtureRequest) -> Lake:
    """Return a lake whose main has the test's table with one file, `old`."""
    return lake_of(request)


def test_a_refused_branch_is_published_after_all(lake: Lake) -> None:
    """A refused branch's files reach main by a fresh branch, beside earlier ones."""
    first, second = lake.written("first"), lake.written("second")
    lake.publish(*first)
    fresh = lake.branch("fresh")
    lake.enter(fresh, second)
    lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == ["first", "old", "second"]


def test_only_the_targets_branch_changes(lake: Lake) -> None:
    """Neither main nor the source branch changes."""
    source, at = lake.written("file")
    main, fresh = lake.catalog.head("main"), lake.branch("fresh")
    lake.enter(fresh, (source, at))
    assert lake.catalog.head("main") == main
    assert lake.catalog.head(source) == at
    assert lake.writer.files(fresh) == lake.writer.files(source) == ["file", "old"]


def test_only_what_was_named_is_registered(lake: Lake) -> None:
    """Files appended after the named hash are not registered."""
    source, at = lake.written("file")
    lake.writer.append(source, "later")
    fresh = lake.branch("fresh")
    lake.enter(fresh, (source, at))
    assert lake.writer.files(fresh) == ["file", "old"]


def test_it_can_be_done_again_and_again(lake: Lake) -> None:
    """Files that were registered once and refused again can be registered again."""
    source, at = lake.written("file")
    for number in range(3):
        lake.publish(*lake.written(f"other-{number}"))
        fresh = lake.branch(f"fresh-{number}")
        lake.enter(fresh, (source, at))
        source, at = fresh, lake.catalog.head(fresh)
    lake.publish(source, at)
    assert lake.on_main() == ["file", "old", "other-0", "other-1", "other-2"]


def test_a_column_that_main_gained_is_no_obstacle(lake: Lake) -> None:
    """A new column of main is empty in the files' rows."""
    source, at = lake.written("file")
    lake.writer.add_column("main")
    fresh = lake.branch("fresh")
    lake.enter(fresh, (source, at))
    lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == ["file", "old"]


def cannot(lake: Lake, source: str, at: str, target: str) -> str:
    """Return why the files cannot be registered; the target stays unchanged."""
    before = lake.catalog.branches(target) and lake.catalog.head(target)
    refusals = lake.tables.append_again(lake.table, [Intent(source, at)], target)
    assert (lake.catalog.branches(target) and lake.catalog.head(target)) == before
    (refusal,) = refusals.values()
    assert isinstance(refusal, CannotRebase)
    return refusal.code


def test_a_column_that_the_files_must_have_is_one(lake: Lake) -> None:
    """If main requires a column that the files lack, the job must run again."""
    source, at = lake.written("file")
    lake.writer.add_column("main", required=True)
    assert cannot(lake, source, at, lake.branch("fresh")) == "COLUMNS_CHANGED"


def test_a_column_that_main_lacks_is_one(lake: Lake) -> None:
    """If the files have a column that main lacks, the job must run again."""
    source = lake.branch("source")
    lake.writer.add_column(source)
    at = lake.writer.append(source, "file")
    assert cannot(lake, source, at, lake.branch("fresh")) == "COLUMNS_CHANGED"


def test_a_table_with_rows_of_an_earlier_one_is_one(lake: Lake) -> None:
    """If the table was dropped and created again after a branch grew on it, the job runs again."""
    source, at = lake.written("file")
    made_anew(lake)
    assert cannot(lake, source, at, lake.branch("fresh")) == "TABLE_REPLACED"


def made_anew(lake: Lake) -> None:
    """Have another writer drop main's table and create it with one file, `another`."""
    lake.writer.drop("main")
    lake.writer.append("main", "another")


def of_another_table(lake: Lake, *files: str) -> list[tuple[str, str]]:
    """Return branches that each created the table themselves, while main has one of its own."""
    lake.writer.drop("main")
    written = [lake.written(file) for file in files]
    lake.writer.append("main", "another")
    return written


def test_files_of_tables_that_each_branch_created_are_registered(lake: Lake) -> None:
    """If several branches created the table, the files of all reach main's, where they lie."""
    first, *others = of_another_table(lake, "first", "second", "third")
    places = set(lake.tables.listed(lake.table, first[0]))
    refused = lake.branch("refused")
    lake.enter(refused, first, *others)
    lake.writer.append("main", "later")
    fresh = lake.branch("fresh")
    lake.enter(fresh, (refused, lake.catalog.head(refused)))
    lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == ["another", "first", "later", "second", "third"]
    assert places < set(lake.tables.listed(lake.table, "main"))


def test_all_commits_of_a_branch_that_created_the_table_belong_together(lake: Lake) -> None:
    """A commit on a branch's own table is registered only with all others that have rows there."""
    ((source, first),) = of_another_table(lake, "first")
    second = lake.writer.append(source, "second")
    assert cannot(lake, source, second, lake.branch("alone")) == "TABLE_REPLACED"
    fresh = lake.branch("fresh")
    lake.enter(fresh, (source, first), (source, second))
    assert lake.writer.files(fresh) == ["another", "first", "second"]


@pytest.mark.parametrize(
    ("then", "now", "code"),
    [
        ({"a": 2}, {"a": 2}, ""),
        ({}, {"a": 2}, ""),
        ({"a": 2}, {"a": 2, "b": 3}, ""),
        ({"a": 2}, {}, "COLUMNS_CHANGED"),
        ({"a": 2}, {"a": 3}, "COLUMNS_CHANGED"),
        ({"a": 2}, {"b": 2}, "COLUMNS_CHANGED"),
        ({"a": 2}, {"a": 3, "b": 2}, "COLUMNS_CHANGED"),
    ],
)
def test_another_table_must_have_the_files_columns_with_their_ids(
    lake: Lake, then: dict[str, int], now: dict[str, int], code: str
) -> None:
    """Files that another table's branch wrote need the same names for the same field ids."""
    ((source, _),) = of_another_table(lake, "empty")
    lake.writer.drop(source)
    lake.writer.create(source)
    lake.writer.set_columns(source, **then)
    at = lake.writer.append(source, "file")
    lake.writer.set_columns("main", **now)
    fresh = lake.branch("fresh")
    if code:
        assert cannot(lake, source, at, fresh) == code
    else:
        lake.enter(fresh, (source, at))
        assert lake.writer.files(fresh) == ["another", "file"]


def test_an_id_that_was_another_columns_is_an_obstacle(lake: Lake) -> None:
    """Main must not give the id of a column that the files' table dropped to another column."""
    ((source, _),) = of_another_table(lake, "empty")
    lake.writer.drop(source)
    lake.writer.create(source)
    lake.writer.set_columns(source, a=2)
    lake.writer.set_columns(source)
    at = lake.writer.append(source, "file")
    lake.writer.set_columns("main", b=3)
    lake.enter(fresh := lake.branch("fresh"), (source, at))
    assert lake.writer.files(fresh) == ["another", "file"]
    lake.writer.set_columns("main", b=2)
    assert cannot(lake, source, at, lake.branch("refused")) == "COLUMNS_CHANGED"


def test_files_of_an_earlier_partitioning_are_registered_as_they_are(lake: Lake) -> None:
    """Files reach main's table under their own partition spec while it still knows that spec.

    The newer one stays that of new files, and a second rebase finds all files of the first.
    """
    first, second = lake.written("first"), lake.written("second")
    lake.writer.partition("main", 4)
    lake.writer.append("main", "newer")
    fresh = lake.branch("fresh")
    lake.enter(fresh, first, second)
    assert lake.writer.spec_of(fresh, "first") == lake.writer.spec_of(fresh, "second") == 0
    lake.writer.append("main", "newest")
    again = lake.branch("again")
    lake.enter(again, (fresh, lake.catalog.head(fresh)))
    assert lake.writer.spec_of(again, "second") == 0
    lake.publish(again, lake.catalog.head(again))
    lake.writer.append("main", "last")
    assert lake.writer.spec_of("main", "last") == 1
    assert lake.on_main() == ["first", "last", "newer", "newest", "old", "second"]


@pytest.mark.parametrize(
    ("buckets", "on_main", "code"),
    [(4, 4, ""), (4, 8, "PARTITIONING_CHANGED"), (4, 0, "PARTITIONING_CHANGED")],
)
def test_files_of_a_partitioning_that_main_lacks_are_not(
    lake: Lake, buckets: int, on_main: int, code: str
) -> None:
    """If main has the files' partition spec under its id, they are registered; else not."""
    source = lake.branch("source")
    lake.writer.partition(source, buckets)
    at = lake.writer.append(source, "file")
    if on_main:
        lake.writer.partition("main", on_main)
    fresh = lake.branch("fresh")
    if code:
        assert cannot(lake, source, at, fresh) == code
    else:
        lake.enter(fresh, (source, at))
        assert lake.writer.spec_of(fresh, "file") == 1


def test_files_of_several_partitionings_are_registered_one_after_the_other(lake: Lake) -> None:
    """Files of another partition spec than the first's wait; they can be registered by themselves.

    One snapshot of the table gets all files that are registered together.
    """
    older = Intent(*lake.written("older"))
    lake.writer.partition("main", 4)
    newer = Intent(*lake.written("newer"))
    fresh = lake.branch("fresh")
    refusals = lake.tables.append_again(lake.table, [older, newer], fresh)
    assert [(each, error.code) for each, error in refusals.items()] == [
        (newer, "PARTITIONING_CHANGED")
    ]
    lake.publish(fresh, lake.catalog.head(fresh))
    alone = lake.branch("alone")
    lake.enter(alone, (newer.branch, newer.hash))
    lake.publish(alone, lake.catalog.head(alone))
    assert lake.on_main() == ["newer", "old", "older"]


def test_a_table_that_is_gone_is_one(lake: Lake) -> None:
    """If the table was dropped, the job must run again."""
    source = Intent(*lake.written("file"))
    lake.writer.drop("main")
    with pytest.raises(CannotRebase, match="TABLE_GONE"):
        lake.tables.append_again(lake.table, [source], lake.branch("fresh"))


def test_a_target_that_is_gone_is_reported(lake: Lake) -> None:
    """If another process deleted the target branch, the error is transient."""
    source = Intent(*lake.written("file"))
    fresh = lake.branch("fresh")
    lake.catalog.delete_branch(fresh)
    with pytest.raises(Transient, match="CATALOG_UNAVAILABLE"):
        lake.tables.append_again(lake.table, [source], fresh)


def test_several_are_registered_at_once(lake: Lake) -> None:
    """The files of many branches reach main by one fresh branch and one merge."""
    written = [lake.written(f"file-{number:02}") for number in range(12)]
    fresh = lake.branch("fresh")
    lake.enter(fresh, *written)
    lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == [*(f"file-{number:02}" for number in range(12)), "old"]


def test_several_commits_of_one_branch_are_registered(lake: Lake) -> None:
    """Each commit's files are named by its hash, so all files of a branch reach main."""
    source = lake.branch("source")
    commits = [(source, lake.writer.append(source, f"file-{number}")) for number in range(3)]
    lake.writer.append("main", "other")
    fresh = lake.branch("fresh")
    lake.enter(fresh, *commits)
    lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == ["file-0", "file-1", "file-2", "old", "other"]


def test_a_table_does_not_become_slow_to_read(lake: Lake) -> None:
    """However often files are registered again, manifests are merged as configured."""
    for number in range(2 * MERGED):
        written = lake.written(f"file-{number}")
        fresh = lake.branch(f"fresh-{number}")
        lake.enter(fresh, written)
        lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == [*(f"file-{number}" for number in range(2 * MERGED)), "old"]
    if isinstance(lake.writer, IcebergWriter):
        assert lake.writer.manifests("main") <= MERGED


def test_one_that_cannot_be_registered_holds_up_no_other(lake: Lake) -> None:
    """A branch with other columns, or a missing one, is named; the others' files are registered."""
    good, gone = Intent(*lake.written("good")), Intent(*lake.written("gone"))
    lake.writer.add_column(source := lake.branch("source"))
    strange = Intent(source, lake.writer.append(source, "strange"))
    lake.catalog.delete_branch(gone.branch)
    fresh = lake.branch("fresh")
    refusals = lake.tables.append_again(lake.table, [gone, good, strange], fresh)
    assert {each: error.code for each, error in refusals.items()} == {
        gone: "CATALOG_UNAVAILABLE",
        strange: "COLUMNS_CHANGED",
    }
    assert lake.writer.files(fresh) == ["good", "old"]


@pytest.mark.stack
@pytest.mark.parametrize("lake", PLACES[1:], indirect=True)
@pytest.mark.parametrize(
    ("on_main", "code"), [("asc", ""), ("desc", "ORDER_CHANGED"), ("", "ORDER_CHANGED")]
)
def test_files_in_an_order_that_main_lacks_are_not_registered(
    lake: Lake, on_main: str, code: str
) -> None:
    """A data file names its sort order, which must be the same in main's table; none always is."""
    writer, unsorted = lake.writer, lake.written("unsorted")
    assert isinstance(writer, IcebergWriter)
    writer.sort(source := lake.branch("source"), "asc")
    at = writer.append(source, "file")
    if on_main:
        writer.sort("main", on_main)
    fresh = lake.branch("fresh")
    if code:
        assert cannot(lake, source, at, fresh) == code
        lake.enter(fresh, unsorted)
    else:
        lake.enter(fresh, unsorted, (source, at))
        assert writer.files(fresh) == ["file", "old", "unsorted"]


@pytest.mark.stack
@pytest.mark.parametrize("lake", PLACES[1:], indirect=True)
def test_a_failure_of_pyiceberg_is_an_error_of_ours(lake: Lake) -> None:
    """Any table properties that others set give a LakegateError at most; snappy works."""
    writer = lake.writer
    assert isinstance(writer, IcebergWriter)
    source = lake.written("file")
    odd = {"write.avro.compression-codec": "lz4", "commit.manifest.min-count-to-merge": "many"}
    for name, value in odd.items():
        fresh = lake.branch(value)
        writer.set_property(fresh, name, value)
        with pytest.raises(CannotRebase, match="TABLE_UNUSABLE"):
            lake.tables.append_again(lake.table, [Intent(*source)], fresh)
        with pytest.raises(CannotRebase, match="TABLE_UNUSABLE"):
            lake.replace(fresh, source)
    fresh = lake.branch("snappy")
    writer.set_property(fresh, "write.avro.compression-codec", "snappy")
    lake.enter(fresh, source)
    assert writer.files(fresh) == ["file", "old"]


@pytest.mark.stack
@pytest.mark.parametrize("lake", PLACES[1:], indirect=True)
def test_rows_are_counted_at_any_hash(lake: Lake) -> None:
    """A hash of a deleted branch is readable through main."""
    source, at = lake.written("file")
    base = lake.bases[source]
    lake.catalog.delete_branch(source)
    counted = [lake.tables.rows(lake.table, f"main@{hash_}").live for hash_ in (base, at)]
    assert counted == [ROWS_A_FILE, 2 * ROWS_A_FILE]
