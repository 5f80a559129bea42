"""The Python API: `lakegate.connect(stage)` returns a gate, which does as the commands do."""

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from access.contract import local_audit
from access.deployment.choice import Choice
from access.files import uploads
from access.ingestions import decisions
from access.ingestions.find import Wanted, find
from access.ingestions.follow import TrackedIngestion, ended, follow, to_come
from access.ingestions.identify import identified, is_whole, whole
from access.ingestions.shown_report import shown_or_why
from access.ingestions.value import Ingestion
from access.tables.history import TableCommit, commits
from access.tables.listed import ListedTable, listed
from functions.adapters.all import Adapters
from functions.model import ingestion as model
from functions.model.commits import MAIN
from functions.model.shown_state import ShownState
from functions.operations.decisions import failed, restore, takeover
from functions.operations.decisions.failed import Outcome
from functions.pipeline.start import intake
from functions.telemetry import logger
from lakegate import times
from lakegate.audit.report import AuditReport
from lakegate.errors import LakegateError
from lakegate.job.change import Change
from lakegate.job.landing import LandedObject

if TYPE_CHECKING:  # a second to import, which most programs do not need
    import pyarrow as pa

    from access.contract.check import Checked
    from access.evidence.backtest import Backtest
    from access.mending.mend import Written
    from access.tables.reader import Reader

_PATIENCE = 900.0  # seconds
_CONNECTED = "LAKEGATE_CONNECTED"
_FIRST, _LAST = "0001", "9999"  # before and after all times of the ledger


Which = Ingestion | str


@dataclass(frozen=True)
class Gate:
    """A deployment of Lakegate. Each method raises LakegateError with a sentence for people.

    An ingestion is named by its value, its id, or the first characters of the id. `discards` does
    so for a person, as a stage's function has rights for it that people have not.
    """

    name: str
    adapters: Adapters = field(repr=False)
    reader: Callable[[str], "Reader"] = field(repr=False)
    discards: Callable[[model.Ingestion, str], Outcome] | None = field(default=None, repr=False)

    def drop(self, *files: Path | str, table: str = "", key: str = "") -> tuple[Ingestion, ...]:
        """Upload files to the landing bucket; return the ingestions that they begin.

        They land in the landing prefix of a `table`, or of the only table that has a contract, or
        under a `key`; one that ends in a slash is a prefix. A `_manifest.json` uploads the files
        that it lists, as one batch. Raises LakegateError PARTLY_DROPPED with the ids of those that
        landed before another could not be uploaded: dropped again, they would land twice.
        """
        target, done = uploads.Target(table, key), list[Ingestion]()
        try:
            for item in uploads.drop(self.adapters, [Path(each) for each in files], target):
                done.append(Ingestion.of(item.ingestion))
        except LakegateError as error:
            if not done:
                raise
            raise _partly(done, error) from error
        return tuple(done)

    def wait(self, *which: Which, seconds: float = _PATIENCE) -> tuple[Ingestion, ...]:
        """Wait until ingestions have ended; return them with their reports, in the given order.

        A whole id may be that of a file which the ledger does not know yet. Raises LakegateError
        TIMED_OUT after these seconds: the work goes on.
        """
        tracked = [self._tracked(each) for each in which]
        done = follow(self.adapters, tracked, ended, seconds, lambda _: None)
        return tuple(self._reported(item.ingestion) for item in done)

    def runs(
        self,
        *,
        table: str = "",
        state: str = "",
        since: datetime | None = None,
        limit: int = 50,
        waiting: bool = False,
    ) -> tuple[Ingestion, ...]:
        """Return ingestions, newest first; with `waiting` those to decide about, oldest first.

        `since` is when they landed at the earliest; a `limit` of 0 returns all.
        """
        wanted = Wanted(table, _state(state), _since(since) if since else "", limit)
        matches = find(self.adapters, wanted, is_waiting=waiting)
        return tuple(map(Ingestion.of, matches.ingestions))

    def show(self, which: Which) -> Ingestion:
        """Return an ingestion as it is now, with its report."""
        return self._reported(identified(self.adapters.ledger, _id(which)))

    def tables(self) -> tuple[ListedTable, ...]:
        """Return the tables that have a contract or are on main, by name."""
        return tuple(listed(self.adapters, self.reader(MAIN)))

    def log(self, table: str, *, limit: int = 20) -> tuple[TableCommit, ...]:
        """Return main's last commits of a table, newest first: what was published, by whom, why."""
        return tuple(commits(self.adapters, table, limit))

    def rows(self, table: str, *, ref: str = MAIN) -> "pa.Table":
        """Return all rows of a table, on main or on a branch, as Arrow."""
        return self.reader(ref).all_rows(table)

    def query(self, sql: str, *, ref: str = MAIN) -> "pa.Table":
        """Return the rows of one SELECT statement (DuckDB SQL), on main or a branch, as Arrow."""
        with self.reader(ref).answer(sql) as answer:
            return answer.read_all()

    def publish(
        self,
        which: Which,
        *,
        by: str,
        reason: str,
        null_unreadable: bool | None = None,
        despite: Which = "",
    ) -> Ingestion:
        """Publish a rejected file or change anyway; main's log keeps your name and the reason.

        If rows have cells that could not be read, `null_unreadable` must say whether they are
        published with null in such cells, or left out. `despite` is the newer version of the file
        beside which it is to be published.
        """

        def decided(notice: str) -> None:
            if null_unreadable is None:
                remedy = "Give null_unreadable=False to leave them out, True to publish nulls."
                raise LakegateError("UNREADABLE_ROWS", f"{notice}\n{remedy}")

        ingestion = identified(self.adapters.ledger, _id(which))
        done = decisions.publish(
            self.adapters,
            ingestion,
            by,
            reason,
            despite=whole(self.adapters.ledger, _id(despite)),
            null_unreadable=bool(null_unreadable),
            confirm=decided,
        )
        return self._decided(done)

    def replay(
        self, which: Which, *, by: str = "", original: bool = False, despite: Which = ""
    ) -> Ingestion:
        """Run the job of a rejected or errored file or change again, on a new branch.

        The contract is the one in force, or with `original` that of the last attempt. `despite` is
        as in `publish`.
        """
        ingestion = identified(self.adapters.ledger, _id(which))
        newer = whole(self.adapters.ledger, _id(despite))
        done = failed.replay(self.adapters, ingestion, by=by, original=original, despite=newer)
        return self._decided(done)

    def broken_rows(self, which: Which, out: Path | str) -> "Written":
        """Write the broken rows of a rejected file into a new file, to be corrected for `mend`.

        They are found by Spark on this machine, and stand with all their values in the landed
        file's own format, with their line and reason first. Raises LakegateError NOT_BY_ROWS where
        no row can be mended alone.
        """
        from access.mending.mend import write_broken

        ingestion = identified(self.adapters.ledger, _id(which))
        return write_broken(self.adapters, ingestion, Path(out), local_audit.broken_rows)

    def mend(
        self, which: Which, file: Path | str, *, by: str = "", drop_missing: bool = False
    ) -> Ingestion:
        """Land a rejected file again with corrected rows; return the new version's ingestion.

        `file` is what `broken_rows` wrote, corrected. Broken rows that it leaves out stay as they
        are, or with `drop_missing` are removed. Main's log names both files.
        """
        from access.mending.mend import mend

        ingestion = identified(self.adapters.ledger, _id(which))
        find = local_audit.broken_rows
        done = mend(self.adapters, ingestion, Path(file), find, by=by, drop_missing=drop_missing)
        return Ingestion.of(done.ingestion)

    def discard(self, which: Which, *, by: str = "") -> Ingestion:
        """Delete a failed ingestion's branches: its rows are given up."""
        ingestion = identified(self.adapters.ledger, _id(which))
        if self.discards:
            return self._decided(self.discards(ingestion, by))
        return self._decided(failed.discard(self.adapters, ingestion, by=by))

    def change(
        self, table: str, sql: str, *, by: str, reason: str = "", token: str = ""
    ) -> Ingestion:
        """Have a table changed by one DELETE, UPDATE or MERGE, and published if it passes.

        The same `token` makes the change only once; without one each call is a change of its own.
        """
        wanted = Change(table, sql, token or self.adapters.token(), by, reason)
        return Ingestion.of(intake.ask(self.adapters, wanted))

    def retract(self, which: Which, *, by: str, reason: str) -> Ingestion:
        """Have the rows of a published file removed from its table; a second call continues it."""
        published = identified(self.adapters.ledger, _id(which))
        return Ingestion.of(intake.retract(self.adapters, published, by, reason))

    def restore(self, table: str, to: str | datetime, *, by: str, reason: str) -> Ingestion:
        """Have a table get the rows that it had at a commit of main, or at a time.

        The whole table is audited first. Raises LakegateError where main has no such state of it.
        """
        wanted = restore.undo(self.adapters, table, _state_at(to))
        return Ingestion.of(restore.restore(self.adapters, wanted, by, reason))

    def gate(self, branch: str, *, table: str = "", by: str, reason: str = "") -> Ingestion:
        """Have what another writer committed on a branch audited, and published if it passes.

        `table` names one of the tables that the branch changes, if there are several. The same
        commits, given again, are the same ingestion.
        """
        wanted = takeover.takeover(self.adapters, branch, table, by, reason)
        return Ingestion.of(takeover.gate(self.adapters, wanted))

    def check_contract(self, file: Path | str, table: str = "") -> "Checked":
        """Return the contract in a file, or its problems, and hints; each with its line.

        Of a file with several tables, `table` names the one.
        """
        from access.contract.check import checked_one

        return checked_one(Path(file), self.adapters.settings.limits, table)

    def test_contract(
        self, file: Path | str, *data: Path | str, table: str = ""
    ) -> tuple[AuditReport, ...]:
        """Return the audit reports of local files, or of those in folders, by a contract's file.

        The audit runs on this machine by Spark, and publishes nothing. Raises LakegateError
        CONTRACT_INVALID with all problems of the contract.
        """
        contract = self.check_contract(file, table).valid()
        files = list(local_audit.data_files(map(Path, data)))
        return tuple(local_audit.audits(contract, files, self.adapters.settings.limits))

    def backtest_contract(
        self, file: Path | str, *, since: datetime, limit: int = 50, table: str = ""
    ) -> "Backtest":
        """Return what the files that landed for a table would become by a contract's file.

        The audit runs on this machine, as in `test_contract`; the other verdicts are the recorded
        ones. Of what landed `since` then the newest `limit` ingestions are looked at, 0 for all.
        """
        from access.evidence.backtest import Request, backtest

        contract = self.check_contract(file, table).valid()
        with local_audit.local_judge(self.adapters.settings.limits) as judge:
            request = Request(contract, _since(since), limit)
            return backtest(self.adapters, request, judge)

    def _tracked(self, which: Which) -> TrackedIngestion:
        if isinstance(which, str) and not is_whole(which):
            return TrackedIngestion(identified(self.adapters.ledger, which))
        if isinstance(which, str):  # the ledger may not know it yet, nor what is dropped below
            return to_come(which)
        landed = LandedObject(which.bucket, which.key, which.version, etag="", size=0)
        return TrackedIngestion(model.Ingestion(id=which.id, landed=landed))

    def _reported(self, ingestion: model.Ingestion, left: str = "") -> Ingestion:
        report, _ = shown_or_why(self.adapters, ingestion)
        return Ingestion.of(ingestion, report, left)

    def _decided(self, outcome: Outcome) -> Ingestion:
        return self._reported(outcome.ingestion, outcome.left)


def connect(stage: str = "") -> Gate:
    """Return the gate of a stage on AWS; of that of the environment; or of the local stack.

    This gives the process the deployment's environment, as a command has it, so a process has one
    deployment. Raises LakegateError without it, and CONNECTED_ELSEWHERE for a second one.
    """
    before = os.environ.get(_CONNECTED, stage)
    if before != stage:
        message = f"this process is connected to {before or 'the default deployment'} already"
        remedy = "Connect to another one in a process that inherits no environment of this one."
        raise LakegateError("CONNECTED_ELSEWHERE", f"{message}\n{remedy}")
    choice = _choice(stage)
    deployment = choice.open()
    os.environ[_CONNECTED] = stage
    _log_as_a_library()
    return Gate(choice.name, deployment.adapters(), deployment.reader, deployment.discard)


@cache
def _choice(stage: str) -> Choice:
    """Choose once: an opened deployment is the environment's from then on."""
    return Choice.of(stage)


def _log_as_a_library() -> None:
    """Log warnings to standard error only: standard output is the program's own."""
    logger.setLevel(logging.WARNING)
    for handler in logger.handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(sys.stderr)


def _partly(done: list[Ingestion], error: LakegateError) -> LakegateError:
    landed = ", ".join(f"{each.key} as {each.id}" for each in done)
    remedy = f"Drop only the others again; these have landed: {landed}"
    return LakegateError("PARTLY_DROPPED", f"not all files landed: {error}\n{remedy}")


def _state_at(to: str | datetime) -> str:
    """Return a commit as it is given, and a time as `times.text` writes it."""
    if isinstance(to, str) and restore.is_commit(to):
        return to
    try:
        return times.text(datetime.fromisoformat(to) if isinstance(to, str) else to)
    except (ValueError, OverflowError) as error:
        message = f"{to!r} is no commit of main and no time"
        remedy = "Give 8 characters of a commit's hash at least, or a time: 2026-11-02T10:00."
        raise LakegateError("NOT_ON_MAIN", f"{message}\n{remedy}") from error


def _since(moment: datetime) -> str:
    """Return a time as the ledger writes it; `datetime.min` is before all that landed."""
    try:
        return times.text(moment)
    except (ValueError, OverflowError):
        return _FIRST if moment.year == 1 else _LAST


def _id(which: Which) -> str:
    return which if isinstance(which, str) else which.id


def _state(state: str) -> ShownState | None:
    try:
        return ShownState(state) if state else None
    except ValueError as error:
        message = f"there is no state {state!r}\nStates: {', '.join(ShownState)}"
        raise LakegateError("UNKNOWN_STATE", message) from error
