"""A deployment seen from outside its network: by AWS's own interfaces, with a person's rights."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

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


class NotSeen(LakegateError):
    """AWS does not show it: it is not there, or whoever asks may not look."""


@dataclass(frozen=True)
class StackSeen:
    """A CloudFormation stack; `resources` maps logical ids to a type and a physical id.

    The `status` of one that there is not is "".
    """

    name: str
    status: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def of_type(self, type_: str) -> dict[str, str]:
        """The physical ids of the resources of a type, by logical id."""
        return {name: id_ for name, (of, id_) in self.resources.items() if of == type_}

    def id_of(self, name: str) -> str:
        """The physical id of the resource with a logical id. Raises NotSeen."""
        if name not in self.resources:
            raise NotSeen("NOT_SEEN", f"the stack {self.name} has no {name}")
        return self.resources[name][1]


@dataclass(frozen=True)
class FunctionSeen:
    """A Lambda function; `sha256` is its code's, in base64, `update` how its last one went."""

    name: str
    runtime: str
    sha256: str
    state: str
    update: str
    environment: Mapping[str, str] = field(default_factory=dict)


class Outside:
    """The account and region that this process's environment names."""

    def __init__(self) -> None:
        # All now: boto3 makes clients in one thread only, and they are used in several.
        names = ("cloudformation", "cloudwatch", "events", "iam", "lambda", "secretsmanager")
        self._clients = {name: boto3.client(name, config=_CONFIG) for name in names}

    def stack(self, name: str) -> StackSeen:
        """A stack and all that it is made of. Raises NotSeen where one may not look."""
        client = self._clients["cloudformation"]
        with _translated(f"the stack {name}"):
            try:
                found = client.describe_stacks(StackName=name)["Stacks"][0]
            except ClientError as error:
                if "does not exist" in str(error):
                    return StackSeen(name, "")
                raise
            pages = client.get_paginator("list_stack_resources").paginate(StackName=name)
            resources = {
                each["LogicalResourceId"]: (each["ResourceType"], each["PhysicalResourceId"])
                for page in pages
                for each in page["StackResourceSummaries"]
                if "PhysicalResourceId" in each
            }
        given = {p["ParameterKey"]: p["ParameterValue"] for p in found.get("Parameters", [])}
        return StackSeen(name, found["StackStatus"], given, resources)

    def function(self, name: str) -> FunctionSeen:
        """A function. Raises NotSeen."""
        with _translated(f"the function {name}"):
            found = self._clients["lambda"].get_function_configuration(FunctionName=name)
        return FunctionSeen(
            name=name,
            runtime=found.get("Runtime", ""),
            sha256=found["CodeSha256"],
            state=found.get("State", ""),
            update=found.get("LastUpdateStatus", ""),
            environment=found.get("Environment", {}).get("Variables", {}),
        )

    def mapping(self, id_: str) -> str:
        """The state of an event source mapping. Raises NotSeen."""
        with _translated(f"the event source mapping {id_}"):
            return str(self._clients["lambda"].get_event_source_mapping(UUID=id_)["State"])

    def rule(self, name: str) -> str:
        """The state of one of EventBridge's rules. Raises NotSeen."""
        with _translated(f"the rule {name}"):
            return str(self._clients["events"].describe_rule(Name=name)["State"])

    def alarms(self, prefix: str) -> dict[str, str]:
        """The alarms whose names begin so, and that ring: what each says. Raises NotSeen."""
        with _translated("the alarms"):
            pages = self._clients["cloudwatch"].get_paginator("describe_alarms")
            found = pages.paginate(AlarmNamePrefix=prefix, StateValue="ALARM")
            alarms = [each for page in found for each in page["MetricAlarms"]]
        ringing = (each for each in alarms if each["StateValue"] == "ALARM")
        return {each["AlarmName"]: each.get("AlarmDescription", "") for each in ringing}

    def errors(self, function: str, hours: int) -> float:
        """How many of a function's runs failed in the last hours. Raises NotSeen."""
        return sum(self._metric("Lambda", "Errors", {"FunctionName": function}, "Sum", hours))

    def oldest(self, queue: str, hours: int) -> float:
        """The most seconds a queue's oldest message was old, in the last hours. Raises NotSeen."""
        name, asked = "ApproximateAgeOfOldestMessage", {"QueueName": queue}
        return max(self._metric("SQS", name, asked, "Maximum", hours), default=0.0)

    def has_secret(self, name: str) -> bool:
        """Whether there is a secret of that name; what it holds is not read. Raises NotSeen."""
        with _translated(f"the secret {name}"):
            client = self._clients["secretsmanager"]
            try:
                return "DeletedDate" not in client.describe_secret(SecretId=name)
            except client.exceptions.ResourceNotFoundException:
                return False

    def refusal(self, function: str) -> str:
        """The error with which a function behind an address refuses a stranger. Raises NotSeen."""
        event = {"requestContext": {"http": {"method": "POST"}}, "headers": {}, "body": ""}
        with _translated(f"the function {function}"):
            client = self._clients["lambda"]
            answer = client.invoke(FunctionName=function, Payload=json.dumps(event).encode())
            return str(json.loads(json.loads(answer["Payload"].read())["body"])["error"])

    def may(self, role: str, action: str, resource: str) -> bool:
        """Whether a role's own policies let it. Raises NotSeen."""
        with _translated(f"the permissions of {role}"):
            client = self._clients["iam"]
            arn = client.get_role(RoleName=role)["Role"]["Arn"]
            asked = {"ActionNames": [action], "ResourceArns": [resource]}
            found = client.simulate_principal_policy(PolicySourceArn=arn, **asked)
            return all(each["EvalDecision"] == "allowed" for each in found["EvaluationResults"])

    def _metric(
        self, namespace: str, name: str, dimensions: Mapping[str, str], statistic: str, hours: int
    ) -> list[float]:
        now = datetime.now(UTC)
        with _translated(f"the metric {name}"):
            found = self._clients["cloudwatch"].get_metric_statistics(
                Namespace=f"AWS/{namespace}",
                MetricName=name,
                Dimensions=[{"Name": k, "Value": v} for k, v in dimensions.items()],
                StartTime=now - timedelta(hours=hours),
                EndTime=now,
                Period=300,
                Statistics=[statistic],
            )
        return [float(point[statistic]) for point in found["Datapoints"]]


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise NotSeen("NOT_SEEN", f"{what} cannot be seen: {error}") from error
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise NotSeen("NOT_SEEN", f"{what} cannot be seen: the answer lacks {error}") from error
