"""One run: open the landed object, append it, audit it in the same pass, say what was found."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from lakegate.batch import together
from lakegate.contract.model import Contract
from lakegate.drift import Baselines
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import AuditReport, CheckResult, DataFile, Verdict
from spark_jobs import append
from spark_jobs.append import Opened, Target, append_watched, open_table, with_undeclared
from spark_jobs.audit import drift, tiers
from spark_jobs.audit.run import Measured, Run
from spark_jobs.audit.samples import with_samples
from spark_jobs.audit.tiers import Rows
from spark_jobs.errors import telling
from spark_jobs.files.open import Bytes, Source, open_file
from spark_jobs.files.parquet import Engine
from spark_jobs.nessie_branch import Branch
from spark_jobs.report import errored, quarantined, report
from spark_jobs.spark import iceberg
from spark_jobs.spark.session import another_session
from spark_jobs.spark.stall import watched
from spark_jobs.spark.step_metrics import Meter
from spark_jobs.storage import Storage


class Landing(Bytes, Protocol):
    """The landed object, and what it has to keep to; as `storage.Storage`."""

    def contract(self) -> Contract:
        """The contract."""

    def pinned(self) -> AbstractContextManager[str]:
        """An address of exactly the landed version, for a while."""

    def baselines(self) -> Baselines:
        """What the table's published runs measured."""


Keep = Callable[[DataFrame, str, Any], tuple[DataFile, ...]]


def ingest(
    spec: JobSpec,
    storage: Landing,
    spark: SparkSession,
    branch: Target,
    keep: Keep | None = None,
) -> AuditReport:
    """Carry one landed object onto its branch and audit it there.

    `keep` is given the rows that are kept out of the table, when the run began, and the table;
    without it they stay where they are. Raises Permanent when the file cannot be read or written,
    Transient when a retry may help.
    """
    meter, engine, contract = Meter(spark), Engine(spark), storage.contract()
    still = watched(spark, spec.limits.longest_stall)
    with telling(contract), still, storage.pinned() as path:
        with meter.step("open"):
            declared = with_undeclared(spark, contract)
            source = engine.read(lambda: open_file(spark, path, declared, storage, spec.limits))
        if source.findings:
            checks, why = tiers.refused(source.findings)
            refused = {"verdict": Verdict.REJECTED, "reason": why, "checks": checks}
            return report(spec, meter, contract, **refused)
        contract = replace(contract, columns=source.columns)
        with meter.step("append"):
            table = open_table(spark, spec, branch, contract)
            run, rows, ridden = engine.read(
                lambda: append_watched(spec, branch, source, contract, table)
            )
            written = _written(run, rows, source, table)
        with meter.step("quarantine"):
            kept = rows.kept_out and keep
            records = _kept(source, rows, run, kept, meter) if kept else ()
        with meter.step("audit"):
            results = _results(run, rows, ridden, storage)
        with meter.step("samples"):
            results = with_samples(results, run, source)
    verdict, reason = tiers.verdict(results)
    found = {"verdict": verdict, "reason": reason, "checks": results, "records": records}
    return report(spec, meter, contract, engine=engine.notes, **written, **found)


def _results(
    run: Run, rows: Rows, ridden: Mapping[str, Measured], storage: Landing
) -> tuple[CheckResult, ...]:
    measured = tiers.measure(run, ridden)
    results = tiers.judge(run.contract, rows, measured)
    return drift.compared(results, run.contract, measured, storage.baselines)


def _kept(source: Source, rows: Rows, run: Run, keep: Keep, meter: Meter) -> tuple[DataFile, ...]:
    """The files of the rows that were kept out of the table, which must hold all of them."""
    left_out = append.kept_out(source.rows, run.contract, nulled=rows.nulled)
    files = keep(left_out, meter.started_at, run.table)
    held = sum(file.rows for file in files)
    if held != rows.kept_out:
        message = f"{rows.kept_out:,} rows were kept out, but {held:,} are in quarantine"
        raise Permanent("COUNT_MISMATCH", message)
    return files


def _written(run: Run, rows: Rows, source: Source, table: Opened) -> dict[str, Any]:
    return {
        "audited_hash": run.audited_hash,
        "rows_read": rows.read,
        "rows_rejected": rows.kept_out,
        "rows_unreadable": rows.bad,
        "rows_nulled": rows.bad if rows.nulled else 0,
        "rows_written": rows.written,
        "files": tuple(map(iceberg.described, run.files)),
        "source_rows": source.source_rows,
        "schema_changes": (*source.changes, *table.changes),
    }


# One run for a batch: each of its files onto the one branch, one after the other, and audited.
#
# A file that fails keeps nobody from seeing what is wrong with the others.


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
