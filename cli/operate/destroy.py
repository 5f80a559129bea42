"""`lakegate destroy`: take down the stacks without the data, and list what is kept."""

import time
from typing import Annotated

import typer

from access.deployment.choice import find
from cli.console import terminal
from cli.console.options import Seconds, StageOption, Yes
from cli.operate.deploy import changes_table, site_of
from infra.aws import emr, teardown
from infra.aws.facts import CERTIFICATE
from infra.aws.losses import refuse_losses
from infra.aws.site import Site
from infra.cloudformation import Plan
from lakegate.errors import LakegateError

_PAUSE = 1.0
_MAY_GO = ("AWS::SQS::Queue",)  # once it is empty


def destroy(
    context: typer.Context,
    stage: StageOption = "",
    yes: Yes = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until no file is in flight.")] = False,
    seconds: Seconds = 3600,
) -> None:
    """Take a stage down, except what holds data; `lakegate deploy` brings it back."""
    site = site_of(stage or context.obj)
    app = teardown.plan(site, site.stage.stack)
    platform = teardown.plan(site, site.stage.platform_stack)
    planned = [plan for plan in (app, platform) if plan]
    try:
        _check(site, planned, app, seconds if wait else 0.0, yes=yes)
    except BaseException:
        for plan in planned:
            site.stacks.discard(plan)
        raise
    for plan in planned:  # the functions first: they are in the platform's network
        emr.stop_for(site, plan.changes, seconds)
        site.stacks.carry_out(plan)
    _report_remaining(site)


def _check(site: Site, planned: list[Plan], app: Plan | None, seconds: float, *, yes: bool) -> None:
    """Raise LakegateError or Abort unless all planned changes may be made."""
    if not planned:
        site.tell(f"stage {site.stage.name}: nothing to take down")
        return
    for plan in planned:
        terminal.out().print(f"{plan.stack}: {len(plan.changes)} changes", style="bold")
        terminal.out().print(changes_table(plan.changes))
        refuse_losses(plan.changes, but=_MAY_GO)
    if app:
        _wait_until_idle(site, seconds)
    if not yes and typer.prompt(f"Type {site.stage.name} to take this down") != site.stage.name:
        raise typer.Abort


def _wait_until_idle(site: Site, seconds: float) -> None:
    """Return when nothing is in flight. Raises LakegateError IN_FLIGHT after `seconds`."""
    deadline = time.monotonic() + seconds
    while flying := _in_flight(site):
        if time.monotonic() > deadline:
            hint = "Wait for them with --wait, or find failing files with `lakegate runs`."
            raise LakegateError("IN_FLIGHT", f"still in flight: {flying}\n{hint}")
        time.sleep(_PAUSE)


def _in_flight(site: Site) -> str:
    """Describe the files and messages in flight, "" for none."""
    adapters = find(site.stage.name).adapters()
    files = sum(1 for _ in adapters.ledger.unfinished(adapters.now()))
    parts = [f"{files} files in flight"] if files else []
    waiting = teardown.messages(site)
    return ", ".join([*parts, *(f"{many} messages in {name}" for name, many in waiting.items())])


def _report_remaining(site: Site) -> None:
    for stack in (site.stage.stack, site.stage.platform_stack):
        if not site.stacks.exists(stack):
            continue
        terminal.out().print(
            f"Kept in the stack {stack}, with the command to delete it:", style="bold"
        )
        for each in sorted(site.stacks.resources(stack), key=teardown.turn):
            terminal.out().print(f"  {each.name}: {each.id}", soft_wrap=True)
            if command := teardown.by_hand(each):
                terminal.out().print(f"    {command}", soft_wrap=True)
        command = teardown.stack_by_hand(stack)
        terminal.out().print(f"  the stack itself, last: {command}", soft_wrap=True)
    beside = f"secrets {site.stage.token_secret('*')}, bucket {site.stage.artifact_bucket}"
    for certificate in site.facts.read([CERTIFICATE]).values():
        beside += f", certificate {certificate}"
    terminal.out().print(f"Kept outside the stacks: {beside}", style="bold", soft_wrap=True)
