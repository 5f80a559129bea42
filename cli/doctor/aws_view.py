"""Read a deployment's state through AWS's APIs, from outside its network."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lakegate.errors import LakegateError

_CONFIG = Config(
    retries={"mode": "standard", "max_attempts": 2}, connect_timeout=5, read_timeout=30
)
FUNCTION = "AWS::Lambda::Function"
MAPPING = "AWS::Lambda::EventSourceMapping"
RULE = "AWS::Events::Rule"
QUEUE = "AWS::SQS::Queue"
ALARM = "AWS::CloudWatch::Alarm"
_DEVIATING = ["MODIFIED", "DELETED", "UNKNOWN"]
_DETECTION_SECONDS = 300
_PAUSE = 0.5


class NotVisible(LakegateError):
    """AWS does not show a resource: it does not exist, or the caller lacks permission."""


@dataclass(frozen=True)
class StackView:
    """A CloudFormation stack; `resources` maps logical ids to a type and a physical id.

    `status` is "" if the stack does not exist.
    """

    name: str
    status: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def ids_of_type(self, type_: str) -> dict[str, str]:
        """Return the physical ids of the resources of a type, by logical id."""
        return {name: id_ for name, (of, id_) in self.resources.items() if of == type_}

    def id_of(self, name: str) -> str:
        """Return the physical id of the resource with a logical id. Raises NotVisible."""
        if name not in self.resources:
            raise NotVisible("NOT_SEEN", f"the stack {self.name} has no {name}")
        return self.resources[name][1]


@dataclass(frozen=True)
class FunctionView:
    """A Lambda function; `sha256` is its code's (base64), `update` its last update's status."""

    name: str
    sha256: str
    state: str
    update: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Deviation:
    """A resource that differs from the template of its stack, as CloudFormation found it.

    `status` is MODIFIED, DELETED or UNKNOWN, `reason` tells why it is unknown. `differences` have
    the path of each property in the template, its expected and its actual value.
    """

    resource: str
    type: str
    status: str
    reason: str = ""
    differences: tuple[tuple[str, str, str], ...] = ()


class AwsView:
    """A reader of the account and region that this process's environment names."""

    def __init__(self) -> None:
        # Create all clients here: boto3 creates clients safely in one thread only, but several use
        # them.
        names = ("cloudformation", "cloudwatch", "events", "iam", "lambda", "secretsmanager")
        self._clients = {name: boto3.client(name, config=_CONFIG) for name in names}

    def stack(self, name: str) -> StackView:
        """Return a stack with its resources. Raises NotVisible without permission."""
        client = self._clients["cloudformation"]
        with _translated(f"the stack {name}"):
            try:
                stack = client.describe_stacks(StackName=name)["Stacks"][0]
            except ClientError as error:
                if "does not exist" in str(error):
                    return StackView(name, "")
                raise
            pages = client.get_paginator("list_stack_resources").paginate(StackName=name)
            resources = {
                each["LogicalResourceId"]: (each["ResourceType"], each["PhysicalResourceId"])
                for page in pages
                for each in page["StackResourceSummaries"]
                if "PhysicalResourceId" in each
            }
        given = {p["ParameterKey"]: p["ParameterValue"] for p in stack.get("Parameters", [])}
        return StackView(name, stack["StackStatus"], given, resources)

    def deviations(self, stack: str) -> list[Deviation]:
        """Return how resources differ from the stack's template. Raises NotVisible.

        CloudFormation compares them now, which takes about a minute.
        """
        client, deadline = self._clients["cloudformation"], time.monotonic() + _DETECTION_SECONDS
        with _translated(f"the resources' settings in {stack}"):
            id_ = client.detect_stack_drift(StackName=stack)["StackDriftDetectionId"]
            while _is_detecting(client, id_):
                if time.monotonic() > deadline:
                    raise NotVisible("NOT_SEEN", f"CloudFormation still compares {stack}: repeat")
                time.sleep(_PAUSE)
            return list(_deviations(client, stack))

    def function(self, name: str) -> FunctionView:
        """Return a function. Raises NotVisible."""
        with _translated(f"the function {name}"):
            answer = self._clients["lambda"].get_function_configuration(FunctionName=name)
        return FunctionView(
            name=name,
            sha256=answer["CodeSha256"],
            state=answer.get("State", ""),
            update=answer.get("LastUpdateStatus", ""),
            environment=answer.get("Environment", {}).get("Variables", {}),
        )

    def mapping(self, id_: str) -> str:
        """Return the state of an event source mapping. Raises NotVisible."""
        with _translated(f"the event source mapping {id_}"):
            return str(self._clients["lambda"].get_event_source_mapping(UUID=id_)["State"])

    def rule(self, name: str) -> str:
        """Return the state of an EventBridge rule. Raises NotVisible."""
        with _translated(f"the rule {name}"):
            return str(self._clients["events"].describe_rule(Name=name)["State"])

    def alarms(self, prefix: str) -> dict[str, str]:
        """Return active alarms with a name prefix, with descriptions. Raises NotVisible."""
        with _translated("the alarms"):
            pages = self._clients["cloudwatch"].get_paginator("describe_alarms")
            listing = pages.paginate(AlarmNamePrefix=prefix, StateValue="ALARM")
            alarms = [each for page in listing for each in page["MetricAlarms"]]
        ringing = (each for each in alarms if each["StateValue"] == "ALARM")
        return {each["AlarmName"]: each.get("AlarmDescription", "") for each in ringing}

    def errors(self, function: str, hours: int) -> float:
        """Return how many runs of a function failed in the last hours. Raises NotVisible."""
        return sum(self._metric("Lambda", "Errors", {"FunctionName": function}, "Sum", hours))

    def oldest(self, queue: str, hours: int) -> float:
        """Return the highest recent age of a queue's oldest message. Raises NotVisible."""
        name, dimensions = "ApproximateAgeOfOldestMessage", {"QueueName": queue}
        return max(self._metric("SQS", name, dimensions, "Maximum", hours), default=0.0)

    def has_secret(self, name: str) -> bool:
        """Return whether a secret exists, without reading its value. Raises NotVisible."""
        with _translated(f"the secret {name}"):
            client = self._clients["secretsmanager"]
            try:
                return "DeletedDate" not in client.describe_secret(SecretId=name)
            except client.exceptions.ResourceNotFoundException:
                return False

    def refusal(self, function: str) -> str:
        """Return the error code for an unsigned request to a function URL. Raises NotVisible."""
        event = {"requestContext": {"http": {"method": "POST"}}, "headers": {}, "body": ""}
        with _translated(f"the function {function}"):
            client = self._clients["lambda"]
            answer = client.invoke(FunctionName=function, Payload=json.dumps(event).encode())
            return str(json.loads(json.loads(answer["Payload"].read())["body"])["error"])

    def may(self, role: str, action: str, resource: str) -> bool:
        """Return whether a role's own policies allow an action. Raises NotVisible."""
        with _translated(f"the permissions of {role}"):
            client = self._clients["iam"]
            arn = client.get_role(RoleName=role)["Role"]["Arn"]
            request = {"ActionNames": [action], "ResourceArns": [resource]}
            answer = client.simulate_principal_policy(PolicySourceArn=arn, **request)
            return all(each["EvalDecision"] == "allowed" for each in answer["EvaluationResults"])

    def _metric(
        self, namespace: str, name: str, dimensions: Mapping[str, str], statistic: str, hours: int
    ) -> list[float]:
        now = datetime.now(UTC)
        with _translated(f"the metric {name}"):
            answer = self._clients["cloudwatch"].get_metric_statistics(
                Namespace=f"AWS/{namespace}",
                MetricName=name,
                Dimensions=[{"Name": k, "Value": v} for k, v in dimensions.items()],
                StartTime=now - timedelta(hours=hours),
                EndTime=now,
                Period=300,
                Statistics=[statistic],
            )
        return [float(point[statistic]) for point in answer["Datapoints"]]


def _is_detecting(client: Any, id_: str) -> bool:
    answer = client.describe_stack_drift_detection_status(StackDriftDetectionId=id_)
    return bool(answer["DetectionStatus"] == "DETECTION_IN_PROGRESS")


def _deviations(client: Any, stack: str) -> Iterator[Deviation]:
    request = {"StackName": stack, "StackResourceDriftStatusFilters": _DEVIATING}
    while True:
        page = client.describe_stack_resource_drifts(**request)
        for each in page["StackResourceDrifts"]:
            yield Deviation(
                each["LogicalResourceId"],
                each["ResourceType"],
                each["StackResourceDriftStatus"],
                each.get("DriftStatusReason", ""),
                tuple(
                    (entry["PropertyPath"], entry["ExpectedValue"], entry["ActualValue"])
                    for entry in each.get("PropertyDifferences", [])
                ),
            )
        if not page.get("NextToken"):
            return
        request["NextToken"] = page["NextToken"]


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise NotVisible("NOT_SEEN", f"cannot read {what}: {error}") from error
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise NotVisible("NOT_SEEN", f"cannot read {what}: the answer lacks {error}") from error
