"""The promises that every deployment keeps once nothing is left to do."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any, cast

from functions.adapters.all import Adapters
from functions.model import merge_commit, steps
from functions.model.commits import Commit
from functions.model.ingestion import ALERTED, Ingestion, State
from functions.operations.decisions.failed import branches
from functions.operations.reconcile.compare import reconciled
from functions.operations.reconcile.file_sums import End
from functions.pipeline.outcome.versions import is_newer
from functions.pipeline.publication.duplicates import LIKELY_DUPLICATE
from functions.pipeline.start.landing_order import OUT_OF_ORDER
from lakegate.audit.audit_tables import TABLES
from lakegate.errors import Permanent
from lakegate.job.landing import ingestion_id, parse_report_key
from lakegate.times import second
from spark_jobs.shared.taken_files import MARKER
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import Deployment
from tests.fakes.files_in_the_lake import check_files, deleted
from tests.fakes.keys_on_main import check_keys
from tests.fakes.notices import check_consumers_are_notified, check_owners_are_notified
from tests.fakes.others import Row, rows_copied, rows_in_table, rows_of, rows_replaced
from tests.fakes.rows import rows_of_source, sources_in


def check_promises(deployment: Deployment) -> None:
    """Raise AssertionError unless nothing is lost, doubled, unaudited on main or not notified."""
    check_all_ended(deployment)
    published = [i for i in deployment.ledger.all() if i.state is State.PUBLISHED]
    _exactly_the_published_is_on_main(deployment, published)
    _no_key_is_on_main_twice(deployment, published)
    check_keys(deployment)
    _batches_come_whole(deployment, [i for i in published if i.parts])
    _batches_bring_what_was_there(deployment, [i for i in deployment.ledger.all() if i.parts])
    _no_file_comes_twice_unapproved(deployment, published)
    _no_bytes_come_twice_unnoticed(deployment, published)
    if not (deployment.others.undid or deployment.ledger.has_lost):
        _files_keep_their_order(deployment)
    _main_reads_what_was_audited(deployment, published)
    failed = [i for i in deployment.ledger.all() if i.state in ALERTED]
    _the_failed_keep_their_branch(deployment, failed)
    remarkable = [i for i in published if i.audit.duplicate_of or i.audit.warnings]
    check_owners_are_notified(deployment, failed + remarkable)
    _older_failures_are_closed(deployment, failed, published)
    _no_late_decision_is_published(deployment, published)
    _the_unreadable_is_shown(deployment)
    if not deployment.others.undid:  # which takes back records, and what consumers read
        check_consumers_are_notified(deployment)
        _every_run_is_recorded_once(deployment)
    check_files(deployment)
    if deployment.others.idle:
        _reconcile_agrees(deployment)


def ends(deployment: Deployment) -> dict[str, tuple[str, str, int]]:
    """Return the state, the reason's code and the rows of each landed object.

    How many rows an upsert writes depends on which files were merged before: so none are told.
    """
    return {
        f"{i.landed.uri}@{i.landed.version}": (
            i.state,
            i.reason.code if i.reason else "",
            i.audit.rows if i.terms.write_mode != "upsert" else 0,
        )
        for i in deployment.ledger.all()
    }


def publishing(deployment: Deployment) -> list[Commit]:
    """Return the commits on main that published something, newest first."""
    return [each for each in deployment.catalog.log() if merge_commit.published(each)]


def left_behind(deployment: Deployment) -> list[str]:
    """Return the branches that can be deleted."""
    references = deployment.catalog.references()
    failed = [
        i for i in deployment.ledger.all() if i.state in ALERTED and not i.decisions.discarded
    ]
    kept = {i.branch for i in failed} | {b for i in failed for b in branches(i, references)}
    there = deployment.catalog.branches("ingest/", "publish/", "upkeep/")
    if deployment.was_doubled:  # of two takings of one file, `expire` deletes a branch
        there = [name for name in there if not name.startswith("ingest/")]
    # So it does with the branch of a group that nobody knows any more, or that a backup had.
    has_lost, forgotten = deployment.ledger.has_lost, deployment.others.brought_back
    if deployment.journal.has_struck:  # a process may have died before it deleted it
        forgotten = forgotten | deployment.ledger.replaced | unknown_groups(deployment)
    there = [name for name in there if "/group-" not in name or not (has_lost or name in forgotten)]
    # And the evidence that a group's branch was for one of its files, until that was replayed.
    evidence = _evidence_of_groups(deployment)
    there = [name for name in there if name not in evidence]
    # What a process that died leaves of a compaction, `expire` deletes the next day.
    died = tuple(f"/{id_[-12:]}-" for id_ in deployment.jobs.compactions())
    there = [name for name in there if not any(part in name for part in died)]
    return [name for name in there if name not in kept | deployment.others.forged]


def _evidence_of_groups(deployment: Deployment) -> set[str]:
    """Return the branches of groups with which one of their files ended."""
    ledger = deployment.ledger
    known = [then for each in ledger.all() for then in ledger.history(each.id)]
    failed = (then for then in known if then.state in ALERTED and not then.group)
    return {then.branch for then in failed if "/group-" in then.branch}


def unknown_groups(deployment: Deployment) -> set[str]:
    """Return the branches of groups that no ingestion ever had.

    A driver that had no answer to its commit takes the files to a new branch.
    """
    ledger = deployment.ledger
    known = {then.branch for each in ledger.all() for then in ledger.history(each.id)}
    there = deployment.catalog.branches("ingest/")
    return {name for name in there if "/group-" in name} - known - deployment.others.forged


def check_all_ended(deployment: Deployment) -> None:
    """Raise AssertionError unless all that landed has its final state, which people know."""
    landed = {ingestion_id(landed) for landed in deployment.arrivals()}
    ended = {i.id for i in deployment.ledger.all() if i.ended and not steps.unfinished(i)}
    assert landed == ended, f"not ended, or never landed: {landed ^ ended}"


def _exactly_the_published_is_on_main(deployment: Deployment, published: list[Ingestion]) -> None:
    replaced = Counter(id_ for i in published for id_ in i.replaced)
    others = deployment.others
    rows = Counter(row for i in published for row in _rows(deployment, i))
    copied = rows_copied(deployment.catalog, deployment.catalog.log())
    allowed = rows + others.brought + copied  # as tests/fakes/keys_on_main.py checks
    for commit, names in deployment.catalog.history():
        for name in names:
            table = None if name.startswith("ops.") else deployment.catalog.table(commit.hash, name)
            wrong = Counter(rows_in_table(name, table)) - allowed if table else None
            assert not wrong, f"unaudited or doubled in main: {wrong} by {commit}"
    found = rows_of(deployment.catalog, "main")
    log = [each for commit in deployment.catalog.log() for each in merge_commit.published(commit)]
    named = Counter(each.id for each in log)
    came = named + others.withdrawn
    gone = replaced.keys() | _retracted(deployment, published) | _undone(deployment)
    live = (deployment.ledger.get(id_) for id_ in came.elements() if id_ not in gone)
    expected = others.brought + Counter(row for i in live for row in _rows(deployment, i))
    expected.subtract(others.took)
    expected.subtract(rows_replaced(deployment.catalog, deployment.catalog.log()))
    for row in expected.keys() | found.keys():
        due = max(expected[row], 0)  # others may have taken what was replaced as well
        message = f"{row} is there {found[row]} times, not {due}"
        assert found[row] == due, f"lost or doubled in main: {message}"
    ids = {i.id for i in published}
    assert named.keys() <= ids <= came.keys(), "main's log names others"
    assert others.undid or max(named.values(), default=0) <= 1, "main's log names one twice"
    assert Counter(id_ for each in log for id_ in each.replaced) == replaced
    assert not [id_ for id_, times in replaced.items() if times > 1]


def _files_keep_their_order(deployment: Deployment) -> None:
    """Raise AssertionError if a file replaced the rows of one that landed later, unapproved."""
    log = list(deployment.catalog.log())[::-1]
    named = [each for commit in log for each in merge_commit.published(commit)]
    known = [deployment.ledger.get(each.id) for each in named if each.mode]
    due = (
        i for i in known if i.terms.follows_landing and not _had_been(deployment, i, OUT_OF_ORDER)
    )
    for earlier, later in pairwise(due):
        assert earlier.landed.landed_at <= later.landed.landed_at, f"out of order: {later}"


def _retracted(deployment: Deployment, published: list[Ingestion]) -> set[str]:
    """Return the ids of the files whose rows were removed on request, for which it still holds."""
    undone = _undone(deployment)
    changes = (i.change for i in published if i.change and i.id not in undone)
    return {change.retracts for change in changes if change.retracts}


def _undone(deployment: Deployment) -> set[str]:
    """Return the ids of what was published since the commits to which tables were restored."""
    until: dict[str, str] = {}
    undone = set[str]()
    for commit in deployment.catalog.log():
        until = {table: to for table, to in until.items() if to != commit.hash}
        for table in merge_commit.tables(commit):
            for each in merge_commit.published(commit):
                change = each.change(table)
                if table in until:
                    undone.add(each.id)
                elif change and change.restores:
                    until[table] = change.restores
    return undone


def _rows(deployment: Deployment, ingestion: Ingestion) -> list[Row]:
    """Return the rows of a landed object; of a batch those of each of its files."""
    if ingestion.change and (taken := ingestion.change.takeover):
        added = deployment.others.on_branches[taken.head]
        return [row for row in added if row[0] == ingestion.table]
    if ingestion.change and (ingestion.change.retracts or ingestion.change.restores):
        return []
    landed = [(part.table, part.landed(ingestion.landed)) for part in ingestion.parts]
    whole = landed or [(ingestion.table, ingestion.landed)]
    sources = ((table, f"{each.uri}@{each.version}") for table, each in whole)
    return [(table, row) for table, source in sources for row in rows_of_source(source)]


def _main_reads_what_was_audited(deployment: Deployment, published: list[Ingestion]) -> None:
    """Raise AssertionError if main's table is not the one that a file was written for."""
    for ingestion in published:
        for audited in deployment.ledger.history(ingestion.id):
            is_of_it = audited.state is State.AUDITED and audited.attempt == ingestion.attempt
            if is_of_it and deployment.catalog.knows(audited.audited_hash):  # not before a backup
                for table in ingestion.tables:
                    written = deployment.catalog.table(audited.audited_hash, table)
                    read = deployment.catalog.table(ingestion.merge_hash, table)
                    assert _fits(written, read), f"main cannot read what was written: {ingestion}"


def _fits(written: FakeTable | None, read: FakeTable | None) -> bool:
    assert written
    assert read
    new = set(read.columns) - set(written.columns)
    is_whole = set(written.files) <= set(read.files)
    return (
        (written.uuid == read.uuid or is_whole)
        and set(written.columns) <= set(read.columns)
        and not any(column.endswith("!") for column in new)
    )


def _batches_come_whole(deployment: Deployment, batches: list[Ingestion]) -> None:
    """Raise AssertionError unless all rows of a batch reached main by one commit."""
    log = {commit.hash: commit for commit in deployment.catalog.log()}
    for batch in (each for each in batches if each.merge_hash in log):
        commit = log[batch.merge_hash]
        gained = rows_of(deployment.catalog, commit.hash)
        gained.subtract(rows_of(deployment.catalog, commit.parent))
        assert all(gained[row] for row in _rows(deployment, batch)), f"not by one commit: {batch}"


def _batches_bring_what_was_there(deployment: Deployment, batches: list[Ingestion]) -> None:
    """Raise AssertionError unless each file is as it was when its manifest landed.

    Only a replay may publish a file that was missing then.
    """
    landed = list(deployment.landing.landed()) if batches else []
    times = {ingestion_id(each): each.landed_at for each in landed}
    for batch in (each for each in batches if each.id in times):
        at = times[batch.id]
        then = {each.key: each.version for each in landed if each.landed_at <= at}
        just = {(e.key, e.version) for e in landed if second(e.landed_at) == second(at)}
        for file in (part.landed(batch.landed) for part in batch.parts):
            known = then.get(file.key, file.version if batch.tries_from else "missing")
            right = file.version == known or (file.key, file.version) in just
            assert right, f"{file.key} was {known} when the manifest landed: {batch}"


def _no_file_comes_twice_unapproved(deployment: Deployment, published: list[Ingestion]) -> None:
    """Raise AssertionError if a landed version was published twice without an approval."""
    unknown = [i for i in published if not _had_been(deployment, i, LIKELY_DUPLICATE)]
    came = Counter(row for i in unknown for row in _rows(deployment, i))
    assert not [row for row, times in came.items() if times > 1], "a version came twice"


def _no_bytes_come_twice_unnoticed(deployment: Deployment, published: list[Ingestion]) -> None:
    """Raise AssertionError if known bytes were published again without being marked as a duplicate.

    This does not hold where versions replace each other, where one of them was approved, or where
    the ledger had lost one of them.
    """
    files = [i for i in published if not i.parts and not i.terms.replaces and i.landed.etag]
    files = [i for i in files if not i.decisions.approval]
    gone = _retracted(deployment, published) | _undone(deployment)
    known = [i for i in files if i.id not in gone and not deployment.ledger.was_lost(i.id)]
    alike: dict[tuple[str, str, int], list[Ingestion]] = {}
    for each in known:
        alike.setdefault((each.table, each.landed.etag, each.landed.size), []).append(each)
    for same in alike.values():
        untold = [each for each in same if not each.audit.duplicate_of]
        for one, late in permutations(untold, 2):
            begun = late.times.get("submitted") or late.times["queued"]
            assert begun < one.times["published"], f"twice: {one}, {late}"


def _had_been(deployment: Deployment, ingestion: Ingestion, code: str) -> bool:
    """Return whether it was approved after it had been rejected for this reason."""
    history = deployment.ledger.history(ingestion.id)
    codes = (i.reason.code for i in history if i.reason and i.state is State.REJECTED)
    return bool(ingestion.decisions.approval) and code in codes


def _no_key_is_on_main_twice(deployment: Deployment, published: list[Ingestion]) -> None:
    """Raise AssertionError if files of which no person approved one have a key in common."""
    keys = deployment.keys
    approved = {f"{i.landed.uri}@{i.landed.version}" for i in published if i.decisions.approval}
    files = [file for file in deployment.published_files() if file not in approved]
    on_main = Counter(key for file in files for key in keys.get(file, ()))
    assert not [key for key, times in on_main.items() if times > 1], "a key is there twice"


def _the_failed_keep_their_branch(deployment: Deployment, failed: list[Ingestion]) -> None:
    known = {i.id: deployment.ledger.history(i.id) for i in failed}  # with the lost
    given_up = {then.branch for each in known.values() for then in each if then.decisions.discarded}
    # A group took it from there; the ledger lost that, and restored what the report says.
    given_up |= {
        then.branch
        for each in known.values()
        for then, later in pairwise(each)
        if then.branch != later.branch
    }
    # If no sweep runs for a day after the ledger lost it, nothing says what such a branch is for.
    lost = deployment.ledger.was_lost
    given_up |= {each.branch for each in failed if lost(each.id) and steps.is_silent(each)}
    kept = {i.branch for i in failed if i.branch} - given_up
    gone = (
        kept - set(deployment.catalog.branches("ingest/", "publish/")) - deployment.others.dropped
    )
    assert not gone, f"evidence is gone: {gone}"
    # A process that hung while others finished can still leave an empty branch.
    catalog, cut_off = deployment.catalog, deployment.others.lost
    left = [b for b in left_behind(deployment) if not catalog.is_on_main(b)]
    left = [b for b in left if catalog.head(b) not in cut_off]
    assert not left, f"left behind with rows on them: {left}"


def _older_failures_are_closed(
    deployment: Deployment, failed: list[Ingestion], published: list[Ingestion]
) -> None:
    """Raise AssertionError unless a failed ingestion names a newer published version, if any."""
    for each in (i for i in failed if not i.decisions.discarded):
        newer = {i.id for i in published if _is_later_version(i, each)} - {each.decisions.despite}
        message = f"not closed by one of {newer}: {each}"
        assert each.superseded_by in newer if newer else not each.superseded_by, message


def _no_late_decision_is_published(deployment: Deployment, published: list[Ingestion]) -> None:
    """Raise AssertionError if a failed ingestion was published after a newer version of its key.

    This is not asked of those whose commit main has lost, nor where the ledger lost the newer one
    and somebody dropped the table with its rows: main refuses no branch by it then.
    """
    log = [commit.hash for commit in deployment.catalog.log()][::-1]
    drops = deployment.others.drops if deployment.ledger.has_lost else {}
    there = [i for i in published if i.merge_hash in log]
    for each in (i for i in there if i.has_failed):
        newer = [i for i in there if _is_later_version(i, each) and i.id != each.decisions.despite]
        before = log[: log.index(each.merge_hash)]
        dropped = [at for at, commit in enumerate(before) if drops.get(commit) in each.tables]
        late = [i for i in newer if i.merge_hash in before[max(dropped, default=0) :]]
        assert not late, f"published after a newer version: {each}"


def _is_later_version(one: Ingestion, other: Ingestion) -> bool:
    same = (one.landed.bucket, one.landed.key) == (other.landed.bucket, other.landed.key)
    known = one.tables and other.tables
    apart = known and set(one.tables).isdisjoint(other.tables)
    return same and one.id != other.id and is_newer(one, other) and not apart


def _the_unreadable_is_shown(deployment: Deployment) -> None:
    texts = [str(alert.blocks) for _, alert in deployment.alerts.posted]
    for body in deployment.garbage:
        assert any(body in text for text in texts), f"nobody was told of {body}"


def _every_run_is_recorded_once(deployment: Deployment) -> None:
    """Raise AssertionError unless main's tables of history have the records of each run, once.

    A report written after EMR declared its run over may be too late to be recorded. So may one of
    whose files upkeep deleted some, while a restored main did not name them. Where main took an
    earlier attempt after it had failed, that may be recorded as not published.
    """
    gone = deleted(deployment)
    expected: Counter[str] = Counter()
    late: Counter[str] = Counter()
    for key in deployment.lake.reports():
        if key.endswith(MARKER):
            continue
        _, id_, attempt = parse_report_key(key)
        now = deployment.ledger.get(id_)
        published = now.state is State.PUBLISHED and now.report_key == key
        paths = list(_records(deployment, key))
        is_late = key in deployment.late or not gone.isdisjoint(paths)
        if published and attempt < now.attempt:
            is_late = True
            late.update(f"{path}|False" for path in paths)
        (late if is_late else expected).update(f"{path}|{published}" for path in paths)
    tables = (deployment.catalog.table("main", table.name) for table in TABLES)
    files = (file for table in tables if table for file in table.files)
    found = Counter(line for file in files for line in sources_in(file))
    assert expected <= found <= expected + late, f"recorded: {found}, not {expected}"


def _records(deployment: Deployment, key: str) -> list[str]:
    """Return the records of the report under a key, if it is readable and belongs to that run."""
    try:
        report = deployment.lake.report(key)
    except Permanent:
        return []
    is_own = parse_report_key(key)[1:] == (report.ingestion, report.attempt)
    return [file.path for single in report.singles for file in single.records if is_own]


def _reconcile_agrees(deployment: Deployment) -> None:
    found = reconciled(unwatched(deployment), thorough=True)
    assert found.problems == ()
    # Some tests let another writer change the table without `others`, or delete old metadata.
    allowed = {"CHANGED_BY_OTHERS", "ROWS_NOT_COMPARED"}
    assert {remark.code for remark in found.remarks} <= allowed
    assert found.ended(End.IN_FLIGHT) == (0, 0)


def unwatched(deployment: Deployment) -> Adapters:
    """Return the adapters without the journal, so that a test's reads stay out of its story."""
    return replace(
        deployment.adapters,
        landing=cast(Any, deployment.landing),
        lake=cast(Any, deployment.lake),
        ledger=cast(Any, deployment.ledger),
        catalog=cast(Any, deployment.catalog),
        alerts=cast(Any, deployment.alerts),
        announcements=cast(Any, deployment.announcements),
        tables=lambda: cast(Any, deployment.tables),
    )
