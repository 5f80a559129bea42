"""CloudFormation: what a stack would become, and making it so, by change sets."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.template import Template, parse
from lakegate.errors import LakegateError

# What CloudFormation says about stacks, as values.


@dataclass(frozen=True)
class Change:
    """What happens to one resource: `action` is Add, Modify, Remove or Import.

    `replacement` says of a Modify whether it makes a new resource in place of the old one: True,
    False, or Conditional where CloudFormation knows only when it gets there.
    """

    resource: str
    type: str
    action: str
    replacement: str = ""
    properties: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resource:
    """One resource of a stack; `id` is what its service knows it by."""

    name: str
    type: str
    id: str


@dataclass(frozen=True)
class Plan:
    """A change set that is ready to be carried out."""

    id: str
    stack: str
    changes: tuple[Change, ...]


def change(given: Mapping[str, Any]) -> Change:
    """The change in an entry of a change set's `Changes`."""
    found = given["ResourceChange"]
    targets = [detail.get("Target", {}) for detail in found.get("Details", [])]
    names = [target.get("Name") or target.get("Attribute", "") for target in targets]
    return Change(
        resource=found["LogicalResourceId"],
        type=found["ResourceType"],
        action=found["Action"],
        replacement=found.get("Replacement", ""),
        properties=tuple(sorted({name for name in names if name})),
    )


Tell = Callable[[str], None]

_NO_CHANGE = ("didn't contain changes", "No updates are to be performed")
_BUSY = ("_IN_PROGRESS", "_PENDING")
_IN_REVIEW = "REVIEW_IN_PROGRESS"
_GONE = "DELETE_COMPLETE"
_NEVER_CAME_TO_BE = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED")
_STUCK = {
    "UPDATE_ROLLBACK_FAILED": "continue-update-rollback",
    "DELETE_FAILED": "delete-stack",
}
_DONE = ("CREATE_COMPLETE", "UPDATE_COMPLETE")
_CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_SECONDS = 3600  # a database alone takes a quarter of an hour


class Stacks:
    """An account's CloudFormation stacks in a region."""

    def __init__(self, client: Any, tell: Tell = lambda _: None) -> None:
        """`client` is boto3's `cloudformation` client; `tell` hears what a wait is for."""
        self._client = client
        self._tell = tell

    def plan(
        self, stack: str, template: Mapping[str, str], parameters: Mapping[str, str | None]
    ) -> Plan | None:
        """Have CloudFormation work out what would change; None where nothing would.

        `template` is where the template is, `TemplateBody` or `TemplateURL`; a parameter that is
        None keeps its value. A stack that never came to be is cleared away first, one that is busy
        is awaited. Raises LakegateError.
        """
        with _translated(stack):
            kind = "UPDATE" if self._ready(stack) else "CREATE"
            made = self._client.create_change_set(
                StackName=stack,
                ChangeSetName=f"lakegate-{time.time_ns()}",
                ChangeSetType=kind,
                Parameters=[_parameter(*each) for each in parameters.items()],
                Capabilities=_CAPABILITIES,
                **template,
            )["Id"]
            found = _settled(lambda: self._change_set(made), "Status")
            if found["Status"] == "CREATE_COMPLETE":
                return Plan(made, stack, tuple(map(change, found["Changes"])))
            self._discard(made, stack)
        reason = found.get("StatusReason", "")
        if any(words in reason for words in _NO_CHANGE):
            return None
        raise LakegateError("DEPLOYMENT_FAILED", f"the stack {stack}: {reason}")

    def discard(self, plan: Plan) -> None:
        """Leave everything as it is: the change set goes, and a stack that is nothing else."""
        with _translated(plan.stack):
            self._discard(plan.id, plan.stack)

    def carry_out(self, plan: Plan) -> None:
        """Make the changes. Raises LakegateError with CloudFormation's reasons when that fails."""
        token = plan.id.rpartition("/")[2]
        with _translated(plan.stack):
            self._client.execute_change_set(ChangeSetName=plan.id, ClientRequestToken=token)
            found = self._wait(plan.stack, token)
            if found["StackStatus"] in _DONE:
                return
            reasons = [_told(e) for e in self._events(plan.stack, token) if _failed(e)]
        told = f"the stack {plan.stack} ended {found['StackStatus']}:"
        raise LakegateError("DEPLOYMENT_FAILED", "\n".join([told, *(reasons or [_reason(found)])]))

    def exists(self, stack: str) -> bool:
        """Whether the stack was ever deployed."""
        with _translated(stack):
            found = self._find(stack)
            return found is not None and found["StackStatus"] not in (
                *_NEVER_CAME_TO_BE,
                _IN_REVIEW,
            )

    def outputs(self, stack: str) -> dict[str, str]:
        """The stack's outputs by their names. Raises LakegateError where there is no such stack."""
        return {o["OutputKey"]: o["OutputValue"] for o in self._get(stack).get("Outputs", [])}

    def parameters(self, stack: str) -> dict[str, str]:
        """The stack's parameters. Raises LakegateError where there is no such stack."""
        found = self._get(stack).get("Parameters", [])
        return {p["ParameterKey"]: p["ParameterValue"] for p in found}

    def changed_at(self, stack: str) -> datetime:
        """When the stack was last changed. Raises LakegateError where there is no such stack."""
        found = self._get(stack)
        changed: datetime = found.get("LastUpdatedTime", found["CreationTime"])
        return changed

    def template(self, stack: str) -> Template:
        """The template that the stack was last made of, its macros resolved."""
        with _translated(stack):
            found = self._client.get_template(StackName=stack, TemplateStage="Processed")
        body = found["TemplateBody"]
        return parse(body) if isinstance(body, str) else dict(body)

    def resources(self, stack: str) -> list[Resource]:
        """What the stack has by now."""
        with _translated(stack):
            pages = self._client.get_paginator("list_stack_resources").paginate(StackName=stack)
            found = [each for page in pages for each in page["StackResourceSummaries"]]
        return [
            Resource(
                each["LogicalResourceId"], each["ResourceType"], each.get("PhysicalResourceId", "")
            )
            for each in found
        ]

    def _get(self, stack: str) -> dict[str, Any]:
        with _translated(stack):
            return dict(self._client.describe_stacks(StackName=stack)["Stacks"][0])

    def _find(self, stack: str) -> dict[str, Any] | None:
        try:
            return dict(self._client.describe_stacks(StackName=stack)["Stacks"][0])
        except ClientError as error:
            if "does not exist" in str(error):
                return None
            raise

    def _ready(self, stack: str) -> bool:
        """Whether there is a stack to update, when it can be."""
        found = self._find(stack)
        if found and found["StackStatus"] != _IN_REVIEW and _busy(found["StackStatus"]):
            self._tell(f"the stack {stack} is {found['StackStatus']}: waiting until it is not")
            found = self._wait(stack)
        if not found or found["StackStatus"] in (_IN_REVIEW, _GONE):
            return False
        if found["StackStatus"] in _STUCK:
            raise LakegateError("STACK_STUCK", _stuck(found))
        if found["StackStatus"] not in _NEVER_CAME_TO_BE:
            return True
        self._tell(f"the stack {stack} never came to be ({found['StackStatus']}): clearing it away")
        self._delete(stack)
        return False

    def _delete(self, stack: str) -> None:
        self._client.delete_stack(StackName=stack)
        waiter = self._client.get_waiter("stack_delete_complete")
        waiter.wait(StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": _SECONDS})

    def _discard(self, change_set: str, stack: str) -> None:
        self._client.delete_change_set(ChangeSetName=change_set)
        found = self._find(stack)
        if found and found["StackStatus"] == _IN_REVIEW:
            self._delete(stack)

    def _change_set(self, id_: str) -> dict[str, Any]:
        pages = list(self._client.get_paginator("describe_change_set").paginate(ChangeSetName=id_))
        return {**pages[0], "Changes": [each for page in pages for each in page["Changes"]]}

    def _wait(self, stack: str, token: str = "") -> dict[str, Any]:
        """The stack when it is busy no more; what happens to its resources is told meanwhile."""
        told: set[str] = set()

        def look() -> dict[str, Any]:
            found = self._find(stack) or {"StackStatus": _GONE}
            for event in reversed(self._events(stack, token) if token else []):
                if event["EventId"] not in told and not _busy(event["ResourceStatus"]):
                    told.add(event["EventId"])
                    self._tell(_told(event))
            return found

        return _settled(look, "StackStatus")

    def _events(self, stack: str, token: str) -> list[dict[str, Any]]:
        """What happened in one operation, the newest first."""
        events = []
        for page in self._client.get_paginator("describe_stack_events").paginate(StackName=stack):
            mine = [e for e in page["StackEvents"] if e.get("ClientRequestToken") == token]
            events += mine
            if len(mine) < len(page["StackEvents"]):
                break
        return events


def _parameter(name: str, value: str | None) -> dict[str, Any]:
    given = {"UsePreviousValue": True} if value is None else {"ParameterValue": value}
    return {"ParameterKey": name, **given}


def _settled(look: Callable[[], dict[str, Any]], status: str) -> dict[str, Any]:
    deadline, pause = time.monotonic() + _SECONDS, _FIRST_PAUSE
    while _busy((found := look())[status]):
        if time.monotonic() > deadline:
            message = f"CloudFormation still says {found[status]} after {_SECONDS} seconds"
            raise LakegateError("DEPLOYMENT_FAILED", f"{message}; running this again goes on")
        time.sleep(pause)
        pause = min(pause * 1.3, _LONGEST_PAUSE)
    return found


def _busy(status: str) -> bool:
    return status.endswith(_BUSY)


def _failed(event: Mapping[str, Any]) -> bool:
    return str(event["ResourceStatus"]).endswith("_FAILED")


def _told(event: Mapping[str, Any]) -> str:
    reason = event.get("ResourceStatusReason", "")
    told = f"    {event['LogicalResourceId']}: {event['ResourceStatus']}"
    return f"{told}: {reason}" if reason else told


def _reason(stack: Mapping[str, Any]) -> str:
    return str(stack.get("StackStatusReason", "CloudFormation gives no reason"))


def _stuck(found: Mapping[str, Any]) -> str:
    stack, status = found["StackName"], found["StackStatus"]
    command = f"aws cloudformation {_STUCK[status]} --stack-name {stack}"
    return (
        f"the stack {stack} is {status}, and nobody but you can get it out of that:"
        f" {_reason(found)}. Mend what this names, run `{command}`, and deploy again"
    )


@contextmanager
def _translated(stack: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise LakegateError("DEPLOYMENT_FAILED", f"the stack {stack}: {error}") from error
