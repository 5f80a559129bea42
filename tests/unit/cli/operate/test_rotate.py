"""`lakegate rotate` on a stage: secrets, the platform's stack, and the output."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner

from cli.main import app
from functions.adapters.keyring import SecretKeyring
from lakegate import nessie_tokens
from lakegate.nessie_tokens import Keys
from tests.fakes import wire

_TOLD = {
    "Name": "what-nessie-is-told",
    "Type": "String",
    "Value": {"Fn::Join": [" ", [{"Ref": "NessiePublicKey"}, {"Ref": "Other"}]]},
}
_PLATFORM = {
    "Parameters": {"NessiePublicKey": {"Type": "String"}, "Other": {"Type": "String"}},
    "Resources": {"Task": {"Type": "AWS::SSM::Parameter", "Properties": _TOLD}},
}


@pytest.fixture
def before() -> Iterator[Keys]:
    """Create a stage with keys, whose Nessie is not reachable."""
    environment = dict(os.environ)
    for name in [n for n in os.environ if n.startswith(("LAKEGATE_", "AWS_"))]:
        del os.environ[name]
    os.environ |= {"AWS_DEFAULT_REGION": "eu-central-1"}
    with mock_aws():
        uri = {"Name": "/lakegate/prod/nessie-uri", "Value": wire.nobody()}
        boto3.client("ssm").put_parameter(**uri, Type="String")
        yield nessie_tokens.keep(keyring(), datetime.now(UTC))
    os.environ.clear()
    os.environ.update(environment)


def keyring() -> SecretKeyring:
    return SecretKeyring(boto3.client("secretsmanager"), "prod")


def rotate(*options: str, stage: str = "prod") -> Any:
    return CliRunner().invoke(app, ["--stage", stage, "rotate", *options])


def platform(public_key: str) -> None:
    told = {"NessiePublicKey": public_key, "Other": "stays"}
    boto3.client("cloudformation").create_stack(
        StackName="lakegate-prod-platform",
        TemplateBody=json.dumps(_PLATFORM),
        Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in told.items()],
    )


def told_nessie() -> str:
    found = boto3.client("ssm").get_parameter(Name="what-nessie-is-told")
    return str(found["Parameter"]["Value"])


def test_new_tokens_leave_nessie_alone(before: Keys) -> None:
    """New tokens of the same key are stored; the output has their expiry and no token."""
    platform(before.public_key)

    result = rotate("--days", "30")

    after = Keys.of(keyring().read())
    assert result.exit_code == 0, result.output
    assert after.signing_key == before.signing_key
    assert not set(after.tokens.values()) & set(before.tokens.values())
    assert f"{after.until:%Y-%m-%d}" in result.output
    assert "lakegate doctor" in result.output  # Nessie cannot be asked
    assert not [t for t in after.tokens.values() if t.rpartition(".")[2] in result.output]


def test_a_new_key_reaches_nessie_by_the_platforms_stack(before: Keys) -> None:
    """With --key the stack gets the key of the new tokens, and no other change."""
    platform(before.public_key)

    result = rotate("--key")

    after = Keys.of(keyring().read())
    assert result.exit_code == 0, result.output
    assert after.signing_key != before.signing_key
    assert told_nessie() == f"{after.public_key} stays"
    assert "401" in result.output


def test_a_nessie_behind_a_function_that_fails_is_not_taken_for_refusing(before: Keys) -> None:
    """From outside the network the tokens are checked by the stage's function, if that works."""
    platform(before.public_key)
    template = {
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {"OnNessieRequestFunctionName": {"Value": "function-of-rotate"}},
    }
    boto3.client("cloudformation").create_stack(
        StackName="lakegate-prod", TemplateBody=json.dumps(template)
    )

    with wire.answering(wire.json("401 Unauthorized", {})) as direct:
        boto3.client("ssm").put_parameter(
            Name="/lakegate/prod/nessie-uri", Value=direct, Overwrite=True
        )
        result = rotate()

    assert result.exit_code == 0, result.output
    assert "not reachable" in result.output


def test_a_rotation_that_was_cut_off_is_finished_by_the_next(before: Keys) -> None:
    """A rotation finishes an earlier one that did not give Nessie its key."""
    platform("the old key")

    assert rotate().exit_code == 0

    assert told_nessie() == f"{before.public_key} stays"


def test_without_a_platform_stack_the_public_key_is_printed(before: Keys) -> None:
    """Without a platform stack the public key is printed with the name of its setting."""
    result = rotate("--key")

    assert result.exit_code == 0, result.output
    assert "quarkus.oidc.public-key" in result.output
    assert Keys.of(keyring().read()).public_key in result.output


def test_tokens_that_somebody_else_made_are_left_alone(before: Keys) -> None:
    """Without the signing key no token is overwritten."""
    secret = "lakegate/prod/nessie/signing-key"
    boto3.client("secretsmanager").delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)

    for options in ((), ("--key",)):
        assert "FOREIGN_TOKENS" in rotate(*options).output

    assert keyring().read() == before.tokens


def test_a_stage_that_is_not_there_gets_no_secrets(before: Keys) -> None:
    """An unknown stage raises an error, and no secret is created."""
    result = rotate(stage="nowhere")

    assert result.exit_code == 1
    assert "NO_DEPLOYMENT" in result.output
    names = boto3.client("secretsmanager").list_secrets()["SecretList"]
    assert not [each for each in names if "nowhere" in each["Name"]]
