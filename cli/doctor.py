"""`lakegate doctor`: what is wrong with a deployment, and what to do about it."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import boto3
import typer

from cli import documents, view
from cli.contract_check import checked
from cli.contracts import contract_files
from cli.deploy import CONTRACTS
from cli.local import teller
from cli.outside import Outside
from cli.outside_checks import Given, checks
from functions.diagnosis import Check, Finding, Status, carry_out
from functions.lake import Lake
from infra import checkup, package, template
from infra.aws import wanted
from infra.aws.choices import choices
from infra.aws.facts import JOB_RELEASE, PLATFORM, Facts
from infra.local import settings
from infra.stage import Stage
from infra.versions import EMR_RELEASE_LABEL, NESSIE
from lakegate.limits import Limits
from reading.deployment import ROOT, Deployment, find

_EXPECTED = {"nessie": NESSIE, "emr_release_label": EMR_RELEASE_LABEL}


def doctor(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look at a deployment from inside its network and from outside; end with 1 if it is ill."""
    found = find(context.obj)
    account, region = found.settings.emr_role_arn.split(":")[4], boto3.Session().region_name
    given = _given(found, Stage(os.environ["LAKEGATE_STAGE"], account, region))
    inside = Check(
        "checkup",
        lambda: _inside(f"{given.stage.stack}-checkup"),
        "deploy again, or ask for the right to invoke it; its log group has its errors",
    )
    tell(carry_out([inside, *checks(given)]), as_json=as_json)


def tell(found: Sequence[Finding], *, as_json: bool) -> None:
    """Print the findings; exit code 1 when something fails."""
    if as_json:
        typer.echo(documents.text({"findings": [asdict(finding) for finding in found]}))
    else:
        many = Counter(finding.status for finding in found)
        told = ", ".join(f"{many[status]} {status}" for status in Status if many[status])
        view.out().print(view.findings(found), told)
    if any(finding.status is Status.FAIL for finding in found):
        raise typer.Exit(1)


def _given(found: Deployment, stage: Stage) -> Given:
    facts = Facts(boto3.client("ssm"), stage)
    limits = found.settings.limits
    lake = Lake(boto3.client("s3"), found.settings.lake_bucket, limits=limits)
    return Given(
        stage=stage,
        settings=found.settings,
        outside=Outside(),
        facts=lambda: facts.read((*PLATFORM, JOB_RELEASE)),
        parameters=lambda: _parameters(found, stage),
        package=cache(lambda: package.build(ROOT, teller())),
        contracts=lambda: _contracts(CONTRACTS[:1] if found.local else CONTRACTS, limits),
        in_force=lambda: {s.contract.table: s.contract.sha256 for s in lake.contracts()},
    )


def _parameters(found: Deployment, stage: Stage) -> dict[str, str]:
    """What a deployment from this checkout would give the app's stack, facts in SSM apart."""
    read = template.read(ROOT / "template.yaml")
    defaults = {n: str(p["Default"]) for n, p in read["Parameters"].items() if "Default" in p}
    local = settings.parameters(found.addresses) if found.local else None
    chosen = choices(ROOT / "stages" / f"{stage.name}.yml") if local is None else local
    told, facts = wanted.parameters(read, stage, chosen), wanted.facts(read, stage)
    return {name: value for name, value in (defaults | told).items() if name not in facts}


def _inside(function: str) -> list[Finding]:
    """What the function finds. Raises LakegateError where it cannot be invoked."""
    client = boto3.client("lambda", config=checkup.PATIENT)
    told = checkup.ask(client, function, {"do": "examine", "expected": _EXPECTED})
    return [_finding(each) for each in told]


def _finding(told: Mapping[str, Any]) -> Finding:
    return Finding(told["check"], Status(told["status"]), told["message"], told["fix"])


def _contracts(directories: Iterable[Path], limits: Limits) -> dict[str, str]:
    """The contracts of this checkout that can stand, their hashes by table."""
    found = [checked(file, limits).contract for file in contract_files(directories)]
    return {contract.table: contract.sha256 for contract in found if contract}
