"""The local stack enforces permissions as AWS does, by role and by run."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from access.deployment import discarding
from functions.adapters.emr_run_policy import run_policy, shared_run_policy
from functions.model.ingestion import State
from functions.wiring import assumed
from infra import checkup
from infra.local.settings import GLUE_PREFIX
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject, run_name
from lakegate.job.shared_run import SharedRun
from tests.asked import asked
from tests.compiled import Compiled
from tests.e2e.conftest import Gate, contract, unexpected
from tests.policies import Identity
from tests.waiting import eventually

pytestmark = pytest.mark.stack

CSV = b"id,amount\n1,10.5\n2,20\n"
BROKEN = b"id,amount\n3,10.5\n4,much\n"
KEPT_OUT = "  - {property: quarantine, value: {maxRows: 5, unreadable: true}}"
FILES = {"a*b ä+1.csv": CSV, "broken.csv": BROKEN}
NOBODYS = "a1" * 16
DENIED = ("AccessDenied", "AccessDeniedException")
# Functions that no event of the test invokes.
EXAMINE = {"do": "examine"}
INVOKED: Sequence[tuple[str, dict[str, Any]]] = (
    *(("expire", {}), ("compact", {}), ("rotate", {})),
    *(("checkup", EXAMINE), ("sweep", EXAMINE)),
)
# CloudFormation puts the stack's name before a role's, and a random part after it.
_PHYSICAL = re.compile(r"(?<=:role/)lakegate-local-(\w+)-\w+")
TEMPLATE = Path(__file__).parents[2] / "template.yaml"


@pytest.fixture
def nobodys(gate: Gate) -> Iterator[None]:
    """Expect refusals to the sessions of runs that a test invents."""
    with gate.refusing(NOBODYS):
        yield


@pytest.fixture
def ann(gate: Gate) -> Iterator[Any]:
    """Yield the session of a person who may discard, and expect refusals to her."""
    with gate.refusing("CleanUpRole"):
        yield assumed(gate.adapters.settings.clean_up_role_arn)


def spec(gate: Gate, landed: LandedObject) -> JobSpec:
    """Return the spec of a run for a table of its own."""
    lake = gate.stack.lake_bucket
    return JobSpec(
        ingestion=NOBODYS,
        attempt=1,
        landed=landed,
        table="rights.mine",
        branch="b",
        base_hash="h",
        lake_bucket=lake,
        contract_key="contracts/rights.mine.yaml",
        contract_version="",
        report_key=f"reports/rights.mine/{NOBODYS}/1.json",
        nessie_uri=gate.stack.nessie,
        token_secret=gate.adapters.settings.job_token_secret,
    )


def session(gate: Gate, name: str, policy: str) -> Any:
    """Return boto3's session of a run, as EMR Serverless gives it to the job."""
    settings, account = gate.adapters.settings, gate.adapters.settings.emr_role_arn.split(":")[4]
    application = f"/applications/{settings.emr_application_id}"
    given = boto3.client("sts").assume_role(
        RoleArn=settings.emr_role_arn,
        RoleSessionName=name,
        ExternalId=f"arn:aws:emr-serverless:us-east-1:{account}:{application}",
        Policy=policy,
    )["Credentials"]
    return boto3.Session(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])


def refused(call: Any, **given: Any) -> bool:
    """Return whether IAM denies a call."""
    try:
        call(**given)
    except ClientError as error:
        return error.response["Error"]["Code"] in DENIED
    return False


@pytest.mark.usefixtures("nobodys")
def test_a_run_reaches_its_own_file_and_table_alone(gate: Gate) -> None:
    """A run may use its landed object and its table, but no other data, and may delete nothing."""
    landing, lake = gate.stack.landing_bucket, gate.stack.lake_bucket
    own, other = "_rights/a*ä.csv", "_rights/abä.csv"  # ignored by their names
    landed = gate.drop(own, CSV)
    gate.drop(other, CSV)
    told = spec(gate, landed)
    settings = gate.adapters.settings
    run = session(gate, run_name(told.ingestion, 1), run_policy(told, settings))
    s3 = run.client("s3")
    assert s3.get_object(Bucket=landing, Key=own)["Body"].read() == CSV
    assert refused(s3.get_object, Bucket=landing, Key=other)
    assert refused(s3.put_object, Bucket=landing, Key=own, Body=b"")
    mine = "warehouse/rights/mine_0f0e0d0c-1111-2222-3333-444455556666/data/a.parquet"
    s3.put_object(Bucket=lake, Key=mine, Body=b"data")
    assert s3.get_object(Bucket=lake, Key=mine)["Body"].read() == b"data"
    assert refused(s3.delete_object, Bucket=lake, Key=mine)
    for key in (mine.replace("mine", "yours"), told.contract_key, "jobs/x/main.py", "x"):
        assert refused(s3.put_object, Bucket=lake, Key=key, Body=b""), key
    vault = run.client("secretsmanager")
    assert vault.get_secret_value(SecretId=told.token_secret)["SecretString"]
    publishers = told.token_secret.replace("/job", "/publisher")
    assert refused(vault.get_secret_value, SecretId=publishers)
    ledger = {"TableName": gate.stack.ledger_table, "Key": {"id": {"S": "x"}}}
    assert refused(run.client("dynamodb").get_item, **ledger)
    for queue in (settings.work_queue, settings.job_run_queue):
        assert not any(deeds(run.client("sqs"), queue).values()), queue


def deeds(sqs: Any, queue: str) -> dict[str, bool]:
    """Return what a session may do with a queue; no message is sent, taken, hidden or deleted."""
    wrong = {"QueueUrl": queue, "ReceiptHandle": "no message's"}
    calls = {
        "send": lambda: refused(
            sqs.send_message, QueueUrl=queue, MessageBody="{}", DelaySeconds=100_000
        ),
        "take": lambda: refused(sqs.receive_message, QueueUrl=queue, MaxNumberOfMessages=100),
        "delete": lambda: refused(sqs.delete_message, **wrong),
        "hide": lambda: refused(sqs.change_message_visibility, **wrong, VisibilityTimeout=0),
        "count": lambda: refused(sqs.get_queue_attributes, QueueUrl=queue),
    }
    return {name: not call() for name, call in calls.items()}


@pytest.mark.usefixtures("nobodys")
def test_a_shared_run_takes_files_of_all_tables_and_names_reports(gate: Gate) -> None:
    """A shared run reads every landed object, writes tables, and uses its two queues only.

    It reaches no table that is kept apart from it.
    """
    landing, lake = gate.stack.landing_bucket, gate.stack.lake_bucket
    settings = gate.adapters.settings
    shared = SharedRun(
        name=f"shared-{NOBODYS}",
        work_queue=settings.work_queue,
        verdict_queue=settings.job_run_queue,
        lake_bucket=lake,
        nessie_uri=gate.stack.nessie,
        token_secret=settings.job_token_secret,
        timeout_minutes=60,
        idle_seconds=60,
        apart=("rights.theirs",),
    )
    run = session(gate, shared.name, shared_run_policy(shared, settings))
    s3, sqs = run.client("s3"), run.client("sqs")
    gate.drop("_rights/any.csv", CSV)
    assert s3.get_object(Bucket=landing, Key="_rights/any.csv")["Body"].read() == CSV
    for table in ("mine", "yours"):
        data = f"warehouse/rights/{table}_0f0e0d0c-1111-2222-3333-444455556666/data/shared.parquet"
        for key in (data, f"reports/rights.{table}/{NOBODYS}/1.json.trying"):
            s3.put_object(Bucket=lake, Key=key, Body=b"data")
            assert refused(s3.delete_object, Bucket=lake, Key=key)
    for key in (f"reports/rights.theirs/{NOBODYS}/1.json", "warehouse/rights/theirs/a.parquet"):
        boto3.client("s3").put_object(Bucket=lake, Key=key, Body=b"data")
        assert refused(s3.put_object, Bucket=lake, Key=key, Body=b""), key
        assert refused(s3.get_object, Bucket=lake, Key=key), key
    forbidden = ("contracts/rights.mine.yaml", "jobs/x/main.py", "upkeep/upkeep-1.json")
    for key in (*forbidden, "changes/rights.mine/a.json"):
        assert refused(s3.put_object, Bucket=lake, Key=key, Body=b""), key
    taking = {"send": False, "take": True, "delete": True, "hide": True, "count": True}
    assert deeds(sqs, settings.work_queue) == taking
    assert deeds(sqs, settings.job_run_queue) == {name: name == "send" for name in taking}
    assert not any(deeds(sqs, settings.alert_queue).values())


def test_a_run_has_its_rights_until_its_time_out(gate: Gate) -> None:
    """The session of each run lasts at least as long as the run may."""
    gate.put_contract(contract("rights.orders", "csv"))
    gate.end(gate.drop("rights/orders/long.csv", CSV + b"5,7\n"))
    lines = (gate.home / "ministack" / "sessions.jsonl").read_text().splitlines()
    sessions = [session for _, session in map(json.loads, lines)]
    ends = {s["Arn"].split("/")[-1]: s["Expiration"] for s in sessions if "Expiration" in s}
    seen = [gate.adapters.jobs.describe(run.id) for run in gate.adapters.jobs.runs()]
    runs = [run for run in seen if run["jobRunId"] in ends and "startedAt" in run]
    assert runs
    for run in runs:
        latest = run["startedAt"].timestamp() + run["executionTimeoutMinutes"] * 60
        assert ends[run["jobRunId"]] > latest


def test_what_is_asked_of_aws_is_what_the_policies_allow(gate: Gate) -> None:
    """No request of a function or job was denied, and the templates allow the same.

    The requests include files with odd names and with quarantined rows.
    """
    text = contract("rights.orders", "csv")
    gate.put_contract(text.replace("customProperties:", f"customProperties:\n{KEPT_OUT}", 1))
    ends = [gate.end(gate.drop(f"rights/orders/{name}", body)) for name, body in FILES.items()]
    assert [end.state.value for end in ends] == ["published", "published"], ends
    for name, request in INVOKED:
        checkup.ask(boto3.client("lambda"), gate.stack.functions[name], request)
    ours = assert_told_as_allowed(gate, Compiled.of(TEMPLATE, **parameters(gate)).roles())
    invoked = {"ExpireRole", "CompactRole", "RotateRole", "CheckupRole", "SweepRole"}
    assert invoked | {"OnUploadRole", "OnJobRunRole", "JobRole"} <= {name for name, _ in ours}
    assert unexpected(gate) == []


def assert_told_as_allowed(
    gate: Gate, roles: Mapping[str, Identity]
) -> list[tuple[str, Mapping[str, Any]]]:
    """Assert that the templates allow what IAM allowed; return it with the roles' names."""
    wanted = {(each.who, each.action, each.resource) for each in gate.expected}
    calls = [
        each
        for each in asked(gate.home)
        if each["allowed"] or (each["who"], each["action"], each["resource"]) not in wanted
    ]
    ours = [(name, each) for each in calls if (name := role(each, roles))]
    for name, each in ours:
        keys = {name.replace(":", "__"): value for name, value in each["keys"].items()}
        told = roles[name].may(each["action"], _PHYSICAL.sub(r"\1", each["resource"]), **keys)
        assert told is each["allowed"], (name, each)
    return ours


def test_the_schedule_runs_sweep(gate: Gate) -> None:
    """The schedule starts the sweep without any other call: here in the minutes of other tests."""
    log, line = gate.home / "logs" / "ministack.log", "EventBridge → Lambda lakegate-local-sweep"
    eventually(lambda: line in log.read_text(errors="replace"), message="nothing was started")


def test_who_may_discard_reaches_no_token_and_no_ledger(gate: Gate, ann: Any) -> None:
    """The role for people deletes in the lake; the publisher's token and all else is denied."""
    settings, lake = gate.adapters.settings, gate.stack.lake_bucket
    key = "warehouse/rights/ann_0f0e0d0c-1111-2222-3333-444455556666/data/a.parquet"
    boto3.client("s3").put_object(Bucket=lake, Key=key, Body=b"data")
    ann.client("s3").delete_object(Bucket=lake, Key=key)
    assert refused(ann.client("s3").put_object, Bucket=lake, Key=key, Body=b"")
    assert refused(ann.client("s3").delete_object, Bucket=lake, Key="reports/x.json")
    vault, ledger = ann.client("secretsmanager"), ann.client("dynamodb")
    for secret in (settings.nessie_token_secret, settings.job_token_secret):
        assert refused(vault.get_secret_value, SecretId=secret)
    item = {"TableName": gate.stack.ledger_table, "Key": {"id": {"S": "x"}}}
    assert refused(ledger.get_item, **item)


def test_who_may_discard_discards_without_the_publishers_token(gate: Gate, ann: Any) -> None:
    """The role for people discards a rejected file by the stage's function, and by it alone."""
    gate.put_contract(contract("rights.late", "csv"))
    bad = gate.end(gate.drop("rights/late/bad.csv", b"id,amount\n1,101\n"))
    assert bad.state is State.REJECTED
    invoker, name = ann.client("lambda"), gate.stack.functions["expire"]
    outcome = discarding.discard(invoker, name, gate.adapters.ledger, bad, "Ann")
    assert (outcome.ingestion.decisions.discarded, outcome.left) == (True, "")
    assert gate.adapters.catalog.branches(bad.branch) == []
    for other in set(gate.stack.functions.values()) - {name}:
        assert refused(invoker.invoke, FunctionName=other, Payload=b"{}"), other


def parameters(gate: Gate) -> dict[str, str]:
    """Return the template's parameters that its policies name."""
    settings = gate.adapters.settings
    stage = gate.stack.ledger_table.removeprefix("lakegate-").removesuffix("-ledger")
    slack = f"lakegate/{stage}/slack"
    return {
        "Stage": stage,
        "EmrApplicationId": settings.emr_application_id,
        "EmrSharedApplicationId": settings.emr_shared_application_id,
        "JobRelease": settings.job_code.rpartition("/")[2],
        "SlackTokenSecret": slack,
        "GlueDatabasePrefix": GLUE_PREFIX,
    }


def role(call: Mapping[str, Any], roles: Mapping[str, Identity]) -> str:
    """Return the template's name of the caller's role, or "" if it is not in the template."""
    physical = call["who"].split("/")[1]
    return next((name for name in roles if f"-{name}-" in f"{physical}-"), "")
