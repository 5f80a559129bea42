"""What must be true of every deployment that has come to rest, whatever happened to it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any, cast

from functions.adapters.all import Adapters
from functions.model import merge_commit
from functions.model.alert import (
    Kind,
)
from functions.model.announcement import announcements
from functions.model.commits import Commit
from functions.model.ingestion import ALERTED, ANNOUNCED, Ingestion, State
from functions.operations.failed import branches
from functions.operations.reconcile import reconciled
from functions.operations.reconciliation import End
from functions.pipeline.duplicates import LIKELY_DUPLICATE
from functions.pipeline.versions import is_newer
from lakegate.audit_tables import TABLES
from lakegate.errors import Permanent
from lakegate.landing import ingestion_id, parse_report_key
from lakegate.times import second
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.others import Row, rows_of


def check_promises(deployment: Deployment) -> None:
    """Nothing lost, nothing doubled, nothing unaudited on main, nobody left untold."""
    _nothing_is_lost(deployment)
    published = [i for i in deployment.ledger.all() if i.state is State.PUBLISHED]
    _exactly_the_published_is_on_main(deployment, published)
    _no_key_is_on_main_twice(deployment)
    _batches_come_whole(deployment, [i for i in published if i.parts])
    _batches_bring_what_was_there(deployment, [i for i in deployment.ledger.all() if i.parts])
    _no_file_comes_twice_unknown_to_people(deployment, published)
    _no_bytes_come_twice_unknown_to_people(deployment, published)
    _main_reads_what_was_audited(deployment, published)
    failed = [i for i in deployment.ledger.all() if i.state in ALERTED]
    _the_failed_keep_their_branch(deployment, failed)
    remarkable = [i for i in published if i.duplicate_of or i.warnings]
    _of_exactly_these_people_are_told(deployment, failed + remarkable)
    _older_failures_are_closed(deployment, failed, published)
    _no_late_decision_is_published(deployment, published)
    _the_unreadable_is_shown(deployment)
    if not deployment.others.undid:  # which takes back what was recorded, and what readers saw
        _of_every_end_readers_are_told(deployment)
        _every_run_is_recorded_once(deployment)
    check_files(deployment)
    if deployment.others.idle:
        _reconcile_agrees(deployment)


def ends(deployment: Deployment) -> dict[str, tuple[str, str, int]]:
    """How each landed object ended: its state, the reason's code, the rows."""
    return {
        f"{i.landed.uri}@{i.landed.version}": (i.state, i.reason.code if i.reason else "", i.rows)
        for i in deployment.ledger.all()
    }


def publishing(deployment: Deployment) -> list[Commit]:
    """The commits on main that published something, newest first."""
    return [each for each in deployment.catalog.log() if merge_commit.published(each)]


def left_behind(deployment: Deployment) -> list[str]:
    """Branches that nobody needs any more."""
    references = deployment.catalog.references()
    failed = [i for i in deployment.ledger.all() if i.state in ALERTED and not i.discarded]
    kept = {i.branch for i in failed} | {b for i in failed for b in branches(i, references)}
    return [name for name in deployment.catalog.branches("ingest/", "publish/") if name not in kept]


def _nothing_is_lost(deployment: Deployment) -> None:
    landed = {ingestion_id(landed) for landed in deployment.arrivals()}
    ended = {i.id for i in deployment.ledger.all() if i.ended and not i.unfinished}
    assert landed == ended, f"not ended, or never landed: {landed ^ ended}"


def _exactly_the_published_is_on_main(deployment: Deployment, published: list[Ingestion]) -> None:
    replaced = Counter(id_ for i in published for id_ in i.replaced)
    others, rows = deployment.others, Counter(row for i in published for row in _rows(i))
    for commit in deployment.catalog.log():
        wrong = rows_of(deployment.catalog, commit.hash) - rows - others.brought
        assert not wrong, f"unaudited or doubled in main: {wrong} by {commit}"
    found = rows_of(deployment.catalog, "main")
    log = [each for commit in deployment.catalog.log() for each in merge_commit.published(commit)]
    named = Counter(each.id for each in log)
    came = named + others.withdrawn
    live = (deployment.ledger.get(id_) for id_ in came.elements() if id_ not in replaced)
    expected = others.brought + Counter(row for i in live for row in _rows(i))
    expected.subtract(others.took)
    for row in expected.keys() | found.keys():
        message = f"{row} is there {found[row]} times, not {expected[row]}"
        assert found[row] == expected[row], f"lost or doubled in main: {message}"
    ids = {i.id for i in published}
    assert named.keys() <= ids <= came.keys(), "main's log names others"
    assert others.undid or max(named.values(), default=0) <= 1, "main's log names one twice"
    assert Counter(id_ for each in log for id_ in each.replaced) == replaced
    assert not [id_ for id_, times in replaced.items() if times > 1]


def _rows(ingestion: Ingestion) -> list[Row]:
    """The rows of a landed object; of a batch those of each of its files."""
    landed = [(part.table, part.landed(ingestion.landed)) for part in ingestion.parts]
    whole = landed or [(ingestion.table, ingestion.landed)]
    return [(table, f"{each.uri}@{each.version}") for table, each in whole]


def _main_reads_what_was_audited(deployment: Deployment, published: list[Ingestion]) -> None:
    """The table that took an audited file is the one that it was written for, and fits it."""
    for ingestion in published:
        for audited in deployment.ledger.history(ingestion.id):
            if audited.state is State.AUDITED and audited.attempt == ingestion.attempt:
                for table in ingestion.tables:
                    written = deployment.catalog.table(audited.audited_hash, table)
                    read = deployment.catalog.table(ingestion.merge_hash, table)
                    assert _fits(written, read), f"main cannot read what was written: {ingestion}"


def _fits(written: FakeTable | None, read: FakeTable | None) -> bool:
    assert written
    assert read
    new = set(read.columns) - set(written.columns)
    return (
        written.uuid == read.uuid
        and set(written.columns) <= set(read.columns)
        and not any(column.endswith("!") for column in new)
    )


def _batches_come_whole(deployment: Deployment, batches: list[Ingestion]) -> None:
    """All rows of a batch came to main by one commit."""
    log = {commit.hash: commit for commit in deployment.catalog.log()}
    for batch in (each for each in batches if each.merge_hash in log):
        commit = log[batch.merge_hash]
        gained = rows_of(deployment.catalog, commit.hash)
        gained.subtract(rows_of(deployment.catalog, commit.parent))
        assert all(gained[row] for row in _rows(batch)), f"not by one commit: {batch}"


def _batches_bring_what_was_there(deployment: Deployment, batches: list[Ingestion]) -> None:
    """Each file is as it was when its manifest landed, or within that second.

    Only a replay may bring one that was missing then.
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


def _no_file_comes_twice_unknown_to_people(
    deployment: Deployment, published: list[Ingestion]
) -> None:
    """A landed version came to main once, or again as people wanted who had been told of it."""
    unknown = [i for i in published if not _was_held(deployment, i)]
    came = Counter(row for i in unknown for row in _rows(i))
    assert not [row for row, times in came.items() if times > 1], "a version came twice"


def _no_bytes_come_twice_unknown_to_people(
    deployment: Deployment, published: list[Ingestion]
) -> None:
    """Whose job began after the same bytes were published is their duplicate, or its own is told.

    Not where versions take each other's place, where a person answers for one of them, nor where
    the ledger had lost one of them.
    """
    files = [i for i in published if not i.parts and not i.replaces and i.landed.etag]
    files = [i for i in files if not i.approval]
    known = [i for i in files if not deployment.ledger.was_lost(i.id)]
    alike: dict[tuple[str, str, int], list[Ingestion]] = {}
    for each in known:
        alike.setdefault((each.table, each.landed.etag, each.landed.size), []).append(each)
    for same in alike.values():
        for one, late in permutations(same, 2):
            told = late.duplicate_of or one.duplicate_of == late.id
            assert told or late.times["submitted"] < one.times["published"], f"twice: {one}, {late}"


def _was_held(deployment: Deployment, ingestion: Ingestion) -> bool:
    history = deployment.ledger.history(ingestion.id)
    held = (i.reason.code for i in history if i.reason and i.state is State.REJECTED)
    return bool(ingestion.approval) and LIKELY_DUPLICATE in held


def _no_key_is_on_main_twice(deployment: Deployment) -> None:
    keys = deployment.keys
    on_main = Counter(key for file in deployment.published_files() for key in keys.get(file, ()))
    assert not [key for key, files in on_main.items() if files > 1]


def _the_failed_keep_their_branch(deployment: Deployment, failed: list[Ingestion]) -> None:
    known = {i.id: deployment.ledger.history(i.id) for i in failed}  # what the ledger lost as well
    given_up = {then.branch for each in known.values() for then in each if then.discarded}
    kept = {i.branch for i in failed if i.branch} - given_up
    gone = (
        kept - set(deployment.catalog.branches("ingest/", "publish/")) - deployment.others.dropped
    )
    assert not gone, f"evidence is gone: {gone}"
    # A process that hung while others finished can still leave a branch, but nothing on it.
    left = [b for b in left_behind(deployment) if not deployment.catalog.is_on_main(b)]
    assert not left, f"left behind with rows on them: {left}"


def _older_failures_are_closed(
    deployment: Deployment, failed: list[Ingestion], published: list[Ingestion]
) -> None:
    """What failed names a newer version of its key that is published, and no other one."""
    for each in (i for i in failed if not i.discarded):
        newer = {i.id for i in published if _is_later_version(i, each)} - {each.despite}
        message = f"not closed by one of {newer}: {each}"
        assert each.superseded_by in newer if newer else not each.superseded_by, message


def _no_late_decision_is_published(deployment: Deployment, published: list[Ingestion]) -> None:
    """What failed once came to main before each newer version of its key, or despite it."""
    log = [commit.hash for commit in deployment.catalog.log()][::-1]
    for each in (i for i in published if i.has_failed):
        newer = [i for i in published if _is_later_version(i, each) and i.id != each.despite]
        late = [i for i in newer if log.index(i.merge_hash) < log.index(each.merge_hash)]
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


def _of_exactly_these_people_are_told(deployment: Deployment, these: list[Ingestion]) -> None:
    texts = [str(alert.blocks) for _, alert in deployment.alerts.posted]
    for ingestion in these:
        known = {each.branch for each in deployment.ledger.history(ingestion.id)}
        of_it = [text for text in texts if _subject(ingestion) in text]
        assert of_it, f"nobody was told of {ingestion}"
        if ingestion.state in ALERTED:
            for text in _failures(deployment, ingestion):
                named = any((branch or "none created") in text for branch in known)
                assert named, f"an alert names none of {known}"
    ends = (Kind.FAILED, Kind.RECOVERED)
    posted = [told for _, told in deployment.alerts.posted if told.kind in ends]
    last = {told.ingestion: told.kind for told in posted}
    for ingestion in deployment.ledger.all():
        if ingestion.has_recovered:
            right = last.get(ingestion.id) is Kind.RECOVERED
            assert right, f"nobody was told what became of {ingestion}"
        elif ingestion.state in ALERTED:
            right = last.get(ingestion.id) is Kind.FAILED
            assert right, f"nobody was told that it failed: {ingestion}"
    told_of = {ingestion.id for ingestion in these} | set(_once_failed(deployment))
    others = [_subject(i) for i in deployment.ledger.all() if i.id not in told_of]
    told = [text for text in texts if "Still not published" not in text]  # which is no end
    wrong = [text for text in told if any(subject in text for subject in others)]
    assert not wrong, f"told of what did not fail: {wrong}"


def _failures(deployment: Deployment, ingestion: Ingestion) -> list[str]:
    """What people were told each time that the ingestion failed."""
    posted = [alert for _, alert in deployment.alerts.posted if alert.ingestion == ingestion.id]
    return [str(alert.blocks) for alert in posted if alert.kind is Kind.FAILED]


def _subject(ingestion: Ingestion) -> str:
    """How an alert names the ingestion that it is about."""
    return f"*Ingestion* `{ingestion.id}`"


def _once_failed(deployment: Deployment) -> Iterator[str]:
    """Those that failed at some time, and may have been replayed or published since."""
    for ingestion in deployment.ledger.all():
        if any(each.state in ALERTED for each in deployment.ledger.history(ingestion.id)):
            yield ingestion.id


def _of_every_end_readers_are_told(deployment: Deployment) -> None:
    """Of no other end; and of what is published, where its table stood on main then or later."""
    ends = [i for i in deployment.ledger.all() if i.state in ANNOUNCED]
    told = {each.id for each in deployment.announcements.sent}
    for each in ends:
        lacking = {said.id for said in announcements(each)} - told
        assert not lacking, f"readers were not told of {lacking}"
    known = (each for i in deployment.ledger.all() for each in deployment.ledger.history(i.id))
    once = {said.id for i in known if i.state in ANNOUNCED for said in announcements(i)}
    wrong = told - once
    assert not wrong, f"readers were told of {wrong}"
    log = [commit.hash for commit in deployment.catalog.log()][::-1]
    for said in deployment.announcements.sent:
        if said.state is State.PUBLISHED:
            assert said.commit in log[: said.position], f"readers were told too early: {said}"
            stands = deployment.catalog.metadata(log[said.position - 1], said.table)
            assert said.metadata_location == stands, f"readers were told of another table: {said}"


def _every_run_is_recorded_once(deployment: Deployment) -> None:
    """Main's tables of history have what each run left, and whether it is published.

    What a driver reports after EMR declared its run over may come too late for that.
    """
    expected: Counter[str] = Counter()
    late: Counter[str] = Counter()
    for key in deployment.lake.reports():
        _, id_, attempt = parse_report_key(key)
        now = deployment.ledger.get(id_)
        published = (now.state, now.attempt) == (State.PUBLISHED, attempt)
        records = [f"{path}|{published}" for path in _records(deployment, key)]
        (late if key in deployment.late else expected).update(records)
    tables = (deployment.catalog.table("main", table.name) for table in TABLES)
    found = Counter(file for table in tables if table for file in table.files)
    assert expected <= found <= expected + late, f"recorded: {found}, not {expected}"


def _records(deployment: Deployment, key: str) -> list[str]:
    """What the run left whose report lies there, if it is that run's and can be read."""
    try:
        report = deployment.lake.report(key)
    except Permanent:
        return []
    is_own = parse_report_key(key)[1:] == (report.ingestion, report.attempt)
    return [file.path for single in report.singles for file in single.records if is_own]


def check_files(deployment: Deployment) -> None:
    """Every file that a reader can reach is there: from main or a branch, now or back in time."""
    deleted = {f"s3://lake/{key}" for key in deployment.lake.deleted}
    for name, head in deployment.catalog.references().items():
        for change in deployment.catalog.changes(head, TABLE):
            if change.metadata:
                lost = deployment.tables.files(change.metadata).paths & deleted
                assert not lost, f"{name} at {change.hash} has lost {sorted(lost)}"


def _reconcile_agrees(deployment: Deployment) -> None:
    found = reconciled(unwatched(deployment), thorough=True)
    assert found.problems == ()
    assert found.remarks == ()
    assert found.ended(End.IN_FLIGHT) == (0, 0)


def unwatched(deployment: Deployment) -> Adapters:
    """The deployment's world without its journal: to look at it is no part of its story."""
    return replace(
        deployment.adapters,
        landing=cast(Any, deployment.landing),
        lake=cast(Any, deployment.lake),
        ledger=cast(Any, deployment.ledger),
        catalog=cast(Any, deployment.catalog),
        tables=lambda: cast(Any, deployment.tables),
    )
