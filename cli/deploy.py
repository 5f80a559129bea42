"""`lakegate deploy`: this checkout onto AWS, or what that would change."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import boto3
import typer
from rich.table import Table

from access.deployment import ROOT, find
from cli import changes, terminal
from cli.contracts import push, refuse_invalid
from cli.drop import explain, showing
from cli.follow import Sight, dropped, ended, follow
from cli.local_stack import teller
from functions.adapters.all import Adapters
from functions.model.ingestion import State
from infra import checkup, nessie_tokens, package
from infra.aws import stack_plan
from infra.aws.secrets import SecretKeyring, for_own_nessie
from infra.aws.site import (
    JOB_RELEASE,
    PLATFORM,
    Site,
    check_platform,
    choices,
    connect,
    has_own_platform,
    stage_here,
)
from infra.aws.stack_plan import StackSpec, refuse_losses
from infra.cloudformation import Change
from infra.package import Package
from infra.stage import Stage
from lakegate import times
from lakegate.errors import LakegateError
from lakegate.landing import LandedObject
from lakegate.limits import Limits

# The smoke test: one tiny file that must get into main once what is deployed has changed.

TABLE = "smoke.deployments"


def smoke(adapters: Adapters, deployed_at: datetime, job_release: str, seconds: float) -> Sight:
    """Send the file of a deployment on its way, unless it is, and see it published.

    Raises LakegateError: TIMED_OUT, which says where the file stands, after `seconds`, or
    SMOKE_FAILED where it ended otherwise.
    """
    key = f"{TABLE.replace('.', '/')}/{deployed_at:%Y%m%d-%H%M%S}.csv"
    body = f"deployed_at,job_release\n{times.text(deployed_at)},{job_release}\n"
    with showing(terminal.err()) as show:
        sight = follow(adapters, [_sent(adapters, key, body.encode())], ended, seconds, show)[0]
    if sight.ingestion.state is not State.PUBLISHED:
        explain(terminal.err(), [sight])
        message = f"the smoke test's file ended {sight.ingestion.state}, see above"
        raise LakegateError("SMOKE_FAILED", message)
    return sight


def _sent(adapters: Adapters, key: str, body: bytes) -> Sight:
    """The file on its way: sent by an earlier try that was interrupted, or sent now."""
    for earlier in adapters.ledger.versions(LandedObject(adapters.landing.bucket, key, "", "", 0)):
        if earlier.state is State.PUBLISHED or not earlier.ended:
            return Sight(earlier)
    return dropped(adapters.landing.put(key, body))


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
    def app(self) -> StackSpec:
        """The app's stack as it is to be."""
        return stack_plan.app(_APP, self.site, self.package, self.chosen)

    @property
    def keyring(self) -> SecretKeyring:
        """The stage's keys and tokens."""
        return SecretKeyring(self.site.client("secretsmanager"), self.site.stage.name)

    def platform(self, public_key: str) -> StackSpec:
        """The platform's stack as it is to be."""
        return stack_plan.platform(_PLATFORM, self.site.stage, public_key, self.chosen)


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
    stack_plan.refuse_unknown(chosen, (_APP, _PLATFORM))
    own = own_platform or has_own_platform(site)
    order = _Order(site, package.build(ROOT, tell), chosen, own)
    if dry_run:
        _rehearse(order)
        return
    _prepare(order)
    if stack:
        stack_plan.deploy_stack(site, order.app)
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
        public_key = nessie_tokens.keep(order.keyring, now).public_key
        stack_plan.deploy_platform(order.site, order.platform(public_key))
    stack_plan.prepare(order.site, order.package)


def _rehearse(order: _Order) -> None:
    """Show what would change, and leave everything as it is."""
    site = order.site
    if not order.own_platform:
        signing_key = order.keyring.read().get(nessie_tokens.SIGNING_KEY)
        public_key = nessie_tokens.Keys(signing_key, {}).public_key if signing_key else ""
        _show(site, order.platform(public_key), plan=bool(public_key))
    needed = (*PLATFORM, JOB_RELEASE)
    _show(site, order.app, plan=len(site.facts.read(needed)) == len(needed))


def _show(site: Site, stack: StackSpec, *, plan: bool) -> None:
    """What would become of a stack; CloudFormation can `plan` one that has what it looks up.

    Of that nothing is left but a copy of a large template in the bucket that it was read from.
    """
    planned = stack_plan.plan(site, stack) if plan else None
    if planned:
        site.stacks.discard(planned)
    found: Iterable[Change] = planned.changes if planned else [] if plan else stack.additions
    listed = list(found)
    terminal.out().print(f"{stack.stack}: {len(listed) or 'no'} changes", style="bold")
    if listed:
        terminal.out().print(changes.table(listed))
    refuse_losses(listed)


def _open(order: _Order, seconds: float) -> None:
    """Put the contracts in force, see a file through, and say what to do next."""
    site = order.site
    outputs = stack_plan.complete(site, order.package)
    adapters = find(site.stage.name).adapters()
    for directory in CONTRACTS:
        push(adapters.lake, [directory], site.tell)
    patient = boto3.client("lambda", config=checkup.PATIENT)
    checkup.seed(patient, outputs["CheckupFunctionName"])
    site.tell("main has its first commit, and its tables of history")
    site.tell("smoke test: a tiny file goes the whole way")
    changed = site.stacks.changed_at(site.stage.stack)
    smoke(adapters, changed, order.package.job_release, seconds)
    terminal.out().print(_next(site.stage, outputs))


def _next(stage: Stage, outputs: Mapping[str, str]) -> Table:
    on = f"lakegate --stage {stage.name}"
    return terminal.facts(
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
