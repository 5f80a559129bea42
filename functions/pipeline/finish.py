"""How an ingestion ends, and what is due after it: clean up, tell the people, tell the readers."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from functions.adapters.all import Adapters
from functions.adapters.ledger import Moved, fit_together
from functions.adapters.s3 import Missing
from functions.model.alert import (
    Alert,
    Kind,
)
from functions.model.announcement import announcements
from functions.model.commits import Tip
from functions.model.ingestion import ALERTED, Ingestion, State
from functions.notifications.alert_text import (
    alert,
    duplicate,
    overdue,
    recovered,
    warned,
)
from functions.pipeline.versions import newest_newer, older_failures
from functions.telemetry import logger, metrics
from lakegate import times
from lakegate.errors import LakegateError, Permanent
from lakegate.landing import branch_name, fresh_branch
from lakegate.report import AuditReport, Reason

# Characters that the ledger keeps of a reason: an item of it has 400 KB at most.
_LONGEST, _LONGEST_CODE = 5_000, 100


def end(
    adapters: Adapters,
    ingestion: Ingestion,
    state: State,
    reason: Reason,
) -> Ingestion:
    """Record that an ingestion ended without reaching main, then do what its end asks for."""
    brief = replace(reason, code=reason.code[:_LONGEST_CODE], message=reason.message[:_LONGEST])
    ended = ingestion.step(state.value, adapters.now(), state=state, reason=brief, announced=False)
    metrics.add_metric(state.capitalize(), "Count", 1)
    logger.info(f"ended {state}", extra={"reason": asdict(reason)})
    return finish(adapters, adapters.ledger.save(ended))


def end_published(adapters: Adapters, members: Sequence[Ingestion], merge_hash: str) -> Ingestion:
    """Record that one commit on main published the members; returns the first as it then stands.

    What another process recorded in between stays as it is.
    """
    at = adapters.now()
    end = {"state": State.PUBLISHED, "merge_hash": merge_hash, "announced": False}
    ended = [member.step("published", at, **end) for member in members]
    saved = save_unmoved(adapters, ended)
    metrics.add_metric("Published", "Count", len(saved))
    logger.info("published", extra={"ingestions": [each.id for each in saved], "as": merge_hash})
    _clean_up(adapters, saved)
    first = adapters.ledger.get(members[0].id)
    try:
        return finish(adapters, first)
    except LakegateError as error:  # who is told must not delay who waits for the table
        logger.warning("the rest is left to the sweep", extra={"why": error.message})
        return adapters.ledger.get(first.id)


def finish(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Do what is still due after the end: delete what nobody needs, tell people and readers.

    Raises LakegateError where that is not done yet: it is tried again.
    """
    if ingestion.needs_cleanup:
        if ingestion.state in ALERTED:
            _delete_crashed(adapters, ingestion)
            _note_cleaned(adapters, [ingestion])
        else:
            _clean_up(adapters, [ingestion])
        ingestion = adapters.ledger.get(ingestion.id)
    if ingestion.needs_alert:
        ingestion = _tell(adapters, _closed(adapters, ingestion))
    if ingestion.needs_announcement:
        _close_older(adapters, ingestion)
        ingestion = _announce(adapters, ingestion)
    return ingestion


def warn_overdue(adapters: Adapters, ingestion: Ingestion, why: str) -> None:
    """Tell people, once, of an ingestion that passed its audit hours ago and is not on main.

    `why` is what the last try to publish it met, "" where it met nothing.
    """
    longest = timedelta(minutes=adapters.settings.overdue_minutes)
    since = times.text(datetime.fromisoformat(adapters.now()) - longest)
    late = ingestion.state is State.AUDITED and ingestion.ready_at < since
    if late and ingestion.times.get("overdue", "") < ingestion.ready_at:
        message = overdue(ingestion, why, adapters.settings.page_url)
        adapters.alerts.post(ingestion.channel, message)
        adapters.ledger.save(ingestion.step("overdue", adapters.now()))


def save_unmoved(adapters: Adapters, changed: Sequence[Ingestion]) -> list[Ingestion]:
    """Save those that no other process moved on in between, by as many writes as it takes."""
    if not fit_together(changed):
        half = len(changed) // 2
        return [*save_unmoved(adapters, changed[:half]), *save_unmoved(adapters, changed[half:])]
    while changed:
        try:
            return adapters.ledger.save_all(changed)
        except Moved as moved:
            changed = [each for each in changed if each.id not in moved.ids]
    return []


def delete_replaced(adapters: Adapters, ingestion: Ingestion) -> None:
    """Delete the branches that were made for the ingestion, but for the one that it names."""
    for branch in sorted(_branches(adapters, [ingestion]) - {ingestion.branch}):
        adapters.catalog.delete_branch(branch)


def report_of(adapters: Adapters, ingestion: Ingestion) -> AuditReport | None:
    """The last attempt's audit report, None where its run left none. Raises Permanent."""
    try:
        return adapters.lake.report(ingestion.report_key)
    except Missing:
        return None


def _clean_up(adapters: Adapters, ended: Sequence[Ingestion]) -> None:
    """Delete the branches that were made for these, and note that in the ledger."""
    if ended:
        _delete_branches(adapters, ended)
        _note_cleaned(adapters, ended)


def _delete_branches(adapters: Adapters, ended: Sequence[Ingestion]) -> None:
    """Delete the branches that were made for these, those that a crash left behind included."""
    left = _branches(adapters, ended)
    for branch in sorted(left | {each.branch for each in ended if each.branch}):
        adapters.catalog.delete_branch(branch)


def _delete_crashed(adapters: Adapters, failed: Ingestion) -> None:
    """Delete the fresh branches that a crash left behind; what the ingestion names is evidence."""
    for branch in adapters.catalog.branches(fresh_branch(failed.table, failed.id, "")):
        if branch != failed.branch:
            adapters.catalog.delete_branch(branch)


def _note_cleaned(adapters: Adapters, ended: Sequence[Ingestion]) -> None:
    at = adapters.now()
    save_unmoved(adapters, [each.step("cleaned", at, cleaned=True) for each in ended])


def _branches(adapters: Adapters, ingestions: Sequence[Ingestion]) -> set[str]:
    """The branches that are there of those that were made for these ingestions of one table."""
    own = {prefix for ingestion in ingestions for prefix in _own_branches(ingestion)}
    table = ingestions[0].table
    where = own if len(ingestions) == 1 else (f"ingest/{table}/", f"publish/{table}/")
    return {
        name for name in adapters.catalog.branches(*sorted(where)) if name.startswith(tuple(own))
    }


def _own_branches(ingestion: Ingestion) -> tuple[str, str]:
    """How the names of the branches begin that were made for this ingestion."""
    first = branch_name(ingestion.table, ingestion.landed.key, ingestion.id, attempt=1)
    return first, fresh_branch(ingestion.table, ingestion.id, "")


def _closed(adapters: Adapters, failed: Ingestion) -> Ingestion:
    """Return what failed, as superseded where a newer version of its key is published already."""
    newer = newest_newer(adapters, failed, [State.PUBLISHED]) if failed.is_open else None
    if newer is None or newer.id == failed.despite:
        return failed
    return _superseded(adapters, failed, newer)


def _close_older(adapters: Adapters, ingestion: Ingestion) -> None:
    """Close the failed older versions of what was published, and tell people so.

    The write that says that readers were told says that this is done, too. Whoever of the two
    versions ends last finds the other one: each is saved before it looks.
    """
    if ingestion.state is State.PUBLISHED:
        for failed in older_failures(adapters, ingestion):
            _tell(adapters, _superseded(adapters, failed, ingestion))


def _superseded(adapters: Adapters, failed: Ingestion, newer: Ingestion) -> Ingestion:
    return adapters.ledger.save(
        failed.step("superseded", adapters.now(), superseded_by=newer.id, alerted=False)
    )


def _tell(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    adapters.alerts.post(ingestion.channel, _message(adapters, ingestion))
    return adapters.ledger.save(ingestion.step("alerted", adapters.now(), alerted=True))


def _announce(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Have readers hear of its end; of what was published, with where its tables stand now."""
    tip = adapters.catalog.tip() if ingestion.state is State.PUBLISHED else None
    metadata = _metadata(adapters, tip, ingestion.tables) if tip else {}
    for told in announcements(ingestion, tip, metadata):
        adapters.announcements.send(told)
    return adapters.ledger.save(ingestion.step("announced", adapters.now(), announced=True))


def _metadata(adapters: Adapters, tip: Tip, tables: Sequence[str]) -> dict[str, str]:
    """Return the metadata file of each table at one commit on main."""
    return {name: adapters.catalog.metadata(tip.hash, name) for name in tables}


def _message(adapters: Adapters, ingestion: Ingestion) -> Alert:
    page = adapters.settings.page_url
    is_published = ingestion.state is State.PUBLISHED
    if is_published and ingestion.duplicate_of and not ingestion.approval:
        kind = Kind.RECOVERED if ingestion.has_recovered else Kind.NOTICE
        return duplicate(ingestion, adapters.ledger.get(ingestion.duplicate_of), page, kind)
    if ingestion.has_recovered or (is_published and ingestion.approval):
        return recovered(ingestion, page)
    if is_published:
        return warned(ingestion, page)
    try:
        report = report_of(adapters, ingestion) if ingestion.report_key else None
    except Permanent:  # an unreadable report is the reason of this alert
        report = None
    return alert(ingestion, report, page)
