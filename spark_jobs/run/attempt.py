"""One attempt: from its job spec to the audit report in the lake bucket."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lakegate.audit.audit_tables import has_results
from lakegate.audit.report import AuditReport
from lakegate.errors import Permanent
from lakegate.job.jobspec import JobSpec
from lakegate.refusals import RightMissing
from lakegate.tokens import TokenRefused, check_lasts
from spark_jobs.changes.change import make_change
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.lake.storage import Replaced, Storage, held
from spark_jobs.run.batch import ingest_batch
from spark_jobs.run.ingest import ingest
from spark_jobs.run.reaudit import reaudit
from spark_jobs.spark.session import OpenSession, on_branch
from spark_jobs.spark.unforeseen import explained
from spark_jobs.write.history_files import with_results
from spark_jobs.write.report import errored

# Seconds to wait for a new key to reach Nessie's servers, and between two requests.
_LONGEST_WAIT, _PAUSE = 600.0, 5.0


def carry_out(
    spec: JobSpec, storage: Storage, token: str, open_session: OpenSession
) -> AuditReport:
    """Carry out the attempt; return its report, or that of a try that was faster.

    An exception that nobody foresaw ends in a report, too. So does a missing right, so that people
    are told of it; its file runs again. Raises Transient when a
    retry may help, and whatever was raised once Spark itself has ended.
    """
    try:
        with explained("the audit could not be completed", None):
            return _stored(storage, _run(spec, storage, token, open_session))
    except (Permanent, RightMissing) as error:  # the latter ends no file
        return _stored(storage, errored(spec, error))


def _stored(storage: Storage, report: AuditReport) -> AuditReport:
    return storage.put_report(_with_results(storage, report))


def _run(spec: JobSpec, storage: Storage, token: str, open_session: OpenSession) -> AuditReport:
    """Return the report of the attempt. Raises Permanent where there is nothing to report."""
    if spec.reaudit_base:
        return reaudit(spec, storage, on_branch(open_session, spec, token), token)
    branch = Branch(spec.nessie_uri, spec.branch, token)
    if branch.head() != spec.base_hash:  # an earlier try of this very run was here
        finished = storage.finished_report()
        if finished:
            return finished
        branch.reset(spec.base_hash)
    spark = on_branch(open_session, spec, token)
    if spec.change:
        return make_change(spec, storage, spark, branch)
    try:
        return _ingest(spec, storage, spark, branch)
    except Replaced:  # it is not the newest now, so this time it is read from a copy
        branch.reset(spec.base_hash)
        return _ingest(spec, storage, spark, branch)


def _ingest(spec: JobSpec, storage: Storage, spark: SparkSession, branch: Branch) -> AuditReport:
    if spec.parts:
        return ingest_batch(spec, storage, spark, branch)
    return ingest(spec, held(storage), spark, branch, storage)


def _with_results(storage: Storage, report: AuditReport) -> AuditReport:
    """Return the report with its results in a file; a finished report of an earlier try has one."""
    if has_results(report, storage.spec.lake_bucket):
        return report
    if report.parts:
        return replace(report, parts=tuple(_with_results(storage, part) for part in report.parts))
    return with_results(storage, report)


def wait_for_token(
    spec: JobSpec,
    read: Callable[[], str],
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Return the token that `read` reads, once Nessie accepts it.

    A new key reaches the servers one by one, minutes after it signed the first tokens. The run
    waits up to ten minutes for it, so that its ingestion loses no attempt. Raises TokenRefused if
    waiting does not help, Transient TOKEN_ENDS if the token expires before the run may end.
    """
    deadline = monotonic() + _LONGEST_WAIT
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
