"""Run the job over real services, as EMR Serverless would."""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.columns import quoted
from lakegate.contract.model import parse
from lakegate.errors import LakegateError
from lakegate.jobspec import JobSpec
from lakegate.landing import LandedObject
from lakegate.limits import DEFAULTS, Limits
from lakegate.report import AuditReport
from spark_jobs import main as job
from spark_jobs.errors import explain
from spark_jobs.files.open import LocalFile, open_source
from spark_jobs.spark.jvm import JavaError
from spark_jobs.spark.session import session_settings
from spark_jobs.storage import Storage
from tests.fakes.schema import validate_report
from tests.services import Services, fresh_session, services, warm_spark


@dataclass(frozen=True)
class Job:
    """Run the job for files that a test lands, under a contract of the test."""

    services: Services
    warm_spark: SparkSession

    def spec(self, landed: LandedObject, contract: str, table: str) -> JobSpec:
        version = self.services.put_contract(table, contract)
        return self.services.spec(landed, version, table)

    def run(self, spec: JobSpec) -> tuple[int, AuditReport]:
        """Return the job's exit code and its report."""
        fresh_session(self.warm_spark)
        code = job.main(spec.to_argument())
        report = Storage.connect(spec).finished_report()
        assert report is not None
        validate_report(report.to_json())
        return code, report

    def ingest(
        self, body: bytes, contract: str, table: str, key: str = ""
    ) -> tuple[int, AuditReport]:
        key = key or f"{table.replace('.', '/')}/file"
        return self.run(self.spec(self.services.land(key, body), contract, table))

    def session(self, branch: str) -> SparkSession:
        """Return a session in which a consumer reads a branch."""
        session = fresh_session(self.warm_spark)
        spec = replace(_NO_RUN, branch=branch, nessie_uri=self.services.nessie_uri)
        for name, value in session_settings(spec, self.services.tokens["reader"]).items():
            session.conf.set(name, value)
        return session

    def rows(self, table: str, branch: str) -> list[dict[str, Any]]:
        """Return the rows that a consumer reads from a table on a branch."""
        session = self.session(branch)
        return [row.asDict() for row in session.table(f"lake.{table}").collect()]


_NO_RUN = JobSpec("", 1, LandedObject("", "", "", "", 0), "", "", "", "", "", "", "", "", "")


@pytest.fixture(scope="session")
def job_runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    with services(tmp_path_factory.mktemp("services")) as running:
        spark = warm_spark(running)
        yield Job(running, spark)
        SparkSession._instantiatedSession = spark
        spark.stop()


@pytest.fixture
def table() -> str:
    """Return the name of a table that no other test uses."""
    return f"tests.t{uuid.uuid4().hex[:8]}"


@pytest.fixture
def contract(table: str) -> Callable[..., str]:
    """Return a writer of contracts over id, name, amount and day; `quality` is the table's own."""

    def write(format_: str = "parquet", quality: str = "") -> str:
        return f"""
kind: DataContract
apiVersion: v3.1.0
id: {table}
version: 1.0.0
status: active
customProperties:
  - {{property: format, value: {format_}}}
schema:
  - name: {table}
    logicalType: object
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, required: true, unique: true}}
      - name: name
        logicalType: string
        logicalTypeOptions: {{pattern: "^n[0-9]+$"}}
      - name: amount
        logicalType: number
        physicalType: double
        logicalTypeOptions: {{minimum: 0, maximum: 100}}
      - {{name: day, logicalType: date}}
{quality}
"""

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
def reading(job_runner: Job, tmp_path: Path) -> Callable[..., Read]:
    """Return a reader of bytes under a contract for (name, logical type, physical type) columns."""
    spark = fresh_session(job_runner.warm_spark)
    for name, value in session_settings(_NO_RUN, "").items():
        if "catalog" not in name:
            spark.conf.set(name, value)

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
    settings: list[dict[str, Any]] = [{"property": "format", "value": format_}]
    settings += [{"property": "options", "value": options}] if options else []
    document = {
        "kind": "DataContract",
        "apiVersion": "v3.1.0",
        "id": "test",
        "version": "1.0.0",
        "status": "active",
        "customProperties": settings,
        "schema": [
            {
                "name": "tests.test",
                "logicalType": "object",
                "quality": [{"metric": "rowCount", "mustBeGreaterThan": 0}],
                "properties": properties,
            }
        ],
    }
    return json.dumps(document)
