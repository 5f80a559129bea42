"""Ingest the files of a batch, each into its table, on one branch."""

from dataclasses import replace

from pyspark.sql import SparkSession

from lakegate.audit.batch_report import together
from lakegate.audit.report import AuditReport
from lakegate.errors import Permanent
from lakegate.job.jobspec import JobSpec
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.lake.storage import Storage
from spark_jobs.run.ingest import ingest
from spark_jobs.spark.session import another_session
from spark_jobs.write.report import errored


def ingest_batch(
    spec: JobSpec, storage: Storage, spark: SparkSession, branch: Branch
) -> AuditReport:
    """Append all files of a batch to its branch one by one, and audit each there.

    Each file is audited as if the branch before it were main: checks of the table, or of another
    one, find what earlier files brought. A file that fails does not stop the others, so that the
    report shows all faults. Raises Transient when a retry may help.
    """
    reports: list[AuditReport] = []
    for part in spec.parts:
        before = reports[-1].audited_hash if reports else spec.base_hash
        # If the file before has no audited commit, the whole batch fails anyway.
        own = replace(storage, spec=spec.part_spec(part, before or branch.head()))
        reports.append(_ingest_part(own, spark, branch))
    return together(spec.landed, reports)


def _ingest_part(own: Storage, spark: SparkSession, branch: Branch) -> AuditReport:
    try:
        session = another_session(spark, own.spec, branch.token)
        return ingest(own.spec, own, session, branch, own)
    except Permanent as error:
        return errored(own.spec, error)
