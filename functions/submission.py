"""What one job run is submitted with: its code, Spark's settings and where its log goes.

Everything is said in the job run itself: an application's own settings are nobody's to rely on.
GetJobRun shows all of it to whoever may ask, so no secret is here.
"""

from typing import Any

from functions.settings import Settings
from lakegate.jobspec import AVRO, MAIN, PACKAGES, JobSpec

# Where EMR has it, also with Spark 4 ("Using Apache Iceberg with EMR Serverless").
ICEBERG_JAR = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
_STREAMS = {"SPARK_DRIVER": ["STDERR", "STDOUT"], "SPARK_EXECUTOR": ["STDERR", "STDOUT"]}


def spark_submit(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    """The job driver of StartJobRun: entry point, the spec as its one argument, parameters."""
    code = settings.job_code
    flags = [f"--py-files {code}/{PACKAGES}"]
    flags += [f"--conf {name}={value}" for name, value in spark_settings(settings).items()]
    return {
        "entryPoint": f"{code}/{MAIN}",
        "entryPointArguments": [spec.to_argument()],
        "sparkSubmitParameters": " ".join(flags),
    }


def spark_settings(settings: Settings) -> dict[str, str]:
    """What Spark must be told before it starts; the run itself tells it the rest.

    Both s3:// and s3a:// are Hadoop's S3A there, as on one machine (EMR Release Guide, "Migration
    Guide: EMRFS to S3A Filesystem"), with the run's own credentials.
    """
    cores, memory = str(settings.job_worker_cores), settings.job_worker_memory
    return {
        "spark.driver.cores": cores,
        "spark.driver.memory": memory,
        "spark.executor.cores": cores,
        "spark.executor.memory": memory,
        # A file that asks for too much memory fails its run, with that reason, and no executor.
        "spark.executor.killOnFatalError.depth": "0",
        # A task that spins heeds no cancel: its executor is killed, and another one started.
        "spark.task.reaper.enabled": "true",
        "spark.task.reaper.killTimeout": "60s",
        "spark.dynamicAllocation.initialExecutors": "1",  # most files are small
        "spark.dynamicAllocation.maxExecutors": str(settings.job_max_executors),
        "spark.jars": f"{ICEBERG_JAR},{settings.job_code}/{AVRO}",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        # Not Glue: the one catalog is Nessie.
        "spark.sql.catalogImplementation": "in-memory",
        # Without it Spark believes a damaged page.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    }


def monitoring(settings: Settings) -> dict[str, Any]:
    """Where the run's log goes: EMR's own storage, which its Spark UI reads, and a log group."""
    own = {"managedPersistenceMonitoringConfiguration": {"enabled": True}}
    if not settings.job_log_group:
        return own
    group = {"enabled": True, "logGroupName": settings.job_log_group, "logTypes": _STREAMS}
    return {**own, "cloudWatchLoggingConfiguration": group}
