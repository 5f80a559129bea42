"""What a release has besides the wheel."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from infra import release, stack_spec
from infra.local import ministack, settings
from infra.setup import deploy_environment
from infra.stage import Stage
from infra.versions import AVRO_JAR
from lakegate.job.jobspec import LIBRARIES
from lakegate.nessie_tokens import ROLES, SIGNING_KEY
from tests.deploy.account import Account

pytestmark = [pytest.mark.deploy, pytest.mark.stack]
_STAGE = Stage("released", ministack.ACCOUNT, ministack.REGION)
_BUCKET = "released-code"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert deploy_environment(release.ROOT).is_current(), "run `make deploy-tools`"
    into = tmp_path_factory.mktemp("release")
    release.build(into)
    return into


def test_the_functions_bill_names_what_their_zip_has(built: Path) -> None:
    """Each library in the zip is in the bill of materials, in its version, and none else."""
    assert _billed(built / "lambda.cdx.json") == _installed(built / "lambda.zip")


def test_the_jobs_bill_names_what_its_zips_have(built: Path) -> None:
    """The job has its libraries, the YAML of the functions, and a jar."""
    extra = _billed(built / "job.cdx.json") ^ _installed(built / LIBRARIES)
    assert {name for name, _ in extra} == {"pyyaml", _plain(AVRO_JAR.name)}


def test_the_wheels_bill_names_what_it_needs(built: Path) -> None:
    """A dependency and one of its own are there, each with a digest, and no tool of ours."""
    bill = json.loads((built / "wheel.cdx.json").read_text())
    names = {each["name"] for each in bill["components"]}
    assert names >= {"pyiceberg", "urllib3"}
    assert not names & {"pytest", "ruff"}
    assert bill["metadata"]["component"]["name"] == "lakegate"


def test_templates_need_neither_sam_nor_this_checkout(built: Path) -> None:
    """CloudFormation alone understands them, and parameters name the functions' code."""
    app, platform = (
        json.loads((built / f"{name}.template.json").read_text())
        for name in ("lakegate", "lakegate-platform")
    )
    assert "Transform" not in app | platform
    functions = [r for r in app["Resources"].values() if r["Type"] == "AWS::Lambda::Function"]
    code = {"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": {"Ref": "CodeKey"}}
    assert functions
    assert all(each["Properties"]["Code"] == code for each in functions)


@pytest.mark.usefixtures("lambda_python")
def test_cloudformation_alone_deploys_it(built: Path, account: Account) -> None:
    """As docs/releases.md says: templates and code, and `rotate` makes the tokens with the key."""
    _store_facts(account)
    s3, stacks = account.client("s3"), account.client("cloudformation")
    s3.create_bucket(Bucket=_BUCKET)
    for name in ("lambda.zip", "lakegate.template.json"):
        s3.upload_file(str(built / name), _BUCKET, name)
    told = stack_spec.facts(release.application(), _STAGE)
    told |= {"Stage": _STAGE.name, "CodeBucket": _BUCKET, "CodeKey": "lambda.zip"}
    stacks.create_stack(
        StackName=_STAGE.stack,
        TemplateURL=f"{account.endpoint}/{_BUCKET}/lakegate.template.json",
        Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in told.items()],
        Capabilities=["CAPABILITY_IAM"],
    )
    ready = stacks.get_waiter("stack_create_complete")
    ready.wait(StackName=_STAGE.stack, WaiterConfig={"Delay": 1, "MaxAttempts": 600})

    rotated = account.client("lambda").invoke(FunctionName=f"{_STAGE.stack}-rotate")

    days = json.loads(rotated["Payload"].read())
    assert days == dict.fromkeys(ROLES, pytest.approx(90, abs=0.1))


def _store_facts(account: Account) -> None:
    """Store the platform's facts, the job's release, the key, and a secret for each token."""
    ssm, secrets = account.client("ssm"), account.client("secretsmanager")
    facts = settings.facts({"nessie": "http://127.0.0.1:1"}) | {"job-release": "0.1.0"}
    for name, value in facts.items():
        ssm.put_parameter(Name=_STAGE.parameter(name), Value=value, Type="String")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    secrets.create_secret(Name=_STAGE.token_secret(SIGNING_KEY), SecretString=key.decode())
    for role in ROLES:
        secrets.create_secret(Name=_STAGE.token_secret(role), SecretString="none")


def _billed(file: Path) -> set[tuple[str, str]]:
    components: list[dict[str, Any]] = json.loads(file.read_text())["components"]
    return {(_plain(each["name"]), each["version"]) for each in components}


def _installed(libraries: Path) -> set[tuple[str, str]]:
    found = re.compile(r"([^/]+)-([^/-]+)\.dist-info/METADATA")
    names = zipfile.ZipFile(libraries).namelist()
    return {(_plain(each[1]), each[2]) for each in map(found.fullmatch, names) if each}


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
