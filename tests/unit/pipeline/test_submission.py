"""The parameters that a job run is submitted with."""

import shlex
from dataclasses import replace
from typing import Any

from functions.adapters.emr import monitoring, spark_submit
from tests.fakes.deployment import SETTINGS
from tests.unit.lakegate.test_jobspec import SPEC

ICEBERG = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"


def parameters(**settings: Any) -> list[str]:
    """Return the parameters as spark-submit parses them."""
    submitted = spark_submit(SPEC, replace(SETTINGS, **settings))
    return shlex.split(submitted["sparkSubmitParameters"])


def test_the_code_is_that_of_the_release() -> None:
    """Entry point, packages and jars come from one folder; Iceberg from the release label."""
    submitted = spark_submit(SPEC, SETTINGS)
    assert submitted["entryPoint"] == "s3://lake/jobs/1/main.py"
    assert submitted["entryPointArguments"] == [SPEC.to_argument()]
    given = parameters()
    assert given[given.index("--py-files") + 1] == "s3://lake/jobs/1/lakegate_job.zip"
    assert f"spark.jars={ICEBERG},s3://lake/jobs/1/spark-avro.jar" in given


def test_the_size_is_that_of_the_settings() -> None:
    """The numbers and sizes of driver and executors are those of the settings."""
    given = parameters(job_worker_cores=2, job_worker_memory="6g", job_max_executors=3)
    for wanted in ("driver.cores=2", "executor.cores=2", "driver.memory=6g", "executor.memory=6g"):
        assert f"spark.{wanted}" in given
    assert "spark.dynamicAllocation.maxExecutors=3" in given


def test_reading_is_as_strict_as_on_one_machine() -> None:
    """Checksums of pages are verified, and Nessie is the only catalog."""
    given = parameters()
    assert "spark.hadoop.parquet.page.verify-checksum.enabled=true" in given
    assert "spark.sql.catalogImplementation=in-memory" in given


def test_a_task_that_spins_costs_its_executor_alone() -> None:
    """An executor whose task does not heed a cancel is killed, so that the run goes on and ends."""
    given = parameters()
    assert "spark.task.reaper.enabled=true" in given
    assert "spark.task.reaper.killTimeout=60s" in given


def test_nothing_secret_is_submitted() -> None:
    """A run gets only the name of its token's secret, since GetJobRun shows all parameters."""
    told = " ".join(parameters())
    assert "token" not in told
    assert "secret" not in told


def test_the_log_goes_where_the_settings_say() -> None:
    """The log goes to EMR's own storage, and to the log group if there is one."""
    assert monitoring(SETTINGS) == {"managedPersistenceMonitoringConfiguration": {"enabled": True}}
    told = monitoring(replace(SETTINGS, job_log_group="/lakegate/dev/jobs"))
    assert told["cloudWatchLoggingConfiguration"]["logGroupName"] == "/lakegate/dev/jobs"
    assert told["cloudWatchLoggingConfiguration"]["enabled"]
