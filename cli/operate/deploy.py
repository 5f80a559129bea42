"""`lakegate deploy`: deploy this checkout to AWS, or show what would change."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

import boto3
import typer
from rich.table import Table
from rich.text import Text

from access.deployment.checkout import ROOT, checkout
from access.deployment.choice import aws_session, find
from cli.console import terminal
from cli.console.options import StageOption
from cli.console.terminal import progress_printer
from cli.contract.check import CONTRACTS, refuse_invalid
from cli.contract.in_force import push
from cli.operate import probe
from cli.operate.conformance import require_conformance
from cli.operate.smoke import smoke
from functions.adapters.all import Adapters
from functions.adapters.keyring import SecretKeyring
from infra import checkup, package, stack_spec, template
from infra.aws import adoption, emr, stack_plan, tools
from infra.aws.certificates import database, nessie
from infra.aws.facts import JOB_RELEASE, NESSIE_CA, PLATFORM, check_platform
from infra.aws.losses import database_key, loses, refuse_another, refuse_losses
from infra.aws.secrets import for_own_nessie
from infra.aws.site import Site, choices, connect, has_own_platform, stage_here
from infra.aws.tools import Tool
from infra.cloudformation import Change
from infra.package import Package
from infra.stack_spec import StackSpec
from infra.stage import Stage
from lakegate import nessie_tokens
from lakegate.job.probe import DEFAULT
from lakegate.limits import Limits

_APP = ROOT / "template.yaml"
_PLATFORM = ROOT / "infra" / "platform.yml"

_MARKS = {"Add": ("+", "green"), "Remove": ("-", "red"), "Modify": ("~", "yellow")}
_LOUD = "bold red"


@dataclass(frozen=True)
class _Order:
    """The package and settings to deploy, and the site to deploy them to."""

    site: Site
    package: Package
    chosen: Mapping[str, str]
    own_platform: bool

    @property
    def app(self) -> StackSpec:
        """Return the wanted state of the app's stack."""
        return stack_plan.app(_APP, self.site, self.package, self.chosen)

    @property
    def keyring(self) -> SecretKeyring:
        """Return the stage's keys and tokens."""
        vault, key = self.site.client("secretsmanager"), self.chosen.get("KmsKeyArn", "")
        return SecretKeyring(vault, self.site.stage.name, key)

    def platform(self, public_key: str) -> StackSpec:
        """Return the wanted state of the platform's stack."""
        chosen = {
            **emr.zones(self.site),
            **self.chosen,
            **database_key(self.site, self.chosen),
            **emr.capacity(self.site, _defaults(), self.chosen),
            **database.parameter(self.site, self.chosen),
            **nessie.parameters(self.site, self.chosen),
        }
        return stack_spec.platform(_PLATFORM, self.site.stage, public_key, chosen)


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
    with_app: Annotated[
        bool,
        typer.Option(
            "--stack/--no-stack", help="Deploy the app's stack; otherwise you run osls or SAM."
        ),
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change; change nothing.")
    ] = False,
    seconds: Annotated[
        float, typer.Option("--timeout", help="Seconds to wait for the smoke test.")
    ] = 900,
) -> None:
    """Deploy this checkout to a stage on AWS; repeat it to continue after an interruption."""
    checkout()  # before AWS is asked anything
    site = site_of(stage or context.obj)
    tell = site.tell
    chosen = choices(checkout() / "stages" / f"{site.stage.name}.yml")
    lake = chosen.get("LakeBucketName", "")
    site = connect(replace(site.stage, lake=lake), boto3.client, tell)
    own_platform = own_platform or has_own_platform(site)
    _refuse_unfit(site, chosen, own_platform=own_platform)
    production = stack_spec.is_production(chosen)
    built = package.build(ROOT, tell, processors=package.architecture(chosen))
    order = _Order(site, built, chosen, own_platform)
    if dry_run:
        _rehearse(order)
        return
    _prepare(order)
    adoption.adopt(site, order.app)
    if with_app and by is Tool.LAKEGATE:
        stack_plan.deploy_stack(site, order.app)
    else:
        _check_losses(order)
    if with_app and by is not Tool.LAKEGATE:
        tools.run(by, ROOT, site.stage, order.app.template)
    if production:
        _protect(site)
    if site.stacks.exists(site.stage.stack):
        _open(order, seconds)
    else:
        tell(f"run `npx osls deploy --stage {site.stage.name}` or `sam deploy`, then this again")


def _refuse_unfit(site: Site, chosen: Mapping[str, str], *, own_platform: bool) -> None:
    """Raise LakegateError for contracts and settings that cannot be deployed."""
    refuse_invalid(CONTRACTS, Limits.chosen(chosen))
    stack_spec.refuse_unknown(chosen, (_APP, _PLATFORM))
    told = "" if own_platform else nessie.longest_fact(chosen)
    stack_spec.refuse_unfit(site.stage, chosen, _APP, _PLATFORM, told)
    if not own_platform:
        emr.refuse_unfit(_defaults(), chosen)
    refuse_another(site, chosen)


def _defaults() -> dict[str, str]:
    return template.defaults(*map(template.read, (_APP, _PLATFORM)))


def site_of(stage: str) -> Site:
    """Return the site of a stage on AWS."""
    if not stage:
        raise typer.BadParameter("give the stage, for example --stage dev", param_hint="--stage")
    tell = progress_printer()
    return connect(stage_here(stage, aws_session(), tell), boto3.client, tell)


def _prepare(order: _Order) -> None:
    """Create everything that the app's stack needs."""
    now = datetime.now(UTC)
    if order.own_platform:
        check_platform(order.site.facts, order.site.stage)
        for_own_nessie(order.keyring, order.site.stage, now)
        nessie.keep_for_own_nessie(order.site)
    else:
        nessie.keep(order.site, order.chosen)
        public_key = nessie_tokens.keep(order.keyring, now).public_key
        platform = order.platform(public_key)
        adoption.adopt(order.site, platform)
        stack_plan.deploy_platform(order.site, platform)
    order.keyring.encrypt_by_its_key()
    stack_plan.prepare(order.site, order.package)


def _protect(site: Site) -> None:
    """Protect the stage's stacks from deletion."""
    for stack in (site.stage.platform_stack, site.stage.stack):
        if site.stacks.exists(stack):
            site.stacks.protect(stack)


def _check_losses(order: _Order) -> None:
    """Raise LakegateError WOULD_LOSE_DATA before another tool deploys the app's stack."""
    if planned := stack_plan.make_way(order.site, order.app):
        order.site.stacks.discard(planned)
    order.site.tell("checked for data loss: nothing that holds data is removed or replaced")


def _rehearse(order: _Order) -> None:
    """Show what would change, and change nothing."""
    site = order.site
    if not order.own_platform:
        signing_key = order.keyring.read().get(nessie_tokens.SIGNING_KEY)
        public_key = nessie_tokens.Keys(signing_key, {}).public_key if signing_key else ""
        _show(site, order.platform(public_key), plan=bool(public_key))
    for each in adoption.find(site, order.app):
        site.tell(f"{each.id} is there without a stack, and would be taken back")
    needed = (*PLATFORM, JOB_RELEASE, NESSIE_CA)
    _show(site, order.app, plan=len(site.facts.read(needed)) == len(needed))


def _show(site: Site, stack: StackSpec, *, plan: bool) -> None:
    """Show the changes of a stack; with `plan`, those that CloudFormation computes.

    CloudFormation can plan only a stack whose look-ups exist. The plan is deleted again; a copy of
    a large template stays in the artifact bucket.
    """
    planned = stack_plan.plan(site, stack) if plan else None
    if planned:
        site.stacks.discard(planned)
    changes: Iterable[Change] = planned.changes if planned else [] if plan else stack.additions
    listed = list(changes)
    terminal.out().print(f"{stack.stack}: {len(listed) or 'no'} changes", style="bold")
    if listed:
        terminal.out().print(changes_table(listed))
    refuse_losses(listed)


def _open(order: _Order, seconds: float) -> None:
    """Push the contracts, run the smoke test, and show the next commands."""
    site = order.site
    outputs = stack_plan.complete(site, order.package)
    adapters = find(site.stage.name).adapters()
    for directory in CONTRACTS:
        push(adapters.lake, [directory], site.tell)
    patient = boto3.client("lambda", config=checkup.PATIENT)
    checkup.seed(patient, outputs["SweepFunctionName"])
    site.tell("main has its first commit and its history tables")
    many = require_conformance(patient, site.stage.stack)
    site.tell(f"Nessie is as Lakegate relies on in {many} points")
    _probe(order, adapters, seconds)
    site.tell("smoke test: tiny files, a bad one and a batch among them")
    changed = site.stacks.changed_at(site.stage.stack)
    smoke(adapters, changed, order.package.job_release, seconds)
    terminal.out().print(_next(site.stage, outputs))


def _probe(order: _Order, adapters: Adapters, seconds: float) -> None:
    """Probe the runtime of jobs, once for a release of EMR and of the job. Raises LakegateError."""
    site = order.site
    done = f"{emr.release(site, adapters.settings.emr_application_id)}-probed.json"
    if site.artifacts.has_job_file(order.package, done):
        return
    measured = probe.measure(adapters, DEFAULT, seconds, site.tell)
    probe.require_sound(measured, package.job_versions(ROOT))
    site.artifacts.put_job_file(order.package, done, json.dumps(measured.document()).encode())


def _next(stage: Stage, outputs: Mapping[str, str]) -> Table:
    on = f"lakegate --stage {stage.name}"
    return terminal.facts(
        [
            ("landing bucket", f"s3://{outputs['LandingBucketName']}"),
            ("drop a file", f"{on} drop FILE --table nyc.flights --wait"),
            ("list ingestions", f"{on} runs"),
            ("check everything", f"{on} doctor"),
            ("deploy again", f"lakegate deploy --stage {stage.name}"),
            ("or with osls", f"npm run deploy -- --stage {stage.name}"),
            ("take it down", f"lakegate destroy --stage {stage.name}"),
        ]
    )


def changes_table(changes: Iterable[Change]) -> Table:
    """Return the changes, one per line; replacements and losses are highlighted."""
    made = terminal.table("", "resource", "type", "changes")
    for change in changes:
        mark, colour = _MARKS.get(change.action, ("?", "yellow"))
        words = Text(", ".join(change.properties))
        if change.replacement == "True":
            mark, colour, words = "!", _LOUD, Text(f"REPLACED, for {words}", _LOUD)
        elif change.replacement == "Conditional":
            words = Text(f"may be REPLACED, for {words}", "bold yellow")
        if lost := loses(change):
            words = Text(f"{words.plain or 'REMOVED'}: {lost}", _LOUD)
        made.add_row(Text(mark, colour), Text(change.resource, colour), change.type, words)
    return made
