"""Upkeep on the real stack: small files become one, and main has the same rows."""

import pytest

from functions.adapters.nessie import MAIN
from functions.model.ingestion import State
from functions.operations.reconcile.compare import reconciled
from infra.local.settings import SHARED_APPLICATION
from lakegate.job.upkeep import FEWEST
from tests.e2e.conftest import Gate, contract, run
from tests.e2e.killing import sweep
from tests.e2e.test_bad_input import parquet
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack
TABLE = "upkeep.small"
_BETWEEN_SWEEPS = 2.0  # seconds


def _is_over(gate: Gate) -> bool:
    """Sweep, and return whether the compaction's branch is gone."""
    sweep(gate)
    return not gate.adapters.catalog.branches(f"upkeep/{TABLE}/")


def test_a_table_of_small_files_is_compacted(gate: Gate) -> None:
    """The command starts a job, the sweep publishes its branch, and reconcile finds no fault.

    Small files had a run in the application where no own run can hold them (adr/0073).
    """
    gate.put_contract(contract(TABLE, "parquet", "shared"))
    files = [parquet(id=[n], amount=[float(n)]) for n in range(1, FEWEST + 1)]
    landed = [gate.drop(f"upkeep/small/{n}.parquet", body) for n, body in enumerate(files)]
    ended = [gate.end(each) for each in landed]
    assert {each.state for each in ended} == {State.PUBLISHED}
    runs = [gate.adapters.jobs.describe(each.job_run) for each in ended]
    assert SHARED_APPLICATION in {run["applicationId"] for run in runs}
    rows = gate.rows(TABLE)
    assert f"{FEWEST} files" in " ".join(run("upkeep", TABLE, "--dry-run").split())
    assert "compaction started" in run("upkeep", TABLE)
    adapters = gate.adapters
    eventually(lambda: _is_over(gate), PATIENCE, "the branch is still there", _BETWEEN_SWEEPS)
    size = adapters.tables().size(TABLE, MAIN)
    assert size.files == 1
    assert gate.rows(TABLE) == rows
    assert reconciled(adapters, TABLE, thorough=True).problems == ()
    assert "can be deleted" in run("upkeep", "--dry-run")
