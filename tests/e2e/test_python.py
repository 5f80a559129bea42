"""The Python API on the running stack: its methods, its page, and the notebook."""

import json
import os
import sys
from pathlib import Path

import pytest

import lakegate
from access.deployment.checkout import ROOT
from tests.e2e.conftest import Gate, contract, done, followed

pytestmark = pytest.mark.stack

_TABLE = "python.orders"


@pytest.fixture
def connected(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> lakegate.Gate:
    """Return the gate of a program that knows no more than where the local stack is."""
    for name in os.environ.keys() - {"LAKEGATE_HOME"}:
        if name.startswith("LAKEGATE_"):
            monkeypatch.delenv(name)
    gate.put_contract(contract(_TABLE, "csv", "shared"))
    return lakegate.connect()


def test_a_program_drops_reads_and_decides(connected: lakegate.Gate, tmp_path: Path) -> None:
    """A good file's rows are on main; a bad one is rejected by its cell, replayed and published."""
    (tmp_path / "good.csv").write_text("id,amount\n1,10\n2,20\n")
    (tmp_path / "bad.csv").write_text("id,amount\n3,30\nx,40\n")

    dropped = connected.drop(tmp_path / "good.csv", tmp_path / "bad.csv", table=_TABLE)
    good, bad = connected.wait(*dropped)

    assert (good.state, good.rows) == ("published", 2)
    assert connected.rows(_TABLE).sort_by("id")["id"].to_pylist() == [1, 2]
    assert (bad.state, bad.code) == ("rejected", "BAD_ROWS")
    assert [(each.place, each.column, each.value) for each in bad.cells] == [("line 3", "id", "x")]
    assert [each.id for each in connected.runs(table=_TABLE, waiting=True)] == [bad.id]

    (again,) = connected.wait(connected.replay(bad, by="Ann"))
    assert again.state == "rejected"
    assert again.attempt > bad.attempt  # by more than one if a shared run left it to its own run
    connected.publish(again, by="Ann", reason="known", null_unreadable=False)
    (published,) = connected.wait(again)
    assert (published.state, published.approved_by) == ("published", "Ann")
    assert [each.rows for each in connected.tables() if each.table == _TABLE] == [3]
    assert [each.rows for each in connected.log(_TABLE)] == [1, 2]
    total = connected.query(f"SELECT count(*) AS many, max(id) AS last FROM {_TABLE}")
    assert total.to_pylist() == [{"many": 3, "last": 3}]


def test_the_page_and_the_notebook_work(tmp_path: Path, newcomer: dict[str, str]) -> None:
    """The page's commands and programs succeed, and then the notebook, cell by cell."""
    said = followed(ROOT / "docs/python.md", tmp_path, newcomer)
    assert "published 2" in said
    notebook = json.loads((ROOT / "docs/examples/decisions.ipynb").read_text())
    cells = ["".join(each["source"]) for each in notebook["cells"] if each["cell_type"] == "code"]
    said = done([sys.executable, "-c", "\n".join(cells)], tmp_path, newcomer)
    assert "approved by Ada" in said
