"""What functions and jobs call of AWS, and what the network's endpoints let through."""

import re
from pathlib import Path

import pytest

from tests.compiled import ACCOUNT, EVERYTHING, Compiled, application
from tests.policies import Identity, listed, statements

ROOT = Path(__file__).parents[3]
APP = application(**EVERYTHING)
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
ENDPOINTS = {
    "s3": "S3Endpoint",
    "dynamodb": "DynamoDbEndpoint",
    "sqs": "SqsEndpoint",
    "secretsmanager": "SecretsEndpoint",
    "emr-serverless": "EmrEndpoint",
    "logs": "LogsEndpoint",
}
OTHER = "999999999999"  # an account
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


def rights_inside() -> set[tuple[str, str]]:
    """Return the actions and resources of the roles that work inside the network."""
    roles = APP.roles()
    inside = {"JobRole"} | {
        name.replace("LambdaFunction", "Role")
        for name, each in APP.resources.items()
        if "VpcConfig" in each.get("Properties", {})
    }
    return {
        (action, resource)
        for name in inside
        for statement in statements(*roles[name].policies)
        if statement["Effect"] == "Allow"
        for action in listed(statement["Action"])
        if action.partition(":")[0] in ENDPOINTS
        for resource in listed(statement["Resource"])
        if ":log-group:/aws/lambda/" not in resource  # Lambda itself writes there, from outside
    }


def endpoint(service: str, **parameters: str) -> Identity:
    """Return what a service's endpoint lets through, as if it were a role that may do no more."""
    compiled = Compiled.of(ROOT / "infra/platform.yml", Stage="dev", **parameters)
    properties = compiled.resources[ENDPOINTS[service]]["Properties"]
    return Identity("a job", [compiled.resolve(properties["PolicyDocument"])])


def test_each_endpoint_lets_through_what_the_network_calls() -> None:
    """No right of a function or job inside is refused by the endpoint that leads to its service."""
    rights = rights_inside()
    through = {service: endpoint(service) for service in ENDPOINTS}
    assert {action.partition(":")[0] for action, _ in rights} == ENDPOINTS.keys()
    assert {r for r in rights if not through[r[0].partition(":")[0]].may(*r)} == set()


@pytest.mark.parametrize("store", ["JDBC2", "DYNAMODB2"])
def test_the_endpoints_let_nessies_tasks_through(store: str) -> None:
    """An interface endpoint takes its service's name in the whole network, Nessie's part as well.

    Fargate reads a task's secrets and writes its log from the task's own address.
    """
    platform = Compiled.of(ROOT / "infra/platform.yml", Stage="dev", NessieStore=store)
    roles = [platform.roles()[name] for name in ("StartRole", "TaskRole")]
    policies = [platform.resolve(policy) for role in roles for policy in role.policies]
    rights = {
        (action, resource)
        for statement in statements(*policies)
        for action in listed(statement["Action"])
        if action.partition(":")[0] in ENDPOINTS.keys() - {"s3"}  # a gateway, by routes
        for resource in listed(statement["Resource"])
    }
    assert rights
    through = {service: endpoint(service, NessieStore=store) for service in ENDPOINTS}
    assert {r for r in rights if not through[r[0].partition(":")[0]].may(*r)} == set()


@pytest.mark.parametrize(
    ("action", "foreign"),
    [
        ("s3:PutObject", "arn:aws:s3:::theirs/a.csv"),
        ("s3:GetObject", f"arn:aws:s3:::lakegate-dev-evil-{ACCOUNT}-us-east-1/a.csv"),
        ("s3:PutObject", f"arn:aws:s3:::lakegate-dev-lake-{ACCOUNT}-us-east-1-2/a.csv"),
        ("s3:PutObject", "arn:aws:s3:::prod.us-east-1.appinfo.src/a.csv"),
        ("dynamodb:PutItem", f"arn:aws:dynamodb:us-east-1:{OTHER}:table/lakegate-dev-ledger"),
        ("sqs:SendMessage", f"arn:aws:sqs:us-east-1:{OTHER}:lakegate-dev-work"),
        ("sqs:SendMessage", f"arn:aws:sqs:us-east-1:{ACCOUNT}:theirs"),
        ("secretsmanager:PutSecretValue", f"arn:aws:secretsmanager:us-east-1:{OTHER}:secret:a"),
        ("emr-serverless:StartJobRun", f"arn:aws:emr-serverless:us-east-1:{OTHER}:/applications/a"),
        ("logs:PutLogEvents", f"arn:aws:logs:us-east-1:{OTHER}:log-group:/lakegate/dev/jobs:*"),
    ],
)
def test_no_job_carries_data_to_what_is_not_the_stages(action: str, foreign: str) -> None:
    """The private subnets reach what is the stage's alone, whatever keys are used."""
    assert not endpoint(action.partition(":")[0]).may(action, foreign)


def test_emr_itself_may_keep_the_logs_of_jobs() -> None:
    """The service writes to its own bucket from this network, as it documents, and a job cannot."""
    s3, logs = endpoint("s3"), "arn:aws:s3:::prod.us-east-1.appinfo.src/logs"
    service = {"aws__PrincipalServiceName": "emr-serverless.amazonaws.com"}
    assert s3.may("s3:PutObject", logs, **service, aws__SourceVpc="Vpc")
    assert not s3.may("s3:PutObject", logs, aws__SourceVpc="Vpc")


def test_a_stage_can_open_its_endpoints() -> None:
    """EndpointReach opens them all, for jars or readers that need what belongs to others."""
    compiled = Compiled.of(ROOT / "infra/platform.yml", Stage="dev", EndpointReach="any")
    for name in ENDPOINTS.values():
        assert "PolicyDocument" not in compiled.resolve(compiled.resources[name]["Properties"])


@pytest.mark.parametrize("name", DEPLOYED)
def test_the_list_of_endpoints_is_the_templates(name: str) -> None:
    """Each function's row says whether it runs in the network, and the services of its role."""
    rows = {row[0]: row[1:] for row in _ROW.findall((ROOT / "docs/platform.md").read_text())}
    where, services = DEPLOYED[name]
    named = "none" if not services else ", ".join(t for s, t in SERVICES.items() if s in services)
    assert services <= SERVICES.keys()
    assert rows[name] == (where, named)
    assert rows.keys() == DEPLOYED.keys()
