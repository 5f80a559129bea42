"""`lakegate generate` writes reproducible rows, adds faults, and refuses invalid options."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from typer.testing import CliRunner

from cli.files.fault_injection import Fault
from cli.files.sample_files import TABLE, FileSpec, contract, parcels
from cli.main import app
from lakegate.contract.model import parse

Generate = Callable[..., list[Path]]


@pytest.fixture
def generate(tmp_path: Path) -> Generate:
    """Run the command in a new folder, and return the data files in order."""

    def run(folder: str, *options: str) -> list[Path]:
        out = tmp_path / folder
        done = CliRunner().invoke(app, ["generate", "--out", str(out), *options])
        assert done.exit_code == 0, done.output
        contracts, *files = map(Path, done.stdout.split())
        assert contracts == out / f"{TABLE}.yaml"
        return files

    return run


def read(files: list[Path]) -> list[pa.Table]:
    return [parquet.read_table(file) for file in files]


def bytes_of(files: list[Path]) -> list[bytes]:
    return [file.read_bytes() for file in files]


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_the_same_words_make_the_same_bytes(generate: Generate, format_: str) -> None:
    """The same seed gives the same bytes, another seed gives others."""
    options = ("--files", "2", "-n", "50", "--format", format_, "--seed")
    first, again, other = (
        generate(f, *options, s) for f, s in (("a", "7"), ("b", "7"), ("c", "8"))
    )
    assert bytes_of(first) == bytes_of(again)
    assert not set(bytes_of(first)) & set(bytes_of(other))


def test_its_files_have_no_key_in_common(generate: Generate) -> None:
    """Each file has the requested number of rows, and keys of its own."""
    tables = read(generate("a", "--files", "3", "-n", "40"))
    keys = [key for table in tables for key in table["parcel_id"].to_pylist()]
    assert [table.num_rows for table in tables] == [40] * 3
    assert len(set(keys)) == 120


def test_rows_do_not_depend_on_those_that_follow() -> None:
    """A longer file begins with the same full parts as a shorter one."""
    longer, shorter = (pa.concat_tables(parcels(FileSpec(n))) for n in (200_001, 200_000))
    assert longer.slice(0, 200_000).equals(shorter)


@given(rate=st.floats(0, 1), seed=st.integers(0, 1_000_000), rows=st.integers(1, 400))
def test_nulls_are_where_they_may_be(rate: float, seed: int, rows: int) -> None:
    """Only nullable columns have nulls, at the requested rate."""
    required = {
        check.columns[0]
        for check in parse(contract("csv"), "c").checks
        if check.id.endswith(".nullValues")
    }
    table = pa.concat_tables(parcels(FileSpec(rows, seed=seed, null_rate=rate)))
    nulls = {name: table[name].null_count for name in table.column_names}
    assert all(nulls[name] == 0 for name in required)
    assert {nulls[name] for name in ("insured", "delivered_at", "note")} == {int(rows * rate)}


def test_no_null_leaves_none(generate: Generate) -> None:
    """--no-null gives a value in every cell."""
    (table,) = read(generate("a", "--no-null"))
    assert sum(column.null_count for column in table.columns) == 0


def test_faults_are_in_the_last_file(generate: Generate) -> None:
    """All files except the last are free of faults."""
    options = ("--files", "3", "-n", "30")
    good = generate("a", *options)
    wanted = ("nulls", "duplicates", "range", "renamed")
    bad = generate("b", *options, *(word for each in wanted for word in ("--fault", each)))
    assert bytes_of(bad)[:2] == bytes_of(good)[:2]
    (broken,) = read(bad[2:])
    assert broken["country"].null_count == 7
    assert pc.count_distinct(broken["parcel_id"]).as_py() == 30 - 7
    assert pc.sum(pc.equal(broken["weight_kg"], 1_000)).as_py() == 7
    assert "price" in broken.column_names


def test_column_faults_are_in_all_parts(generate: Generate) -> None:
    """A large file with faulty columns has one schema."""
    (table,) = read(generate("a", "-n", "100_020", "--fault", "renamed", "--fault", "type"))
    assert table.num_rows == 100_020
    assert pc.count_distinct(table["price"]).as_py() > 1
    assert table.schema.field("weight_kg").type == pa.string()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fault", "ragged"], "--format csv"),
        (["--fault", "nulls", "-n", "5"], "at least 20 rows"),
        (["--fault", "haunted"], "haunted"),
        (["-n", "0"], "-n"),
        (["--null-rate", "2"], "--null-rate"),
        (["--null-rate", "0.1", "--no-null"], "not both"),
        (["--wait"], "--upload"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, options: list[str], said: str) -> None:
    """A bad option is named, and nothing is written."""
    done = CliRunner().invoke(app, ["generate", "--out", str(tmp_path / "a"), *options])
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (tmp_path / "a").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """An unwritable folder raises an error that names it."""
    (tmp_path / "a").write_text("")
    done = CliRunner().invoke(app, ["generate", "--out", str(tmp_path / "a" / "b")])
    assert (done.exit_code, "cannot write" in done.stderr) == (1, True)


def test_every_fault_is_explained() -> None:
    """The help explains each fault."""
    shown = CliRunner().invoke(app, ["generate", "--help"], env={"COLUMNS": "200"}).stdout
    assert all(f"{fault}:" in shown for fault in Fault)
