"""Compare the versions of one key: the newest, those that main has had, those to be replaced.

And find where main still has the rows of a file in data files of their own.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import takewhile

from functions.adapters.all import Adapters
from functions.model import merge_commit
from functions.model.commits import MAIN, NotOnMain
from functions.model.ingestion import IN_FLIGHT, Ingestion, State
from functions.pipeline.outcome.reports import report_of
from functions.pipeline.outcome.restorations import undoing
from functions.telemetry import logger
from lakegate import times
from lakegate.errors import LakegateError, Transient
from lakegate.job.change import retraction
from lakegate.job.landing import ingestion_id

SUPERSEDED = "SUPERSEDED"
_SKEW = timedelta(days=1)  # far more than the times of events and listings differ by


@dataclass(frozen=True)
class VersionStatus:
    """The other versions of a key that main has had, compared with one version.

    `on_main` are the ids of all that were published; `newer` says that one of them is newer; `live`
    are the earlier ones whose rows no other version has replaced since.
    """

    on_main: frozenset[str] = frozenset()
    newer: bool = False
    live: tuple[Ingestion, ...] = ()


def is_newer(one: Ingestion, other: Ingestion) -> bool:
    """Return whether `one` is the newer version of their key.

    S3's sequencers decide, as hexadecimal numbers, if both came by an event; else the times they
    landed; else, to have an order at all, the version ids.
    """
    a, b = one.landed, other.landed
    if a.sequencer and b.sequencer and a.sequencer != b.sequencer:
        width = max(len(a.sequencer), len(b.sequencer))
        return a.sequencer.upper().rjust(width, "0") > b.sequencer.upper().rjust(width, "0")
    return (a.landed_at, a.version) > (b.landed_at, b.version)


def status_among(ingestion: Ingestion, published: Iterable[Ingestion]) -> VersionStatus:
    """Return the status of `ingestion` among all `published` versions of its key."""
    others = list(published)
    gone = {id_ for each in others for id_ in each.replaced}
    newer = {each.id for each in others if is_newer(each, ingestion)}
    return VersionStatus(
        on_main=frozenset(each.id for each in others),
        newer=bool(newer),
        live=tuple(each for each in others if each.id not in gone | newer),
    )


def read_status(adapters: Adapters, ingestion: Ingestion) -> VersionStatus:
    """Return the status of the ingestion among the versions of its key in its table now.

    Versions that were retracted or undone do not count.
    """
    versions = adapters.ledger.versions(ingestion.landed)
    others = [v for v in versions if v.table == ingestion.table and v.id != ingestion.id]
    published = [each for each in others if is_on_main(adapters, each)]
    return status_among(ingestion, _there(adapters, ingestion.table, published))


def newest_newer(
    adapters: Adapters,
    ingestion: Ingestion,
    states: Collection[State] = (*IN_FLIGHT, State.PUBLISHED),
) -> Ingestion | None:
    """Return the newest version of its key that is newer and is in one of the states, or None.

    By default these are the states of a version that is on main or may still be published.
    """
    newest: Ingestion | None = None
    since = times.earlier(ingestion.landed.landed_at, _SKEW)
    for each in takewhile(lambda one: one.landed.landed_at >= since, _others(adapters, ingestion)):
        if each.state in states and is_newer(each, newest or ingestion):
            newest = each
    return newest


def older_failures(adapters: Adapters, published: Ingestion) -> list[Ingestion]:
    """Return the failed older versions of its key that wait for a decision.

    One that was announced as published has closed those before it: they are not read.
    """
    older = filter(partial(is_newer, published), _others(adapters, published))
    return [each for each in takewhile(partial(_may_follow, published), older) if each.is_open]


def _may_follow(published: Ingestion, older: Ingestion) -> bool:
    """Return whether what waits for a decision may have landed before an older version."""
    is_on_main = older.state is State.PUBLISHED and older.announced
    return not (is_on_main and set(published.tables) <= set(older.tables))


def require_recorded(adapters: Adapters, members: Collection[Ingestion]) -> None:
    """Raise Transient LEDGER_INCOMPLETE where the ledger lost a version of a key that is on main.

    Main's log is read back to the commit at which the members' branch was created. The sweep
    restores what was lost.
    """
    ids, objects = set[str](), {each.landed.uri for each in members}
    bases = {each.base_hash for each in members}
    for commit in adapters.catalog.log() if members else ():
        if commit.hash in bases:
            break
        ids |= {each.id for each in merge_commit.published(commit) if each.object in objects}
    if lost := ids - adapters.ledger.known(sorted(ids), consistent=True):
        message = f"main has {', '.join(sorted(lost))}, other versions that the ledger lacks"
        raise Transient("LEDGER_INCOMPLETE", f"{message}: the sweep restores them first")


def _others(adapters: Adapters, ingestion: Ingestion) -> Iterator[Ingestion]:
    """Yield the other versions of its key that are, or may be, for one of its tables.

    The newest landing comes first.
    """
    tables = set(ingestion.tables)
    for each in adapters.ledger.versions(ingestion.landed):
        known = tables and each.tables
        if each.id != ingestion.id and not (known and tables.isdisjoint(each.tables)):
            yield each


def retraction_of(adapters: Adapters, published: Ingestion) -> Ingestion | None:
    """Return the request to remove the rows of a published file, None without one."""
    request = retraction(published.table, published.id).landed(adapters.lake.bucket)
    return next(iter(adapters.ledger.together([ingestion_id(request)])), None)


def is_retracted(adapters: Adapters, published: Ingestion) -> bool:
    """Return whether main removed the rows of a published file on request since.

    They were retracted, or the table was restored to before that file.
    """
    return not _there(adapters, published.table, [published])


def _there(
    adapters: Adapters, table: str, published: Collection[Ingestion]
) -> Collection[Ingestion]:
    """Return those whose rows main did not remove on request, or got back by a restoration since.

    Main's log is read once.
    """
    asked = {each.id: retraction_of(adapters, each) for each in published}
    done = {id_: each.id for id_, each in asked.items() if each and is_on_main(adapters, each)}
    undone = undoing(adapters, table, [*asked, *done.values()])
    removed = {id_ for id_, request in done.items() if request not in undone}
    return [each for each in published if each.id not in undone.keys() | removed]


def is_on_main(adapters: Adapters, version: Ingestion) -> bool:
    """Return whether a version was published: merged, even if the ledger does not say so yet."""
    if version.state is not State.AUDITED:
        return version.state is State.PUBLISHED
    try:
        merge_commit.commit_of(adapters.catalog.log(), version)
    except NotOnMain:
        return False
    return True


def where_separate(adapters: Adapters, published: Ingestion) -> str:
    """Return a sentence: at which commit of main the rows of a published file can be told apart.

    Its data files are all there, and no others of its key. Only commits that may remove data files
    are compared, back to the one that published it. "" if that is unknown, as where metadata is
    deleted.
    """
    try:
        commit = _last_with_files(adapters, published)
    except LakegateError as error:
        logger.warning("cannot tell where a file's rows are apart", extra={"why": error.message})
        return ""
    if not commit:
        return ""
    return (
        f". They are told apart at main@{commit}, for KeepDays after the change: "
        f"`lakegate query --ref main@{commit} SQL`"
    )


def _last_with_files(adapters: Adapters, published: Ingestion) -> str:
    """Return main's last commit that has all data files of a file, "" where none is known."""
    report, table, last = report_of(adapters, published), published.table, ""
    paths = {file.path for file in report.files} if report else set[str]()
    kept_since = adapters.ledger.upkeep().kept_since
    for commit, names in adapters.catalog.history():
        if commit.at < kept_since or commit.hash == published.merge_hash:
            break
        if table in names and merge_commit.may_remove_files(commit):
            at = (f"{MAIN}@{each}" for each in (commit.parent, commit.hash))
            removed = adapters.tables().change(table, *at).removed
            last = last if paths.isdisjoint(removed) else commit.parent
    if not last or not paths.issubset(adapters.tables().listed(table, f"{MAIN}@{last}")):
        return ""
    return last
