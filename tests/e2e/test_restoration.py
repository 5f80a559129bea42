"""Restorations on the real stack: shown first, made once, audited, told, and undone."""

import pytest

from functions.model.ingestion import State
from functions.operations.reconcile.compare import reconciled
from lakegate.job.landing import ingestion_id
from tests.e2e.conftest import Gate, contract, run
from tests.e2e.test_bad_input import parquet

pytestmark = pytest.mark.stack

TABLE = "restored.orders"
KEYED = contract(TABLE, "parquet").replace("unique: true", "primaryKey: true")
KEYED = KEYED.replace("schema:", "  - {property: writeMode, value: upsert}\nschema:")


def published(gate: Gate, key: str, **columns: list[float]) -> str:
    """Publish a file; return main's commit."""
    done = gate.end(gate.drop(key, parquet(**columns)))
    assert done.state is State.PUBLISHED, done.reason
    return done.merge_hash


def words(output: str) -> str:
    """Return an output without its layout."""
    return " ".join(output.split())


def test_an_upsert_is_undone_and_that_is_undone(gate: Gate) -> None:
    """The rows of before an upsert come back, and then those of after it; both are told."""
    gate.put_contract(KEYED)
    first = published(gate, "restored/orders/1.parquet", id=[1, 2], amount=[1.0, 2.0])
    upsert = gate.drop("restored/orders/2.parquet", parquet(id=[2, 3], amount=[20.0, 3.0]))
    second = gate.end(upsert).merge_hash
    told = ("--by", "Ann", "--reason", "a bad load")

    seen = words(run("restore", TABLE, "--to", first[:12], "--dry-run"))
    assert "rows that come 1 rows that go 2" in seen
    assert all(value in seen for value in ("2.0", "20.0", "3.0"))
    assert len(gate.rows(TABLE)) == 3

    output = run("restore", TABLE, "--to", first[:12], *told, "--yes", "--wait")
    assert gate.rows(TABLE) == [(1, 1.0), (2, 2.0)]
    id_ = next(line for line in output.splitlines() if "restoration of" in line).split()[0]
    log = words(run("log", TABLE))
    assert f"Restore {TABLE} to {first[:12]}, 1 row added, 2 removed, by Ann: a bad load" in log
    assert f"RESTORE {first}" in run("show", id_)
    assert f"Restore {TABLE} to" in run("trace", ingestion_id(upsert), code=1)
    assert "RESTORE" in run("trace", TABLE, "--where", "id = 2")
    assert reconciled(gate.adapters, TABLE, thorough=True).problems == ()

    run("restore", TABLE, "--to", second, *told, "--yes", "--wait")
    assert gate.rows(TABLE) == [(1, 1.0), (2, 20.0), (3, 3.0)]
    assert "NOTHING_TO_RESTORE" in run("restore", TABLE, "--to", second, "--dry-run", code=1)
    run("reconcile", "--thorough")  # all tables of all tests so far
