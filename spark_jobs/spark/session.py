"""The Spark session of one run, with the catalog of its branch and of no other."""

from collections.abc import Mapping
from urllib.parse import quote

from pyspark.sql import SparkSession

from lakegate.contract.reading.sql import NOT_CALLED
from lakegate.jobspec import JobSpec
from spark_jobs.spark import jvm, sql_parser

CATALOG = "lake"
_HIDDEN = ".token"


def open_session(spec: JobSpec, token: str) -> SparkSession:
    """The session that this run works in; `token` is the job's Nessie token."""
    spark = SparkSession.builder.appName(f"lakegate {spec.ingestion}").getOrCreate()
    return _opened(spark, spec, token)


def another_session(spark: SparkSession, spec: JobSpec, token: str) -> SparkSession:
    """A session like that of `open_session` beside another one, which knows its own catalogs.

    Of a catalog that it has once used a session forgets nothing, whatever it is told of it later.
    """
    return _opened(spark.newSession(), spec, token)


def _opened(spark: SparkSession, spec: JobSpec, token: str) -> SparkSession:
    return closed(spark, session_settings(spec, token))


def closed(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return a session with these settings, whose SQL has no function that reads files."""
    _set(spark, settings)
    sql_parser.forget_functions(spark, NOT_CALLED)
    return spark


def session_settings(spec: JobSpec, token: str) -> dict[str, str]:
    """What Spark must be told for one run.

    The catalog is Nessie's Iceberg REST catalog at the run's branch. Reading is strict: one time
    zone, no cast that loses, checksums verified, every cell of a row looked at.
    """
    return {
        **_catalog_settings(CATALOG, spec.nessie_uri, spec.branch, token),
        # Noting where in Python each expression was made costs more than making it.
        "spark.sql.dataFrameQueryContext.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "false",
        # Times in nanoseconds are read as integers, and converted where none is lost.
        "spark.sql.legacy.parquet.nanosAsLong": "true",
        "spark.sql.csv.parser.columnPruning.enabled": "false",
        # A table's name is no path to a file.
        "spark.sql.runSQLOnFiles": "false",
        # Nothing of the environment comes into a contract's text: ${env:…} stays as it is.
        "spark.sql.variable.substitute": "false",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
    }


def add_catalog(
    spark: SparkSession, name: str, nessie_uri: str, branch: str, at: str, token: str
) -> None:
    """Give the session one more catalog: the tables as they were at a hash of a branch."""
    _set(spark, _catalog_settings(name, nessie_uri, f"{branch}@{at}", token))


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        if key.endswith(_HIDDEN):
            jvm.hide_setting(spark, key)
        spark.conf.set(key, value)


def _catalog_settings(name: str, nessie_uri: str, reference: str, token: str) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{name}"
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "rest",
        f"{catalog}.uri": f"{nessie_uri}/iceberg/{quote(reference, safe='')}",
        f"{catalog}{_HIDDEN}": token,
        # Near its end Iceberg would offer the token for exchange, which Nessie does not do.
        f"{catalog}.token-refresh-enabled": "false",
        f"{catalog}.cache-enabled": "false",
        # Not even a failed write's files: nobody but the clean-up deletes in the lake.
        f"{catalog}.s3.delete-enabled": "false",
    }
