"""One run for a batch: each of its files onto the one branch, one after the other, and audited.

A file that fails keeps nobody from seeing what is wrong with the others.
"""

from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from lakegate.batch_report import together
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import AuditReport
from spark_jobs.branch import Branch
from spark_jobs.ingest import ingest
from spark_jobs.records import quarantined
from spark_jobs.reports import errored
from spark_jobs.session import another_session
from spark_jobs.storage import Storage


def ingest_batch(
    spec: JobSpec, storage: Storage, spark: SparkSession, branch: Branch
) -> AuditReport:
    """Carry all files of a batch onto its branch, and audit each there.

    Each is judged as if main were what the branch is before it: checks that look at the table, or
    at another one, find what the files before it brought. Raises Transient when a retry may help.
    """
    found: list[AuditReport] = []
    for part in spec.parts:
        before = found[-1].audited_hash if found else spec.base_hash
        # Where nothing of the file before was audited, the batch fails as a whole.
        own = replace(storage, spec=spec.of_part(part, before or branch.head()))
        found.append(_judged(own, spark, branch))
    return together(spec.landed, found)


def _judged(own: Storage, spark: SparkSession, branch: Branch) -> AuditReport:
    try:
        session = another_session(spark, own.spec, branch.token)
        return ingest(own.spec, own, session, branch, partial(quarantined, own))
    except Permanent as error:
        return errored(own.spec, error)
