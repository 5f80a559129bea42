"""How an ingestion ends, and what is due after it: tell the people, delete what was published."""

from dataclasses import asdict

from functions.ingestion import ALERTED, Ingestion, State
from functions.messages import alert
from functions.storage import Missing
from functions.telemetry import logger, metrics
from functions.world import World
from lakegate.errors import Permanent
from lakegate.landing import branch_name
from lakegate.report import AuditReport, Reason


def end(
    world: World,
    ingestion: Ingestion,
    state: State,
    reason: Reason | None = None,
    merge_hash: str = "",
) -> Ingestion:
    """Record how an ingestion ended, then do what its end asks for."""
    ended = ingestion.step(
        state.value, world.now(), state=state, reason=reason, merge_hash=merge_hash
    )
    metrics.add_metric(state.capitalize(), "Count", 1)
    logger.info(f"ended {state}", extra={"reason": asdict(reason) if reason else None})
    return finish(world, world.ledger.save(ended))


def finish(world: World, ingestion: Ingestion) -> Ingestion:
    """Do what is still due after the end: tell the people, delete what was published."""
    if ingestion.state in ALERTED and not ingestion.alerted:
        return _tell(world, ingestion)
    if ingestion.state is State.PUBLISHED and not ingestion.cleaned:
        return _clean_up(world, ingestion)
    return ingestion


def report_of(world: World, ingestion: Ingestion) -> AuditReport | None:
    """The last attempt's audit report, None where its run left none. Raises Permanent."""
    try:
        return world.lake.report(ingestion.report_key)
    except Missing:
        return None


def _clean_up(world: World, ingestion: Ingestion) -> Ingestion:
    """Delete the published branch, and those that a crash in a rebase left behind."""
    first = branch_name(ingestion.table, ingestion.landed.key, ingestion.id, attempt=1)
    for branch in world.catalog.branches(first):
        world.catalog.delete_branch(branch)
    return world.ledger.save(ingestion.step("cleaned", world.now(), cleaned=True))


def _tell(world: World, ingestion: Ingestion) -> Ingestion:
    try:
        report = report_of(world, ingestion) if ingestion.report_key else None
    except Permanent:
        report = None  # an unreadable report is the reason of this alert
    message = alert(ingestion, report)
    try:
        world.alerts.post(ingestion.channel, message)
    except Permanent as refused:
        logger.error("alert refused, trying the default channel", extra={"refusal": str(refused)})
        world.alerts.post("", message)
    return world.ledger.save(ingestion.step("alerted", world.now(), alerted=True))
