"""Audit a local file by the job's own code, without a stack.

A table in a temporary folder stands in for S3 and Nessie.
"""

import os
import shutil
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGINT, default_int_handler, getsignal, signal
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from threading import current_thread, main_thread
from typing import BinaryIO
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from infra.local.jars import spark_jars
from infra.local.java import SPARK_SETTINGS, java_home
from lakegate import times
from lakegate.audit.broken_rows import BrokenRows
from lakegate.audit.drift import Baselines
from lakegate.audit.report import READABLE, AuditReport, CheckResult, Status, Verdict
from lakegate.contract.checks import Check, Scope
from lakegate.contract.model import Contract
from lakegate.contract.reading.layout import COMMENT
from lakegate.contract.reading.write_mode import WriteMode
from lakegate.errors import LakegateError, Permanent
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject, ingestion_id
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.audit import verdict
from spark_jobs.audit.broken_rows import broken_rows as all_broken
from spark_jobs.files.open import open_file
from spark_jobs.files.source import LocalFile
from spark_jobs.files.text.sniff import is_gzip
from spark_jobs.lake.storage import plain_name
from spark_jobs.one_pass.examined import WAY
from spark_jobs.one_pass.prepare import prepared
from spark_jobs.run.ingest import ingest
from spark_jobs.spark import jvm
from spark_jobs.spark.session import CATALOG, closed, session_settings
from spark_jobs.spark.step_metrics import now
from spark_jobs.spark.unforeseen import explained
from spark_jobs.write.report import errored, report

_SETTINGS = {
    **SPARK_SETTINGS,
    "spark.app.name": "lakegate",
    "spark.master": "local[*]",
    "spark.sql.shuffle.partitions": "2",
}
# Why a check needs more than the file, by its metric, for metrics whose scope is the file.
_ELSEWHERE = {
    "missingReferences": "looks at another table",
    "sql": "is a query of the table",
    "drift": "compares with what was published before",
    "reconcile": "compares with a file beside the landed one",
}
_TABLE = "looks at the whole table"
_STATE = "local"


@dataclass(frozen=True)
class Landed(LocalFile):
    """A file in place of the landed object, and its contract."""

    agreed: Contract
    home: Path

    def contract(self) -> Contract:
        """Return the contract."""
        return self.agreed

    @contextmanager
    def new_object(self, address: str) -> Iterator[BinaryIO]:
        """Provide a stream to a new file at an address."""
        made = Path(urlsplit(address).path)
        made.parent.mkdir(parents=True, exist_ok=True)
        with made.open("wb") as stream:
            yield stream

    def baselines(self) -> Baselines:
        """Return no baselines: nothing was published, so drift checks are skipped."""
        return Baselines("")

    @contextmanager
    def pinned(self) -> Iterator[str]:
        """Yield a name for the file that Spark reads as it is and that shows its compression."""
        copy = self.home / plain_name(self.path.name, gzipped=is_gzip(self.range(0, 2)))
        try:
            copy.hardlink_to(self.path.resolve())
        except OSError:  # another file system
            shutil.copyfile(self.path, copy)
        yield copy.as_uri()


@dataclass(frozen=True)
class LocalBranch:
    """The states of a table that is deleted after the audit: only their names are kept."""

    token: str = ""

    def head(self) -> str:
        """Return the name of the first state."""
        return _STATE

    def own_commit(self, before: str) -> str:
        """Return a name for the state that follows, as if there was a commit."""
        return f"{before}+"

    made_commit = own_commit

    def reset(self, to: str) -> None:
        """Do nothing: a table that was changed once is found so."""


@contextmanager
def local_spark() -> Iterator[SparkSession]:
    """Yield a silent Spark on this machine."""
    os.environ |= {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable}
    with TemporaryDirectory(prefix="lakegate-") as scratch:
        own = {"spark.jars": spark_jars(), "spark.local.dir": scratch}
        conf = SparkConf(loadDefaults=False).setAll(list({**_SETTINGS, **own}.items()))
        spark = _started(conf)
        try:
            yield spark
        finally:
            with suppress(Py4JError):  # it has ended by itself
                spark.stop()


def _started(conf: SparkConf) -> SparkSession:
    """Return a new Spark. Raises LakegateError SPARK_NOT_STARTED.

    A later Spark of this process runs in the Java of the first one: PySpark keeps to that.
    """
    try:
        silent = {"stdout": DEVNULL, "stderr": DEVNULL}
        with interrupted_later():
            gateway = jvm.known_gateway() or launch_gateway(conf, silent)
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (PySparkException, Py4JError, OSError) as error:
        message = f"Spark does not start on this machine: {error}\nIs there memory and disk for it?"
        raise LakegateError("SPARK_NOT_STARTED", message) from error


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Hold a first Ctrl-C until the block has ended; a second one interrupts it.

    A Java that nobody waits for any more while it starts would run for ever: it ends by itself only
    once it is connected. Python interrupts its main thread alone.
    """
    if current_thread() is not main_thread() or getsignal(SIGINT) is not default_int_handler:
        yield
        return
    held: list[int] = []

    def hold(number: int, _: object) -> None:
        held.append(number)
        signal(SIGINT, default_int_handler)

    signal(SIGINT, hold)
    try:
        yield
    finally:
        signal(SIGINT, default_int_handler)
    if held:
        raise KeyboardInterrupt


def passed(contract: Contract, file: Path, limits: Limits = DEFAULTS) -> AuditReport | None:
    """Return the report of a file that passes each check by Arrow alone; None for any other.

    It takes a second instead of Spark's ten, and the job would pass the file by the same pass.
    """
    layout = contract.layout
    if layout.partitions or layout.order or layout.properties.keys() - {COMMENT}:
        return None  # only a table can try them
    began, spec, (here, skipped) = now(), spec_of(contract, file, limits), _divided(contract)
    try:
        examined = prepared(LocalFile(file), here, spec.limits).examined()
    except Exception:  # noqa: BLE001 - Spark tells why
        return None
    if any(check.id not in examined.measured for check in here.checks):
        return None
    results = verdict.judge(here, examined.rows, examined.measured)
    if any(result.status is not Status.PASS for result in results):
        return None  # Spark finds the rows
    told = {"verdict": Verdict.PASSED, "checks": (*results, *skipped), "started_at": began}
    rows = {"rows_read": examined.rows.read, "rows_written": examined.rows.written}
    columns = {"schema_changes": examined.changes}
    return report(spec, None, here, engine={"write": WAY}, **told, **rows, **columns)


def audit(
    spark: SparkSession, contract: Contract, file: Path, limits: Limits = DEFAULTS
) -> AuditReport:
    """Return the audit report of a file that lands now for a new table.

    Checks that need more than the file are skipped, with the reason. Raises LakegateError for a
    fault that is not the file's.
    """
    spec, (here, skipped) = spec_of(contract, file, limits), _divided(contract)
    try:
        with explained("the file cannot be audited", contract):
            outcome = _ingested(spark, spec, here, file)
    except Permanent as error:
        return errored(spec, error)
    except LakegateError:
        raise
    except Exception as error:
        kind = type(error).__name__
        message = f"Spark ended while it audited {file} ({kind})\nIs there memory and disk for it?"
        raise LakegateError("SPARK_ENDED", message) from error
    return replace(outcome, checks=(*outcome.checks, *skipped))


def broken_rows(
    spark: SparkSession, contract: Contract, file: Path, failed: Collection[str], limits: Limits
) -> BrokenRows:
    """Return all rows of a file that break one of the `failed` checks, named by their ids.

    Only checks of its own rows have any. None are found under a transform. Raises LakegateError.
    """
    spec = spec_of(contract, file, limits)
    with TemporaryDirectory(prefix="lakegate-") as home:
        landed = Landed(file, contract, Path(home))
        with explained("the file cannot be read", contract), landed.pinned() as path:
            session = local_session(spark, spec, Path(home))
            source = open_file(session, path, contract, landed, limits)
            read = replace(contract, columns=source.columns)
            checks = [each for each in contract.checks if each.names_rows and each.id in failed]
            if not source.placed:
                return BrokenRows("row", {})
            return all_broken(source.placed, checks, read, unreadable=READABLE in failed)


def _ingested(spark: SparkSession, spec: JobSpec, here: Contract, file: Path) -> AuditReport:
    with TemporaryDirectory(prefix="lakegate-") as home:
        session = local_session(spark, spec, Path(home))
        return ingest(spec, Landed(file, here, Path(home)), session, LocalBranch())


def _divided(contract: Contract) -> tuple[Contract, tuple[CheckResult, ...]]:
    """Return the contract with the checks that need only the file, and the others' results."""
    checks = tuple(check for check in contract.checks if not _needs_more(check))
    skipped = tuple(_skipped(check) for check in contract.checks if _needs_more(check))
    return replace(contract, checks=checks, write_mode=WriteMode()), skipped


def local_session(spark: SparkSession, spec: JobSpec, home: Path) -> SparkSession:
    """Return a session like the job's, with a folder as its catalog."""
    catalog = f"spark.sql.catalog.{CATALOG}"
    settings = {k: v for k, v in session_settings(spec, "").items() if not k.startswith(catalog)}
    settings |= {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": (home / "lake").as_uri(),
        f"{catalog}.cache-enabled": "false",
    }
    return closed(spark.newSession(), settings)


def spec_of(contract: Contract, file: Path, limits: Limits) -> JobSpec:
    status = file.stat()
    now = times.text(datetime.now(UTC))
    version = str(status.st_mtime_ns)
    landed = LandedObject("", str(file), version, version, status.st_size, landed_at=now)
    return JobSpec(
        ingestion=ingestion_id(landed),
        attempt=1,
        landed=landed,
        table=contract.table,
        branch=_STATE,
        base_hash=_STATE,
        lake_bucket="",
        contract_key="",
        contract_version="",
        report_key="",
        nessie_uri="",
        token_secret="",
        limits=limits,
    )


def _needs_more(check: Check) -> str:
    """Return why the check needs more than the file, "" if it does not."""
    return _ELSEWHERE.get(check.metric, "" if check.scope is Scope.FILE else _TABLE)


def _skipped(check: Check) -> CheckResult:
    return CheckResult(
        id=check.id,
        metric=check.metric.value,
        columns=check.columns,
        severity=check.severity.value,
        status=Status.SKIPPED,
        expected=check.expected,
        found="skipped",
        message=f"{_needs_more(check)}, which is not here",
    )
