"""docs/platform.md lists which services of AWS each function calls, and from where."""

import re
from pathlib import Path

import pytest

from tests.compiled import Compiled
from tests.policies import Identity, listed, statements

ROOT = Path(__file__).parents[3]
EVERYTHING = {
    "EmrApplicationId": "00app",
    "SlackTokenSecret": "slack",
    "AlertTopicArn": "arn:aws:sns:us-east-1:000000000000:people",
    "GlueDatabasePrefix": "lake_",
    "SnowflakeSecret": "snowflake",
    "LineageUrl": "https://lineage",
    "LineageSecret": "lineage",
}
APP = Compiled.of(ROOT / "template.yaml", **EVERYTHING)
SERVICES = {
    "s3": "S3",
    "dynamodb": "DynamoDB",
    "sqs": "SQS",
    "secretsmanager": "Secrets Manager",
    "emr-serverless": "EMR Serverless",
    "events": "EventBridge",
    "glue": "Glue",
    "sns": "SNS",
    "logs": "CloudWatch Logs",
}
NOT_CALLED = {"ec2", "iam", "kms"}  # Lambda itself, EMR, and the services do with these rights
_ROW = re.compile(r"^\| `([\w-]+)` \| (inside|outside) \| ([^|]+) \|$", re.MULTILINE)


def called(role: Identity) -> set[str]:
    """Return the services that a role has rights for."""
    granted = (s for s in statements(*role.policies) if s["Effect"] == "Allow")
    actions = (action for statement in granted for action in listed(statement["Action"]))
    return {action.partition(":")[0] for action in actions} - NOT_CALLED


def deployed() -> dict[str, tuple[str, set[str]]]:
    """Return where each function and the job run, and what they call, by their names."""
    roles = APP.roles()
    found = {"job": ("inside", called(roles["JobRole"]))}
    for name, each in APP.resources.items():
        if each["Type"] == "AWS::Serverless::Function":
            properties = APP.resolve(each["Properties"])
            role = roles[name.replace("LambdaFunction", "Role")]
            where = "inside" if "VpcConfig" in properties else "outside"
            # Lambda takes what a function prints to its log.
            short = str(properties["FunctionName"]).removeprefix("lakegate-dev-")
            found[short] = (where, called(role) - {"logs"})
    return found


DEPLOYED = deployed()


@pytest.mark.parametrize("name", DEPLOYED)
def test_the_list_of_endpoints_is_the_templates(name: str) -> None:
    """Each function's row says whether it runs in the network, and the services of its role."""
    rows = {row[0]: row[1:] for row in _ROW.findall((ROOT / "docs/platform.md").read_text())}
    where, services = DEPLOYED[name]
    named = "none" if not services else ", ".join(t for s, t in SERVICES.items() if s in services)
    assert services <= SERVICES.keys()
    assert rows[name] == (where, named)
    assert rows.keys() == DEPLOYED.keys()
