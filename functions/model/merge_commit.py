"""The properties of a commit on main that name the ingestions it published."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any

from functions.model.audit_outcome import AuditOutcome
from functions.model.commits import Commit, NotOnMain
from functions.model.decisions import Mends
from functions.model.ingestion import Ingestion, landing
from lakegate.errors import LakegateError, Permanent
from lakegate.job.batch import BatchFile
from lakegate.job.change import Change, replacing
from lakegate.job.landing import ID_PART
from lakegate.text import count, one_line
from lakegate.times import moment

INGESTIONS = "lakegate.ingestions"
TABLE = "lakegate.table"
UPKEEP = "lakegate.upkeep"  # of a commit that changes no row: the branch that it merged
_LONGEST = 100


class AlreadyPublished(LakegateError):
    """Main has some of the ingestions already; `commits` maps their ids to the commits."""

    def __init__(self, commits: Mapping[str, Commit]) -> None:
        self.commits = commits
        super().__init__("ALREADY_PUBLISHED", f"on main already: {', '.join(sorted(commits))}")


@dataclass(frozen=True)
class Published:
    """One ingestion, as the commit that published it names it.

    `object` is the landed object's address and `version` its version; `report` is the audit
    report's key and `contract` the contract's, with its version behind an `@`. If its audit failed,
    `approved_by` names who approved it, and `approved_because` is why. `despite` is the newer
    version of its key beside which it was published. `duplicate_of` is the ingestion that brought
    the same bytes before. `replaced` are the earlier versions of its key whose rows the commit
    removed, `replaced_rows` how many these are.

    `mode` is "upsert" or "overwrite" for a file that replaces rows of others, else "". Of such a
    file `rows` were added and `replaced_rows` removed; `updated_rows` count as both.

    Of a batch `object` is the manifest and `rows` is the sum over its `parts`, which have contracts
    of their own: `contract` is "".

    `kind` is "change" for a requested change, "" for a file. Of a change `rows` were added and
    `replaced_rows` removed by the `statement`; `asked_by` says who requested it, and
    `asked_because` why.

    Of a mended file `mends` is the rejected ingestion, `mended_with` the file with the corrected
    rows, and `mended_by` who gave it.
    """

    id: str
    object: str
    version: str
    rows: int
    report: str
    contract: str
    job_run: str
    audited_hash: str
    approved_by: str = ""
    approved_because: str = ""
    despite: str = ""
    duplicate_of: str = ""
    replaced: tuple[str, ...] = ()
    replaced_rows: int = 0
    updated_rows: int = 0
    mode: str = ""
    kind: str = ""
    statement: str = ""
    token: str = ""
    asked_by: str = ""
    asked_because: str = ""
    mends: str = ""
    mended_with: str = ""
    mended_by: str = ""
    parts: tuple[BatchFile, ...] = ()

    @property
    def mended(self) -> Mends | None:
        """Return what a mended file is made of, None for any other."""
        return Mends(self.mends, self.mended_with, self.mended_by) if self.mends else None

    def change(self, table: str) -> Change | None:
        """Return the change that was requested, None for a file."""
        if not self.kind:
            return None
        return Change(table, self.statement, self.token, self.asked_by, self.asked_because)

    def counted(self, audit: AuditOutcome) -> AuditOutcome:
        """Return an audit's outcome with the numbers of rows that the commit names."""
        return replace(
            audit,
            rows=self.rows,
            replaced_rows=self.replaced_rows,
            updated_rows=self.updated_rows,
        )

    def taken(self, ingestion: Ingestion) -> Ingestion:
        """Return an ingestion with the run, the report and the rows of the published attempt.

        It may have had another attempt since, whose audit then says nothing of what is on main.
        """
        is_same = ingestion.report_key == self.report
        audit = ingestion.audit if is_same else AuditOutcome(duplicate_of=self.duplicate_of)
        return ingestion.but(
            report_key=self.report,
            job_run=self.job_run,
            audited_hash=self.audited_hash,
            audit=self.counted(audit),
            replaced=self.replaced,
            parts=self.parts,
        )

    def adopted(self, ingestion: Ingestion) -> Ingestion:
        """Return the same of one that ended otherwise: what was due at that end is due anew."""
        return self.taken(ingestion).but(
            decisions=replace(ingestion.decisions, discarded=False, branches_to_delete={}),
            superseded_by="",
            alerted=False,
            announced=False,
            cleaned=False,
        )


def message(members: Sequence[Ingestion]) -> str:
    """Return the message of the commit that publishes the members: one line for main's log."""
    first = members[0]
    if first.change:
        return one_line(_change_message(first, first.change))
    rows, table = sum(member.audit.rows for member in members), first.table
    what = first.landed.key.rsplit("/", 1)[-1]
    if first.mends:
        what = f"{what} mended with {first.mends.file}"
    if len(members) > 1:
        what = f"{len(members)} files"
    if first.terms.is_ordered:
        removed = sum(member.audit.replaced_rows for member in members)
        updated = sum(member.audit.updated_rows for member in members)
        return one_line(f"Publish {what} to {table}: {replacing(rows, removed, updated)}")
    if first.parts:
        what, table = f"{len(first.parts)} files of {first.name}", ", ".join(first.tables)
    return one_line(f"Publish {count(rows, 'row')} of {what} to {table}")


def _change_message(ingestion: Ingestion, change: Change) -> str:
    table, why = ingestion.table, f"by {change.by}: {_one_line(change)}"
    if change.retracts:
        removed = ingestion.audit.replaced_rows
        return f"Retract {count(removed, 'row')} of {change.retracts[:ID_PART]} from {table}, {why}"
    if change.restores:
        return f"Restore {table} to {change.restores[:ID_PART]}, {rows_of(ingestion)}, {why}"
    if taken := change.takeover:
        return f"Take over {taken.branch} into {table}, {rows_of(ingestion)}, {why}"
    return f"Change {table}, {rows_of(ingestion)}: {_one_line(change)}"


def rows_of(ingestion: Ingestion) -> str:
    """Describe how many rows it brings to main, and what they do with those that are there."""
    audit = ingestion.audit
    rows = count(audit.rows, "row")
    if ingestion.change:
        return f"{rows} added, {audit.replaced_rows:,} removed"
    if not ingestion.terms.is_ordered:
        return rows
    return replacing(audit.rows, audit.replaced_rows, audit.updated_rows)


def _one_line(change: Change) -> str:
    text = one_line(" ".join((change.message or change.statement).split()))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def properties(members: Sequence[Ingestion]) -> dict[str, str]:
    """Return the commit's properties, which programs and a rebuilt ledger read in main's log.

    They name the members in the order in which they landed.
    """
    members = sorted(members, key=landing)
    return {
        TABLE: ",".join(members[0].tables),
        INGESTIONS: json.dumps([_document(as_published(member)) for member in members]),
    }


def published(commit: Commit) -> tuple[Published, ...]:
    """Return the ingestions that a commit on main published; none for a commit by others."""
    return _all(commit.properties.get(INGESTIONS, "[]"))


def as_published(ingestion: Ingestion) -> Published:
    """Return an ingestion as the commit that publishes it names it."""
    change, approval, mends = ingestion.change, ingestion.decisions.approval, ingestion.mends
    return Published(
        id=ingestion.id,
        object=ingestion.landed.uri,
        version=ingestion.landed.version,
        rows=ingestion.audit.rows,
        report=ingestion.report_key,
        contract="" if ingestion.parts else "@".join(ingestion.terms.contract),
        job_run=ingestion.job_run,
        audited_hash=ingestion.audited_hash,
        approved_by=ingestion.decisions.approved_by,
        approved_because=approval.reason if approval else "",
        despite=ingestion.decisions.despite,
        duplicate_of=ingestion.audit.duplicate_of,
        replaced=ingestion.replaced,
        replaced_rows=ingestion.audit.replaced_rows,
        updated_rows=ingestion.audit.updated_rows,
        mode=ingestion.terms.write_mode if ingestion.terms.is_ordered else "",
        kind="change" if change else "",
        statement=change.statement if change else "",
        token=change.token if change else "",
        asked_by=change.by if change else "",
        asked_because=change.message if change else "",
        mends=mends.ingestion if mends else "",
        mended_with=mends.file if mends else "",
        mended_by=mends.by if mends else "",
        parts=ingestion.parts,
    )


def as_taken(ingestion: Ingestion, commit: Commit) -> Ingestion:
    """Return an ingestion as a commit on main published it, perhaps by an earlier attempt."""
    (one,) = (each for each in published(commit) if each.id == ingestion.id)
    return one.taken(ingestion)


def is_ours(commit: Commit) -> bool:
    """Return whether Lakegate made it, by what it says of itself."""
    return any(name.startswith("lakegate.") for name in commit.properties)


def may_remove_files(commit: Commit) -> bool:
    """Return whether it may have removed data files: whatever only appends names does not."""
    named = published(commit)
    return not named or any(each.kind or each.mode or each.replaced for each in named)


def whole(log: Iterable[Commit]) -> Iterator[Commit]:
    """Yield a log. Raise Permanent HISTORY_CUT at its end if Nessie's history was cut there.

    Lakegate commits only where there is a commit already, so no log ends with a commit of it.
    """
    last = None
    for last in log:
        yield last
    if last and is_ours(last):
        message = (
            f"Nessie's history was cut at commit {last.hash} of {moment(last.at)}: what was "
            "published before is unknown, so nothing is done that could publish it again. Restore "
            "Nessie's database, or the ledger, from a backup"
        )
        raise Permanent("HISTORY_CUT", message)


def tables(commit: Commit) -> set[str]:
    """Return the tables to which a commit of ours published."""
    return set(filter(None, commit.properties.get(TABLE, "").split(",")))


def gains(commit: Commit) -> Counter[str]:
    """Return by how many rows each table grew, as a commit of ours says."""
    return _gains(tables(commit), published(commit))


def expected_gains(members: Sequence[Ingestion]) -> Counter[str]:
    """Return by how many rows each table grows when main takes the intent of the members."""
    return _gains(members[0].tables, map(as_published, members))


def _gains(tables: Iterable[str], published: Iterable[Published]) -> Counter[str]:
    rows: Counter[str] = Counter(dict.fromkeys(tables, 0))
    for each in published:
        for part in each.parts:
            rows[part.table] += part.rows
        if not each.parts:
            rows.update(dict.fromkeys(rows, each.rows - each.replaced_rows))
    return rows


def commit_of(log: Iterable[Commit], ingestion: Ingestion) -> Commit:
    """Return the commit on main that the intent of an ingestion became.

    Main's log is read, newest first, back to where the intent's branch was created. Raise NotOnMain
    if main has not published it.
    """
    for commit in log:
        if commit.hash == ingestion.base_hash:
            break
        if any(each.id == ingestion.id for each in published(commit)):
            return commit
    raise NotOnMain("NOT_ON_MAIN", f"no commit on main has published {ingestion.id}")


def require_unpublished(log: Iterable[Commit], ingestions: Sequence[Ingestion]) -> None:
    """Raise AlreadyPublished if main has one of the ingestions since its branch was created.

    Ask between creating a fresh branch and registering files there: until then main may still take
    an older intent, and later it refuses the fresh branch if it does.
    """
    bases = {each.base_hash for each in ingestions}
    ids = {each.id for each in ingestions}
    commits: dict[str, Commit] = {}
    for commit in log:
        bases.discard(commit.hash)
        if not bases:
            break
        commits |= {each.id: commit for each in published(commit) if each.id in ids}
    if commits:
        raise AlreadyPublished(commits)


def _document(published: Published) -> dict[str, Any]:
    """Return the fields of an ingestion that are not as usual."""
    pairs = ((field, getattr(published, field.name)) for field in fields(published))
    document = {field.name: value for field, value in pairs if value != field.default}
    if published.parts:
        document["parts"] = [asdict(part) for part in published.parts]
    return document


# Who reads main's log asks the same commits more than once; one of 500 files takes a megabyte.
@lru_cache(maxsize=100)
def _all(text: str) -> tuple[Published, ...]:
    return tuple(map(_read, json.loads(text)))


def _read(document: dict[str, Any]) -> Published:
    known = {field.name for field in fields(Published)}
    frozen = {k: tuple(v) if isinstance(v, list) else v for k, v in document.items()}
    arguments: dict[str, Any] = {name: frozen[name] for name in frozen.keys() & known}
    parts = tuple(BatchFile(**part) for part in arguments.pop("parts", ()))
    return Published(parts=parts, **arguments)
