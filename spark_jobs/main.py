"""Entry point of the job run: `main.py <job spec as JSON>`.

Exits with 0 only when the audit passed, so that even a reader of the exit code alone never
publishes what was not audited. The report explains every other end; a crash leaves none.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from pyspark.sql import SparkSession

from lakegate.audit_tables import has_results
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import AuditReport, Verdict
from lakegate.text import one_line
from lakegate.tokens import TokenRefused, check_lasts
from spark_jobs.change import make_change
from spark_jobs.ingest import ingest, ingest_batch
from spark_jobs.nessie_branch import Branch
from spark_jobs.reaudit import audit_again
from spark_jobs.report import errored, quarantined, with_results
from spark_jobs.spark.session import open_session
from spark_jobs.storage import Replaced, Storage

# A run's token for Nessie, at the door.

_SECONDS = 600.0
_PAUSE = 5.0


def admitted(
    spec: JobSpec,
    read: Callable[[], str],
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """The token that `read` gives, once Nessie takes it.

    A new key reaches the servers one by one, minutes after the tokens that it signed. A run that
    begins meanwhile waits for it, ten minutes at most, rather than use up its ingestion's tries.
    Raises TokenRefused where that does not help, Transient TOKEN_ENDS where the token would end
    before the run may.
    """
    deadline = monotonic() + _SECONDS
    while True:
        token = read()
        check_lasts(token, datetime.now(UTC), spec.timeout_minutes)
        try:
            Branch(spec.nessie_uri, spec.branch, token).head()
        except TokenRefused:
            if monotonic() > deadline:
                raise
            sleep(_PAUSE)
        else:
            return token


EXIT_CODES = {Verdict.PASSED: 0, Verdict.REJECTED: 3, Verdict.ERRORED: 4}


def main(argument: str) -> int:
    """Carry out one job run; returns its exit code."""
    spec = JobSpec.from_argument(argument)
    storage = Storage.connect(spec)
    report = storage.put_report(_recorded(storage, _run(spec, storage)))
    why = report.reason.message if report.reason else "all checks hold"
    print(one_line(f"{report.verdict}: {why}"))
    return EXIT_CODES[report.verdict]


def _run(spec: JobSpec, storage: Storage) -> AuditReport:
    token = admitted(spec, storage.nessie_token)
    if spec.reaudit_base:
        return _run_again(spec, storage, token)
    branch = Branch(spec.nessie_uri, spec.branch, token)
    if branch.head() != spec.base_hash:  # an earlier try of this very run was here
        finished = storage.finished_report()
        if finished:
            return finished
        branch.reset(spec.base_hash)
    try:
        spark = open_session(spec, token)
        if spec.change:
            return make_change(spec, storage, spark, branch)
        try:
            return _ingest(spec, storage, spark, branch)
        except Replaced:  # it is not the newest now, so this time it is read from a copy
            branch.reset(spec.base_hash)
            return _ingest(spec, storage, spark, branch)
    except Permanent as error:
        return errored(spec, error)


def _ingest(spec: JobSpec, storage: Storage, spark: SparkSession, branch: Branch) -> AuditReport:
    if spec.parts:
        return ingest_batch(spec, storage, spark, branch)
    return ingest(spec, storage, spark, branch, partial(quarantined, storage))


def _run_again(spec: JobSpec, storage: Storage, token: str) -> AuditReport:
    try:
        return audit_again(spec, storage, open_session(spec, token), token)
    except Permanent as error:
        return errored(spec, error)


def _recorded(storage: Storage, report: AuditReport) -> AuditReport:
    """The report with its results in a file; one that an earlier try finished has its own."""
    if has_results(report, storage.spec.lake_bucket):
        return report
    if report.parts:
        return replace(report, parts=tuple(_recorded(storage, part) for part in report.parts))
    return with_results(SparkSession.builder.getOrCreate(), storage, report)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
