import io
import json
import os
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import boto3
import pytest
import requests
from moto import mock_aws

from access.deployment import forwarding
from access.deployment.checkout import home
from access.deployment.choice import Choice, find, stack_deployment
from infra.local import processes, stack, stack_file
from infra.local.processes import Command
from infra.local.stack_file import Stack
from lakegate.errors import LakegateError, Transient
from tests.fakes import wire
from tests.fakes.deployment import SETTINGS


@pytest.fixture(autouse=True)
def environment(tmp_path: Path) -> Iterator[None]:
    """Remove all Lakegate variables from the environment, and restore it afterwards."""
    before = dict(os.environ)
    for name in [n for n in os.environ if n.startswith(("LAKEGATE_", "AWS_"))]:
        del os.environ[name]
    os.environ["LAKEGATE_HOME"] = str(tmp_path)
    yield
    os.environ.clear()
    os.environ.update(before)


def settings() -> dict[str, str]:
    return {f"LAKEGATE_{name.upper()}": str(value) for name, value in asdict(SETTINGS).items()}


def a_stack() -> Stack:
    return Stack(
        s3="http://127.0.0.1:1",
        nessie="http://127.0.0.1:2",
        iceberg="http://127.0.0.1:2/iceberg",
        emr="http://127.0.0.1:3",
        slack="http://127.0.0.1:4",
        landing_bucket="landing",
        lake_bucket="lake",
        ledger_table="ledger",
        reader_token="reader",
        queues={},
        functions={},
        env={**settings(), "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "test"},
    )


def test_the_local_stack_is_used_whatever_account_is_at_hand(tmp_path: Path) -> None:
    """The user's own AWS account and proxy do not affect the local stack, nor its place."""
    os.environ |= {
        "AWS_PROFILE": "production",
        "AWS_ENDPOINT_URL_S3": "http://elsewhere",
        "HTTPS_PROXY": "http://proxy",
        "PATH": os.environ["PATH"],
    }

    found = stack_deployment(a_stack())

    assert found.local
    assert found.settings == SETTINGS
    assert found.addresses["iceberg"] == "http://127.0.0.1:2/iceberg"
    assert found.reader_token == "reader"
    assert os.environ["AWS_ACCESS_KEY_ID"] == "test"
    assert not {"AWS_PROFILE", "AWS_ENDPOINT_URL_S3", "HTTPS_PROXY"} & os.environ.keys()
    assert "PATH" in os.environ
    assert home() == tmp_path


def test_an_environment_that_names_a_ledger_is_a_deployment() -> None:
    """AWS settings select a deployment on AWS, without a reader's token."""
    os.environ |= {**settings(), "AWS_REGION": "eu-central-1"}

    found = find()

    assert not found.local
    assert found.addresses == {
        "s3": "https://s3.eu-central-1.amazonaws.com",
        "nessie": "http://nessie:19120",
        "iceberg": "http://nessie:19120/iceberg",
    }
    assert found.reader_token == ""


def test_a_region_has_one_source(tmp_path: Path) -> None:
    """The displayed region and S3's address use the region of boto3's clients."""
    (tmp_path / "config").write_text("[default]\nregion = eu-west-3\n")
    os.environ |= {**settings(), "AWS_CONFIG_FILE": str(tmp_path / "config")}
    for name, value in (("AWS_REGION", "us-west-2"), ("AWS_DEFAULT_REGION", "ap-south-1")):
        region = boto3.session.Session().region_name
        assert find().addresses["s3"] == f"https://s3.{region}.amazonaws.com"
        assert Choice.of(None).name.endswith(f" in {region}")
        os.environ[name] = value
    assert find().addresses["s3"] == "https://s3.ap-south-1.amazonaws.com"


def test_a_stack_that_is_down_is_not_waited_for(tmp_path: Path) -> None:
    """A stopped stack raises an error at once; only `status` still opens it."""
    (tmp_path / "stack.json").write_text(json.dumps(asdict(a_stack())))

    with pytest.raises(LakegateError, match="STACK_DOWN"):
        find()

    assert find(running=False).reader_token == "reader"


def test_the_local_stack_is_opened_again(tmp_path: Path) -> None:
    """A choice of the local stack follows its new ports and tokens."""
    choice = Choice.of(None)
    sleeps = Command("ministack", (sys.executable, "-c", "import time; time.sleep(600)"), tmp_path)
    stack_file.write(tmp_path, a_stack())
    processes.start(tmp_path, sleeps)
    try:
        choice.open()
        env = {**a_stack().env, "AWS_ENDPOINT_URL": "http://127.0.0.1:5"}
        stack_file.write(tmp_path, replace(a_stack(), reader_token="new", env=env))
        assert choice.open().reader_token == "new"
        assert os.environ["AWS_ENDPOINT_URL"] == "http://127.0.0.1:5"
    finally:
        processes.stop(tmp_path, "ministack")
    with pytest.raises(LakegateError, match="STACK_DOWN"):
        choice.open()


def test_a_choice_has_a_display_name() -> None:
    """A choice is named by stage and region, or else by its ledger."""
    assert Choice.of(None).name == "the local stack"
    os.environ["AWS_DEFAULT_REGION"] = "eu-central-1"
    assert Choice.of("dev").name == "stage dev in eu-central-1"
    os.environ |= settings() | {"LAKEGATE_STAGE": ""}
    assert Choice.of(None).name == "ledger ledger in eu-central-1"
    os.environ["LAKEGATE_STAGE"] = "prod"
    assert Choice.of(None).name == "stage prod in eu-central-1"


@mock_aws
def test_a_stage_is_found_by_its_stack() -> None:
    """`--stage S` uses the settings of the functions in the stack lakegate-S, which must exist."""
    deploy("lakegate-prod", settings())

    found = find("prod")

    assert found.settings == SETTINGS
    assert found.addresses["nessie"] == "http://nessie:19120"
    assert not found.local
    with pytest.raises(LakegateError, match="the CloudFormation stack lakegate-nowhere"):
        find("nowhere")


@mock_aws
@pytest.mark.parametrize("outputs", [{}, {"LandingBucketName": {"Value": "kept"}}])
def test_a_stage_that_was_taken_down_is_an_error(outputs: dict[str, dict[str, str]]) -> None:
    """The stack of what holds data, which `lakegate destroy` leaves, has no functions."""
    os.environ |= {"AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "eu-central-1"}
    template = {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}, "Outputs": outputs}
    client = boto3.client("cloudformation")
    client.create_stack(StackName="lakegate-prod", TemplateBody=json.dumps(template))

    with pytest.raises(LakegateError, match="lakegate-prod has no functions") as refused:
        find("prod")

    assert refused.value.code == "NO_DEPLOYMENT"


@pytest.mark.parametrize("config", ["[default]\n", "[default\n"])
def test_settings_of_aws_that_cannot_be_used_are_an_error(tmp_path: Path, config: str) -> None:
    """A profile that is not there, or a broken file of settings, is told as what it is."""
    (tmp_path / "config").write_text(config)
    os.environ |= {"AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_PROFILE": "typo"}

    with pytest.raises(LakegateError, match="AWS_PROFILE") as refused:
        find("prod")

    assert refused.value.code == "BAD_AWS_SETTINGS"


@mock_aws
def test_a_stage_has_no_setting_of_another(tmp_path: Path) -> None:
    """What only the deployment before it had, such as more landing buckets, is not the stage's."""
    os.environ |= settings() | {"LAKEGATE_LANDING_BUCKET_ARNS": "arn:aws:s3:::of-another"}
    deploy("lakegate-prod", {k: v for k, v in settings().items() if v})

    assert find("prod").settings.landing_buckets == (SETTINGS.landing_bucket,)
    assert home() == tmp_path


@mock_aws
def test_a_stage_is_used_from_outside_its_network() -> None:
    """Clients call Nessie through the stage's function; job runs get Nessie's own address."""
    deploy("lakegate-prod", settings(), OnNessieRequestFunctionName="f")
    name = SETTINGS.nessie_token_secret
    boto3.client("secretsmanager").create_secret(Name=name, SecretString="t")

    found = find("prod")

    assert found.settings == SETTINGS
    assert found.addresses["nessie"].startswith("http://127.0.0.1:")
    assert found.addresses["iceberg"] == f"{found.addresses['nessie']}/iceberg"
    with pytest.raises(Transient, match="the function f did not forward"):
        found.adapters().catalog.tip()
    assert find("prod").addresses == found.addresses


@mock_aws
def test_the_local_way_to_nessie_needs_no_proxy() -> None:
    """A proxy of the user gets no request of the local server's, and its exceptions stay."""
    os.environ |= {
        "AWS_DEFAULT_REGION": "eu-central-1",
        "HTTP_PROXY": wire.nobody(),
        "no_proxy": "intranet",
    }
    address = forwarding.address("another")
    assert requests.get(address, timeout=30).status_code == 502
    assert os.environ["no_proxy"] == "intranet,127.0.0.1"


@mock_aws
def test_nessie_can_be_called_directly() -> None:
    """LAKEGATE_NESSIE_DIRECT chooses Nessie's own address, for networks that reach it."""
    os.environ["LAKEGATE_NESSIE_DIRECT"] = "1"
    deploy("lakegate-prod", settings(), OnNessieRequestFunctionName="f")

    assert find("prod").addresses["nessie"] == "http://nessie:19120"


def deploy(name: str, settings: dict[str, str], **outputs: str) -> None:
    """Create a stack with what the command reads of it, in a region that is then chosen."""
    os.environ |= {"AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "eu-central-1"}
    role = boto3.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]
    code = io.BytesIO()
    zipfile.ZipFile(code, "w").close()
    boto3.client("lambda").create_function(
        FunctionName="on-job-run",
        Runtime="python3.13",
        Handler="h.h",
        Role=role["Arn"],
        Code={"ZipFile": code.getvalue()},
        Environment={"Variables": settings},
    )
    template = {
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {
            key: {"Value": value}
            for key, value in {"OnJobRunFunctionName": "on-job-run", **outputs}.items()
        },
    }
    boto3.client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(template))


def test_a_setting_that_is_missing_is_named() -> None:
    """An incomplete deployment raises an error with the missing setting."""
    os.environ["LAKEGATE_LEDGER_TABLE"] = "ledger"

    with pytest.raises(LakegateError, match="LAKEGATE_LAKE_BUCKET"):
        find()


@pytest.mark.parametrize("text", ["", "{", "{}", '{"s3": "", "older": ""}'])
def test_a_stacks_file_that_is_cut_or_of_another_version_is_none(tmp_path: Path, text: str) -> None:
    """The next `up` writes it anew, and the message says so."""
    (tmp_path / "stack.json").write_text(text)
    with pytest.raises(LakegateError, match="NO_STACK") as caught:
        stack_file.read(tmp_path)
    assert "Run `lakegate up`" in caught.value.message


def test_a_home_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    """A home that is a file, or whose stack cannot be read, is told with what to do."""
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(LakegateError, match=r"HOME_REFUSED.*file cannot be used: File exists"):
        stack.down(file, lambda _: None)

    (tmp_path / "stack.json").mkdir()  # as for another user's, root cannot read it either
    with pytest.raises(LakegateError, match="HOME_REFUSED") as caught:
        stack_file.read(tmp_path)
    assert "LAKEGATE_HOME" in caught.value.message
