"""The local stack enforces permissions as AWS does, by role and by run."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from functions.adapters.emr import run_policy
from infra.local.settings import GLUE_PREFIX
from lakegate.jobspec import JobSpec
from lakegate.landing import LandedObject, run_name
from tests.compiled import Compiled
from tests.e2e.conftest import Gate, contract
from tests.policies import Identity

pytestmark = pytest.mark.stack

CSV = b"id,amount\n1,10.5\n2,20\n"
BROKEN = b"id,amount\n3,10.5\n4,much\n"
KEPT_OUT = "  - {property: quarantine, value: {maxRows: 5, unreadable: true}}"
FILES = {"a*b ä+1.csv": CSV, "broken.csv": BROKEN}
NOBODYS = "a1" * 16
# No policy allows a secret that does not exist, because its name lacks the random suffix.
GONE = re.compile(r".*:secret:.*(?<!-[A-Za-z0-9]{6})")
DENIED = ("AccessDenied", "AccessDeniedException")
TEMPLATE = Path(__file__).parents[2] / "template.yaml"


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


def session(gate: Gate, told: JobSpec) -> Any:
    """Return boto3's session of a run, as EMR Serverless gives it to the job."""
    settings, account = gate.adapters.settings, gate.adapters.settings.emr_role_arn.split(":")[4]
    application = f"/applications/{settings.emr_application_id}"
    given = boto3.client("sts").assume_role(
        RoleArn=settings.emr_role_arn,
        RoleSessionName=run_name(told.ingestion, told.attempt),
        ExternalId=f"arn:aws:emr-serverless:us-east-1:{account}:{application}",
        Policy=run_policy(told, settings),
    )["Credentials"]
    return boto3.Session(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])


def refused(call: Any, **given: Any) -> bool:
    """Return whether IAM denies a call."""
    try:
        call(**given)
    except ClientError as error:
        return error.response["Error"]["Code"] in DENIED
    return False


def test_a_run_reaches_its_own_file_and_table_alone(gate: Gate) -> None:
    """A run may use its landed object and its table, but no other data, and may delete nothing."""
    landing, lake = gate.stack.landing_bucket, gate.stack.lake_bucket
    own, other = "_rights/a*ä.csv", "_rights/abä.csv"  # ignored by their names
    landed = gate.drop(own, CSV)
    gate.drop(other, CSV)
    told = spec(gate, landed)
    run = session(gate, told)
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


def test_what_is_asked_of_aws_is_what_the_policies_allow(gate: Gate) -> None:
    """No request of a function or job was denied, and the templates allow the same.

    The requests include files with odd names and with quarantined rows.
    """
    text = contract("rights.orders", "csv")
    gate.put_contract(text.replace("customProperties:", f"customProperties:\n{KEPT_OUT}", 1))
    ends = [gate.end(gate.drop(f"rights/orders/{name}", body)) for name, body in FILES.items()]
    assert [end.state.value for end in ends] == ["published", "published"], ends
    roles = Compiled.of(TEMPLATE, **parameters(gate)).roles()
    lines = (gate.home / "ministack" / "asked.jsonl").read_text().splitlines()
    asked = [each for each in map(json.loads, lines) if NOBODYS not in each["who"]]
    there = [each for each in asked if not GONE.fullmatch(each["resource"])]
    ours = [(name, each) for each in there if (name := role(each, roles))]
    assert {"OnUploadRole", "OnJobRunRole", "JobRole"} <= {name for name, _ in ours}
    assert [(n, e["action"], e["resource"]) for n, e in ours if not e["allowed"]] == []
    for name, each in ours:
        told = roles[name].may(each["action"], each["resource"])
        assert told is each["allowed"], (name, each)


def parameters(gate: Gate) -> dict[str, str]:
    """Return the template's parameters that its policies name."""
    settings = gate.adapters.settings
    stage = gate.stack.ledger_table.removeprefix("lakegate-").removesuffix("-ledger")
    slack = f"lakegate/{stage}/slack"
    return {
        "Stage": stage,
        "EmrApplicationId": settings.emr_application_id,
        "JobRelease": settings.job_code.rpartition("/")[2],
        "SlackTokenSecret": slack,
        "GlueDatabasePrefix": GLUE_PREFIX,
    }


def role(asked: Mapping[str, Any], roles: Mapping[str, Identity]) -> str:
    """Return the template's name of the caller's role, or "" if it is not in the template."""
    physical = asked["who"].split("/")[1]
    return next((name for name in roles if f"-{name}-" in f"{physical}-"), "")
