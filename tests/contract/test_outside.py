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
from botocore.stub import ANY, Stubber
from moto import mock_aws

from cli.doctor.aws_view import QUEUE, AwsView, Deviation, NotVisible
from tests.contract.aws import ACCOUNT
from tests.fakes.outside import FakeOutside

FUNCTION, RULE = "on-upload", "sweep-rule"
NOW = datetime.now(UTC)


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
        Runtime="python3.13",
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


def test_a_deployment_is_seen_as_it_is(seen: Seen) -> None:
    """Stack, function, ringing alarms, metrics and secrets are read, and nothing of others."""
    outside = seen.outside
    stack = outside.stack("lakegate-dev")
    assert (stack.status, stack.parameters["Stage"]) == ("CREATE_COMPLETE", "dev")
    assert stack.ids_of_type(QUEUE)["UploadQueue"].endswith("/uploads")
    assert outside.stack("nothing").status == ""
    function = outside.function(FUNCTION)
    assert function.sha256
    assert function.environment["LAKEGATE_SLACK_TOKEN_SECRET"] == "slack"
    assert outside.alarms("lakegate-dev") == {"lakegate-dev-dead": "Look."}
    assert [outside.errors(name, 1) for name in (FUNCTION, "on-alert")] == [3, 0]
    assert [outside.oldest(name, 1) for name in ("uploads", "other")] == [90, 0]
    assert [outside.has_secret(name) for name in ("slack", "other")] == [True, False]


def test_a_disabled_trigger_is_seen(seen: Seen) -> None:
    """An event source mapping and a rule are read before and after they are disabled."""
    look = lambda: [seen.outside.mapping(seen.mapping), seen.outside.rule(RULE)]  # noqa: E731
    before = look()
    seen.disable()
    assert [state.upper() for state in (*before, *look())] == [*["ENABLED"] * 2, *["DISABLED"] * 2]


@pytest.mark.parametrize("look", ["function", "mapping", "rule"])
def test_a_missing_resource_is_reported(seen: Seen, look: str) -> None:
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


def test_deviations_are_read_page_by_page_once_they_are_detected(aws: AwsView) -> None:
    """All pages of deviations are read, after CloudFormation has ended its detection."""
    started = {"StackDriftDetectionId": "1"}
    states = [
        {"StackId": "s", "DetectionStatus": f"DETECTION_{end}", "Timestamp": NOW, **started}
        for end in ("IN_PROGRESS", "FAILED")
    ]
    base = {"StackId": "s", "Timestamp": NOW, "ResourceType": QUEUE}
    found = {"PropertyPath": "/Delay", "ExpectedValue": "1", "ActualValue": "2"}
    changed = {
        "LogicalResourceId": "A",
        "StackResourceDriftStatus": "MODIFIED",
        "PropertyDifferences": [found | {"DifferenceType": "NOT_EQUAL"}],
    }
    hidden = {
        "LogicalResourceId": "B",
        "StackResourceDriftStatus": "UNKNOWN",
        "DriftStatusReason": "denied",
    }
    with Stubber(aws._clients["cloudformation"]) as stubber:  # noqa: SLF001  moto detects none
        stubber.add_response("detect_stack_drift", started)
        for state in states:
            stubber.add_response("describe_stack_drift_detection_status", state)
        first: dict[str, Any] = {"StackResourceDrifts": [base | changed], "NextToken": "more"}
        asked = {"StackName": "s", "StackResourceDriftStatusFilters": ANY}
        stubber.add_response("describe_stack_resource_drifts", first, asked)
        last = {"StackResourceDrifts": [base | hidden]}
        stubber.add_response("describe_stack_resource_drifts", last, asked | {"NextToken": "more"})
        assert aws.deviations("s") == [
            Deviation("A", QUEUE, "MODIFIED", differences=(("/Delay", "1", "2"),)),
            Deviation("B", QUEUE, "UNKNOWN", "denied"),
        ]
        stubber.add_client_error("detect_stack_drift", "AccessDenied")
        with pytest.raises(NotVisible, match="the resources' settings in s"):
            aws.deviations("s")
