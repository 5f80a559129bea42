"""Open the Spark session of one run, with the catalog of its branch only."""

from collections.abc import Callable, Mapping
from urllib.parse import quote

from pyspark.sql import SparkSession

from lakegate import trust
from lakegate.contract.reading.sql import NOT_CALLED
from lakegate.errors import Permanent
from lakegate.job.jobspec import JobSpec
from spark_jobs.spark import jvm, sql_parser

CATALOG = "lake"
REST_CATALOG = "org.apache.iceberg.rest.RESTCatalog"
_HIDDEN = ".token"
# Returns the session for a job spec and the job's token.
OpenSession = Callable[[JobSpec, str], SparkSession]


def started(name: str) -> SparkSession:
    """Return this process's Spark, whose Java trusts the authority of Nessie's certificate."""
    spark = SparkSession.builder.appName(f"lakegate {name}").getOrCreate()
    if private := trust.authority():
        jvm.trust(spark, private)
    return spark


def open_session(spec: JobSpec, token: str) -> SparkSession:
    """Return the session of this run; `token` is the job's Nessie token."""
    return closed(started(spec.ingestion), session_settings(spec, token))


def another_session(spark: SparkSession, spec: JobSpec, token: str) -> SparkSession:
    """Return a second session like that of `open_session`, with catalogs of its own.

    A session keeps each catalog that it has used once, even if its settings change later.
    """
    return closed(spark.newSession(), session_settings(spec, token))


def on_branch(open_session: OpenSession, spec: JobSpec, token: str) -> SparkSession:
    """Return the session that is opened, whose tables are on the run's branch for certain.

    Raises Permanent WRONG_CATALOG.
    """
    spark = open_session(spec, token)
    require_rest_catalog(spark, CATALOG)
    return spark


def closed(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return a session with these settings, whose SQL has no functions that read files."""
    _set(spark, settings)
    sql_parser.forget_functions(spark, NOT_CALLED)
    return spark


def session_settings(spec: JobSpec, token: str) -> dict[str, str]:
    """Return Spark's settings for one run.

    The catalog is Nessie's Iceberg REST catalog at the run's branch. Reading is strict: one time
    zone, no lossy casts, verified checksums, every cell of a row parsed.
    """
    return {
        **_catalog_settings(CATALOG, spec.nessie_uri, spec.branch, token),
        # Recording where in Python each expression was made costs more than making it.
        "spark.sql.dataFrameQueryContext.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "false",
        # If a shuffle has no row, this rule removes what is before it, and what was observed there.
        "spark.sql.adaptive.optimizer.excludedRules": (
            "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
        ),
        # Parquet's own reader, row by row, is slower than Spark's vectorized one. But it knows more
        # encodings, and refuses damaged pages on which the other one loops forever or moves values.
        "spark.sql.parquet.enableVectorizedReader": "false",
        # Times in nanoseconds are read as integers, and converted where no digit is lost.
        "spark.sql.legacy.parquet.nanosAsLong": "true",
        "spark.sql.csv.parser.columnPruning.enabled": "false",
        "spark.sql.legacy.javaCharsets": "true",  # Windows-1252 is one of Java's
        # A table's name must not be read as a path to a file.
        "spark.sql.runSQLOnFiles": "false",
        # A contract's text must not read the environment: ${env:…} stays as it is.
        "spark.sql.variable.substitute": "false",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
    }


def add_catalog(spark: SparkSession, name: str, spec: JobSpec, at: str, token: str) -> None:
    """Add a catalog to the session: the tables as they were at a commit of the run's branch."""
    _set(spark, _catalog_settings(name, spec.nessie_uri, f"{spec.branch}@{at}", token))


def require_rest_catalog(spark: SparkSession, name: str) -> None:
    """Raise Permanent WRONG_CATALOG if a catalog's class is another than Iceberg's REST catalog.

    A runtime may replace it by a catalog of its own, whose tables are not on the run's branch.
    """
    catalog = jvm.iceberg_catalog_class(spark, name)
    if catalog != REST_CATALOG:
        message = (
            f"the runtime opened the catalog as {catalog} instead of {REST_CATALOG}: nothing was "
            "written; choose another EmrRelease, or add Iceberg's own jar with JobJars"
        )
        raise Permanent("WRONG_CATALOG", message)


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        if key.endswith(_HIDDEN):
            jvm.hide_setting(spark, key)
        spark.conf.set(key, value)


def _catalog_settings(name: str, nessie_uri: str, reference: str, token: str) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{name}"
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        # EMR's own Iceberg may create another catalog for `type=rest`, so the class is named.
        f"{catalog}.catalog-impl": REST_CATALOG,
        f"{catalog}.uri": f"{nessie_uri}/iceberg/{quote(reference, safe='')}",
        f"{catalog}{_HIDDEN}": token,
        # Shortly before it expires Iceberg would exchange the token, which Nessie does not support.
        f"{catalog}.token-refresh-enabled": "false",
        f"{catalog}.cache-enabled": "false",
        # Only the clean-up deletes in the lake, even after a failed write.
        f"{catalog}.s3.delete-enabled": "false",
    }
