"""Large files never hold small ones: shared runs have an application of their own (adr/0073)."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from functions.adapters.emr import RunState
from functions.model.ingestion import State
from tests.e2e.conftest import PAUSE, Gate, contract
from tests.e2e.killing import calm
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack

_HELD = """\
import pathlib, sys, time
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.1)
"""


@pytest.fixture
def held(gate: Gate, tmp_path: Path) -> Iterator[list[str]]:
    """Yield job runs that fill the application of own runs, the last of them QUEUED."""
    calm(gate)
    job, over, settings = tmp_path / "held.py", tmp_path / "over", gate.adapters.settings
    job.write_text(_HELD)
    submit = {"entryPoint": str(job), "entryPointArguments": [str(over)]}
    runs: list[str] = []

    def is_full() -> bool:
        started = boto3.client("emr-serverless").start_job_run(
            applicationId=settings.emr_application_id,
            executionRoleArn=settings.emr_role_arn,
            clientToken=uuid.uuid4().hex,
            jobDriver={"sparkSubmit": submit},
            executionTimeoutMinutes=60,
        )
        runs.append(started["jobRunId"])
        return gate.adapters.jobs.get(runs[-1]).state is RunState.QUEUED

    try:
        eventually(is_full, PATIENCE, "own runs have no limit", PAUSE)
        yield runs
    finally:
        over.touch()
        jobs = gate.adapters.jobs
        eventually(lambda: all(jobs.get(run).has_ended for run in runs), PATIENCE, "held", PAUSE)


def test_a_small_file_passes_own_runs_that_are_held(gate: Gate, held: list[str]) -> None:
    """With as many own runs as there may be, and one behind them, a small file reaches main."""
    gate.put_contract(contract("lanes.orders", "csv", isolation="shared"))

    ended = gate.end(gate.drop("lanes/orders/small.csv", b"id,amount\n1,2.5\n"))

    assert ended.state is State.PUBLISHED
    assert gate.rows("lanes.orders") == [(1, 2.5)]
    assert gate.adapters.jobs.get(held[-1]).state is RunState.QUEUED
