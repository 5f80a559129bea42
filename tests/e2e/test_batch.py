"""Batches on the real stack: all tables in one commit, or none of them."""

import json
from pathlib import Path

import pytest

from functions.model import merge_commit
from functions.model.ingestion import Ingestion, State
from functions.operations.reconcile.compare import reconciled
from tests.e2e.conftest import Gate, contract, found, run
from tests.e2e.test_bad_input import GOOD, parquet
from tests.waiting import eventually

pytestmark = pytest.mark.stack
ORDERS, LINES = "batched.orders", "batched.lines"


def drop(folder: Path, orders: bytes, lines: bytes, code: int = 0) -> str:
    """Drop a folder as a batch with one file for each table; return the command's output."""
    folder.mkdir()
    files = {ORDERS: orders, LINES: lines}
    for table, body in files.items():
        (folder / f"{table}.parquet").write_bytes(body)
    listed = [{"key": f"{table}.parquet", "table": table} for table in files]
    (folder / "_manifest.json").write_text(json.dumps({"files": listed}))
    return run("drop", str(folder / "_manifest.json"), "--wait", code=code)


def test_a_batch_is_on_main_whole_or_not_at_all(gate: Gate, tmp_path: Path) -> None:
    """One commit publishes both tables beside another file; one bad file rejects its batch."""
    for table in (ORDERS, LINES):
        gate.put_contract(_allowing(contract(table, "parquet")))
    assert gate.end(gate.drop("batched/orders/first.parquet", GOOD)).state is State.PUBLISHED
    late = gate.drop("batched/orders/late.parquet", parquet(id=[7], amount=[7.0]))
    good = found(gate, drop(tmp_path / "good", parquet(id=[8], amount=[8.0]), GOOD))
    assert gate.end(late).state is State.PUBLISHED
    assert gate.rows(ORDERS) == [(1, 1.0), (2, 2.0), (7, 7.0), (8, 8.0)]
    assert gate.rows(LINES) == [(1, 1.0), (2, 2.0)]
    commit = merge_commit.commit_of(gate.adapters.catalog.log(), good)
    assert merge_commit.gains(commit) == {ORDERS: 1, LINES: 2}
    assert f"{LINES}.parquet" in run("show", good.id)

    output = drop(
        tmp_path / "bad", parquet(id=[9], amount=[9.0]), parquet(id=[9], amount=[-1.0]), 3
    )
    _is_kept_away(gate, found(gate, output))
    for table in (ORDERS, LINES):
        assert reconciled(gate.adapters, table, thorough=True).problems == ()


def _allowing(text: str) -> str:
    """Return a contract that lets batches bring the table's files."""
    allowed = "  - {property: batches, value: allowed}\n"
    return text.replace("customProperties:\n", f"customProperties:\n{allowed}")


def _is_kept_away(gate: Gate, bad: Ingestion) -> None:
    """Assert that main has no row of it, that its reason is reported, and that discard works."""
    assert gate.rows(ORDERS)[-1] == (8, 8.0)
    assert len(gate.rows(LINES)) == 2
    (alert,) = gate.alerts(gate.end(bad.landed))
    assert f"{LINES}.parquet: amount.invalidValues" in str(alert)
    assert "-1.0" in run("inspect", bad.id)
    assert "its branches are deleted" in run("discard", bad.id, "--yes")
    eventually(lambda: not gate.adapters.catalog.branches("ingest/batch/"))
