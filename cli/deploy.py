"""`lakegate deploy`: this checkout onto AWS, or what that would change."""

import json
from pathlib import Path
from typing import Annotated, Any

import boto3
import typer

from cli import changes, view
from cli.contracts import push, refuse_invalid
from cli.deployment import ROOT, find
from cli.local import teller
from cli.smoke import smoke
from functions.seeding import seed
from infra import package
from infra.aws import app
from infra.aws.account import stage_here
from infra.aws.app import App
from infra.aws.choices import choices
from infra.aws.facts import check_platform
from infra.aws.losses import refuse_losses
from infra.aws.site import Site, connect
from infra.stage import Stage
from lakegate.errors import LakegateError

CONTRACTS = ROOT / "contracts"
_SMOKE = ROOT / "infra" / "smoke"

StageOption = Annotated[str, typer.Option("--stage", help="The stage, part of every name.")]


def deploy(
    context: typer.Context,
    stage: StageOption = "",
    own_platform: Annotated[
        bool, typer.Option("--own-platform", help="Nessie and EMR are yours; SSM has their facts.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
    ] = False,
    settings: Annotated[
        Path | None, typer.Option(help="Instead of stages/<stage>.yml.", exists=True)
    ] = None,
    seconds: Annotated[
        float, typer.Option("--timeout", help="How long the smoke test waits.")
    ] = 900,
) -> None:
    """Deploy this checkout to a stage on AWS: again where it was interrupted or has changed."""
    tell = teller()
    site = connect(stage_here(named(context, stage), boto3.Session(), tell), boto3.client, tell)
    refuse_invalid([CONTRACTS, _SMOKE])
    built = package.build(ROOT, tell)
    file = settings or ROOT / "stages" / f"{site.stage.name}.yml"
    wanted = App.of(ROOT / "template.yaml", site.stage, built, choices(file))
    check_platform(site.facts, site.stage)
    if dry_run:
        _rehearse(site, wanted)
        return
    app.deploy(site, wanted)
    _open(site, wanted, seconds)


def named(context: typer.Context, stage: str) -> str:
    """The stage that an option names, this command's or the one before it."""
    if stage or context.obj:
        return str(stage or context.obj)
    raise typer.BadParameter("say which: --stage dev", param_hint="--stage")


def _rehearse(site: Site, wanted: App) -> None:
    """Show what would change, and leave everything as it is."""
    planned = app.plan(site, wanted)
    if not planned:
        view.out().print(f"{site.stage.stack}: nothing to change")
        return
    site.stacks.discard(planned)
    view.out().print(f"{site.stage.stack}: {len(planned.changes)} changes", style="bold")
    view.out().print(changes.table(planned.changes))
    refuse_losses(planned.changes)


def _open(site: Site, wanted: App, seconds: float) -> None:
    """Put the contracts in force, see a file through, and say what to do next."""
    outputs = site.stacks.outputs(site.stage.stack)
    world = find(site.stage.name).world()
    for directory in (CONTRACTS, _SMOKE):
        push(world.lake, directory, site.tell)
    _seed(site, outputs)
    site.tell("smoke test: a tiny file goes the whole way")
    changed = site.stacks.changed_at(site.stage.stack)
    smoke(world, changed, wanted.package.job_release, seconds)
    view.out().print(_next(site.stage, outputs))


def _seed(site: Site, outputs: dict[str, str]) -> None:
    """Have the catalog get its first commit and tables, from inside the network."""
    if "CheckupFunctionName" not in outputs:
        print(seed(find(site.stage.name).world()))
        return
    answer = site.client("lambda").invoke(
        FunctionName=outputs["CheckupFunctionName"], Payload=json.dumps({"do": "seed"}).encode()
    )
    told = answer["Payload"].read().decode()
    if "FunctionError" in answer:
        raise LakegateError("NOT_SEEDED", f"the catalog could not be given its tables: {told}")
    site.tell(f"the catalog has its first commit and its tables: {told}")


def _next(stage: Stage, outputs: dict[str, str]) -> Any:
    on = f"lakegate --stage {stage.name}"
    return view.facts(
        [
            ("landing bucket", f"s3://{outputs['LandingBucketName']}"),
            ("drop a file", f"{on} drop FILE --table nyc.flights --wait"),
            ("look at it", f"{on} runs"),
            ("check everything", f"{on} doctor"),
            ("deploy again", f"lakegate deploy --stage {stage.name}"),
            ("or with osls", f"npx osls deploy --stage {stage.name}"),
            ("take it down", f"lakegate destroy --stage {stage.name}"),
        ]
    )
