"""The options of commands that run, check and repair a deployment.

What they do is in modules of their own, which are imported when a command is called: their
libraries take a second, which help does not need.
"""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from cli.options import AsJson, Seconds, Yes
from infra.aws.tools import Tool

DAYS = 90  # a token's life, as lakegate/nessie_tokens.py has it
_OUTPUT = Path("probe-1.json")

DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing.")]
StageOption = Annotated[str, typer.Option("--stage", help="Stage, part of every resource name.")]


def up() -> None:
    """Start the local stack, deploy changes and push contracts/.

    An installed package downloads what the stack needs on first use.
    """
    from cli import local_stack

    local_stack.up()


def down() -> None:
    """Stop the local stack; keep its data."""
    from cli import local_stack

    local_stack.down()


def status(context: typer.Context, as_json: AsJson = False) -> None:
    """Show addresses, buckets, the health of each part, ingestions by state and shared runs.

    Exits 1 when a part is down.
    """
    from cli import local_stack

    local_stack.status(context.obj, as_json=as_json)


def demo() -> None:
    """Show every step on real flights: four good days and a broken one.

    Starts the local stack, and stops it again if it was not running. Keeps the data. An installed
    package downloads what the stack needs on first use.
    """
    from cli import demo

    demo.demo()


def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Check a deployment from inside and outside its network; exits 1 on problems."""
    from cli import doctor

    doctor.doctor(context.obj, as_json=as_json)


def metrics(context: typer.Context) -> None:
    """Print files, rows, decisions that wait and late tables for Prometheus."""
    from cli import metrics

    metrics.metrics(context.obj)


def backfill(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="Existing files, as s3://bucket/prefix.")],
    table: Annotated[str, typer.Option(help="Table whose landing prefix to use.")] = "",
    to: Annotated[str, typer.Option(help="Prefix of the landing bucket; ends in /.")] = "",
    at_once: Annotated[int, typer.Option(min=1, help="Files in flight at a time.")] = 200,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list: copy nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Copy existing files into the landing bucket, and wait until each has its final state.

    Repeat the command after an interruption: it copies only what is missing. Exits like `lakegate
    drop --wait`: 0 published, 3 if one was rejected, 4 errored, 5 ignored; 1 if one did not land.
    """
    from cli import backfill

    backfill.backfill(context.obj, source, table, to, at_once, dry_run=dry_run, as_json=as_json)


def reconcile(
    context: typer.Context,
    table: Annotated[str, typer.Option(help="Only this table.")] = "",
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Look up every data file instead of a sample.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Check all commits, not only those since the last run.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check that no file is lost and no row doubled; exits 1 on problems."""
    from cli import reconcile

    reconcile.reconcile(context.obj, table, thorough=thorough, full=full, as_json=as_json)


ledger = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, help="Repair the ledger."
)


@ledger.command()
def realign(
    context: typer.Context, dry_run: DryRun = False, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Publish again what main lost when Nessie was restored to a backup; name what cannot be.

    Run it again after a failure, and until it finds no difference. Exits 1 if rows are lost.
    """
    from cli.realign import realign_ledger

    realign_ledger(context.obj, dry_run=dry_run, yes=yes, as_json=as_json)


@ledger.command()
def rebuild(context: typer.Context, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Restore lost ledger entries from main's log, branches, audit reports and job runs.

    Keeps existing entries: safe to run at any time, and again after a failure.
    """
    from cli.reconcile import rebuild_ledger

    rebuild_ledger(context.obj, dry_run=dry_run, as_json=as_json)


def upkeep(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Only this table, and no deletion.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only measure: start and delete nothing.")
    ] = False,
    accept_main: Annotated[
        str,
        typer.Option(
            metavar="COMMIT",
            help="Accept main with this commit, though it lacks what it had; deletes nothing yet.",
        ),
    ] = "",
    accept_bytes: Annotated[
        int, typer.Option(metavar="BYTES", help="Accept that so much is deleted at once.", min=0)
    ] = 0,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Compact tables, and delete files that nobody reads.

    A compaction goes by a job run and a branch of its own; the sweep publishes it within minutes
    after its end, or this command when it is called again. The schedule does both once a day.
    """
    from cli import upkeep
    from functions.operations.upkeep.dead_files import Accepted

    accepted = Accepted(accept_main, accept_bytes)
    upkeep.upkeep(context.obj, table, accepted, dry_run=dry_run, yes=yes, as_json=as_json)


def rotate(
    context: typer.Context,
    key: Annotated[
        bool,
        typer.Option(
            "--key", help="Also create a new key, after a leak: all old tokens become invalid."
        ),
    ] = False,
    days: Annotated[int, typer.Option(help="Days until the tokens expire.", min=1, max=365)] = DAYS,
) -> None:
    """Create and store new tokens for Nessie; safe to repeat after an interruption."""
    from cli import rotate

    rotate.rotate(context.obj, timedelta(days=days), new_key=key)


def probe(
    context: typer.Context,
    output: Annotated[Path, typer.Option(help="File to write the findings to.")] = _OUTPUT,
    seconds: Annotated[float, typer.Option("--timeout", help="Seconds to wait for a run.")] = 900,
) -> None:
    """Measure versions, classes and times of the job runs' runtime; exits 1 on problems."""
    from cli import probe

    probe.probe(context.obj, output, seconds)


def deploy(
    context: typer.Context,
    stage: StageOption = "",
    own_platform: Annotated[
        bool,
        typer.Option("--own-platform", help="Nessie and EMR are yours: deploy no platform stack."),
    ] = False,
    by: Annotated[
        Tool, typer.Option("--by", help="Tool that deploys the app's stack.")
    ] = Tool.LAKEGATE,
    stack: Annotated[
        bool, typer.Option(help="Deploy the app's stack; otherwise you run osls or SAM.")
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change; change nothing.")
    ] = False,
    seconds: Annotated[
        float, typer.Option("--timeout", help="Seconds to wait for the smoke test.")
    ] = 900,
) -> None:
    """Deploy this checkout to a stage on AWS; repeat it to continue after an interruption."""
    from cli import deploy

    named = stage or context.obj
    deploy.deploy(named, by, seconds, own_platform=own_platform, with_app=stack, dry_run=dry_run)


def destroy(
    context: typer.Context,
    stage: StageOption = "",
    yes: Yes = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until no file is in flight.")] = False,
    seconds: Seconds = 3600,
) -> None:
    """Take a stage down, except what holds data; `lakegate deploy` brings it back."""
    from cli import destroy

    destroy.destroy(stage or context.obj, seconds, yes=yes, wait=wait)
