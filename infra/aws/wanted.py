"""A stack as it is to be: planned, judged, and made so."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from infra import template
from infra.aws.indexes import steps
from infra.aws.losses import refuse_losses
from infra.aws.site import Site
from infra.package import Package
from infra.plans import Change, Plan
from infra.stage import Stage
from infra.template import Template
from lakegate.errors import LakegateError

_TOLD_BY_SSM = "AWS::SSM::Parameter::Value<"


@dataclass(frozen=True)
class Wanted:
    """A stack's name, template and parameters."""

    stack: str
    template: Template
    parameters: Mapping[str, str]

    @property
    def additions(self) -> list[Change]:
        """What is made where there is nothing yet."""
        every = self.template["Resources"].items()
        return [Change(name, resource["Type"], "Add") for name, resource in every]


def app(file: Path, site: Site, package: Package, chosen: Mapping[str, str]) -> Wanted:
    """The stack of template.yaml, with the package's code; `chosen` is what the stage sets."""
    read = template.with_code(template.read(file), site.artifacts.code_address(package))
    return Wanted(site.stage.stack, read, parameters(read, site.stage, chosen))


def platform(file: Path, stage: Stage, public_key: str, chosen: Mapping[str, str]) -> Wanted:
    """The stack of infra/platform.yml; Nessie knows tokens by the `public_key`."""
    read = template.read(file)
    told = parameters(read, stage, chosen)
    return Wanted(stage.platform_stack, read, {**told, "NessiePublicKey": public_key})


def parameters(read: Mapping[str, Any], stage: Stage, chosen: Mapping[str, str]) -> dict[str, str]:
    """The template's parameters: the names of the facts in SSM, and those that were chosen."""
    mine = {name: value for name, value in chosen.items() if name in read["Parameters"]}
    return {**facts(read, stage), **mine, "Stage": stage.name}


def facts(read: Mapping[str, Any], stage: Stage) -> dict[str, str]:
    """The template's parameters that are facts, and what each is called in SSM."""
    known = read["Parameters"].items()
    told = [name for name, each in known if str(each["Type"]).startswith(_TOLD_BY_SSM)]
    return {name: stage.parameter(_kebab(name)) for name in told}


def refuse_unknown(chosen: Mapping[str, str], files: Iterable[Path]) -> None:
    """Raises LakegateError BAD_SETTING for a setting that none of the templates knows."""
    known = sorted({name for file in files for name in template.read(file)["Parameters"]})
    if unknown := sorted(set(chosen) - set(known)):
        message = f"there is no setting {', '.join(unknown)}; there are: {', '.join(known)}"
        raise LakegateError("BAD_SETTING", message)


def plan(site: Site, wanted: Wanted) -> Plan | None:
    """What would change; None where nothing would. Raises LakegateError."""
    source = site.artifacts.template(template.body(wanted.template))
    return site.stacks.plan(wanted.stack, source, wanted.parameters)


def bring(site: Site, wanted: Wanted) -> None:
    """Have the stack be what is wanted.

    Raises LakegateError: WOULD_LOSE_DATA before anything was changed, DEPLOYMENT_FAILED with
    CloudFormation's reasons.
    """
    planned = plan(site, wanted)
    if planned:
        try:
            refuse_losses(planned.changes)
        except LakegateError:
            site.stacks.discard(planned)
            raise
    if planned and _index_by_index(site, wanted):
        planned = plan(site, wanted)
    if planned:
        site.tell(f"deploying the stack {wanted.stack}: {len(planned.changes)} changes")
        site.stacks.carry_out(planned)
    else:
        site.tell(f"the stack {wanted.stack} is up to date: nothing to change")


def _index_by_index(site: Site, wanted: Wanted) -> bool:
    """Make a table's new indexes but the last of them; whether there were any to make."""
    if not site.stacks.exists(wanted.stack):
        return False
    between = steps(site.stacks.template(wanted.stack), wanted.template)
    for number, step in enumerate(between, 1):
        site.tell(f"a table's new indexes, one at a time: {number} of {len(between) + 1}")
        source = site.artifacts.template(template.body(step))
        planned = site.stacks.plan(wanted.stack, source, dict.fromkeys(step.get("Parameters", {})))
        if planned:
            site.stacks.carry_out(planned)
    return bool(between)


def bring_platform(site: Site, wanted: Wanted) -> None:
    """Have the platform's stack be what is wanted; raises as `bring` does.

    RDS does not let go of what is protected, so that a first deployment that fails could not be
    taken back: the first one makes the database without, and then gives it its protection.
    """
    if not site.stacks.exists(wanted.stack):
        free = {**wanted.parameters, "DeletionProtection": "false"}
        bring(site, replace(wanted, parameters=free))
    bring(site, wanted)


def _kebab(name: str) -> str:
    return re.sub("(?<=.)(?=[A-Z])", "-", name).lower()
