"""Record final states, and do what is due then: delete branches, alert owners, announce."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from functions.adapters.all import Adapters
from functions.model import steps
from functions.model.commits import Commit, NotOnMain, Tip
from functions.model.ingestion import ALERTED, Ingestion, State
from functions.model.merge_commit import as_published, as_taken, commit_of
from functions.model.messages.alert import Alert, Kind
from functions.model.messages.announcement import announcements
from functions.notifications.alert_text import alert, duplicate, overdue, recovered, warned
from functions.pipeline.outcome.audit_history import record
from functions.pipeline.outcome.reports import readable_report
from functions.pipeline.outcome.versions import newest_newer, older_failures
from functions.telemetry import count_files, logger
from lakegate import times
from lakegate.audit.report import Reason
from lakegate.errors import LakegateError
from lakegate.job.landing import branch_name, fresh_branch

# Characters that the ledger keeps of a reason: one item has 400 KB at most.
_LONGEST, _LONGEST_CODE = 5_000, 100
_TRIES = 5  # to record what main took, while others save its end


def end(
    adapters: Adapters,
    ingestion: Ingestion,
    state: State,
    reason: Reason,
) -> Ingestion:
    """Record the final state of an ingestion that is not published; `finish` does the rest."""
    brief = replace(reason, code=reason.code[:_LONGEST_CODE], message=reason.message[:_LONGEST])
    ended = ingestion.step(state.value, adapters.now(), state=state, reason=brief, announced=False)
    saved = adapters.ledger.save(ended)
    count_files(state.capitalize(), [saved.tables])
    logger.info(f"ended {state}", extra={"reason": asdict(reason)})
    return saved


def end_published(adapters: Adapters, members: Sequence[Ingestion], merge_hash: str) -> Ingestion:
    """Record that one commit on main published the members; return the first as it is then.

    What another process recorded in between stays as it is, but for another end: that process did
    not know yet what main took. `finish` does what is due then.
    """
    at = adapters.now()
    end = {"state": State.PUBLISHED, "merge_hash": merge_hash, "announced": False}
    ended = [member.step("published", at, **end) for member in members]
    saved = adapters.ledger.save_each(ended)
    for _ in range(_TRIES):
        given_up = _given_up(adapters, members, saved)
        if not given_up:
            break
        saved += adapters.ledger.save_each([_taken(*each, at, end) for each in given_up])
    count_files("Published", [each.tables for each in saved])
    logger.info("published", extra={"ingestions": [each.id for each in saved], "as": merge_hash})
    first = next((each for each in saved if each.id == members[0].id), None)
    return first or adapters.ledger.get(members[0].id)


def _given_up(
    adapters: Adapters, members: Sequence[Ingestion], saved: Sequence[Ingestion]
) -> list[tuple[Ingestion, Ingestion]]:
    """Return the members that ended otherwise meanwhile, each as it is now and as main took it."""
    moved = {each.id: each for each in members if each.id not in {one.id for one in saved}}
    now = adapters.ledger.together(sorted(moved)) if moved else []
    turn = "published"  # whose time tells an end that came after main took it
    return [
        (each, moved[each.id])
        for each in now
        if each.ended and each.times.get(turn) == moved[each.id].times.get(turn)
    ]


def _taken(given_up: Ingestion, member: Ingestion, at: str, end: Mapping[str, Any]) -> Ingestion:
    """Return what ended otherwise as published as the member was; people hear that it is."""
    return as_published(member).adopted(given_up).step("published", at, reason=None, **end)


def end_taken(adapters: Adapters, ingestion: Ingestion, commit: Commit) -> Ingestion:
    """Record as published what main has taken by that commit, perhaps of an earlier attempt."""
    return end_published(adapters, [as_taken(ingestion, commit)], commit.hash)


def end_if_merged(adapters: Adapters, ingestion: Ingestion) -> Ingestion | None:
    """Record as published what main has taken already; return it, None if main has not."""
    try:
        commit = commit_of(adapters.catalog.log(), ingestion)
    except NotOnMain:
        return None
    return end_taken(adapters, ingestion, commit)


def finish(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Do what is still due in a final state: delete branches, alert owners, announce.

    Raise LakegateError where that is not done yet: the next message or the sweep tries again.
    """
    ingestion = _cleaned_up(adapters, ingestion)
    if steps.needs_alert(ingestion):
        ingestion = _send_alert(adapters, _closed(adapters, ingestion))
    if steps.needs_announcement(ingestion):
        adapters.ledger.save_each(_announced(adapters, [ingestion]))
        return adapters.ledger.get(ingestion.id)
    return ingestion


def finish_published(adapters: Adapters, published: Ingestion) -> Ingestion:
    """Delete the branches, alert and announce; if the latter two fail, leave them to the sweep.

    They must not delay the ingestions that wait for the table. All members of a group are
    finished.
    """
    members = _published_together(adapters, published)
    _delete_branches(adapters, members)
    try:
        _note_finished(adapters, members)
        return finish(adapters, adapters.ledger.get(published.id))
    except LakegateError as error:
        logger.warning("the rest is left to the sweep", extra={"why": error.message})
        return adapters.ledger.get(published.id)


def _note_finished(adapters: Adapters, members: Sequence[Ingestion]) -> None:
    """Announce the members without an alert, and note all branches deleted, in one write each.

    `finish` alerts and announces the others one by one. What a group measured is recorded at once,
    which takes no write of its own then.
    """
    at = adapters.now()
    cleaned = [_cleaned(each, at) for each in members]
    plain = {i.id: i for i in cleaned if steps.needs_announcement(i) and not steps.needs_alert(i)}
    announced = _announced(adapters, list(plain.values()))
    if len(announced) > 1:
        _record(adapters, announced)
    else:
        adapters.ledger.save_each(announced)
    if others := [each for each in cleaned if each.id not in plain]:
        adapters.ledger.save_each(others)


def _record(adapters: Adapters, announced: Sequence[Ingestion]) -> None:
    try:
        record(adapters, announced)
    except LakegateError as error:
        logger.warning("recording is left to the sweep", extra={"why": error.message})
        adapters.ledger.save_each(announced)


def warn_overdue(adapters: Adapters, ingestion: Ingestion, why: str) -> None:
    """Alert owners once of an ingestion that passed its audit hours ago and is not on main.

    `why` is the error of the last try to publish it, "" without one.
    """
    longest = timedelta(minutes=adapters.settings.overdue_minutes)
    since = times.earlier(adapters.now(), longest)
    late = ingestion.state is State.AUDITED and ingestion.ready_at < since
    if late and ingestion.times.get("overdue", "") < ingestion.ready_at:
        message = overdue(ingestion, why, adapters.settings.page_url)
        adapters.alerts.post(ingestion.terms.channel, message)
        adapters.ledger.save(ingestion.step("overdue", adapters.now()))


def delete_replaced(adapters: Adapters, ingestion: Ingestion) -> None:
    """Delete the branches that were created for the ingestion, except the one that it names."""
    for branch in sorted(_branches(adapters, [ingestion]) - {ingestion.branch}):
        adapters.catalog.delete_branch(branch)


def _cleaned_up(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    if not steps.needs_cleanup(ingestion):
        return ingestion
    if ingestion.state in ALERTED:
        _delete_crashed(adapters, ingestion)
    else:
        _delete_branches(adapters, [ingestion])
    adapters.ledger.save_each([_cleaned(ingestion, adapters.now())])
    return adapters.ledger.get(ingestion.id)


def _published_together(adapters: Adapters, published: Ingestion) -> list[Ingestion]:
    """Return the ingestions of the same commit whose branches are still to be deleted."""
    if not published.group:
        return [published]
    members = adapters.ledger.together(published.group)
    return [m for m in members if steps.needs_cleanup(m) and m.merge_hash == published.merge_hash]


def _delete_branches(adapters: Adapters, ended: Sequence[Ingestion]) -> None:
    """Delete the branches that were created for these, including those that a crash left."""
    left = _branches(adapters, ended) if ended else set()
    for branch in sorted(left | {each.branch for each in ended if each.branch}):
        adapters.catalog.delete_branch(branch)


def _delete_crashed(adapters: Adapters, failed: Ingestion) -> None:
    """Delete the fresh branches that a crash left; the branch it names is evidence."""
    for branch in adapters.catalog.branches(fresh_branch(failed.table, failed.id, "")):
        if branch != failed.branch:
            adapters.catalog.delete_branch(branch)


def _cleaned(ended: Ingestion, at: str) -> Ingestion:
    return ended.step("cleaned", at, cleaned=True)


def _branches(adapters: Adapters, ingestions: Sequence[Ingestion]) -> set[str]:
    """Return the existing branches that were created for these ingestions of one table."""
    own = {prefix for ingestion in ingestions for prefix in _own_branches(ingestion)}
    table = ingestions[0].table
    where = own if len(ingestions) == 1 else (f"ingest/{table}/", f"publish/{table}/")
    return {
        name for name in adapters.catalog.branches(*sorted(where)) if name.startswith(tuple(own))
    }


def _own_branches(ingestion: Ingestion) -> tuple[str, str]:
    """Return the prefixes of the branches that were created for this ingestion."""
    first = branch_name(ingestion.table, ingestion.landed.key, ingestion.id, attempt=1)
    return first, fresh_branch(ingestion.table, ingestion.id, "")


def _closed(adapters: Adapters, failed: Ingestion) -> Ingestion:
    """Return the failed ingestion, as superseded if a newer version of its key is published."""
    newer = newest_newer(adapters, failed, [State.PUBLISHED]) if failed.is_open else None
    if newer is None or newer.id == failed.decisions.despite:
        return failed
    return _superseded(adapters, failed, newer)


def _close_older(adapters: Adapters, ingestion: Ingestion) -> None:
    """Mark failed older versions of a published ingestion as superseded, and alert their owners.

    The write that notes the announcement notes this as well. Each of two versions is saved before
    it looks for the other, so the one that ends last finds the other.
    """
    if ingestion.state is State.PUBLISHED:
        for failed in older_failures(adapters, ingestion):
            _send_alert(adapters, _superseded(adapters, failed, ingestion))


def _superseded(adapters: Adapters, failed: Ingestion, newer: Ingestion) -> Ingestion:
    return adapters.ledger.save(
        failed.step("superseded", adapters.now(), superseded_by=newer.id, alerted=False)
    )


def _send_alert(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    adapters.alerts.post(ingestion.terms.channel, _message(adapters, ingestion))
    return adapters.ledger.save(ingestion.step("alerted", adapters.now(), alerted=True))


def _announced(adapters: Adapters, ended: Sequence[Ingestion]) -> list[Ingestion]:
    """Announce the final states of one or more ingestions to consumers; return them as announced.

    What is published is announced with its tables as they are on main. Several ingestions are those
    of one commit.
    """
    if not ended:
        return []
    tip = adapters.catalog.tip() if ended[0].state is State.PUBLISHED else None
    metadata = _metadata(adapters, tip, ended[0].tables) if tip else {}
    for each in ended:
        _close_older(adapters, each)
    adapters.announcements.send(
        said for each in ended for said in announcements(each, tip, metadata)
    )
    at = adapters.now()
    return [each.step("announced", at, announced=True) for each in ended]


def _metadata(adapters: Adapters, tip: Tip, tables: Sequence[str]) -> dict[str, str]:
    """Return the metadata file of each table at one commit on main."""
    return {name: adapters.catalog.metadata(tip.hash, name) for name in tables}


def _message(adapters: Adapters, ingestion: Ingestion) -> Alert:
    page = adapters.settings.page_url
    is_published = ingestion.state is State.PUBLISHED
    if is_published and ingestion.audit.duplicate_of and not ingestion.decisions.approval:
        kind = Kind.RECOVERED if ingestion.has_recovered else Kind.NOTICE
        return duplicate(ingestion, adapters.ledger.get(ingestion.audit.duplicate_of), page, kind)
    if ingestion.has_recovered or (is_published and ingestion.decisions.approval):
        return recovered(ingestion, page)
    # A report that nobody can read is the reason of an alert, and its notice is sent without rows.
    report = readable_report(adapters.lake, ingestion.report_key)
    if is_published:
        return warned(ingestion, report, page)
    return alert(ingestion, report, page)
