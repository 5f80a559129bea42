"""What CloudFormation says about stacks, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
