"""Files can be registered in place of others, in memory and in Iceberg."""

import pytest

from functions.adapters.iceberg.errors import CannotRebase, FilesGone
from lakegate.errors import Transient
from tests.contract.lakes import MERGED, PLACES, IcebergWriter, Lake, lake_of


@pytest.fixture(params=PLACES)
def lake(request: pytest.FixtureRequest) -> Lake:
    """Return a lake whose main has the test's table with one file, `old`."""
    return lake_of(request)


def test_files_take_the_place_of_others(lake: Lake) -> None:
    """One merge registers the new files and removes the old ones."""
    lake.publish(*lake.written("first"))
    written, fresh = lake.written("second"), lake.branch("fresh")
    lake.replace(fresh, written, "first")
    lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == ["old", "second"]


def test_many_files_at_once_and_none_at_all_are_replaced(lake: Lake) -> None:
    """Files of several commits can be removed, or all, or none."""
    lake.publish(*lake.written("first"))
    for number, removed in enumerate([[], ["first", "old"], ["file-0", "file-1"]]):
        written, fresh = lake.written(f"file-{number}"), lake.branch(f"fresh-{number}")
        lake.replace(fresh, written, *removed)
        lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == ["file-2"]


def test_files_that_replaced_others_can_be_registered_again(lake: Lake) -> None:
    """A refused branch that replaced files brings only its own files to the next."""
    lake.publish(*lake.written("first"))
    written, fresh, again = lake.written("second"), lake.branch("fresh"), "again"
    lake.replace(fresh, written, "first")
    at = lake.catalog.head(fresh)
    lake.publish(*lake.written("other"))
    lake.replace(lake.branch(again), (fresh, at), "first", "other")
    again = f"ingest/{lake.table}/{again}"
    lake.publish(again, lake.catalog.head(again))
    assert lake.on_main() == ["old", "second"]


def test_a_table_whose_files_are_replaced_does_not_become_slow_to_read(lake: Lake) -> None:
    """Repeated replacement leaves no extra manifests."""
    lake.publish(*lake.written("file-0"))
    for number in range(1, 2 * MERGED):
        written, fresh = lake.written(f"file-{number}"), lake.branch(f"fresh-{number}")
        lake.replace(fresh, written, f"file-{number - 1}")
        lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == [f"file-{2 * MERGED - 1}", "old"]
    if isinstance(lake.writer, IcebergWriter):
        assert lake.writer.manifests("main") <= MERGED


def test_missing_files_cannot_be_replaced(lake: Lake) -> None:
    """Missing files are named, and nothing changes."""
    written, fresh = lake.written("file"), lake.branch("fresh")
    before = lake.catalog.head(fresh)
    with pytest.raises(FilesGone) as gone:
        lake.replace(fresh, written, "old", "compacted")
    assert gone.value.paths == {lake.writer.address("compacted")}
    assert lake.catalog.head(fresh) == before


def test_only_what_can_be_read_replaces(lake: Lake) -> None:
    """No file is replaced if the table could not read the new ones: the job must run again."""
    source = lake.branch("source")
    lake.writer.add_column(source)
    at, fresh = lake.writer.append(source, "file"), lake.branch("fresh")
    before = lake.catalog.head(fresh)
    with pytest.raises(CannotRebase, match="COLUMNS_CHANGED"):
        lake.replace(fresh, (source, at), "old")
    assert lake.catalog.head(fresh) == before


@pytest.mark.parametrize("gone", ["source", "target"])
def test_a_branch_to_replace_by_that_is_gone_is_reported(lake: Lake, gone: str) -> None:
    """If another publisher deleted one of the branches, the error is transient."""
    written, fresh = lake.written("file"), lake.branch("fresh")
    lake.catalog.delete_branch({"source": written[0], "target": fresh}[gone])
    with pytest.raises(Transient, match="CATALOG_UNAVAILABLE"):
        lake.replace(fresh, written, "old")
