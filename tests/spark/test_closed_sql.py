"""SQL in contracts reads only the file and declared tables."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from infra.local.contract_test import local_session
from lakegate.contract.model import parse
from lakegate.errors import Permanent
from spark_jobs.audit import external
from spark_jobs.audit.run import Run
from spark_jobs.files.open import open_file
from spark_jobs.files.source import LocalFile
from spark_jobs.spark import sql_parser
from spark_jobs.spark.jvm import JavaError
from spark_jobs.spark.session import another_session, require_rest_catalog
from tests.spark.conftest import Job
from tests.spark.measuring import NO_RUN
from tests.unit.contract.contract_texts import contract_text, parsed

pytestmark = pytest.mark.spark

SECRET = "s3cr3t"
SETTINGS = '- {property: transform, value: "SELECT id FROM file"}'
FORMATS = (
    *("text", "csv", "json", "xml", "parquet", "orc", "avro", "binaryFile", "delta", "iceberg"),
    *("org.apache.spark.sql.execution.datasources.text.TextFileFormat", "jdbc", "nonsense"),
)
# Each of these would read {path}; they name `file` so that they look like transforms.
READING = [
    *(f"SELECT * FROM {name}.`{{path}}`" for name in FORMATS if "." not in name),
    "SELECT * FROM `org.apache.spark.sql.execution.datasources.text`.`{path}`",
    "WITH `text.{path}` AS (SELECT id FROM file) SELECT value FROM text.`{path}`",
    "WITH text AS (SELECT id FROM file) SELECT value FROM text.`{path}`",
    "WITH a AS (WITH b AS (SELECT * FROM text.`{path}`) SELECT * FROM b) SELECT * FROM a, file",
    "SELECT id FROM file WHERE id IN (SELECT value FROM csv.`{path}`)",
    "SELECT (SELECT max(value) FROM text.`{path}`) AS id FROM file",
    "SELECT id FROM file WHERE EXISTS (SELECT 1 FROM (TABLE text.`{path}`))",
    "SELECT id FROM file JOIN LATERAL (SELECT * FROM text.`{path}`)",
    "SELECT id FROM file ORDER BY (SELECT max(value) FROM text.`{path}`)",
    "SELECT count(*) FROM file GROUP BY id HAVING id IN (SELECT value FROM text.`{path}`)",
    "SELECT * FROM VALUES ((SELECT max(value) FROM text.`{path}`)) AS file (id)",
    "SELECT max(id) OVER w FROM file WINDOW w AS (PARTITION BY (SELECT 1 FROM text.`{path}`))",
    "SELECT id FROM file UNION ALL SELECT value FROM text.`{path}`",
    "SELECT id FROM file |> UNION ALL TABLE text.`{path}`",
    "SELECT * FROM STREAM text.`{path}`",
    "SELECT * FROM text.`{path}` FOR SYSTEM_TIME AS OF '2020-01-01'",
    "SELECT * FROM text.`{path}` TABLESAMPLE (100 PERCENT)",
    "SELECT * FROM explode(array((SELECT max(value) FROM text.`{path}`)))",
    "SELECT * FROM IDENTIFIER('text.`{path}`')",
    "SELECT * FROM read_files('{path}')",
    "SELECT * FROM python_worker_logs()",
    "SELECT * FROM lake.`{path}`",
    "SELECT * FROM spark_catalog.default.other",
    "SELECT * FROM global_temp.other",
    "CREATE TEMPORARY VIEW other USING text OPTIONS (path '{path}')",
    "INSERT OVERWRITE DIRECTORY '{path}' USING text SELECT id FROM file",
    "LOAD DATA INPATH '{path}' INTO TABLE file",
]
# Each of these passes a path, or anything else, to code behind a function.
CALLING = [
    "reflect('java.lang.System', 'getProperty', 'user.home')",
    "java_method('java.lang.System', 'getProperty', 'user.home')",
    "try_reflect('java.lang.System', 'getProperty', 'user.home')",
    "IDENTIFIER('reflect')('java.lang.System', 'getProperty', 'user.home')",
    "system.builtin.reflect('java.lang.System', 'getProperty', 'user.home')",
    "builtin.reflect('java.lang.System', 'getProperty', 'user.home')",
    "from_avro(binary('a'), '\"string\"', map('avroSchemaUrl', '{path}'))",
    "schema_of_avro('\"string\"', map('avroSchemaUrl', '{path}'))",
    "from_xml('<a>1</a>', 'a INT', map('rowValidationXSDPath', '{path}'))",
    "schema_of_xml('<a>1</a>', map('rowValidationXSDPath', '{path}'))",
    "from_protobuf(binary('a'), 'A', '{path}')",
    "to_protobuf(struct(id), 'A', '{path}')",
    "xpath('<!DOCTYPE a SYSTEM \"{path}\"><a/>', 'a')",
    *(
        f"xpath_{kind}('<!DOCTYPE a SYSTEM \"{{path}}\"><a/>', 'a')"
        for kind in ("boolean", "double", "float", "int", "long", "number", "short", "string")
    ),
    "builtin.xpath_string('<!DOCTYPE a [<!ENTITY e SYSTEM \"{path}\">]><a>&e;</a>', 'a')",
]


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a file that no SQL may read."""
    file = tmp_path_factory.mktemp("driver") / "credentials"
    file.write_text(f"{SECRET}\n")
    return file.as_uri()


@pytest.fixture(scope="module")
def sessions(job: Job, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, SparkSession]:
    """Return the job's session, and that of `lakegate contract test`."""
    home = tmp_path_factory.mktemp("home")
    return {
        "job": another_session(job.warm_spark, NO_RUN, ""),
        "contract test": local_session(job.warm_spark, NO_RUN, home),
    }


def test_a_transform_reads_the_file_alone(
    sessions: Mapping[str, SparkSession], tmp_path: Path, secret: str
) -> None:
    """A transform that names anything but the file is refused with a message and reads nothing."""
    contract, file = parsed(settings=SETTINGS), tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1]}), file)
    statements = [*READING, *(f"SELECT {call} AS id FROM file" for call in CALLING)]
    for sql in statements:
        hostile = replace(contract, transform=sql.replace("{path}", secret))
        found = open_file(sessions["contract test"], str(file), hostile, LocalFile(file))
        (finding,) = found.findings
        assert finding.code in ("BAD_TRANSFORM", "BAD_QUERY"), sql
        assert SECRET not in finding.message


@pytest.mark.parametrize("where", ["job", "contract test"])
def test_a_session_reads_no_file_by_its_path(
    sessions: Mapping[str, SparkSession], secret: str, where: str
) -> None:
    """SQL that was not checked also reads no file, calls no code and has no XML open an address."""
    spark = sessions[where]
    for name in FORMATS:
        with pytest.raises(JavaError, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql(f"SELECT * FROM `{name}`.`{secret}`")
    for call in CALLING:
        with pytest.raises(JavaError) as caught:
            spark.range(1).selectExpr(call.replace("{path}", secret)).collect()
        assert SECRET not in str(caught.value), call
        assert "SQLSTATE: 42" in str(caught.value), call  # refused before anything ran
    assert [row[0] for row in spark.sql("SELECT * FROM range(2)").collect()] == [0, 1]


def test_a_condition_looks_at_one_row_alone(
    sessions: Mapping[str, SparkSession], secret: str
) -> None:
    """A query anywhere within an expression is refused."""
    for condition in (
        "id IN (SELECT value FROM text.`{path}`)",
        "EXISTS (SELECT * FROM text.`{path}`)",
        "id = (SELECT max(value) FROM text.`{path}`)",
        "max(id) OVER (PARTITION BY (SELECT 1 FROM text.`{path}`)) > 0",
        "exists(array(id), x -> x IN (SELECT value FROM text.`{path}`))",
        "true) OR EXISTS (SELECT * FROM text.`{path}`",
    ):
        with pytest.raises(Permanent, match="BAD_CONDITION"):
            sql_parser.require_expression(sessions["job"], condition.replace("{path}", secret))


def test_a_query_reads_declared_tables_alone(job: Job, table: str, secret: str) -> None:
    """Names that are no tables of the lake are refused, or not found among main's tables."""
    text = contract_text().replace("shop.orders", table)
    version = job.services.put_contract(table, text)
    landed = job.services.land(f"{table}/a", b"a")
    spec = job.services.spec(landed, version, table)
    token = job.services.tokens["job"]
    spark = another_session(job.warm_spark, spec, token)
    run = Run(spark, spec, token, parse(text, "a.yaml"), None, ())
    rows = spark.createDataFrame([(1,)], "id BIGINT")
    statements = [*READING, *(f"SELECT {call} AS id FROM file" for call in CALLING)]
    for sql in (statement.replace("{path}", secret) for statement in statements):
        with pytest.raises((Permanent, *JavaError)) as caught:
            external.answer(run, sql.replace("file ", f"{table} "), rows)
        assert SECRET not in str(caught.value), sql


def test_another_catalog_than_icebergs_rest_catalog_is_refused(job: Job) -> None:
    """A runtime that opens a catalog of its own ends the run with its own reason."""
    session = job.session("main")
    require_rest_catalog(session, "lake")
    session.conf.set("spark.sql.catalog.glue", "org.apache.iceberg.spark.SparkCatalog")
    session.conf.set("spark.sql.catalog.glue.cache-enabled", "false")
    session.conf.set(
        "spark.sql.catalog.glue.catalog-impl", "org.apache.iceberg.inmemory.InMemoryCatalog"
    )
    with pytest.raises(Permanent, match=r"WRONG_CATALOG.*inmemory\.InMemoryCatalog"):
        require_rest_catalog(session, "glue")
