"""Rows are counted once although Spark reads some of them twice."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from lakegate.contract.model import parse
from spark_jobs.files.source import BAD_ROW, Source
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.lake.storage import Storage
from spark_jobs.spark.session import open_session
from spark_jobs.write.append import append_counted, open_table
from tests.services import fresh_session
from tests.spark.conftest import Job
from tests.spark.measuring import contract_of, options

pytestmark = pytest.mark.spark
_LIMITS = {"maxPercent": 50}
_SECONDS = 60  # at most, until the first task's rows are on the disk
_COLUMNS = [
    {"name": "id", "logicalType": "integer", "required": True, **options(onBadRow="quarantine")},
    {"name": "day", "logicalType": "date", "partitioned": True},
]


def shuffled(folders: list[str]) -> set[Path]:
    """Return the files with rows that tasks left for later ones."""
    return {file for each in folders for file in Path(each).glob("*/shuffle_*.data")}


def losing_once(rows: DataFrame, marker: Path) -> DataFrame:
    """Return the rows, whose last task deletes what earlier ones have written, when it first runs.

    Spark then takes the executor that had it for lost, and runs all of its tasks again.
    """
    jvm: Any = rows.sparkSession._jvm
    environment = jvm.org.apache.spark.SparkEnv.get()
    folders = list(environment.blockManager().diskBlockManager().localDirsString())
    last, before = rows.rdd.getNumPartitions() - 1, shuffled(folders)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        task: Any = TaskContext.get()
        if task.partitionId() == last and not marker.exists():
            until = time.monotonic() + _SECONDS
            while not (written := shuffled(folders) - before) and time.monotonic() < until:
                time.sleep(0.01)
            for file in written:
                file.unlink()
            marker.touch()

    return rows.mapInArrow(read, rows.schema)


def source(spark: SparkSession, marker: Path) -> Source:
    """Return a file of 100 rows, ten of them without the required value."""
    rows = spark.range(0, 100, 1, 2).selectExpr(
        "IF(id % 10 = 0, NULL, id) AS id",
        "date_add(DATE '2024-01-01', CAST(id % 3 AS int)) AS day",
        f"CAST(NULL AS string) AS `{BAD_ROW}`",
    )
    return Source(losing_once(rows, marker), (), 100)


def test_rows_that_are_read_twice_are_counted_once(job: Job, table: str, tmp_path: Path) -> None:
    """Where an executor is lost with rows of a partitioned table, counts and measures are exact."""
    text, marker = contract_of(_COLUMNS, (), table, quarantine=_LIMITS), tmp_path / "lost"
    spec = job.spec(job.services.land("tests/lost", b"x"), text, table)
    fresh_session(job.warm_spark)
    token = Storage.connect(spec).nessie_token()
    spark, contract = open_session(spec, token), parse(text, "a test")
    branch = Branch(spec.nessie_uri, spec.branch, token)
    opened = open_table(spark, spec, branch, contract)
    file = source(spark, marker)
    run, counted, measured = append_counted(spec, branch, file, contract, opened)
    assert marker.exists()
    assert (counted.read, counted.quarantined, run.written) == (100, 10, 90)
    assert [each.value for each in measured.values()] == [10]
