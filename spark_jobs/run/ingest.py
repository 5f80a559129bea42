"""Run an ingestion: open the landed object, append it, audit it and return the report."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from pyspark.sql import SparkSession

from lakegate.audit.drift import Baselines
from lakegate.audit.report import AuditReport, DataFile, Verdict
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.job.change import Effect
from lakegate.job.jobspec import JobSpec
from spark_jobs.audit import tiers, verdict
from spark_jobs.audit.places import FindPlaces, searched
from spark_jobs.audit.run import Measured, RowCounts, Run
from spark_jobs.audit.samples import with_samples
from spark_jobs.files.arrow.parquet import Damaged, MustRewrite
from spark_jobs.files.open import open_file
from spark_jobs.files.source import Bytes, Source
from spark_jobs.lake.storage import Storage
from spark_jobs.one_pass.counted_places import counted
from spark_jobs.one_pass.examined import WAY, Examined, Prepared, require_all
from spark_jobs.one_pass.prepare import prepared
from spark_jobs.spark import iceberg
from spark_jobs.spark.stall import cancel_when_stalled
from spark_jobs.spark.step_metrics import Meter
from spark_jobs.spark.unforeseen import explained, reading
from spark_jobs.write import quarantine, replacing
from spark_jobs.write.append import Opened, Target, append_counted, open_table, with_undeclared
from spark_jobs.write.commit import commit, data_files
from spark_jobs.write.files import DataFiles, Lake
from spark_jobs.write.layout import Layout, layout_of
from spark_jobs.write.quarantine import Quarantine
from spark_jobs.write.report import report


class LandedFile(Bytes, Lake, Protocol):
    """The landed object, its contract, and the place of its data files, as `storage.Storage`."""

    def contract(self) -> Contract:
        """Return the contract."""

    def pinned(self) -> AbstractContextManager[str]:
        """Provide an address of exactly the landed version for a while."""

    def baselines(self) -> Baselines:
        """Return the measures of the table's published runs."""


@dataclass(frozen=True)
class _Appended:
    """The rows of a file on its branch, and all that the audit needs.

    `known` are the measures so far, by check id. `source` is the opened file if Spark read it, else
    its rows that are not on the branch. `effect` is that of overwriting partitions. `find_places`
    finds rows in the landed file. `kept` are the files with rows that Arrow has quarantined.
    """

    table: Opened
    run: Run
    rows: RowCounts
    known: Mapping[str, Measured]
    source: Source
    find_places: FindPlaces
    effect: Effect | None = None
    kept: tuple[DataFile, ...] = ()


def ingest(
    spec: JobSpec,
    storage: LandedFile,
    spark: SparkSession,
    branch: Target,
    lake: Storage | None = None,
) -> AuditReport:
    """Append one landed object to its branch, and audit it there.

    Arrow reads and writes the files that it reads as Spark does; Spark does the others. `lake` gets
    the rows to quarantine; without it these rows are not written. Raises Permanent when the file
    cannot be read or appended, Transient when a retry may help.
    """
    meter, contract = Meter(spark), storage.contract()
    stall_guard = cancel_when_stalled(spark, spec.limits.longest_stall)
    quarantine = Quarantine(lake, meter.started_at) if lake else None
    ingestion = _Ingestion(spec, storage, spark, branch, contract, meter, quarantine)
    with explained("the file cannot be ingested", contract), stall_guard:
        try:
            appended = ingestion.by_arrow()
        except MustRewrite as why:
            with storage.pinned() as path:
                audit_report = ingestion.by_spark(path, f"written by Spark: {why}")
            if isinstance(why, Damaged):  # and Spark has overlooked it
                raise Permanent("CORRUPT_FILE", f"the Parquet file is damaged: {why}") from why
            return audit_report
        return ingestion.audited(appended, WAY)


@dataclass(frozen=True)
class _Ingestion:
    """The way of one landed object to the report about it."""

    spec: JobSpec
    storage: LandedFile
    spark: SparkSession
    branch: Target
    contract: Contract
    meter: Meter
    quarantine: Quarantine | None

    def by_arrow(self) -> _Appended:
        """Read, measure and write the file with Arrow. Raises MustRewrite."""
        spec, spark = self.spec, self.spark
        with self.meter.step("open"):
            known = with_undeclared(spark, self.contract)
            file = prepared(self.storage, known, spec.limits, spark)
        contract = file.contract
        with self.meter.step("append"):
            table = open_table(spark, spec, self.branch, contract)
            before = self._rows_before(table, contract)
            where = layout_of(spark, table.table, contract)
            examined = self._examined(file, where)
            files = data_files(spark, where, examined.files)
            audited_hash = commit(
                table,
                files,
                examined.found.rows,
                spec.ingestion,
                self.branch,
                overwrites=contract.write_mode.overwrites,
            )
            run = self._run(contract, table, files, audited_hash)
            effect = self._effect(before, run)
        source = replace(examined.apart.source(spark), changes=examined.changes)
        measured = {**examined.measured, **examined.apart.measured(source.rows, examined.rows.read)}
        places = counted(examined, where) or searched(partial(self._opened, known), contract)
        of_rows = (examined.rows, measured, source, places)
        return _Appended(table, run, *of_rows, effect, examined.apart.part.kept)

    @contextmanager
    def _opened(self, contract: Contract) -> Iterator[Source]:
        """Open the landed file by Spark."""
        with self.storage.pinned() as path:
            yield open_file(self.spark, path, contract, self.storage, self.spec.limits)

    def _examined(self, file: Prepared, where: Layout) -> Examined:
        try:
            of = self.storage, where, file.contract, self.spec, self.quarantine
            examined = file.examined(DataFiles(*of))
            if examined.rows.bad and self.spec.null_unreadable:
                raise MustRewrite("its unparseable cells are to become null")
            require_all(examined, examined.files)
        except MustRewrite:  # the table is opened again, and must be as main has it
            self.branch.reset(self.spec.base_hash)
            raise
        return examined

    def _run(
        self, contract: Contract, table: Opened, files: Sequence[Any], audited_hash: str
    ) -> Run:
        of = self.spark, self.spec, self.branch.token, contract
        return Run(*of, table.table, tuple(files), audited_hash, table.main_at)

    def by_spark(self, path: str, way: str) -> AuditReport:
        """Have Spark append the rows of the file at `path`, and return the report.

        The `way` says why.
        """
        spec, spark = self.spec, self.spark
        with self.meter.step("open"):
            declared = with_undeclared(spark, self.contract)
            with reading(self.contract):
                source = open_file(spark, path, declared, self.storage, spec.limits)
        if source.findings:
            checks, why = verdict.refused_columns(source.findings, source.wrong)
            refused = {"verdict": Verdict.REJECTED, "reason": why, "checks": checks}
            return report(spec, self.meter, self.contract, **refused, wrong_columns=source.wrong)
        contract = replace(self.contract, columns=source.columns)
        with self.meter.step("append"):
            table = open_table(spark, spec, self.branch, contract)
            before = self._rows_before(table, contract)
            run, rows, known = append_counted(spec, self.branch, source, contract, table)
            effect = self._effect(before, run)
        places = searched(lambda: nullcontext(source), contract)
        appended = _Appended(table, run, rows, known, source, places, effect)
        return self.audited(appended, way)

    def _rows_before(self, table: Opened, contract: Contract) -> int:
        """Return the rows of a table whose partitions are to be overwritten."""
        if not contract.write_mode.overwrites:
            return 0
        replacing.require_replaceable(table.table, contract)
        return replacing.row_count(self.spark, contract)

    def _effect(self, before: int, run: Run) -> Effect | None:
        if not run.contract.write_mode.overwrites:
            return None
        after = replacing.row_count(self.spark, run.contract)
        removed = before + run.written - after
        return replacing.checked(Effect(before, after, run.written, removed))

    def audited(self, appended: _Appended, way: str) -> AuditReport:
        """Answer the checks that are still open, and return the report, with the rows' `way`."""
        run, rows, source, meter = appended.run, appended.rows, appended.source, self.meter
        with meter.step("quarantine"):
            records = _quarantined(appended, self.quarantine) if self.quarantine else ()
        with meter.step("audit"):
            results = tiers.audit(run, rows, appended.known, self.storage.baselines)
        with meter.step("samples"):
            results = with_samples(results, run, source, appended.find_places)
        outcome, reason = verdict.verdict(results, run.contract)
        judged = {"verdict": outcome, "reason": reason, "checks": results, "records": records}
        written = _written(appended)
        if run.contract.write_mode.merges:
            with meter.step("merge"):
                written |= self._merged(appended, outcome)
        engine = {"spark": self.spark.version, "write": way}
        return report(self.spec, meter, run.contract, engine=engine, **written, **judged)

    def _merged(self, appended: _Appended, outcome: Verdict) -> dict[str, Any]:
        """Merge the audited rows into the table; return what the report says of it.

        Where they cannot be merged, the append stays on the branch as evidence, and nothing can be
        published.
        """
        run = appended.run
        if outcome is Verdict.ERRORED or not replacing.has_sound_keys(
            run.rows, run.contract.write_mode
        ):
            if outcome is Verdict.PASSED:
                message = (
                    "the primary key has nulls, or several rows of one key without an order, so "
                    "the rows were not merged: drop a corrected file, and let the key's own checks "
                    "reject such files (severity error, no where)"
                )
                raise Permanent("UNSOUND_KEYS", message)
            return {"audited_hash": ""}
        audited_hash, effect = replacing.upsert(run, appended.table, self.branch)
        merged = {"rows_written": effect.added, "effect": effect, "files": ()}
        return {"audited_hash": audited_hash, **merged}


def _quarantined(appended: _Appended, to: Quarantine) -> tuple[DataFile, ...]:
    """Write the quarantined rows; return the files, which must hold all of them."""
    run, rows, files = appended.run, appended.rows, appended.kept
    if rows.quarantined and not files:
        out = quarantine.quarantined_rows(appended.source.rows, run.contract, nulled=rows.nulled)
        files = to.write(out)
    held = sum(file.rows for file in files)
    if held != rows.quarantined:
        message = f"{rows.quarantined:,} rows were quarantined, but the files hold {held:,}"
        raise Permanent("COUNT_MISMATCH", message)
    return files


def _written(appended: _Appended) -> dict[str, Any]:
    run, rows, source = appended.run, appended.rows, appended.source
    return {
        "audited_hash": run.audited_hash,
        "rows_read": rows.read,
        "rows_rejected": rows.quarantined,
        "rows_unreadable": rows.bad,
        "rows_nulled": rows.bad if rows.nulled else 0,
        "rows_written": rows.written,
        "files": tuple(map(iceberg.data_file, run.files)),
        "source_rows": source.source_rows,
        "schema_changes": (*source.changes, *appended.table.changes),
        "effect": appended.effect,
    }
