"""`lakegate doctor` on the running stack: it is healthy, and each injected fault is named."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.e2e.conftest import Gate

pytestmark = pytest.mark.stack

SECRET = "lakegate/local/nessie/{}"
FAULTY = (
    *("queues' functions", "landing bucket's events", "uploader's token", "job's token"),
    *("publisher's token", "publisher and main", "resources' settings"),
)


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
    said = CliRunner().invoke(app, ["doctor", "--json"], env={"LAKEGATE_LEDGER_TABLE": None})
    found = json.loads(said.stdout)["findings"]
    assert len(found) > 12, found
    return {each["check"]: each for each in found if each["status"] == "fail"}, said.exit_code


@pytest.fixture
def client(gate: Gate) -> Any:
    """Return the stack's AWS clients by the names of their services."""
    return boto3.client


@contextmanager
def disabled_mapping(aws: Any) -> Iterator[None]:
    """Disable the event source mapping for the ends of job runs."""
    found = aws("lambda").list_event_source_mappings(FunctionName="lakegate-local-on-job-run")
    uuid = found["EventSourceMappings"][0]["UUID"]
    aws("lambda").update_event_source_mapping(UUID=uuid, Enabled=False)
    try:
        yield
    finally:
        aws("lambda").update_event_source_mapping(UUID=uuid, Enabled=True)


@contextmanager
def no_notification(aws: Any, bucket: str) -> Iterator[None]:
    """Remove the landing bucket's notifications."""
    there = aws("s3").get_bucket_notification_configuration(Bucket=bucket)
    told = {k: v for k, v in there.items() if k != "ResponseMetadata"}
    _notify(aws, bucket, {})
    try:
        yield
    finally:
        _notify(aws, bucket, told)


def _notify(aws: Any, bucket: str, told: dict[str, Any]) -> None:
    aws("s3").put_bucket_notification_configuration(
        Bucket=bucket, NotificationConfiguration=told, SkipDestinationValidation=True
    )


@contextmanager
def no_versions(aws: Any, bucket: str) -> Iterator[None]:
    """Suspend the versioning of a bucket."""
    put = aws("s3").put_bucket_versioning
    put(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    try:
        yield
    finally:
        put(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


@contextmanager
def no_secret(aws: Any, name: str) -> Iterator[None]:
    """Delete a secret, and create it again afterwards."""
    value = aws("secretsmanager").get_secret_value(SecretId=name)["SecretString"]
    aws("secretsmanager").delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
    try:
        yield
    finally:
        aws("secretsmanager").create_secret(Name=name, SecretString=value)


@contextmanager
def other_secret(aws: Any, name: str, value: str) -> Iterator[None]:
    """Give a secret another value, and restore it afterwards."""
    there = aws("secretsmanager").get_secret_value(SecretId=name)["SecretString"]
    aws("secretsmanager").put_secret_value(SecretId=name, SecretString=value)
    try:
        yield
    finally:
        aws("secretsmanager").put_secret_value(SecretId=name, SecretString=there)


def test_the_stack_is_well(gate: Gate) -> None:
    """No check fails on a stack as `up` leaves it, seen from inside and from outside."""
    assert doctor() == ({}, 0)


def test_faults_made_on_purpose_are_named(gate: Gate, client: Any) -> None:
    """Each injected fault is reported with its own fix, hides no other, and prints no token."""
    with ExitStack() as faults:
        faults.enter_context(disabled_mapping(client))
        faults.enter_context(no_notification(client, gate.stack.landing_bucket))
        faults.enter_context(no_versions(client, gate.stack.lake_bucket))
        faults.enter_context(no_secret(client, SECRET.format("uploader")))
        faults.enter_context(other_secret(client, SECRET.format("job"), gate.stack.reader_token))
        faults.enter_context(other_secret(client, SECRET.format("publisher"), "wrong"))
        found, code = doctor(*FAULTY)
    assert code == 1
    assert found.keys() == set(FAULTY)
    assert "JobRunMapping is Disabled" in found["queues' functions"]["message"]
    assert "--enabled --uuid" in found["queues' functions"]["fix"]
    assert "notifies no queue, but not" in found["landing bucket's events"]["message"]
    assert "LakeBucket/VersioningConfiguration/Status" in found["resources' settings"]["message"]
    assert SECRET.format("uploader") in found["uploader's token"]["message"]
    assert "the token of lakegate-reader" in found["job's token"]["message"]
    assert "does not accept" in found["publisher's token"]["message"]
    assert all(each["fix"] for each in found.values())
    assert gate.stack.reader_token not in str(found)


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
    said = CliRunner().invoke(
        app, ["probe", "--output", str(file)], env={"LAKEGATE_LEDGER_TABLE": None}
    )
    assert said.exit_code == 0, said.output
    document = json.loads(file.read_text())
    for run in document["runs"]:
        assert run["catalog"] == {"class": "org.apache.iceberg.rest.RESTCatalog"}
        assert run["iceberg"]["version"]
        assert run["python"]["packages"]["boto3"]
        assert run["libraries_of_driver"]["pyarrow"] == pa.__version__
        assert run["libraries_of_executor"]["numpy"] == np.__version__
        assert run["copy"]["seconds"] > 0
        assert run["seconds"]["created_to_first_line"] > 0
        assert run["spark"]["seconds_to_first_task"] > 0
        assert run["billed"]["vCPUHour"] > 0
    assert [run["asked_for"] for run in document["runs"]] == ["default", "local[*]"]
    for secret in ("000000000000", gate.stack.lake_bucket):
        assert secret not in file.read_text()
