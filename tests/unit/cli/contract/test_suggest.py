"""`lakegate contract suggest` drafts what the sample itself passes, or names the cause in words."""

from pathlib import Path

import duckdb
import pytest

from access.contract.check import check
from access.contract.hints import hints
from cli.contract.suggest.command import suggested
from cli.contract.suggest.trial import cell
from lakegate.contract.columns import Column, declared_type, default_type
from lakegate.contract.text.yaml import load
from lakegate.errors import LakegateError
from tests.spark.hostile_cells import BAD, CELLS, COLUMNS
from tests.unit.cli.samples import READABLE, UNREADABLE
from tests.unit.contract.contract_texts import editor_problems


def draft_of(folder: Path, name: str, data: bytes) -> str:
    (folder / name).write_bytes(data)
    return suggested(folder / name)


@pytest.mark.parametrize(("name", "data", "types"), READABLE, ids=[name for name, *_ in READABLE])
def test_a_readable_sample_gets_a_valid_draft(
    tmp_path: Path, name: str, data: bytes, types: str
) -> None:
    """A draft passes `contract check` and editors; its types are those of the sample's cells."""
    text = draft_of(tmp_path, name, data)
    contract = check(text, name)
    assert not [
        hint for hint in hints(load(text, name, []), contract) if "of the standard" in hint.reason
    ]
    assert editor_problems(text) == []
    if types:
        assert " ".join(column.type for column in contract.columns) == types


def test_a_sample_with_a_long_name_gets_a_valid_draft(tmp_path: Path) -> None:
    """A table's name is shorter than a file's may be; one that is given too long is told so."""
    contract = check(draft_of(tmp_path, f"{'x' * 200}.csv", b"id\n1\n"), "orders.yaml")
    assert contract.table == f"drafts.{'x' * 100}"
    with pytest.raises(LakegateError, match="up to 127 characters"):
        suggested(tmp_path / f"{'x' * 200}.csv", f"shop.{'x' * 128}")


@pytest.mark.parametrize(
    ("name", "data", "cause"), UNREADABLE, ids=[name for name, *_ in UNREADABLE]
)
def test_an_unreadable_sample_gets_a_cause_and_a_remedy(
    tmp_path: Path, name: str, data: bytes, cause: str
) -> None:
    """The message is two lines: the file and the cause, then the remedy."""
    with pytest.raises(LakegateError, match=r"UNREADABLE|NO_ROWS") as refusal:
        draft_of(tmp_path, name, data)
    said = refusal.value.message.splitlines()
    assert cause in said[0]
    assert said[0].startswith(str(tmp_path / name))
    assert len(said) == 2


def test_a_cell_is_judged_as_the_job_judges_it() -> None:
    """duckdb refuses exactly the CSV cells that the job's Spark SQL refuses."""
    columns = {n: (declared_type(r[0], t)[0] if r else default_type(t), t) for n, t, *r in COLUMNS}
    with duckdb.connect() as connection:
        for given in (each for each in CELLS if each.column != "x" and each.text):
            type_, logical = columns[given.column]
            value = cell("v", Column(given.column, type_, logical))
            sql = f"SELECT ({value}) IS NULL FROM (SELECT CAST(? AS VARCHAR) AS v)"
            ((refused,),) = connection.execute(sql, [given.text]).fetchall()
            assert refused is (given.csv == BAD), given
