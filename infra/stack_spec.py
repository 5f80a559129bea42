"""A stack as it is to be: its name, its template, and its parameters."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra import template
from infra.cloudformation import Change
from infra.stage import Stage
from infra.template import Template
from lakegate.errors import LakegateError

_FROM_SSM = "AWS::SSM::Parameter::Value<"


@dataclass(frozen=True)
class StackSpec:
    """A stack's name, template and parameters; one that is None keeps its value."""

    stack: str
    template: Template
    parameters: Mapping[str, str | None]

    @property
    def additions(self) -> list[Change]:
        """Return the changes that create the stack."""
        every = self.template["Resources"].items()
        return [Change(name, resource["Type"], "Add") for name, resource in every]


def platform(file: Path, stage: Stage, public_key: str, chosen: Mapping[str, str]) -> StackSpec:
    """Return the stack of infra/platform.yml; Nessie checks tokens by the `public_key`.

    Raises LakegateError BAD_SETTING if the values break a rule of the template.
    """
    read = template.read(file)
    values = parameters(read, stage, chosen)
    if broken := template.broken_rules(read, values):
        raise LakegateError("BAD_SETTING", "\n".join(broken))
    return StackSpec(stage.platform_stack, read, {**values, "NessiePublicKey": public_key})


def parameters(read: Mapping[str, Any], stage: Stage, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the template's parameters: the facts' names in SSM and the chosen values."""
    mine = {name: value for name, value in chosen.items() if name in read["Parameters"]}
    return {**facts(read, stage), **mine, "Stage": stage.name}


def facts(read: Mapping[str, Any], stage: Stage) -> dict[str, str]:
    """Return the template's parameters that are facts, with their names in SSM."""
    known = read["Parameters"].items()
    names = [name for name, each in known if str(each["Type"]).startswith(_FROM_SSM)]
    return {name: stage.parameter(_kebab(name)) for name in names}


def unchanged(stack: str, wanted: Template) -> StackSpec:
    """Return a deployed stack with another template and the parameters that it has."""
    return StackSpec(stack, wanted, dict.fromkeys(wanted.get("Parameters", {})))


def refuse_unknown(chosen: Mapping[str, str], files: Iterable[Path]) -> None:
    """Raise LakegateError BAD_SETTING for a setting that no template knows."""
    known = sorted({name for file in files for name in template.read(file)["Parameters"]})
    if unknown := sorted(set(chosen) - set(known)):
        message = f"there is no setting {', '.join(unknown)}; there are: {', '.join(known)}"
        raise LakegateError("BAD_SETTING", message)


def is_production(chosen: Mapping[str, str]) -> bool:
    """Return whether the settings are those of a production stage.

    Raises LakegateError BAD_SETTING if nobody would hear of its alarms.
    """
    production = chosen.get("Profile") == "production"
    if production and not chosen.get("AlarmEmail"):
        message = "a production stage needs AlarmEmail: someone must hear of its alarms"
        raise LakegateError("BAD_SETTING", message)
    return production


def _kebab(name: str) -> str:
    return re.sub("(?<=.)(?=[A-Z])", "-", name).lower()
