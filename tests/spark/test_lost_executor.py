"""Rows are counted once although Spark reads some of them twice."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from lakegate.contract.model import parse
from lakegate.errors import Transient
from lakegate.job.change import Change, Effect
from spark_jobs.audit.run import Run
from spark_jobs.changes.change import make_change
from spark_jobs.files.source import BAD_ROW, Source
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.lake.storage import Storage
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name
from spark_jobs.spark.session import open_session
from spark_jobs.write.append import Opened, append_counted, open_table
from spark_jobs.write.replacing import merged_rows, put
from tests.services import fresh_session
from tests.spark.conftest import Job, parquet
from tests.spark.measuring import contract_of, options

pytestmark = pytest.mark.spark
_LIMITS = {"maxPercent": 50}
_SETTINGS = {
    "writeMode": "upsert",
    "latestBy": "at",
    "deleteWhen": {"column": "at", "value": 7},
}
_SECONDS = 60  # at most, until the first task's rows are on the disk
_COLUMNS = [
    {"name": "id", "logicalType": "integer", "required": True, **options(onBadRow="quarantine")},
    {"name": "day", "logicalType": "date", "partitioned": True},
]


def shuffled(folders: list[str]) -> set[Path]:
    """Return the files with rows that tasks left for later ones."""
    return {file for each in folders for file in Path(each).glob("*/shuffle_*.data")}


def folders_of(spark: SparkSession) -> list[str]:
    """Return the folders in which tasks leave rows for later ones."""
    jvm: Any = spark._jvm
    environment = jvm.org.apache.spark.SparkEnv.get()
    return list(environment.blockManager().diskBlockManager().localDirsString())


def losing_once(rows: DataFrame, marker: Path) -> DataFrame:
    """Return the rows, whose last task deletes what earlier ones have written, when it first runs.

    Spark then takes the executor that had it for lost, and runs all of its tasks again.
    """
    folders = folders_of(rows.sparkSession)
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


def on_branch(job: Job, text: str, table: str) -> tuple[Run, Branch, Opened]:
    """Return a run that has written nothing yet, its branch, and the table on that."""
    spec = job.spec(job.services.land("tests/lost", b"x"), text, table)
    fresh_session(job.warm_spark)
    token = Storage.connect(spec).nessie_token()
    spark, contract = open_session(spec, token), parse(text, "a test")
    branch = Branch(spec.nessie_uri, spec.branch, token)
    opened = open_table(spark, spec, branch, contract)
    return Run(spark, spec, token, contract, opened.table, ()), branch, opened


def test_rows_that_are_read_twice_are_counted_once(job: Job, table: str, tmp_path: Path) -> None:
    """Where an executor is lost with rows of a partitioned table, counts and measures are exact."""
    text, marker = contract_of(_COLUMNS, (), table, quarantine=_LIMITS), tmp_path / "lost"
    empty, branch, opened = on_branch(job, text, table)
    file = source(empty.spark, marker)
    run, counted, measured = append_counted(empty.spec, branch, file, empty.contract, opened)
    assert marker.exists()
    assert (counted.read, counted.quarantined, run.written) == (100, 10, 90)
    assert [each.value for each in measured.values()] == [10]


@contextmanager
def losing_merged_rows(spark: SparkSession) -> Iterator[Event]:
    """Delete all that tasks left for others, once the first one of a MERGE has left its rows.

    That is the stage which reads rows of others, and leaves some. Yields whether that was done.
    """
    java: Any = spark._jsparkSession
    store, folders = java.sparkContext().statusStore(), folders_of(spark)
    lost, ended = Event(), Event()

    def watch() -> None:
        while not (lost.is_set() or ended.wait(0.01)):
            stages = store.activeStages()
            for stage in map(stages.apply, range(stages.size())):
                if stage.shuffleReadRecords() and stage.shuffleWriteRecords():
                    for file in shuffled(folders):
                        file.unlink(missing_ok=True)
                    lost.set()

    thread = Thread(target=watch)
    thread.start()
    try:
        yield lost
    finally:
        ended.set()
        thread.join()


def in_small_steps(spark: SparkSession) -> SparkSession:
    """Return a session in which a MERGE has many short tasks, and asks nothing beforehand."""
    for name, value in {
        "spark.sql.shuffle.partitions": "60",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled": "false",
    }.items():
        spark.conf.set(name, value)
    return spark


def test_merged_rows_that_are_counted_twice_are_told_once(job: Job, table: str) -> None:
    """Where an executor is lost amid a MERGE, the effect that is reported is what was done."""
    columns = [
        {"name": "id", "logicalType": "integer", "primaryKey": True},
        {"name": "at", "logicalType": "integer", "required": True},
        {"name": "day", "logicalType": "date", "partitioned": True},
    ]
    text = contract_of(columns, (), table, **_SETTINGS)
    run, branch, opened = on_branch(job, text, table)
    spark, name = run.spark, run.spec.ingestion
    there = rows(spark, 0, 1000, "IF(id > 900, 10, 1)")
    first, _ = put(run, there, opened, branch, name)
    second = replace(opened, at=first)
    changes = rows(in_small_steps(spark), 500, 1500, "IF(id % 10 = 0, 7, 5)")
    with losing_merged_rows(spark) as lost:
        _, effect = put(run, changes, second, branch, name)
    assert lost.is_set()
    told = (effect.added, effect.removed, effect.updated)
    merged = iceberg.find_iceberg_table(spark, table_name(table))
    assert merged_rows(iceberg.summary(merged)) != told
    inserted, updated, deleted = 450, 360, 41
    moved = inserted + updated, deleted + updated, updated
    assert effect == Effect(1000, 1000 + inserted - deleted, *moved)


def test_a_change_whose_rows_are_counted_twice_is_run_again(job: Job, table: str) -> None:
    """Where an executor is lost amid a MERGE of a person, no wrong counts are told."""
    columns = [_COLUMNS[1], {"name": "id", "logicalType": "integer", "unique": True}]
    text = contract_of(columns, (), table)
    ids = list(range(1000))
    days = [date(2024, 1, 1 + id_ % 3) for id_ in ids]
    job.publish(job.ingest(parquet({"day": days, "id": ids}), text, table))
    sql = (
        f"MERGE INTO {table} AS t USING (SELECT id, DATE '2024-01-01' AS day FROM range(500, 1500))"
        " AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET day = s.day"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    spec = job.change(Change(table, sql, "once", "Ann", "why not"), text)
    fresh_session(job.warm_spark)
    storage = Storage.connect(spec)
    token = storage.nessie_token()
    spark = in_small_steps(open_session(spec, token))
    branch = Branch(spec.nessie_uri, spec.branch, token)
    with losing_merged_rows(spark) as lost, pytest.raises(Transient, match="COUNTED_TWICE"):
        make_change(spec, storage, spark, branch)
    assert lost.is_set()


def rows(spark: SparkSession, start: int, end: int, at: str) -> DataFrame:
    """Return rows with these ids, on three days."""
    day = "date_add(DATE '2024-01-01', CAST(id % 3 AS int)) AS day"
    return spark.range(start, end, 1, 2).selectExpr("id", f"CAST({at} AS bigint) AS at", day)
