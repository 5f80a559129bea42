"""A template's roles and policies with CloudFormation's functions resolved."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra import template
from tests.policies import Identity, Policy, listed

ACCOUNT = "000000000000"
EMR = {"EmrApplicationId": "00app", "EmrSharedApplicationId": "00shared"}  # parameters
# Parameters with which the application calls all services that it can.
EVERYTHING = {
    **EMR,
    "SlackTokenSecret": "lakegate/slack",
    "AlertTopicArn": f"arn:aws:sns:us-east-1:{ACCOUNT}:people",
    "GlueDatabasePrefix": "lake_",
    "SnowflakeSecret": "snowflake",
    "LineageUrl": "https://lineage",
    "LineageSecret": "lineage",
}
_TEMPLATE = Path(__file__).parents[1] / "template.yaml"
_NOTHING = object()
_PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "AWS::AccountId": ACCOUNT,
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::StackName": "lakegate-dev",
    "AWS::NoValue": _NOTHING,
}
# The start of an ARN, and the property that names the resource.
_ARNS = {
    "AWS::S3::Bucket": ("arn:aws:s3:::", "BucketName"),
    "AWS::DynamoDB::Table": (f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/", "TableName"),
    "AWS::SQS::Queue": (f"arn:aws:sqs:us-east-1:{ACCOUNT}:", "QueueName"),
    "AWS::IAM::Role": (f"arn:aws:iam::{ACCOUNT}:role/", "RoleName"),
    "AWS::Logs::LogGroup": (f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:", "LogGroupName"),
    "AWS::Serverless::Function": (
        f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:",
        "FunctionName",
    ),
}


@dataclass(frozen=True)
class Compiled:
    """A template with the values of its parameters."""

    resources: Mapping[str, Mapping[str, Any]]
    conditions: Mapping[str, Any]
    parameters: Mapping[str, str]

    @classmethod
    def of(cls, file: Path, **parameters: str) -> "Compiled":
        """Return the template in a file; parameters without a default have their name as value."""
        read = template.read(file)
        known = {n: str(p.get("Default", n)) for n, p in read.get("Parameters", {}).items()}
        return cls(read["Resources"], read.get("Conditions", {}), {**known, **parameters})

    def roles(self) -> dict[str, Identity]:
        """Return every role by its logical id, with its policies."""
        return {
            name: Identity(self.arn(name), [p["PolicyDocument"] for p in self._policies(name)])
            for name in self._named("AWS::IAM::Role")
        }

    def trust(self, role: str) -> Policy:
        """Return the principals that may assume a role."""
        return dict(self.resolve(self.resources[role]["Properties"]["AssumeRolePolicyDocument"]))

    def bucket_policies(self) -> dict[str, Policy]:
        """Return the buckets' policies by the bucket's ARN."""
        found = (self._properties(name) for name in self._named("AWS::S3::BucketPolicy"))
        return {f"arn:aws:s3:::{each['Bucket']}": each["PolicyDocument"] for each in found}

    def queue_policies(self) -> list[Policy]:
        """Return the policies of queues."""
        return [self._properties(n)["PolicyDocument"] for n in self._named("AWS::SQS::QueuePolicy")]

    def arn(self, name: str) -> str:
        """Return the ARN of a resource by its logical id."""
        resource = self.resources[name]
        kind = resource["Type"]
        beginning, named = _ARNS.get(kind, (f"arn:aws:{kind}:us-east-1:{ACCOUNT}:", ""))
        arn = f"{beginning}{self._name(name, named)}"
        return f"{arn}:*" if kind == "AWS::Logs::LogGroup" else arn

    def resolve(self, value: Any) -> Any:
        """Return a value of the template with CloudFormation's functions resolved."""
        if isinstance(value, list):
            return [each for each in map(self.resolve, value) if each is not _NOTHING]
        if not isinstance(value, dict):
            return value
        if len(value) == 1 and (name := next(iter(value))) in _FUNCTIONS:
            return _FUNCTIONS[name](self, value[name])
        resolved = {key: self.resolve(each) for key, each in value.items()}
        return {key: each for key, each in resolved.items() if each is not _NOTHING}

    def referred(self, name: str) -> Any:
        """Return the value of a `Ref`."""
        if name in _PSEUDO:
            return _PSEUDO[name]
        if name in self.parameters:
            return self.parameters[name]
        named = _ARNS.get(self.resources[name]["Type"], ("", ""))[1]
        return self._name(name, named)

    def filled(self, text: Any) -> str:
        """Return the value of a `Fn::Sub`."""
        body, more = (text, {}) if isinstance(text, str) else (text[0], text[1])
        values = {name: self.resolve(value) for name, value in more.items()}

        def value(found: re.Match[str]) -> str:
            name = found[1]
            if name in values:
                return str(values[name])
            resource, _, attribute = name.partition(".")
            return str(self.arn(resource) if attribute == "Arn" else self.referred(name))

        return re.sub(r"\$\{([A-Za-z0-9:.]+)\}", value, body)

    def holds(self, condition: str) -> bool:
        """Return whether one of the template's conditions holds."""
        return bool(self.resolve(self.conditions[condition]))

    def _name(self, name: str, named: str) -> str:
        properties = self.resources[name].get("Properties", {})
        return str(self.resolve(properties[named])) if named in properties else name

    def _named(self, kind: str) -> Iterator[str]:
        return (name for name, each in self.resources.items() if each["Type"] == kind)

    def _properties(self, name: str) -> dict[str, Any]:
        return dict(self.resolve(self.resources[name]["Properties"]))

    def _policies(self, role: str) -> list[dict[str, Any]]:
        attached = [
            self._properties(name)
            for name in self._named("AWS::IAM::Policy")
            if {"Ref": role} in listed(self.resources[name]["Properties"]["Roles"])
        ]
        return [*self._properties(role).get("Policies", []), *attached]


def application(**parameters: str) -> Compiled:
    """Return the application's template with both applications of EMR."""
    return Compiled.of(_TEMPLATE, **{**EMR, **parameters})


_FUNCTIONS: Mapping[str, Callable[[Compiled, Any], Any]] = {
    "Ref": Compiled.referred,
    "Condition": Compiled.holds,
    "Fn::GetAtt": lambda c, given: c.arn(given[0]) if given[1] == "Arn" else ".".join(given),
    "Fn::Sub": Compiled.filled,
    "Fn::If": lambda c, given: c.resolve(given[1 if c.holds(given[0]) else 2]),
    "Fn::Equals": lambda c, given: c.resolve(given[0]) == c.resolve(given[1]),
    "Fn::Not": lambda c, given: not c.resolve(given[0]),
    "Fn::And": lambda c, given: all(map(c.resolve, given)),
    "Fn::Or": lambda c, given: any(map(c.resolve, given)),
    "Fn::Join": lambda c, given: given[0].join(map(str, c.resolve(given[1]))),
    "Fn::Select": lambda c, given: c.resolve(given[1])[int(given[0])],
    "Fn::GetAZs": lambda _, __: ["us-east-1a", "us-east-1b"],
    "Fn::Split": lambda c, given: str(c.resolve(given[1])).split(given[0]),
}
