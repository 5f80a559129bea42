"""Run the job over real services, as EMR Serverless would."""

import io
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest
from pyarrow import orc
from pyarrow import parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from functions.adapters.iceberg.tables import Tables
from functions.model.intent import Intent
from infra.local.settings import LAKE_BUCKET
from lakegate.audit.report import AuditReport, Reason, Verdict
from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract, parse
from lakegate.errors import LakegateError
from lakegate.job.change import Change
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject
from lakegate.limits import DEFAULTS, Limits
from spark_jobs import main
from spark_jobs.files.arrow.exact import TEXTS
from spark_jobs.files.open import open_source
from spark_jobs.files.source import LocalFile
from spark_jobs.files.text.sniff import is_gzip
from spark_jobs.lake.storage import Storage
from spark_jobs.spark.errors import explain
from spark_jobs.spark.jvm import JavaError
from spark_jobs.spark.session import session_settings
from tests.fakes.schema import validate_report
from tests.services import Services, fresh_session, services, warm_spark
from tests.spark.measuring import NO_RUN, contract_of, reading_session, rows_by_arrow

_EXIT_CODES = {Verdict.PASSED: 0, Verdict.REJECTED: 3, Verdict.ERRORED: 4}
_COLUMNS: tuple[dict[str, Any], ...] = (
    {"name": "id", "logicalType": "integer", "required": True, "unique": True},
    {"name": "name", "logicalType": "string", "logicalTypeOptions": {"pattern": "^n[0-9]+$"}},
    {
        "name": "amount",
        "logicalType": "number",
        "logicalTypeOptions": {"minimum": 0, "maximum": 100},
    },
    {"name": "day", "logicalType": "date"},
)


GOOD: Mapping[str, Sequence[Any]] = {
    "id": [1, 2, 3],
    "name": ["n1", "n2", None],
    "amount": [0.0, 99.5, None],
    "day": [date(2013, 1, 1), date(2013, 1, 2), None],
}


def parquet(columns: Mapping[str, Any], **options: Any) -> bytes:
    """Return columns as a Parquet file."""
    file = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), file, **options)
    return file.getvalue()


def changed(**columns: Any) -> bytes:
    """Return the good rows as a Parquet file, with other values in some columns."""
    return parquet({**GOOD, **columns})


def orc_file(columns: Mapping[str, Any], **options: Any) -> bytes:
    """Return columns as an ORC file."""
    file = io.BytesIO()
    orc.write_table(pa.table(dict(columns)), file, **options)
    return file.getvalue()


def reason(report: AuditReport) -> Reason:
    """Return why the run did not pass."""
    assert report.reason is not None
    return report.reason


@dataclass(frozen=True)
class Job:
    """Run the job for files that a test lands, under a contract of the test."""

    services: Services
    warm_spark: SparkSession

    def spec(self, landed: LandedObject, contract: str, table: str) -> JobSpec:
        version = self.services.put_contract(table, contract)
        return self.services.spec(landed, version, table)

    def run(self, spec: JobSpec) -> AuditReport:
        """Return the run's valid report, after it ended with its verdict's exit code."""
        fresh_session(self.warm_spark)
        code = main.main(spec.to_argument())
        report = Storage.connect(spec).finished_report()
        assert report is not None
        validate_report(report.to_json())
        assert code == _EXIT_CODES[report.verdict]
        return report

    def ingest(self, body: bytes, contract: str, table: str, key: str = "") -> AuditReport:
        """Return the report on a file with these bytes, under its own key if none is given."""
        key = key or f"{table.replace('.', '/')}/{uuid.uuid4().hex}"
        return self.run(self.spec(self.services.land(key, body), contract, table))

    def publish(self, report: AuditReport) -> str:
        """Merge an audited file into main, and return main's hash."""
        assert report.verdict is Verdict.PASSED, report.reason
        return self.services.catalog.merge(
            report.branch, report.audited_hash, report.base_hash, "Publish", {"k": "v"}
        )

    def change(self, change: Change, contract: str) -> JobSpec:
        """Return the job spec of a change of a table with this contract."""
        body = change.to_json().encode()
        self.services.s3.put_object(Bucket=LAKE_BUCKET, Key=change.key, Body=body)
        return replace(self.spec(change.landed(LAKE_BUCKET), contract, change.table), change=True)

    def registered(self, report: AuditReport) -> str:
        """Register a report's files on a fresh branch off main, by metadata only; return its name.

        Raises CannotRebase.
        """
        services, fresh = self.services, f"{report.branch}-{uuid.uuid4().hex}"
        services.catalog.create_branch(fresh)
        tables = Tables(services.nessie_uri, services.tokens["publisher"], services.s3)
        intent = Intent(report.branch, report.audited_hash)
        if failed := tables.append_again(report.table, [intent], fresh):
            raise failed[intent]
        return fresh

    def session(self, branch: str, role: str = "reader") -> SparkSession:
        """Return a session in which a consumer reads a branch, or another writer changes it."""
        session = fresh_session(self.warm_spark)
        spec = replace(NO_RUN, branch=branch, nessie_uri=self.services.nessie_uri)
        for name, value in session_settings(spec, self.services.tokens[role]).items():
            session.conf.set(name, value)
        return session

    def rows(self, table: str, branch: str) -> list[dict[str, Any]]:
        """Return the rows that a consumer reads from a table on a branch."""
        session = self.session(branch)
        return [row.asDict() for row in session.table(f"lake.{table}").collect()]

    def rows_by_pyiceberg(self, table: str, branch: str = "main") -> list[dict[str, Any]]:
        """Return the rows that pyiceberg reads from a table."""
        found = self.services.at(branch).load_table(table).scan().to_arrow().to_pylist()
        return cast(list[dict[str, Any]], found)

    def rows_by_duckdb(
        self, table: str, folder: Path, branch: str = "main"
    ) -> list[dict[str, Any]]:
        """Return the rows that DuckDB reads from a table's data files, copied to a new folder."""
        folder.mkdir()
        for task in self.services.at(branch).load_table(table).scan().plan_files():
            bucket, _, key = task.file.file_path.removeprefix("s3://").partition("/")
            body = self.services.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
            (folder / f"{uuid.uuid4()}.parquet").write_bytes(body)
        with duckdb.connect() as database:
            database.execute("SET TimeZone = 'UTC'")
            found = f"SELECT * FROM read_parquet('{folder}/*.parquet', union_by_name = true)"
            return cast(list[dict[str, Any]], database.sql(found).to_arrow_table().to_pylist())


@pytest.fixture(scope="session")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    with services(tmp_path_factory.mktemp("services")) as running:
        spark = warm_spark(running)
        yield Job(running, spark)
        SparkSession._instantiatedSession = spark
        spark.stop()


def new_table() -> str:
    """Return the name of a table that no other test uses."""
    return f"tests.t{uuid.uuid4().hex[:8]}"


@pytest.fixture
def table() -> str:
    """Return the name of a table that no other test uses."""
    return new_table()


@pytest.fixture
def contract(table: str) -> Callable[..., str]:
    """Return a writer of contracts over id, name, amount and day."""

    def write(
        format_: str = "parquet",
        *rules: Mapping[str, Any],
        name: str = "",
        write: str = "auto",
        **other: Any,
    ) -> str:
        """Return the contract of a table with rules; `other` properties replace columns' own."""
        columns = [{**each, **other.get(each["name"], {})} for each in _COLUMNS]
        return contract_of(columns, rules, name or table, format=format_, write=write)

    return write


@dataclass(frozen=True)
class Read:
    """The result of reading a file: good rows as tuples, bad rows as texts, or the reason.

    `code` is "" for a file that was read, else the code of a finding or of the error.
    """

    rows: list[tuple[Any, ...]]
    bad: list[str]
    promised: int | None
    code: str = ""


@pytest.fixture
def reading(job: Job, tmp_path: Path) -> Callable[..., Read]:
    """Return a reader of bytes under a contract for (name, logical type, physical type) columns.

    It reads as the job's Spark does. Where Arrow may read a text instead, it must find the same.
    """
    spark = reading_session(job.warm_spark)

    def read(
        body: bytes,
        format_: str,
        columns: list[Any],
        name: str = "file",
        limits: Limits = DEFAULTS,
        **options: Any,
    ) -> Read:
        file = tmp_path / name
        file.write_bytes(body)
        contract = parse(_contract_text(format_, columns, options), "a test")
        found = by_spark(file, contract, limits)
        if format_ in TEXTS and is_gzip(body) == (file.suffix == ".gz"):
            fast = rows_by_arrow(file, contract, limits)
            if fast is not None:
                good, bad = fast
                assert repr(Read(good, bad, len(good) + len(bad))) == repr(found), fast
        return found

    def by_spark(file: Path, contract: Contract, limits: Limits) -> Read:
        try:
            source = open_source(spark, str(file), contract, LocalFile(file), limits)
            if source.findings:
                return Read([], [], None, source.findings[0].code)
            found = [tuple(row) for row in _sound(source.rows).collect()]
        except JavaError as error:
            return Read([], [], None, explain(error, "reading").code)
        except LakegateError as error:
            return Read([], [], None, error.code)
        good = [row[:-1] for row in found if row[-1] is None]
        return Read(good, [row[-1] for row in found if row[-1]], source.declared_rows)

    return read


def _sound(rows: DataFrame) -> DataFrame:
    """Return the rows without the values of bad ones, which Python may be unable to hold."""
    *names, bad = rows.columns
    is_good = F.col(bad).isNull()
    return rows.select(*(F.when(is_good, F.col(quoted(n))).alias(n) for n in names), bad)


def _contract_text(format_: str, columns: list[Any], options: dict[str, Any]) -> str:
    keys = ("name", "logicalType", "physicalType")
    properties = [
        column if isinstance(column, dict) else dict(zip(keys, column, strict=False))
        for column in columns
    ]
    settings = {"format": format_, **({"options": options} if options else {})}
    rows = [{"metric": "rowCount", "mustBeGreaterThan": 0}]
    return contract_of(properties, rows, "tests.test", **settings)
