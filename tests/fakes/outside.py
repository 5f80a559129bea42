"""A deployment as AWS shows it to a user."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cli.doctor.aws_view import (
    ALARM,
    FUNCTION,
    MAPPING,
    QUEUE,
    RULE,
    Deviation,
    FunctionView,
    NotVisible,
    StackView,
)

RESOURCES = {
    "OnUploadLambdaFunction": (FUNCTION, "on-upload"),
    "OnAlertLambdaFunction": (FUNCTION, "on-alert"),
    "OnActionLambdaFunction": (FUNCTION, "on-action"),
    "UploadMapping": (MAPPING, "mapping-1"),
    "SweepRule": (RULE, "sweep-rule"),
    "DigestRule": (RULE, "digest-rule"),
    "UploadDeadLetters": (QUEUE, "http://sqs/0/uploads-dead"),
    "AnyAlarm": (ALARM, "lakegate-dev-x"),
}
PLATFORM = {"NessieAlarm": (ALARM, "lakegate-dev-nessie-down")}
ROLES = ("OnUpload", "OnJobRun", "Sweep", "Job", "CleanUp", "Expire", "Checkup")


@dataclass
class FakeOutside:
    """See AwsView: the resources that AWS shows; `hidden` are the reads that it refuses."""

    sha256: str
    status: str = "CREATE_COMPLETE"
    platform: str = "UPDATE_COMPLETE"
    states: Mapping[str, str] = field(default_factory=dict)
    ringing: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, float] = field(default_factory=dict)
    ages: Mapping[str, float] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=lambda: {"slack"})
    allows: Callable[[str, str, str], bool] = lambda role, action, resource: True
    hidden: set[str] = field(default_factory=set)
    users: str = "U0ADA, U0BOB"
    answered: str = "NOT_SLACK"
    deviating: Sequence[Deviation] = ()
    uploads: str = "uploads"
    digest: str = "ENABLED"

    def __getattribute__(self, name: str) -> Any:
        if name in object.__getattribute__(self, "hidden"):
            raise NotVisible("NOT_SEEN", f"{name} cannot be seen: AccessDenied")
        return object.__getattribute__(self, name)

    def stack(self, name: str) -> StackView:
        roles = {f"{each}Role": ("AWS::IAM::Role", f"role-{each}") for each in ROLES}
        if name != "lakegate-dev":
            there = name.endswith("-platform") and self.platform
            return StackView(name, there or "", resources=PLATFORM if there else {})
        queue = {"UploadQueue": (QUEUE, f"http://sqs/0/{self.uploads}")}
        given = {"Stage": "dev", "DigestState": self.digest}
        return StackView(name, self.status, given, RESOURCES | roles | queue)

    def function(self, name: str) -> FunctionView:
        _require(name)
        told = {"LAKEGATE_SLACK_TOKEN_SECRET": "slack", "LAKEGATE_SLACK_USERS": self.users}
        return FunctionView(name, self.sha256, self.states.get(name, "Active"), "Successful", told)

    def deviations(self, stack: str) -> list[Deviation]:
        return list(self.deviating)

    def mapping(self, id_: str) -> str:
        _require(id_)
        return self.states.get(id_, "Enabled")

    def rule(self, name: str) -> str:
        _require(name)
        return self.states.get(name, "ENABLED")

    def alarms(self, prefix: str) -> dict[str, str]:
        return {name: says for name, says in self.ringing.items() if name.startswith(prefix)}

    def errors(self, function: str, hours: int) -> float:
        return self.failed.get(function, 0)

    def oldest(self, queue: str, hours: int) -> float:
        return self.ages.get(queue, 0)

    def has_secret(self, name: str) -> bool:
        return name in self.secrets

    def refusal(self, function: str) -> str:
        _require(function)
        return self.answered

    def may(self, role: str, action: str, resource: str) -> bool:
        return self.allows(role, action, resource)


def _require(id_: str) -> None:
    if id_ not in {there for _, there in RESOURCES.values()}:
        raise NotVisible("NOT_SEEN", f"{id_} cannot be seen")
