"""`lakegate deploy`: this checkout onto AWS, or what that would change."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import boto3
import typer
from rich.table import Table

from cli import changes, view
from cli.contracts import push, refuse_invalid
from cli.local import teller
from cli.smoke import smoke
from infra import checkup, keys, package
from infra.aws import app, wanted
from infra.aws.account import stage_here
from infra.aws.choices import choices
from infra.aws.credentials import for_own_nessie
from infra.aws.facts import JOB_RELEASE, PLATFORM, check_platform
from infra.aws.losses import refuse_losses
from infra.aws.secrets import SecretKeyring
from infra.aws.site import Site, connect, has_own_platform
from infra.aws.wanted import Wanted
from infra.package import Package
from infra.plans import Change
from infra.stage import Stage
from lakegate.limits import Limits
from reading.deployment import ROOT, find

_APP = ROOT / "template.yaml"
_PLATFORM = ROOT / "infra" / "platform.yml"
# A person's own first; those of the smoke test are not for the local stack.
CONTRACTS = (ROOT / "contracts", ROOT / "infra" / "smoke")

StageOption = Annotated[str, typer.Option("--stage", help="The stage, part of every name.")]


@dataclass(frozen=True)
class _Order:
    """What is to be deployed, and where to."""

    site: Site
    package: Package
    chosen: Mapping[str, str]
    own_platform: bool

    @property
    def app(self) -> Wanted:
        """The app's stack as it is to be."""
        return wanted.app(_APP, self.site, self.package, self.chosen)

    @property
    def keyring(self) -> SecretKeyring:
        """The stage's keys and tokens."""
        return SecretKeyring(self.site.client("secretsmanager"), self.site.stage.name)

    def platform(self, public_key: str) -> Wanted:
        """The platform's stack as it is to be."""
        return wanted.platform(_PLATFORM, self.site.stage, public_key, self.chosen)


def deploy(
    context: typer.Context,
    stage: StageOption = "",
    own_platform: Annotated[
        bool, typer.Option("--own-platform", help="Nessie and EMR are yours: no platform stack.")
    ] = False,
    stack: Annotated[
        bool, typer.Option(help="Deploy the app's stack; without, osls or SAM does it.")
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
    ] = False,
    seconds: Annotated[
        float, typer.Option("--timeout", help="How long the smoke test waits.")
    ] = 900,
) -> None:
    """Deploy this checkout to a stage on AWS; where it was interrupted, this goes on."""
    tell = teller()
    site = connect(stage_here(named(context, stage), boto3.Session(), tell), boto3.client, tell)
    chosen = choices(ROOT / "stages" / f"{site.stage.name}.yml")
    refuse_invalid(CONTRACTS, Limits.chosen(chosen))
    wanted.refuse_unknown(chosen, (_APP, _PLATFORM))
    own = own_platform or has_own_platform(site)
    order = _Order(site, package.build(ROOT, tell), chosen, own)
    if dry_run:
        _rehearse(order)
        return
    _prepare(order)
    if stack:
        wanted.bring(site, order.app)
    if site.stacks.exists(site.stage.stack):
        _open(order, seconds)
    else:
        tell(f"now `npx osls deploy --stage {site.stage.name}` or `sam deploy`, then this again")


def named(context: typer.Context, stage: str) -> str:
    """The stage that an option names, this command's or the one before it."""
    if stage or context.obj:
        return str(stage or context.obj)
    raise typer.BadParameter("say which: --stage dev", param_hint="--stage")


def _prepare(order: _Order) -> None:
    """Have everything that the app's stack needs."""
    now = datetime.now(UTC)
    if order.own_platform:
        check_platform(order.site.facts, order.site.stage)
        for_own_nessie(order.keyring, order.site.stage, now)
    else:
        public_key = keys.keep(order.keyring, now).public_key
        wanted.bring_platform(order.site, order.platform(public_key))
    app.prepare(order.site, order.package)


def _rehearse(order: _Order) -> None:
    """Show what would change, and leave everything as it is."""
    site = order.site
    if not order.own_platform:
        signing_key = order.keyring.read().get(keys.SIGNING_KEY)
        public_key = keys.Keys(signing_key, {}).public_key if signing_key else ""
        _show(site, order.platform(public_key), plan=bool(public_key))
    needed = (*PLATFORM, JOB_RELEASE)
    _show(site, order.app, plan=len(site.facts.read(needed)) == len(needed))


def _show(site: Site, stack: Wanted, *, plan: bool) -> None:
    """What would become of a stack; CloudFormation can `plan` one that has what it looks up.

    Of that nothing is left but a copy of a large template in the bucket that it was read from.
    """
    planned = wanted.plan(site, stack) if plan else None
    if planned:
        site.stacks.discard(planned)
    found: Iterable[Change] = planned.changes if planned else [] if plan else stack.additions
    listed = list(found)
    view.out().print(f"{stack.stack}: {len(listed) or 'no'} changes", style="bold")
    if listed:
        view.out().print(changes.table(listed))
    refuse_losses(listed)


def _open(order: _Order, seconds: float) -> None:
    """Put the contracts in force, see a file through, and say what to do next."""
    site = order.site
    outputs = app.complete(site, order.package)
    world = find(site.stage.name).world()
    for directory in CONTRACTS:
        push(world.lake, [directory], site.tell)
    patient = boto3.client("lambda", config=checkup.PATIENT)
    checkup.seed(patient, outputs["CheckupFunctionName"])
    site.tell("main has its first commit, and its tables of history")
    site.tell("smoke test: a tiny file goes the whole way")
    changed = site.stacks.changed_at(site.stage.stack)
    smoke(world, changed, order.package.job_release, seconds)
    view.out().print(_next(site.stage, outputs))


def _next(stage: Stage, outputs: Mapping[str, str]) -> Table:
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
