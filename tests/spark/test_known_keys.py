"""Keys that are looked up by digests and Arrow, compared with Spark on generated rows."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from infra.local.settings import LAKE_BUCKET
from spark_jobs.audit.keys import counts as keys
from spark_jobs.audit.keys.known_keys import KeyFiles, OwnKeys
from spark_jobs.lake.storage import Storage
from tests.key_files import FOLDER, Rows, columns_of, data_file, tables
from tests.spark.conftest import Job
from tests.spark.measuring import NO_RUN, reading_session

pytestmark = pytest.mark.spark
SLOW = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def storage(job: Job) -> Storage:
    spec = replace(NO_RUN, table="tests.rows", lake_bucket=LAKE_BUCKET)
    return Storage(spec, job.services.s3, None)


@pytest.fixture
def spark(job: Job) -> SparkSession:
    return reading_session(job.warm_spark)


@SLOW
@given(of=tables())
def test_known_keys_are_those_that_spark_finds(
    storage: Storage, spark: SparkSession, of: tuple[list[str], list[Rows]]
) -> None:
    """Digests and Arrow count the keys that Spark finds in the same data files.

    The digests are made in Spark's tasks.
    """
    types, rows = of
    of_key = KeyFiles(storage, columns_of(types))
    own, *others = (data_file(storage, str(n), types, each) for n, each in enumerate(rows))
    of_key.make_digests(spark, others)
    read = OwnKeys.read(of_key, [own])
    suspects = read.suspects(spark, others)
    assert not suspects.unread

    def keys_in(*names: str) -> DataFrame:
        paths = [f"s3a://{LAKE_BUCKET}/{FOLDER}/{name}.parquet" for name in names]
        columns = [F.col(f"c{n}") for n in range(1, len(types) + 1)]
        return keys.keys_of(spark.read.parquet(*paths), columns)

    found = keys.found_in(keys_in("0"), keys_in("1", "2")).count()
    assert read.count_in(suspects) == found
