"""A deployment looks the same from outside in memory and on AWS."""

import io
import json
import uuid
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from cli.aws_view import QUEUE, AwsView, NotVisible
from tests.contract.test_queues import ACCOUNT
from tests.fakes.outside import FakeOutside

FUNCTION, RULE = "on-upload", "sweep-rule"


@dataclass(frozen=True)
class Seen:
    """A deployment with a function, its mapping, a rule, a queue and a secret."""

    outside: AwsView | FakeOutside
    mapping: str
    disable: Callable[[], object]


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsView]:
    """Yield AWS in this process and its view; the environment names the account."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name, value in ACCOUNT.items():
            patch.setenv(f"AWS_{name.removesuffix('_name').upper()}", value)
        patch.setenv("AWS_DEFAULT_REGION", ACCOUNT["region_name"])
        yield AwsView()


@pytest.fixture(params=["in memory", "AWS"])
def seen(request: pytest.FixtureRequest) -> Seen:
    """Return a healthy deployment with one ringing alarm."""
    if request.param == "in memory":
        fake = FakeOutside(
            "sha",
            ringing={"lakegate-dev-dead": "Look.", "other": ""},
            failed={FUNCTION: 3},
            ages={"uploads": 90},
        )
        states = {"mapping-1": "Disabled", RULE: "DISABLED"}
        return Seen(fake, "mapping-1", lambda: setattr(fake, "states", states))
    outside: AwsView = request.getfixturevalue("aws")
    mapping = _deploy()
    return Seen(outside, mapping, lambda: _disable(mapping))


def _deploy() -> str:
    """Create everything missing; return the id of a new event source mapping."""
    client = boto3.client
    if "lakegate-dev" not in str(client("cloudformation").list_stacks()):
        resources = {"UploadQueue": {"Type": QUEUE, "Properties": {"QueueName": "uploads"}}}
        client("cloudformation").create_stack(
            StackName="lakegate-dev",
            TemplateBody=json.dumps(
                {"Parameters": {"Stage": {"Type": "String"}}, "Resources": resources}
            ),
            Parameters=[{"ParameterKey": "Stage", "ParameterValue": "dev"}],
        )
        _make_function()
        _make_alarms()
        client("secretsmanager").create_secret(Name="slack", SecretString="xoxb")
    client("events").put_rule(Name=RULE, ScheduleExpression="rate(5 minutes)", State="ENABLED")
    queue = client("sqs").create_queue(QueueName=f"q{uuid.uuid4().hex}")["QueueUrl"]
    arn = f"arn:aws:sqs:{ACCOUNT['region_name']}:123456789012:{queue.rsplit('/', 1)[-1]}"
    made = client("lambda").create_event_source_mapping(FunctionName=FUNCTION, EventSourceArn=arn)
    return str(made["UUID"])


def _make_function() -> None:
    trust = {"Version": "2012-10-17", "Statement": []}
    iam = boto3.client("iam")
    role = iam.create_role(RoleName="role", AssumeRolePolicyDocument=json.dumps(trust))["Role"]
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("a.py", "")
    boto3.client("lambda").create_function(
        FunctionName=FUNCTION,
        Runtime="python3.11",
        Role=role["Arn"],
        Handler="a.b",
        Code={"ZipFile": zipped.getvalue()},
        Environment={"Variables": {"LAKEGATE_SLACK_TOKEN_SECRET": "slack"}},
    )


def _make_alarms() -> None:
    cloudwatch = boto3.client("cloudwatch")
    for name, state in {
        "lakegate-dev-dead": "ALARM",
        "lakegate-dev-b": "OK",
        "other": "ALARM",
    }.items():
        cloudwatch.put_metric_alarm(
            AlarmName=name,
            AlarmDescription="Look.",
            MetricName="m",
            Namespace="n",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1,
            ComparisonOperator="GreaterThanThreshold",
        )
        cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="test")
    samples = {
        ("Lambda", "Errors", "FunctionName", FUNCTION): (1, 2),
        ("SQS", "ApproximateAgeOfOldestMessage", "QueueName", "uploads"): (90, 30),
    }
    for (namespace, metric, dimension, name), values in samples.items():
        each: dict[str, Any] = {
            "MetricName": metric,
            "Dimensions": [{"Name": dimension, "Value": name}],
            "Timestamp": datetime.now(UTC) - timedelta(minutes=10),
        }
        data = [{**each, "Value": value} for value in values]
        cloudwatch.put_metric_data(Namespace=f"AWS/{namespace}", MetricData=data)


def _disable(mapping: str) -> None:
    boto3.client("lambda").update_event_source_mapping(UUID=mapping, Enabled=False)
    boto3.client("events").disable_rule(Name=RULE)


def test_a_stack_and_what_it_is_made_of_is_seen(seen: Seen) -> None:
    """A stack's status, parameters and resources are read; a missing stack is reported so."""
    found = seen.outside.stack("lakegate-dev")
    assert found.status == "CREATE_COMPLETE"
    assert found.parameters == {"Stage": "dev"}
    assert found.of_type(QUEUE)["UploadQueue"].endswith("/uploads")
    assert seen.outside.stack("nothing").status == ""


def test_a_function_is_seen(seen: Seen) -> None:
    """A function's Python version, code hash and environment are read."""
    found = seen.outside.function(FUNCTION)
    assert found.runtime == "python3.11"
    assert found.sha256
    assert found.environment["LAKEGATE_SLACK_TOKEN_SECRET"] == "slack"


def test_what_is_off_is_seen(seen: Seen) -> None:
    """An event source mapping and a rule are read before and after they are disabled."""
    look = lambda: [seen.outside.mapping(seen.mapping), seen.outside.rule(RULE)]  # noqa: E731
    before = look()
    seen.disable()
    assert [state.upper() for state in (*before, *look())] == [*["ENABLED"] * 2, *["DISABLED"] * 2]


def test_ringing_alarms_are_seen(seen: Seen) -> None:
    """Only the deployment's ringing alarms are read, with their descriptions."""
    assert seen.outside.alarms("lakegate-dev") == {"lakegate-dev-dead": "Look."}


def test_metrics_are_seen(seen: Seen) -> None:
    """A function's errors and a queue's oldest message are read, and nothing of others."""
    assert seen.outside.errors(FUNCTION, 1) == 3
    assert seen.outside.oldest("uploads", 1) == 90
    assert (seen.outside.errors("on-alert", 1), seen.outside.oldest("other", 1)) == (0, 0)


def test_secrets_are_seen(seen: Seen) -> None:
    """It is known whether a secret exists."""
    assert seen.outside.has_secret("slack")
    assert not seen.outside.has_secret("other")


@pytest.mark.parametrize("look", ["function", "mapping", "rule"])
def test_what_is_not_there_is_reported(seen: Seen, look: str) -> None:
    """A resource that is deleted or invisible is an error that names it."""
    with pytest.raises(NotVisible, match="nothing"):
        getattr(seen.outside, look)("nothing")


def test_an_unsigned_request_is_answered_with_the_reason(aws: AwsView) -> None:
    """An unsigned request to a function's address is answered with the refusal's reason."""
    client = aws._clients["lambda"]  # noqa: SLF001  no AWS in this process runs our code
    refused = {"statusCode": 401, "body": '{"error": "NOT_SLACK"}'}
    with Stubber(client) as stubber:
        for answer in (refused, {"errorMessage": "x"}, None):
            payload = io.BytesIO(json.dumps(answer).encode())
            stubber.add_response("invoke", {"StatusCode": 200, "Payload": payload})
        assert aws.refusal("on-action") == "NOT_SLACK"
        for _ in range(2):
            with pytest.raises(NotVisible, match="on-action"):
                aws.refusal("on-action")
