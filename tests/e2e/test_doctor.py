"""`lakegate doctor` on the running stack: it is healthy, and says so if a function is not.

tests/unit/lambdas/test_checkup.py and tests/unit/cli/doctor/test_doctor.py have each fault.
"""

import json
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pyarrow as pa
import pytest

from tests.e2e.conftest import Gate, lakegate, run

pytestmark = pytest.mark.stack


def doctor(*expected: str) -> tuple[dict[str, dict[str, str]], int]:
    """Return the failed checks and the exit code, once they are as expected or after ten runs.

    The doctor takes a part that does not answer for seconds for ill, but a busy machine is only
    slow.
    """
    for _ in range(10):
        found, code = looked()
        if found.keys() == set(expected):
            break
    return found, code


def looked() -> tuple[dict[str, dict[str, str]], int]:
    """Return the failed checks of one run, and the exit code."""
    said = lakegate("doctor", "--json")
    found = json.loads(said.stdout)["findings"]
    assert len(found) > 12, found
    return {each["check"]: each for each in found if each["status"] == "fail"}, said.exit_code


@pytest.fixture
def client(gate: Gate) -> Any:
    """Return the stack's AWS clients by the names of their services."""
    return boto3.client


def test_the_stack_is_well(gate: Gate) -> None:
    """No check fails on a stack as `up` leaves it, seen from inside and from outside."""
    assert doctor() == ({}, 0)


def test_a_checkup_that_fails_hides_nothing(gate: Gate, client: Any) -> None:
    """A function that cannot answer is reported with the reason; the outside checks still run."""
    name, right = gate.stack.functions["checkup"], "functions.checkup.handler"
    client("lambda").update_function_configuration(
        FunctionName=name, Handler="functions.no.handler"
    )
    try:
        found, code = doctor("checkup")
    finally:
        client("lambda").update_function_configuration(FunctionName=name, Handler=right)
    assert code == 1
    assert list(found) == ["checkup"]
    assert name in found["checkup"]["message"]
    assert "invoke it" in found["checkup"]["fix"]


def test_the_probe_measures_the_runtime_of_jobs(gate: Gate, tmp_path: Path) -> None:
    """A probe on the real Spark finds versions, the catalog's class and times, and no account."""
    file = tmp_path / "probe-1.json"
    run("probe", "--output", str(file))
    runs = json.loads(file.read_text())["runs"]
    for each in runs:
        assert each["catalog"] == {"class": "org.apache.iceberg.rest.RESTCatalog"}
        assert each["iceberg"]["version"]
        assert each["python"]["packages"]["boto3"]
        assert each["libraries_of_driver"]["pyarrow"] == pa.__version__
        assert each["libraries_of_executor"]["numpy"] == np.__version__
        assert each["copy"]["seconds"] > 0
        assert each["seconds"]["created_to_first_line"] > 0
        assert each["spark"]["seconds_to_first_task"] > 0
        assert each["billed"]["vCPUHour"] > 0
    assert [each["asked_for"] for each in runs] == ["default", "local[*]"]
    for secret in ("000000000000", gate.stack.lake_bucket):
        assert secret not in file.read_text()
