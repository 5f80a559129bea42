"""A warm Spark, a real Nessie and a real S3 interface, for tests of the job alone."""

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from pyspark.sql import SparkSession

from functions.catalog import Catalog
from infra.local import keys, nessie, processes
from infra.local.jars import spark_jars
from infra.local.java import java_home
from infra.local.parts import aws_environment, choose_ports, parts
from infra.local.settings import LAKE_BUCKET
from lakegate.jobspec import JobSpec
from lakegate.landing import LandedObject, branch_name, ingestion_id, report_key
from lakegate.report import AuditReport
from spark_jobs import main as job
from spark_jobs.storage import Storage

ROOT = Path(__file__).parents[2]
LANDING, LAKE = "landing", LAKE_BUCKET


@dataclass(frozen=True)
class Services:
    """Where the services answer, and each role's token for Nessie."""

    nessie_uri: str
    tokens: dict[str, str]
    s3: Any

    def catalog(self) -> Catalog:
        return Catalog(self.nessie_uri, self.tokens["publisher"])


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    home = tmp_path_factory.mktemp("services")
    tokens = keys.tokens(home / "keys", nessie.ROLES, datetime.now(UTC))
    ports = choose_ports(home)
    wanted = {n: p for n, p in parts(home, ROOT, ports, tokens["reader"]).items() if n in _NEEDED}
    environment = aws_environment(wanted["ministack"].address, "http://127.0.0.1:9")
    try:
        for part in wanted.values():
            processes.start(home, part.command)
        for part in wanted.values():
            part.wait(home)
        nessie.seed(wanted["nessie"].address, tokens["publisher"])
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            yield _prepared(Services(wanted["nessie"].address, tokens, boto3.client("s3")))
    finally:
        for name in wanted:
            processes.stop(home, name)


_NEEDED = ("ministack", "nessie")


def _prepared(services: Services) -> Services:
    for bucket in (LANDING, LAKE):
        services.s3.create_bucket(Bucket=bucket)
        services.s3.put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration={"Status": "Enabled"}
        )
    secrets = boto3.client("secretsmanager")
    secrets.create_secret(Name="job-token", SecretString=services.tokens["job"])
    return services


@pytest.fixture(scope="session")
def warm_spark(services: Services) -> Iterator[SparkSession]:
    os.environ["JAVA_HOME"] = str(java_home())
    endpoint = services.s3.meta.endpoint_url
    builder = SparkSession.builder.master("local[2]")
    for name, value in {
        "spark.jars": spark_jars(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "test",
        "spark.hadoop.fs.s3a.secret.key": "test",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


@pytest.fixture
def spark(warm_spark: SparkSession) -> Iterator[SparkSession]:
    """A session of its own a test, which `builder.getOrCreate()` finds, as on EMR."""
    yield _fresh_session(warm_spark)
    SparkSession._instantiatedSession = warm_spark


def _fresh_session(warm_spark: SparkSession) -> SparkSession:
    session = warm_spark.newSession()
    SparkSession._instantiatedSession = session
    return session


@dataclass(frozen=True)
class Job:
    """Runs the job for files that a test lands, under a contract that it gives."""

    services: Services
    warm_spark: SparkSession

    def land(self, key: str, body: bytes) -> LandedObject:
        put = self.services.s3.put_object(Bucket=LANDING, Key=key, Body=body)
        return LandedObject(LANDING, key, put["VersionId"], put["ETag"].strip('"'), len(body))

    def spec(self, landed: LandedObject, contract: str, table: str) -> JobSpec:
        """What the upload Lambda would tell the job; the branch is cut as it would cut it."""
        contract_key = f"contracts/{table}.yaml"
        put = self.services.s3.put_object(Bucket=LAKE, Key=contract_key, Body=contract.encode())
        ingestion = ingestion_id(landed)
        branch = branch_name(table, landed.key, ingestion, 1)
        return JobSpec(
            ingestion=ingestion,
            attempt=1,
            landed=landed,
            table=table,
            branch=branch,
            base_hash=self.services.catalog().create_branch(branch),
            lake_bucket=LAKE,
            contract_key=contract_key,
            contract_version=put["VersionId"],
            report_key=report_key(table, ingestion, 1),
            nessie_uri=self.services.nessie_uri,
            token_secret="job-token",
        )

    def run(self, spec: JobSpec) -> tuple[int, AuditReport]:
        """The job's exit code and the report that it left."""
        _fresh_session(self.warm_spark)
        code = job.main(spec.to_argument())
        report = Storage.connect(spec).finished_report()
        assert report is not None
        return code, report

    def ingest(
        self, body: bytes, contract: str, table: str, key: str = ""
    ) -> tuple[int, AuditReport]:
        key = key or f"{table.replace('.', '/')}/file"
        return self.run(self.spec(self.land(key, body), contract, table))

    def rows(self, table: str, branch: str) -> list[dict[str, Any]]:
        """What a reader sees on a branch."""
        session = _fresh_session(self.warm_spark)
        spec = replace(_NOBODY, branch=branch, nessie_uri=self.services.nessie_uri)
        from spark_jobs.session import session_settings

        for name, value in session_settings(spec, self.services.tokens["reader"]).items():
            session.conf.set(name, value)
        return [row.asDict() for row in session.table(f"lake.{table}").collect()]


_NOBODY = JobSpec("", 1, LandedObject("", "", "", "", 0), "", "", "", "", "", "", "", "", "")


@pytest.fixture
def job_runner(services: Services, warm_spark: SparkSession, spark: SparkSession) -> Job:
    return Job(services, warm_spark)


@pytest.fixture
def table() -> str:
    """A table that no other test uses."""
    return f"tests.t{uuid.uuid4().hex[:8]}"


@pytest.fixture
def contract(table: str) -> Callable[..., str]:
    """Writes a contract over columns id, name, amount, day; `more` replaces the text of `quality`."""

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
