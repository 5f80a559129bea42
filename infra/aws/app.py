"""The stack of template.yaml: planned, and deployed together with the code that it runs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra import template
from infra.aws.facts import JOB_RELEASE
from infra.aws.losses import refuse_losses
from infra.aws.site import Site
from infra.cloudformation import Plan
from infra.package import Package
from infra.stage import Stage
from infra.template import Template
from lakegate.errors import LakegateError

_TOLD_BY_SSM = "AWS::SSM::Parameter::Value<"


@dataclass(frozen=True)
class App:
    """What is to be deployed; `parameters` are those of the template that the stage sets."""

    template: Template
    package: Package
    parameters: Mapping[str, str]

    @classmethod
    def of(cls, file: Path, stage: Stage, package: Package, chosen: Mapping[str, str]) -> "App":
        """A template's file for a stage. Raises LakegateError BAD_SETTING, see `parameters`."""
        read = template.read(file)
        return cls(read, package, parameters(read, stage, chosen))


def parameters(read: Mapping[str, Any], stage: Stage, chosen: Mapping[str, str]) -> dict[str, str]:
    """The template's parameters: the names of the facts in SSM, and what was chosen.

    Raises LakegateError BAD_SETTING for a parameter that the template does not have.
    """
    known = read["Parameters"]
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        message = f"the template has no parameter {', '.join(unknown)}; it has {', '.join(known)}"
        raise LakegateError("BAD_SETTING", message)
    told = {n: p for n, p in known.items() if str(p["Type"]).startswith(_TOLD_BY_SSM)}
    facts = {name: stage.parameter(_kebab(name)) for name in told}
    return {**facts, **chosen, "Stage": stage.name}


def plan(site: Site, wanted: App) -> Plan | None:
    """What would change; None where nothing would. Raises LakegateError."""
    code = site.artifacts.code_address(wanted.package)
    body = template.body(template.with_code(wanted.template, code))
    source = site.artifacts.template(body)
    return site.stacks.plan(site.stage.stack, source, wanted.parameters)


def deploy(site: Site, wanted: App) -> dict[str, str]:
    """Bring the stack to what is wanted; returns its outputs.

    The job's code is there before a function names it. Raises LakegateError: WOULD_LOSE_DATA
    before anything was changed, DEPLOYMENT_FAILED with CloudFormation's reasons.
    """
    site.artifacts.put_code(wanted.package)
    there = site.artifacts.put_job(wanted.package)
    site.facts.put({JOB_RELEASE: wanted.package.job_release})
    planned = plan(site, wanted)
    if planned:
        carry_out(site, planned)
    else:
        site.tell(f"the stack {site.stage.stack} is up to date: nothing to change")
    if not there:
        site.artifacts.put_job(wanted.package)
    return site.stacks.outputs(site.stage.stack)


def carry_out(site: Site, planned: Plan) -> None:
    """Make the changes of a plan, unless they would lose data. Raises LakegateError."""
    try:
        refuse_losses(planned.changes)
    except LakegateError:
        site.stacks.discard(planned)
        raise
    site.tell(f"deploying the stack {planned.stack}: {len(planned.changes)} changes")
    site.stacks.carry_out(planned)


def _kebab(name: str) -> str:
    return re.sub("(?<=.)(?=[A-Z])", "-", name).lower()
