"""A session of whoever has the deployer's policies alone, and the judgement of its calls."""

import json

from infra.local import ministack
from tests.asked import asked
from tests.compiled import Compiled
from tests.deploy.bare import ROOT, STAGE, Cloud
from tests.deploy.calls import RECORD, recorded

_ROLE = "deployer"
_A_DAY_OF_WORK = 8 * 3600
_NEVER_REFUSED = "sts:GetCallerIdentity"  # whatever the policies say


def session(cloud: Cloud) -> dict[str, str]:
    """Return the variables of a session of a new role with the policies App and Roles alone."""
    iam = ministack.client("iam", cloud.at["ministack"])
    found = Compiled.of(ROOT / "infra/policies/deployer.yml", Stage=STAGE.name)
    root = {"AWS": f"arn:aws:iam::{ministack.ACCOUNT}:root"}
    trust = {"Effect": "Allow", "Principal": root, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName=_ROLE, AssumeRolePolicyDocument=json.dumps({"Statement": [trust]}))
    for name in ("App", "Roles"):
        policy = found.resolve(found.resources[name]["Properties"]["PolicyDocument"])
        iam.put_role_policy(RoleName=_ROLE, PolicyName=name, PolicyDocument=json.dumps(policy))
    given = ministack.client("sts", cloud.at["ministack"]).assume_role(
        RoleArn=f"arn:aws:iam::{ministack.ACCOUNT}:role/{_ROLE}",
        RoleSessionName="ann",
        DurationSeconds=_A_DAY_OF_WORK,
    )["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
        "AWS_SESSION_TOKEN": given["SessionToken"],
    }


def assert_allowed_and_listed(cloud: Cloud) -> None:
    """Assert that no call of the deployer was refused, and that each action is on the list."""
    calls = [each for each in asked(cloud.home) if f":assumed-role/{_ROLE}/" in each["who"]]
    assert "cloudformation:ExecuteChangeSet" in {each["action"] for each in calls}
    assert [(e["action"], e["resource"]) for e in calls if not e["allowed"]] == []
    listed = {call.action for call in recorded() if call.platform == "given"} | {_NEVER_REFUSED}
    assert {each["action"] for each in calls} <= listed, f"add them to {RECORD}"
