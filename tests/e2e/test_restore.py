"""Nessie's store is restored from a copy of before, and the ledger is realigned with it."""

import shutil
from pathlib import Path

import pytest

from functions.model.ingestion import State
from tests.e2e.conftest import Gate, contract, document, run
from tests.e2e.killing import kill, start, sweep, sweep_grace

pytestmark = pytest.mark.stack

TABLE = "restore.orders"


def realigned(option: str) -> dict[str, list[str]]:
    """Run the command; return what it did to each ingestion."""
    found = document("ledger", "realign", option)
    return {each["ingestion"]["id"]: each["kinds"] for each in found}


def copy_store(gate: Gate, source: Path, target: Path) -> None:
    """Copy the files of Nessie's database while it is stopped."""
    kill(gate, "nessie")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    start(gate, "nessie")


def test_a_restored_catalog_gets_its_lost_rows_again(gate: Gate, tmp_path: Path) -> None:
    """Rows that the backup lacks are published again once, and lost audit results are recorded."""
    gate.put_contract(contract(TABLE, "csv"))
    first = gate.end(gate.drop("restore/orders/a.csv", b"id,amount\n1,1\n"))
    store, backup = gate.home / "nessie", tmp_path / "backup"
    copy_store(gate, store, backup)
    lost = gate.end(gate.drop("restore/orders/b.csv", b"id,amount\n2,2\n3,3\n"))
    bad = gate.end(gate.drop("restore/orders/bad.csv", b"id,amount\n4,999\n"))
    with sweep_grace(gate, 1):
        sweep(gate)
    assert (lost.state, bad.state) == (State.PUBLISHED, State.REJECTED)
    rows = gate.rows(TABLE)

    copy_store(gate, backup, store)
    assert len(gate.rows(TABLE)) == 1
    planned = realigned("--dry-run")
    assert planned[lost.id] == ["publish again"]
    assert planned[bad.id] == ["record again", "branch gone"]
    assert planned.get(first.id, ["record again"]) == ["record again"]
    assert gate.adapters.ledger.get(lost.id).state is State.PUBLISHED
    with sweep_grace(gate, 1):
        assert realigned("--yes") == planned
        sweep(gate)
        again = gate.end(lost.landed)
        sweep(gate)
    assert (again.state, again.attempt, again.audit.rows) == (State.PUBLISHED, 2, 2)
    assert gate.rows(TABLE) == rows
    left = realigned("--yes")
    assert {id_: left.get(id_) for id_ in (first.id, lost.id)} == {first.id: None, lost.id: None}
    assert left[bad.id] == ["branch gone"]
    run("reconcile", "--table", TABLE, "--full")
