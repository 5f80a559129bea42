"""Have main get what another writer committed on a branch: find it, and ask for that."""

from itertools import takewhile

from functions.adapters.all import Adapters
from functions.adapters.s3 import contracts_of
from functions.model import merge_commit
from functions.model.commits import MAIN, line_and_base
from functions.model.ingestion import Ingestion
from functions.pipeline.outcome.takeovers import require_takeable
from functions.pipeline.start.intake import ask
from lakegate.errors import LakegateError
from lakegate.job.change import Change, Takeover
from lakegate.job.landing import OWN_BRANCHES, ingestion_id
from lakegate.job.upkeep import UPKEEP

_OWN = (*OWN_BRANCHES, UPKEEP)


def takeover(
    adapters: Adapters, branch: str, table: str = "", by: str = "", because: str = ""
) -> Change:
    """Return the request to take over what the branch did to a `table`, or to its only one.

    Raise LakegateError, in two lines, for a branch of Lakegate's own or off one, without a change,
    with merges or with several tables, and for a table without a contract or not on both sides.
    """
    if branch == MAIN or branch.startswith(_OWN):
        message = f"{branch} is a branch of Lakegate's own\n"
        raise LakegateError("OWN_BRANCH", f"{message}What it audits itself, it publishes itself.")
    head = adapters.catalog.references().get(branch)  # Nessie refuses to look up an invalid name
    if not head:
        remedy = "Commit to a branch off main first; names are case-sensitive."
        raise LakegateError("UNKNOWN_BRANCH", f"Nessie has no {branch or 'such branch'}\n{remedy}")
    line, since = line_and_base(adapters.catalog.log_of(head), adapters.catalog.log())
    if not line:
        message = f"{branch} has no commit that main lacks\nNothing is to be done."
        raise LakegateError("NOTHING_TO_TAKE", message)
    if not since or any(commit.is_merge for commit in line):
        message = f"{branch} merged other branches, or has no commit of main"
        raise LakegateError("NOT_OFF_MAIN", f"{message}\nWrite its rows on a new branch off main.")
    _require_no_ingestion(adapters, branch, {commit.hash for commit in line}, since)
    taken = Takeover(branch, line[-1].hash, head, since)
    return taken.change(_table(adapters, taken, table), by, because)


def gate(adapters: Adapters, wanted: Change) -> Ingestion:
    """Request it; return the request's ingestion. The same request again continues the first one.

    Raise LakegateError ALREADY_TAKEN if main has some of the commits by another one.
    """
    require_takeable(adapters, wanted, ingestion_id(wanted.landed(adapters.lake.bucket)))
    return ask(adapters, wanted)


def _require_no_ingestion(adapters: Adapters, branch: str, line: set[str], since: str) -> None:
    """Raise LakegateError for a branch off one of Lakegate's, which an ingestion publishes."""
    heads = adapters.catalog.references().items()
    waiting = {hash_ for name, hash_ in heads if name.startswith(_OWN)}
    log = takewhile(lambda commit: commit.hash != since, adapters.catalog.log())
    done = {each.audited_hash for commit in log for each in merge_commit.published(commit)}
    if not line.isdisjoint(waiting | done):
        message = f"{branch} begins on one of Lakegate's branches, whose rows would come twice"
        raise LakegateError("HAS_INGESTION", f"{message}\nWrite its rows on a new branch off main.")


def _table(adapters: Adapters, taken: Takeover, table: str) -> str:
    """Return the one table that is to be taken over."""
    changed = adapters.catalog.changed_tables(taken.since, taken.head)
    wanted = changed & {table} if table else changed
    if not wanted:
        message = f"{taken.branch} changes no rows of {table or 'any table'}"
        others = f"Its tables: {', '.join(sorted(changed))}." if changed else ""
        raise LakegateError("NOTHING_TO_TAKE", f"{message}\n{others or 'Nothing is to be done.'}")
    if unknown := sorted(wanted - contracts_of(adapters.lake, *wanted).keys()):
        message = f"{taken.branch} changes {', '.join(unknown)}, which no contract describes"
        remedy = "Push a contract, or name one table that has one by --table."
        raise LakegateError("NO_CONTRACT", f"{message}\n{remedy}")
    for each in sorted(wanted):
        _require_on_both_sides(adapters, taken, each)
    if len(wanted) > 1:
        message = f"{taken.branch} changes several tables: {', '.join(sorted(wanted))}"
        remedy = "Gate each by --table: each is audited and published for itself."
        raise LakegateError("SEVERAL_TABLES", f"{message}\n{remedy}")
    return min(wanted)


def _require_on_both_sides(adapters: Adapters, taken: Takeover, table: str) -> None:
    """Raise LakegateError for a table that the branch created or dropped."""
    if not adapters.catalog.metadata(taken.since, table):
        message = f"{taken.branch} created {table}, which main did not have"
        remedy = f"Drop a first file for {table}, and write to it on a new branch off main."
        raise LakegateError("TABLE_CREATED", f"{message}\n{remedy}")
    if not adapters.catalog.metadata(taken.head, table):
        message = f"{taken.branch} dropped {table}"
        remedy = "Only rows are taken over: delete them on a new branch off main."
        raise LakegateError("TABLE_DROPPED", f"{message}\n{remedy}")
