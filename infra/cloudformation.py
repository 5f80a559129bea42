"""Plan and carry out changes of CloudFormation stacks by change sets."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import BotoCoreError, ClientError

from infra.template import Template, parse
from lakegate.errors import LakegateError


@dataclass(frozen=True)
class Change:
    """A change of one resource: `action` is Add, Modify, Remove or Import.

    `replacement` tells of a Modify whether it replaces the resource: True, False, or Conditional
    if CloudFormation decides that during the update.
    """

    resource: str
    type: str
    action: str
    replacement: str = ""
    properties: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resource:
    """One resource of a stack; `id` is its physical id."""

    name: str
    type: str
    id: str


@dataclass(frozen=True)
class Existing:
    """A resource outside any stack: its logical id to be, and its name by a property of its."""

    name: str
    type: str
    named_by: str
    id: str

    @property
    def request(self) -> dict[str, Any]:
        """Return its entry in `ResourcesToImport`."""
        return {
            "LogicalResourceId": self.name,
            "ResourceType": self.type,
            "ResourceIdentifier": {self.named_by: self.id},
        }


@dataclass(frozen=True)
class Plan:
    """A change set that is ready to be executed."""

    id: str
    stack: str
    changes: tuple[Change, ...]


def change(entry: Mapping[str, Any]) -> Change:
    """Return the change in an entry of a change set's `Changes`."""
    resource = entry["ResourceChange"]
    targets = [detail.get("Target", {}) for detail in resource.get("Details", [])]
    names = [target.get("Name") or target.get("Attribute", "") for target in targets]
    return Change(
        resource=resource["LogicalResourceId"],
        type=resource["ResourceType"],
        action=resource["Action"],
        replacement=resource.get("Replacement", ""),
        properties=tuple(sorted({name for name in names if name})),
    )


Tell = Callable[[str], None]

_NO_CHANGE = ("didn't contain changes", "No updates are to be performed")
_BUSY = ("_IN_PROGRESS", "_PENDING")
_IN_REVIEW = "REVIEW_IN_PROGRESS"
_GONE = "DELETE_COMPLETE"
_CREATION_FAILED = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED")
_STUCK = {
    "UPDATE_ROLLBACK_FAILED": "continue-update-rollback",
    "DELETE_FAILED": "delete-stack",
}
_DONE = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE")
_CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_SECONDS = 3600  # a database alone takes a quarter of an hour


class Stacks:
    """An account's CloudFormation stacks in a region."""

    def __init__(
        self, client: Any, tell: Tell = lambda _: None, tags: Mapping[str, str] | None = None
    ) -> None:
        """Use boto3's `cloudformation` client; `tell` reports the progress.

        Stacks get the `tags`, and pass them on to their resources; without tags they keep theirs.
        """
        self._client = client
        self._tell = tell
        tagged = [{"Key": key, "Value": value} for key, value in (tags or {}).items()]
        self._tags: dict[str, Any] = {"Tags": tagged} if tagged else {}

    def plan(
        self,
        stack: str,
        template: Mapping[str, str | bool],
        parameters: Mapping[str, str | None],
        adopted: Sequence[Existing] = (),
    ) -> Plan | None:
        """Create a change set; return None if nothing would change.

        `template` has `TemplateBody` or `TemplateURL`, or says `UsePreviousTemplate`; a parameter
        that is None keeps its value. A stack whose creation failed is deleted first; a busy one is
        waited for. With `adopted`, the change set only takes these resources into the stack. Raises
        LakegateError.
        """
        with _translated(stack):
            kind = "UPDATE" if self._ready(stack) else "CREATE"
            made = self._client.create_change_set(
                StackName=stack,
                ChangeSetName=f"lakegate-{time.time_ns()}",
                ChangeSetType="IMPORT" if adopted else kind,
                Parameters=[_parameter(*each) for each in parameters.items()],
                Capabilities=_CAPABILITIES,
                # An import changes no tags; the next update sets them.
                **({"ResourcesToImport": [e.request for e in adopted]} if adopted else self._tags),
                **template,
            )["Id"]
            change_set = _settled(lambda: self._change_set(made), "Status")
            if change_set["Status"] == "CREATE_COMPLETE":
                return Plan(made, stack, tuple(map(change, change_set["Changes"])))
            self._discard(made, stack)
        reason = change_set.get("StatusReason", "")
        if any(words in reason for words in _NO_CHANGE):
            return None
        raise LakegateError("DEPLOYMENT_FAILED", f"the stack {stack}: {reason}")

    def discard(self, plan: Plan) -> None:
        """Delete the change set, and its stack if that has nothing else."""
        with _translated(plan.stack):
            self._discard(plan.id, plan.stack)

    def carry_out(self, plan: Plan) -> None:
        """Execute the change set. Raises LakegateError with CloudFormation's reasons."""
        token = plan.id.rpartition("/")[2]
        with _translated(plan.stack):
            self._client.execute_change_set(ChangeSetName=plan.id, ClientRequestToken=token)
            stack = self._wait(plan.stack, token)
            if stack["StackStatus"] in _DONE:
                return
            reasons = [_event_line(e) for e in self._events(plan.stack, token) if _failed(e)]
        ended = f"the stack {plan.stack} ended {stack['StackStatus']}:"
        raise LakegateError("DEPLOYMENT_FAILED", "\n".join([ended, *(reasons or [_reason(stack)])]))

    def protect(self, stack: str) -> None:
        """Let nobody delete the stack until the protection is taken off by hand."""
        with _translated(stack):
            self._client.update_termination_protection(
                StackName=stack, EnableTerminationProtection=True
            )

    def exists(self, stack: str) -> bool:
        """Return whether the stack was ever deployed."""
        with _translated(stack):
            state = self._find(stack)
            return state is not None and state["StackStatus"] not in (
                *_CREATION_FAILED,
                _IN_REVIEW,
            )

    def outputs(self, stack: str) -> dict[str, str]:
        """Return the stack's outputs by name. Raises LakegateError if there is no such stack."""
        return {o["OutputKey"]: o["OutputValue"] for o in self._get(stack).get("Outputs", [])}

    def parameters(self, stack: str) -> dict[str, str]:
        """Return the stack's parameters. Raises LakegateError if there is no such stack."""
        parameters = self._get(stack).get("Parameters", [])
        return {p["ParameterKey"]: p["ParameterValue"] for p in parameters}

    def changed_at(self, stack: str) -> datetime:
        """Return when the stack last changed. Raises LakegateError if there is no such stack."""
        state = self._get(stack)
        changed: datetime = state.get("LastUpdatedTime", state["CreationTime"])
        return changed

    def template(self, stack: str) -> Template:
        """Return the template of the stack's last update, with its macros resolved."""
        with _translated(stack):
            answer = self._client.get_template(StackName=stack, TemplateStage="Processed")
        body = answer["TemplateBody"]
        return parse(body) if isinstance(body, str) else dict(body)

    def resources(self, stack: str) -> list[Resource]:
        """Return the stack's resources."""
        with _translated(stack):
            pages = self._client.get_paginator("list_stack_resources").paginate(StackName=stack)
            summaries = [each for page in pages for each in page["StackResourceSummaries"]]
        return [
            Resource(
                each["LogicalResourceId"], each["ResourceType"], each.get("PhysicalResourceId", "")
            )
            for each in summaries
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
        """Return whether there is a stack to update, once it is no longer busy."""
        state = self._find(stack)
        if state and state["StackStatus"] != _IN_REVIEW and _busy(state["StackStatus"]):
            self._tell(f"the stack {stack} is {state['StackStatus']}: waiting until it is not")
            state = self._wait(stack)
        if not state or state["StackStatus"] in (_IN_REVIEW, _GONE):
            return False
        if state["StackStatus"] in _STUCK:
            raise LakegateError("STACK_STUCK", _stuck(state))
        if state["StackStatus"] not in _CREATION_FAILED:
            return True
        self._tell(f"deleting the stack {stack}, whose creation failed ({state['StackStatus']})")
        self._delete(stack)
        return False

    def _delete(self, stack: str) -> None:
        self._client.delete_stack(StackName=stack)
        waiter = self._client.get_waiter("stack_delete_complete")
        waiter.wait(StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": _SECONDS})

    def _discard(self, change_set: str, stack: str) -> None:
        self._client.delete_change_set(ChangeSetName=change_set)
        state = self._find(stack)
        if state and state["StackStatus"] == _IN_REVIEW:
            self._delete(stack)

    def _change_set(self, id_: str) -> dict[str, Any]:
        pages = list(self._client.get_paginator("describe_change_set").paginate(ChangeSetName=id_))
        return {**pages[0], "Changes": [each for page in pages for each in page["Changes"]]}

    def _wait(self, stack: str, token: str = "") -> dict[str, Any]:
        """Wait until the stack is no longer busy, and report its resources' events meanwhile."""
        reported: set[str] = set()

        def read() -> dict[str, Any]:
            state = self._find(stack) or {"StackStatus": _GONE}
            for event in reversed(self._events(stack, token) if token else []):
                if event["EventId"] not in reported and not _busy(event["ResourceStatus"]):
                    reported.add(event["EventId"])
                    self._tell(_event_line(event))
            return state

        return _settled(read, "StackStatus")

    def _events(self, stack: str, token: str) -> list[dict[str, Any]]:
        """Yield the events of one operation, the newest first."""
        events = []
        for page in self._client.get_paginator("describe_stack_events").paginate(StackName=stack):
            mine = [e for e in page["StackEvents"] if e.get("ClientRequestToken") == token]
            events += mine
            if len(mine) < len(page["StackEvents"]):
                break
        return events


def _parameter(name: str, value: str | None) -> dict[str, Any]:
    source = {"UsePreviousValue": True} if value is None else {"ParameterValue": value}
    return {"ParameterKey": name, **source}


def _settled(read: Callable[[], dict[str, Any]], status: str) -> dict[str, Any]:
    deadline, pause = time.monotonic() + _SECONDS, _FIRST_PAUSE
    while _busy((state := read())[status]):
        if time.monotonic() > deadline:
            message = f"CloudFormation still says {state[status]} after {_SECONDS} seconds"
            raise LakegateError("DEPLOYMENT_FAILED", f"{message}; run this again to go on")
        time.sleep(pause)
        pause = min(pause * 1.3, _LONGEST_PAUSE)
    return state


def _busy(status: str) -> bool:
    return status.endswith(_BUSY)


def _failed(event: Mapping[str, Any]) -> bool:
    return str(event["ResourceStatus"]).endswith("_FAILED")


def _event_line(event: Mapping[str, Any]) -> str:
    reason = event.get("ResourceStatusReason", "")
    line = f"    {event['LogicalResourceId']}: {event['ResourceStatus']}"
    return f"{line}: {reason}" if reason else line


def _reason(stack: Mapping[str, Any]) -> str:
    return str(stack.get("StackStatusReason", "CloudFormation gives no reason"))


def _stuck(state: Mapping[str, Any]) -> str:
    stack, status = state["StackName"], state["StackStatus"]
    command = f"aws cloudformation {_STUCK[status]} --stack-name {stack}"
    return (
        f"the stack {stack} is {status}, and only you can repair it:"
        f" {_reason(state)}. Fix what this names, run `{command}`, and deploy again"
    )


def _translated(stack: str) -> AbstractContextManager[None]:
    return translated("DEPLOYMENT_FAILED", f"the stack {stack}")


@contextmanager
def translated(code: str, what: str) -> Iterator[None]:
    """Raise boto3's errors as LakegateError with this code: `what` failed, and why."""
    try:
        yield
    except (ClientError, BotoCoreError, S3UploadFailedError) as error:
        raise LakegateError(code, f"{what}: {error}") from error
