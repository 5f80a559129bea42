"""One run: open the landed object, append it, audit it in the same pass, say what was found."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from lakegate.baselines import Baselines
from lakegate.contract import Contract
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import AuditReport, CheckResult, DataFile, Verdict
from spark_jobs import audit, drifts, iceberg, quarantine
from spark_jobs.append import append_watched
from spark_jobs.audit import Rows
from spark_jobs.engine import Engine
from spark_jobs.meter import Meter
from spark_jobs.quoting import telling
from spark_jobs.read import Bytes, Source
from spark_jobs.reports import report
from spark_jobs.run import Measured, Run
from spark_jobs.samples import with_samples
from spark_jobs.stall import watched
from spark_jobs.transform import open_file
from spark_jobs.write import Opened, Target, open_table, with_undeclared


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
            checks, why = audit.refused(source.findings)
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
    verdict, reason = audit.verdict(results)
    found = {"verdict": verdict, "reason": reason, "checks": results, "records": records}
    return report(spec, meter, contract, engine=engine.notes, **written, **found)


def _results(
    run: Run, rows: Rows, ridden: Mapping[str, Measured], storage: Landing
) -> tuple[CheckResult, ...]:
    measured = audit.measure(run, ridden)
    results = audit.judge(run.contract, rows, measured)
    return drifts.compared(results, run.contract, measured, storage.baselines)


def _kept(source: Source, rows: Rows, run: Run, keep: Keep, meter: Meter) -> tuple[DataFile, ...]:
    """The files of the rows that were kept out of the table, which must hold all of them."""
    left_out = quarantine.kept_out(source.rows, run.contract, nulled=rows.nulled)
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
