"""Guards on the path from the landed object to the verdict."""

from dataclasses import replace
from itertools import count
from typing import Any

from functions.adapters.all import Adapters
from functions.adapters.emr import JobRun, RunState
from functions.model.ingestion import Ingestion, State
from functions.pipeline.start import intake, submit
from functions.pipeline.verdict import complete, decision
from lakegate.audit import batch_report
from lakegate.audit.report import AuditReport, Reason, Verdict
from lakegate.job import landing
from lakegate.job.landing import ID_PART, LandedObject
from tests.fakes.catalog import FakeCatalog
from tests.fakes.guards.guard import Guard, always, never, nothing
from tests.fakes.jobs import FakeJobs
from tests.fakes.ledger import FakeLedger
from tests.fakes.openings import A_LOST_ENTRY, A_MEDDLER, BATCHES
from tests.fakes.sabotage import Patch
from tests.fakes.storage import FakeLanding

_drawn = count()


def _name_without_id(named: Any, table: str, key: str, ingestion: str, attempt: int) -> str:
    name: str = named(table, key, ingestion, attempt)
    return name.replace(f"-{ingestion[:ID_PART]}", "")


def _drawn_name(named: Any, *of: Any) -> str:
    return f"{named(*of)}{next(_drawn):x}"


def _is_unknown(_: Any, self: Any, ingestion: Ingestion) -> bool:
    return not self.known([ingestion.id])


def _passed_by_exit_code(
    decide: Any, ingestion: Ingestion, run: JobRun, report: AuditReport | None, tries: int
) -> Any:
    if report and run.state is RunState.SUCCESS:
        report = replace(report, verdict=Verdict.PASSED)
    return decide(ingestion, run, report, tries)


def _passed_whatever_exit_code(
    passed: Any, ingestion: Ingestion, run: JobRun, report: AuditReport
) -> Any:
    return passed(ingestion, replace(run, state=RunState.SUCCESS), report)


def _end_but_for_lost_runs(
    end: Any, adapters: Adapters, ingestion: Ingestion, state: State, reason: Reason
) -> Any:
    if reason.code == "JOB_LOST":
        raise RuntimeError(reason.message)
    return end(adapters, ingestion, state, reason)


def _newest_files(
    newest: Any, self: Any, prefix: str, bucket: str = "", **_: str
) -> dict[str, LandedObject]:
    return dict(newest(self, prefix, bucket=bucket))


AUDITING = (
    Guard(
        "a save fails where another process was faster",
        "doubled|cannot read|never at rest|recorded",
        (Patch(FakeLedger, "_has_moved", _is_unknown),),
    ),
    Guard(
        "one client token starts one job run",
        "run more than once",
        (Patch(FakeJobs, "_started_by", nothing),),
    ),
    Guard(
        "a branch's name contains its ingestion's id",
        "doubled|unaudited|evidence is gone",
        (Patch(landing, "branch_name", _name_without_id),),
    ),
    Guard(
        "a branch's name can be derived again",
        "left behind|must not end",
        (Patch(submit, "branch_name", _drawn_name),),
        opening=A_LOST_ENTRY,
    ),
    Guard(
        "a known ingestion is not submitted again",
        "must not end|never at rest",
        (Patch(intake, "_needs_job", lambda _, i: not i.ended and not i.is_reaudit),),
    ),
    Guard(
        "a file without bytes is refused",
        "EMPTY must not end published",
        (Patch(submit, "_check_size", lambda check, size, largest: check(size or 1, largest)),),
    ),
    Guard(
        "a marker is no data",
        "MARKER must not end published",
        (Patch(submit, "ignore_rule", nothing),),
    ),
    Guard(
        "a final state stays",
        "doubled|must not end",
        (Patch(complete, "is_judged", lambda _, i: i.state is State.AUDITED),),
    ),
    Guard(
        "the end of an earlier attempt is no verdict on this one",
        "must not end|evidence is gone|recorded",
        (Patch(complete, "_is_current", lambda _, run, attempt, i: run.has_ended),),
    ),
    Guard(
        "a job run is judged after it ended",
        "must not end|recorded",
        (Patch(JobRun, "has_ended", always),),
    ),
    Guard(
        "a lost job run is a final state",
        "never at rest",
        (Patch(complete, "end", _end_but_for_lost_runs),),
    ),
    Guard(
        "the report must belong to the attempt",
        "FOREIGN must not end published",
        (Patch(decision, "belongs", always),),
    ),
    Guard(
        "the exit code gates",
        "CONTRADICTED must not end published",
        (Patch(decision, "_passed", _passed_whatever_exit_code),),
    ),
    Guard(
        "the report decides",
        "CARELESS must not end",
        (Patch(decision, "decide", _passed_by_exit_code),),
    ),
    Guard(
        "no check has failed",
        "HOLLOW must not end published",
        (Patch(decision, "_is_unfounded", never),),
    ),
    Guard(
        "something was written",
        "IDLE must not end",
        (Patch(decision, "_is_unwritten", never),),
    ),
    Guard(
        "the job starts where its branch was created",
        "GOOD must not end errored JOB_FAILED",
        (Patch(FakeCatalog, "reset", nothing),),
        opening=A_MEDDLER,
    ),
    Guard(
        "a batch brings the files that were there when its manifest landed",
        "LIKELY_DUPLICATE|when the manifest landed",
        (Patch(FakeLanding, "newest", _newest_files),),
        opening=BATCHES,
    ),
    Guard(
        "a batch is published only where all of its files passed",
        "REJECTED must not end published",
        (
            Patch(batch_report, "_verdict", lambda *_: (Verdict.PASSED, None)),
            # A second guard stands behind it.
            Patch(decision, "_is_unfounded", never),
        ),
        opening=BATCHES,
    ),
)
