"""The parameters that a job run is submitted with."""

import shlex
from dataclasses import replace
from typing import Any

import pytest

from functions.adapters.spark_submit import monitoring, spark_submit
from functions.model.contract_terms import ContractTerms
from functions.model.ingestion import Ingestion
from functions.pipeline.start.shared_runs import is_small
from lakegate.job.batch import BatchFile
from lakegate.job.change import Change
from lakegate.job.jobspec import JobSpec
from tests.fakes.deployment import SETTINGS
from tests.unit.adapters.test_emr_run_policy import SHARED
from tests.unit.lakegate.test_jobspec import SPEC


def parameters(spec: JobSpec = SPEC, **settings: Any) -> list[str]:
    """Return the parameters as spark-submit parses them."""
    submitted = spark_submit(spec, replace(SETTINGS, **settings))
    return shlex.split(submitted["sparkSubmitParameters"])


def test_the_code_is_that_of_the_release() -> None:
    """Entry point, packages and jars come from one folder; no file of the image is named."""
    submitted = spark_submit(SPEC, SETTINGS)
    assert submitted["entryPoint"] == "s3://lake/jobs/1/main.py"
    assert submitted["entryPointArguments"] == [SPEC.to_argument()]
    given = parameters()
    assert given[given.index("--py-files") + 1] == "s3://lake/jobs/1/lakegate_job.zip"
    assert "spark.jars=s3://lake/jobs/1/spark-avro.jar" in given
    assert "spark.archives=s3://lake/jobs/1/libraries.zip#libraries" in given
    for worker in ("emr-serverless.driverEnv", "executorEnv"):
        assert f"spark.{worker}.PYTHONPATH=./libraries" in given
    given = parameters(job_jars="s3://own/a.jar,s3://own/b.jar")
    assert "spark.jars=s3://lake/jobs/1/spark-avro.jar,s3://own/a.jar,s3://own/b.jar" in given


def test_driver_and_executors_are_told_the_region() -> None:
    """No worker has to know it from its image, whichever of AWS's clients asks."""
    given = parameters(region="eu-central-1")
    for worker in ("emr-serverless.driverEnv", "executorEnv"):
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
            assert f"spark.{worker}.{name}=eu-central-1" in given


def test_the_size_is_that_of_the_settings() -> None:
    """The numbers and sizes of driver and executors are those of the settings."""
    given = parameters(job_worker_cores=2, job_worker_memory="6g", job_max_executors=3)
    for wanted in ("driver.cores=2", "executor.cores=2", "driver.memory=6g", "executor.memory=6g"):
        assert f"spark.{wanted}" in given
    assert "spark.dynamicAllocation.maxExecutors=3" in given
    assert "spark.executor.instances=1" in given


def test_a_small_file_takes_a_driver_and_one_executor_of_one_vcpu() -> None:
    """A small run's workers have one vCPU each, whatever the settings say of full size."""
    given = parameters(replace(SPEC, small=True), job_worker_cores=8)
    for wanted in ("driver.cores=1", "executor.cores=1", "dynamicAllocation.maxExecutors=1"):
        assert f"spark.{wanted}" in given


def test_half_of_a_small_worker_is_pythons() -> None:
    """Python decodes small files in the driver, beside a JVM with half of the memory."""
    given = parameters(replace(SPEC, small=True))
    for worker in ("driver", "executor"):
        sizes = [each for each in given if each.startswith(f"spark.{worker}.memory")]
        assert {each.partition("=")[2] for each in sizes} == {"2g"}
        assert len(sizes) == 2
    assert not any("memoryOverhead" in each for each in parameters())


@pytest.mark.parametrize(("most", "executors"), [(10, 4), (2, 2)])
def test_a_shared_run_takes_a_few_small_executors(most: int, executors: int) -> None:
    """A shared run's workers have one vCPU each; it has up to four executors, or fewer if set."""
    settings = replace(SETTINGS, job_worker_cores=8, job_max_executors=most)
    given = shlex.split(spark_submit(SHARED, settings)["sparkSubmitParameters"])
    for wanted in ("driver.cores=1", "executor.cores=1", "executor.memory=2g"):
        assert f"spark.{wanted}" in given
    assert f"spark.dynamicAllocation.maxExecutors={executors}" in given
    assert "spark.dynamicAllocation.initialExecutors=1" in given


@pytest.mark.parametrize(
    "larger",
    [
        {"landed": replace(SPEC.landed, size=101)},
        {"failures": 1},
        {"change": Change("a.b", "DELETE FROM a.b", "token")},
        {"terms": ContractTerms(reads_others=True)},
        {"terms": ContractTerms(checks_whole_table=True, reads_others=False)},
        {"parts": (BatchFile("a.csv", "v", "e", 60, "a.b", "k", "v"),)},
    ],
)
def test_only_a_small_file_that_reads_nothing_else_takes_small_workers(
    larger: dict[str, Any],
) -> None:
    """A larger file, a failed one, a change and other tables' data take workers of full size."""
    small = Ingestion("i", replace(SPEC.landed, size=50), terms=ContractTerms(reads_others=False))
    assert is_small(small, most=100)
    assert not is_small(small.but(**larger), most=100)


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
