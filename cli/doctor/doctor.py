"""`lakegate doctor`: find problems of a deployment, and suggest fixes."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

import boto3
import typer
from rich.table import Table
from rich.text import Text

from access.deployment.checkout import checkout, is_checkout
from access.deployment.choice import find
from access.deployment.deployment import Deployment
from access.ingestions.shared_runs import shared_runs
from cli.console import json_output, terminal
from cli.console.options import AsJson
from cli.console.terminal import progress_printer
from cli.contract.check import CONTRACTS, checked_files
from cli.doctor.aws_view import AwsView
from cli.doctor.checks import DoctorInputs, checks
from cli.local.stack import continue_in_project
from functions.health.model import Check, Finding, Status, carry_out
from functions.pipeline.start.spending import spending
from infra import checkup, package, stack_spec, template
from infra.aws.facts import JOB_RELEASE, NESSIE_CA, PLATFORM, Facts
from infra.aws.site import choices
from infra.package import Package
from infra.stage import Stage
from infra.versions import EMR_RELEASE_LABEL, NESSIE
from lakegate.limits import Limits

_PUBLISHER = "publisher's token"  # which only functions that publish may read
_EXPECTED = {"nessie": NESSIE, "emr_release_label": EMR_RELEASE_LABEL}
_MARKS = {
    Status.OK: ("✓", "green", ""),
    Status.WARN: ("!", "yellow", "yellow"),
    Status.FAIL: ("✗", "red", "red"),
}


def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Check a deployment from inside and outside its network; exits 1 on problems."""
    continue_in_project(context.obj)
    deployment = find(context.obj)
    account, region = deployment.settings.emr_role_arn.split(":")[4], boto3.Session().region_name
    inputs = _inputs(deployment, Stage(os.environ["LAKEGATE_STAGE"], account, region))
    stack = inputs.stage.stack
    inside = [_inside("checkup", f"{stack}-checkup"), _inside(_PUBLISHER, f"{stack}-sweep")]
    report(carry_out([*inside, *checks(inputs)]), as_json=as_json)


def report(outcomes: Sequence[Finding], *, as_json: bool) -> None:
    """Print the findings; exit with 1 if one is a failure."""
    if as_json:
        typer.echo(json_output.text({"findings": [asdict(finding) for finding in outcomes]}))
    else:
        many = Counter(finding.status for finding in outcomes)
        summary = ", ".join(f"{many[status]} {status}" for status in Status if many[status])
        terminal.out().print(findings(outcomes), summary)
    if any(finding.status is Status.FAIL for finding in outcomes):
        raise typer.Exit(1)


def findings(outcomes: Iterable[Finding]) -> Table:
    """Return a table of findings with their marks; a problem is followed by its fix."""
    made = terminal.table("", "check", "found")
    for each in outcomes:
        mark, colour, words = _MARKS[each.status]
        message = Text(each.message, words)
        if each.fix:
            message.append(f"\n→ {each.fix}", "default")
        made.add_row(Text(mark, colour), each.check, message)
    return made


def _inputs(deployment: Deployment, stage: Stage) -> DoctorInputs:
    facts = Facts(boto3.client("ssm"), stage)
    limits = deployment.settings.limits
    adapters = deployment.adapters()  # boto3 creates clients safely in one thread only
    return DoctorInputs(
        stage=stage,
        settings=deployment.settings,
        aws=AwsView(),
        facts=lambda: facts.read((*PLATFORM, JOB_RELEASE, NESSIE_CA)),
        parameters=lambda: _parameters(deployment, stage),
        package=cache(lambda: _package(deployment, stage)),
        contracts=lambda: _contracts(CONTRACTS[:1] if deployment.local else CONTRACTS, limits),
        in_force=lambda: {s.contract.table: s.contract.sha256 for s in adapters.lake.contracts()},
        shared_runs=lambda: shared_runs(adapters),
        spending=lambda: spending(adapters),
        has_checkout=is_checkout(),
    )


def _package(deployment: Deployment, stage: Stage) -> Package:
    """Return this checkout's package for the stage, or for the local stack."""
    tell = progress_printer()
    if deployment.local:
        return package.build_here(checkout(), tell)
    chosen = choices(checkout() / "stages" / f"{stage.name}.yml")
    return package.build(checkout(), tell, processors=package.architecture(chosen))


def _parameters(deployment: Deployment, stage: Stage) -> dict[str, str]:
    """Return this checkout's parameters for the app's stack, without facts from SSM."""
    from infra.local import settings  # it imports Flask and more, which help does not need

    read = template.read(checkout() / "template.yaml")
    local = settings.parameters(deployment.addresses) if deployment.local else None
    chosen = choices(checkout() / "stages" / f"{stage.name}.yml") if local is None else local
    own, facts = stack_spec.parameters(read, stage, chosen), stack_spec.facts(read, stage)
    return {
        name: value for name, value in (template.defaults(read) | own).items() if name not in facts
    }


def _inside(name: str, function: str) -> Check:
    """Return the check whose findings are those of a function inside the network."""

    def run() -> list[Finding]:
        client = boto3.client("lambda", config=checkup.PATIENT)
        answer = checkup.ask(client, function, {"do": "examine", "expected": _EXPECTED})
        return [Finding(**(each | {"status": Status(each["status"])})) for each in answer]

    fix = "deploy again, or ask for permission to invoke it; its errors are in its log group"
    return Check(name, run, fix)


def _contracts(directories: Iterable[Path], limits: Limits) -> dict[str, str]:
    """Return the hashes of this checkout's valid contracts, by table."""
    contracts = (each.contract for each in checked_files(directories, limits))
    return {contract.table: contract.sha256 for contract in contracts if contract}
