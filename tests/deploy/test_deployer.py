"""The deployer's policies allow every call of the commands that deploy, and no call is refused.

The commands run as a role that has only these policies, in an account that enforces them. Their
calls are listed in `deployer_calls.txt`, by which a unit test looks at the policies again.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from infra.local import ministack
from tests.asked import asked
from tests.compiled import Compiled
from tests.deploy.account import running
from tests.deploy.bare import ROOT, STAGE, Cloud, cloud
from tests.deploy.calls import RECORD, recorded
from tests.deploy.tools import Checkout

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]  # on a busy machine

_ROLE = "deployer"
_NEVER_REFUSED = "sts:GetCallerIdentity"  # whatever the policies say
_COMMANDS = (
    f"lakegate deploy --stage {STAGE.name} --own-platform",
    f"lakegate deploy --stage {STAGE.name} --dry-run",
    f"lakegate --stage {STAGE.name} doctor || true",  # which finds what this machine lacks
    f"lakegate --stage {STAGE.name} rotate || true",  # which tells how to rotate foreign tokens
    f"lakegate destroy --stage {STAGE.name} --yes --wait",
)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """Yield a cloud with a platform of its owner, and nothing of a stage."""
    with running(tmp_path_factory.mktemp("account")) as account, cloud(account) as made:
        yield made


def session(bare: Cloud) -> dict[str, str]:
    """Return the variables of a session of a role with the policies App and Roles alone."""
    iam = ministack.client("iam", bare.at["ministack"])
    found = Compiled.of(ROOT / "infra/policies/deployer.yml", Stage=STAGE.name)
    root = {"AWS": f"arn:aws:iam::{ministack.ACCOUNT}:root"}
    trust = {"Effect": "Allow", "Principal": root, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName=_ROLE, AssumeRolePolicyDocument=json.dumps({"Statement": [trust]}))
    for name in ("App", "Roles"):
        policy = found.resolve(found.resources[name]["Properties"]["PolicyDocument"])
        iam.put_role_policy(RoleName=_ROLE, PolicyName=name, PolicyDocument=json.dumps(policy))
    given = ministack.client("sts", bare.at["ministack"]).assume_role(
        RoleArn=f"arn:aws:iam::{ministack.ACCOUNT}:role/{_ROLE}", RoleSessionName="ann"
    )["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
        "AWS_SESSION_TOKEN": given["SessionToken"],
    }


def test_every_command_works_with_the_policies_and_its_calls_are_known(
    bare: Cloud, tmp_path: Path
) -> None:
    """No call of the deployer is refused, and each action is on the list."""
    with bare.entered(), mock.patch.dict(os.environ, session(bare)):
        checkout = Checkout.of(bare, tmp_path / "checkout")
        for command in _COMMANDS:
            checkout.run(command)
    calls = [each for each in asked(bare.home) if f":assumed-role/{_ROLE}/" in each["who"]]
    assert [(e["action"], e["resource"]) for e in calls if not e["allowed"]] == []
    listed = {call.action for call in recorded() if call.platform == "given"} | {_NEVER_REFUSED}
    assert {each["action"] for each in calls} <= listed, f"add them to {RECORD}"
