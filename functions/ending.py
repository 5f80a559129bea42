"""How an ingestion ends, and what is due after it: clean up, tell the people, tell the readers."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from functions.history import Tip
from functions.ingestion import ALERTED, Ingestion, State
from functions.ledger import Moved, fit_together
from functions.people.messages import Alert, Kind, alert, duplicate, overdue, recovered, warned
from functions.readers.announcements import announcements
from functions.storage import Missing
from functions.telemetry import logger, metrics
from functions.versions import newest_newer, older_failures
from functions.world import World
from lakegate import times
from lakegate.errors import LakegateError, Permanent
from lakegate.landing import branch_name, fresh_branch
from lakegate.report import AuditReport, Reason

# Characters that the ledger keeps of a reason: an item of it has 400 KB at most.
_LONGEST, _LONGEST_CODE = 5_000, 100


def end(
    world: World,
    ingestion: Ingestion,
    state: State,
    reason: Reason,
) -> Ingestion:
    """Record that an ingestion ended without reaching main, then do what its end asks for."""
    brief = replace(reason, code=reason.code[:_LONGEST_CODE], message=reason.message[:_LONGEST])
    ended = ingestion.step(state.value, world.now(), state=state, reason=brief, announced=False)
    metrics.add_metric(state.capitalize(), "Count", 1)
    logger.info(f"ended {state}", extra={"reason": asdict(reason)})
    return finish(world, world.ledger.save(ended))


def end_published(world: World, members: Sequence[Ingestion], merge_hash: str) -> Ingestion:
    """Record that one commit on main published the members; returns the first as it then stands.

    What another process recorded in between stays as it is.
    """
    at = world.now()
    end = {"state": State.PUBLISHED, "merge_hash": merge_hash, "announced": False}
    ended = [member.step("published", at, **end) for member in members]
    saved = save_unmoved(world, ended)
    metrics.add_metric("Published", "Count", len(saved))
    logger.info("published", extra={"ingestions": [each.id for each in saved], "as": merge_hash})
    _clean_up(world, saved)
    first = world.ledger.get(members[0].id)
    try:
        return finish(world, first)
    except LakegateError as error:  # who is told must not delay who waits for the table
        logger.warning("the rest is left to the sweep", extra={"why": error.message})
        return world.ledger.get(first.id)


def finish(world: World, ingestion: Ingestion) -> Ingestion:
    """Do what is still due after the end: delete what nobody needs, tell people and readers.

    Raises LakegateError where that is not done yet: it is tried again.
    """
    if ingestion.uncleaned:
        if ingestion.state in ALERTED:
            _delete_crashed(world, ingestion)
            _note_cleaned(world, [ingestion])
        else:
            _clean_up(world, [ingestion])
        ingestion = world.ledger.get(ingestion.id)
    if ingestion.untold:
        ingestion = _tell(world, _closed(world, ingestion))
    if ingestion.unannounced:
        _close_older(world, ingestion)
        ingestion = _announce(world, ingestion)
    return ingestion


def warn_overdue(world: World, ingestion: Ingestion, why: str) -> None:
    """Tell people, once, of an ingestion that passed its audit hours ago and is not on main.

    `why` is what the last try to publish it met, "" where it met nothing.
    """
    longest = timedelta(minutes=world.settings.overdue_minutes)
    since = times.text(datetime.fromisoformat(world.now()) - longest)
    late = ingestion.state is State.AUDITED and ingestion.ready_at < since
    if late and ingestion.times.get("overdue", "") < ingestion.ready_at:
        message = overdue(ingestion, why, world.settings.page_url)
        world.alerts.post(ingestion.channel, message)
        world.ledger.save(ingestion.step("overdue", world.now()))


def save_unmoved(world: World, changed: Sequence[Ingestion]) -> list[Ingestion]:
    """Save those that no other process moved on in between, by as many writes as it takes."""
    if not fit_together(changed):
        half = len(changed) // 2
        return [*save_unmoved(world, changed[:half]), *save_unmoved(world, changed[half:])]
    while changed:
        try:
            return world.ledger.save_all(changed)
        except Moved as moved:
            changed = [each for each in changed if each.id not in moved.ids]
    return []


def delete_replaced(world: World, ingestion: Ingestion) -> None:
    """Delete the branches that were made for the ingestion, but for the one that it names."""
    for branch in sorted(_branches(world, [ingestion]) - {ingestion.branch}):
        world.catalog.delete_branch(branch)


def report_of(world: World, ingestion: Ingestion) -> AuditReport | None:
    """The last attempt's audit report, None where its run left none. Raises Permanent."""
    try:
        return world.lake.report(ingestion.report_key)
    except Missing:
        return None


def _clean_up(world: World, ended: Sequence[Ingestion]) -> None:
    """Delete the branches that were made for these, and note that in the ledger."""
    if ended:
        _delete_branches(world, ended)
        _note_cleaned(world, ended)


def _delete_branches(world: World, ended: Sequence[Ingestion]) -> None:
    """Delete the branches that were made for these, those that a crash left behind included."""
    left = _branches(world, ended)
    for branch in sorted(left | {each.branch for each in ended if each.branch}):
        world.catalog.delete_branch(branch)


def _delete_crashed(world: World, failed: Ingestion) -> None:
    """Delete the fresh branches that a crash left behind; what the ingestion names is evidence."""
    for branch in world.catalog.branches(fresh_branch(failed.table, failed.id, "")):
        if branch != failed.branch:
            world.catalog.delete_branch(branch)


def _note_cleaned(world: World, ended: Sequence[Ingestion]) -> None:
    at = world.now()
    save_unmoved(world, [each.step("cleaned", at, cleaned=True) for each in ended])


def _branches(world: World, ingestions: Sequence[Ingestion]) -> set[str]:
    """The branches that are there of those that were made for these ingestions of one table."""
    own = {prefix for ingestion in ingestions for prefix in _own_branches(ingestion)}
    table = ingestions[0].table
    where = own if len(ingestions) == 1 else (f"ingest/{table}/", f"publish/{table}/")
    return {name for name in world.catalog.branches(*sorted(where)) if name.startswith(tuple(own))}


def _own_branches(ingestion: Ingestion) -> tuple[str, str]:
    """How the names of the branches begin that were made for this ingestion."""
    first = branch_name(ingestion.table, ingestion.landed.key, ingestion.id, attempt=1)
    return first, fresh_branch(ingestion.table, ingestion.id, "")


def _closed(world: World, failed: Ingestion) -> Ingestion:
    """Return what failed, as superseded where a newer version of its key is published already."""
    newer = newest_newer(world, failed, [State.PUBLISHED]) if failed.is_open else None
    if newer is None or newer.id == failed.despite:
        return failed
    return _superseded(world, failed, newer)


def _close_older(world: World, ingestion: Ingestion) -> None:
    """Close the failed older versions of what was published, and tell people so.

    The write that says that readers were told says that this is done, too. Whoever of the two
    versions ends last finds the other one: each is saved before it looks.
    """
    if ingestion.state is State.PUBLISHED:
        for failed in older_failures(world, ingestion):
            _tell(world, _superseded(world, failed, ingestion))


def _superseded(world: World, failed: Ingestion, newer: Ingestion) -> Ingestion:
    return world.ledger.save(
        failed.step("superseded", world.now(), superseded_by=newer.id, alerted=False)
    )


def _tell(world: World, ingestion: Ingestion) -> Ingestion:
    world.alerts.post(ingestion.channel, _message(world, ingestion))
    return world.ledger.save(ingestion.step("alerted", world.now(), alerted=True))


def _announce(world: World, ingestion: Ingestion) -> Ingestion:
    """Have readers hear of its end; of what was published, with where its tables stand now."""
    tip = world.catalog.tip() if ingestion.state is State.PUBLISHED else None
    metadata = _metadata(world, tip, ingestion.tables) if tip else {}
    for told in announcements(ingestion, tip, metadata):
        world.announcements.send(told)
    return world.ledger.save(ingestion.step("announced", world.now(), announced=True))


def _metadata(world: World, tip: Tip, tables: Sequence[str]) -> dict[str, str]:
    """Return the metadata file of each table at one commit on main."""
    return {name: world.catalog.metadata(tip.hash, name) for name in tables}


def _message(world: World, ingestion: Ingestion) -> Alert:
    page = world.settings.page_url
    is_published = ingestion.state is State.PUBLISHED
    if is_published and ingestion.duplicate_of and not ingestion.approval:
        kind = Kind.RECOVERED if ingestion.has_recovered else Kind.NOTICE
        return duplicate(ingestion, world.ledger.get(ingestion.duplicate_of), page, kind)
    if ingestion.has_recovered or (is_published and ingestion.approval):
        return recovered(ingestion, page)
    if is_published:
        return warned(ingestion, page)
    try:
        report = report_of(world, ingestion) if ingestion.report_key else None
    except Permanent:  # an unreadable report is the reason of this alert
        report = None
    return alert(ingestion, report, page)
