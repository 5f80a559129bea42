"""Real services for tests and benchmarks of the job alone: Nessie, S3, and a warm Spark."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import quote

import boto3
from pyiceberg.catalog.rest import RestCatalog
from pyspark.sql import SparkSession

from functions.adapters.iceberg.file_io import CLIENT
from functions.adapters.nessie import Catalog
from infra.local import processes
from infra.local.jars import spark_jars
from infra.local.java import SPARK, java_home
from infra.local.ministack import KeyFiles
from infra.local.parts import aws_environment, choose_ports, parts
from infra.local.settings import LAKE_BUCKET
from lakegate import nessie_tokens
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject, branch_name, ingestion_id, report_key

ROOT = Path(__file__).parents[1]
LANDING = "landing"
_NEEDED = ("ministack", "nessie")
_SECRET = "job-token"


@dataclass(frozen=True)
class Services:
    """The addresses and clients of the services.

    `tokens` are each role's for Nessie, `s3` is boto3's client, `catalog` the publisher's.
    """

    nessie_uri: str
    tokens: Mapping[str, str]
    s3: Any
    catalog: Catalog

    def land(self, key: str, body: bytes) -> LandedObject:
        """Put an object into the landing bucket."""
        put = self.s3.put_object(Bucket=LANDING, Key=key, Body=body)
        return LandedObject(LANDING, key, put["VersionId"], put["ETag"].strip('"'), len(body))

    def put_contract(self, table: str, text: str) -> str:
        """Put a contract into the lake bucket; return its version."""
        key = f"contracts/{table}.yaml"
        put = self.s3.put_object(Bucket=LAKE_BUCKET, Key=key, Body=text.encode())
        return str(put["VersionId"])

    def at(self, reference: str) -> RestCatalog:
        """Return the Iceberg catalog at a branch or at main, with the publisher's rights."""
        return RestCatalog(
            "lake",
            uri=f"{self.nessie_uri}/iceberg/{quote(reference, safe='')}",
            token=self.tokens["publisher"],
            **{"py-io-impl": "functions.adapters.iceberg.file_io.S3FileIO", CLIENT: self.s3},
        )

    def spec(self, landed: LandedObject, version: str, table: str, attempt: int = 1) -> JobSpec:
        """Return the job spec as the upload Lambda makes it, after creating the branch as it does.

        `version` is the contract's.
        """
        ingestion = ingestion_id(landed)
        branch = branch_name(table, landed.key, ingestion, attempt)
        return JobSpec(
            ingestion=ingestion,
            attempt=attempt,
            landed=landed,
            table=table,
            branch=branch,
            base_hash=self.catalog.create_branch(branch),
            lake_bucket=LAKE_BUCKET,
            contract_key=f"contracts/{table}.yaml",
            contract_version=version,
            report_key=report_key(table, ingestion, attempt),
            nessie_uri=self.nessie_uri,
            token_secret=_SECRET,
        )


@contextmanager
def services(home: Path) -> Iterator[Services]:
    """Yield a running Nessie and ministack; point this process's environment to them for boto3."""
    tokens = nessie_tokens.keep(KeyFiles(home / "keys"), datetime.now(UTC)).tokens
    every = parts(home, ROOT, choose_ports(home), tokens["reader"])
    wanted = {name: part for name, part in every.items() if name in _NEEDED}
    try:
        for part in wanted.values():
            processes.start(home, part.command)
        for part in wanted.values():
            part.wait(home)
        catalog = Catalog(wanted["nessie"].address, tokens["publisher"])
        catalog.begin("ops")
        aws = aws_environment(wanted["ministack"].address, "http://127.0.0.1:9")
        with mock.patch.dict(os.environ, aws):
            yield _prepared(Services(wanted["nessie"].address, tokens, boto3.client("s3"), catalog))
    finally:
        for name in wanted:
            processes.stop(home, name)


def warm_spark(services: Services) -> SparkSession:
    """Return a running Spark that reads S3 from the services."""
    os.environ |= {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master("local[2]")
    for name, value in {
        "spark.jars": spark_jars(),
        "spark.driver.memory": "4g",
        "spark.driver.extraJavaOptions": " ".join(SPARK),
        "spark.executor.killOnFatalError.depth": "0",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.retainedJobs": "10",  # as of a driver that has long been at work
        "spark.sql.shuffle.partitions": "2",
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.hadoop.fs.s3a.endpoint": services.s3.meta.endpoint_url,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "test",
        "spark.hadoop.fs.s3a.secret.key": "test",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def fresh_session(spark: SparkSession) -> SparkSession:
    """Return a separate session, which `SparkSession.builder.getOrCreate()` finds, as on EMR."""
    session = spark.newSession()
    SparkSession._instantiatedSession = session
    return session


def _prepared(services: Services) -> Services:
    for bucket in (LANDING, LAKE_BUCKET):
        services.s3.create_bucket(Bucket=bucket)
        services.s3.put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration={"Status": "Enabled"}
        )
    secrets = boto3.client("secretsmanager")
    secrets.create_secret(Name=_SECRET, SecretString=services.tokens["job"])
    return services
