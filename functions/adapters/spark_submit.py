"""Describe a job run to EMR Serverless: entry point, Spark's settings, workers, logs.

Each job run carries all of its configuration, because the application's own defaults may change.
GetJobRun shows it to everybody with read access, so it contains no secret.
"""

from dataclasses import dataclass, replace
from typing import Any

from functions.model.budget import Use
from functions.settings import Settings
from lakegate.job.jobspec import AVRO, LIBRARIES, MAIN, PACKAGES, JobSpec
from lakegate.job.shared_run import SharedRun
from lakegate.job.workers import rounded

# Where driver and executors unpack the libraries, in the directory that they start in.
_UNPACKED = "libraries"
_STREAMS = {"SPARK_DRIVER": ["STDERR", "STDOUT"], "SPARK_EXECUTOR": ["STDERR", "STDOUT"]}


def spark_submit(told: JobSpec | SharedRun, settings: Settings) -> dict[str, Any]:
    """Return the job driver of StartJobRun: entry point, the run's input, Spark's settings."""
    code, size = settings.job_code, _size(told, settings)
    flags = [f"--py-files {code}/{PACKAGES}"]
    flags += [f"--conf {name}={value}" for name, value in _spark_settings(size, settings).items()]
    return {
        "entryPoint": f"{code}/{MAIN}",
        "entryPointArguments": [told.to_argument()],
        "sparkSubmitParameters": " ".join(flags),
    }


def most_use(told: JobSpec | SharedRun, settings: Settings) -> Use:
    """Return the most that a job run can use: all of its workers up to its timeout."""
    return _size(told, settings).use(settings.job_timeout_minutes / 60)


def _spark_settings(size: "WorkerSize", settings: Settings) -> dict[str, str]:
    """Return the Spark settings that must be known at start; the job sets the others.

    Iceberg is on the default class path of EMR's Spark releases; its path differs between them, so
    none is named. On EMR, s3:// and s3a:// are both Hadoop's S3A, as in a local run (EMR Release
    Guide, "Migration Guide: EMRFS to S3A Filesystem"), with the job role's credentials.
    """
    return {
        **_workers(size),
        **_variables(settings),
        # A file that needs too much memory fails its job run with that reason; executors survive.
        "spark.executor.killOnFatalError.depth": "0",
        # A busy loop ignores cancellation: its executor is killed and replaced.
        "spark.task.reaper.enabled": "true",
        "spark.task.reaper.killTimeout": "60s",
        "spark.jars": ",".join(filter(None, (f"{settings.job_code}/{AVRO}", settings.job_jars))),
        # Spark unpacks it before Python starts, and appends this path to its own (adr/0027).
        "spark.archives": f"{settings.job_code}/{LIBRARIES}#{_UNPACKED}",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        # The only catalog is Nessie, not Glue.
        "spark.sql.catalogImplementation": "in-memory",
        # Without it Spark accepts a corrupt page.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    }


def _variables(settings: Settings) -> dict[str, str]:
    """Return the settings of driver's and executors' environment: what the image has, none knows.

    AWS's client for Python takes the region from one variable, that for Java from the other.
    """
    wanted = {
        "PYTHONPATH": f"./{_UNPACKED}",
        "AWS_REGION": settings.region,
        "AWS_DEFAULT_REGION": settings.region,
        "LAKEGATE_NESSIE_CA": settings.nessie_ca,
    }
    places = ("spark.emr-serverless.driverEnv", "spark.executorEnv")
    return {f"{place}.{name}": text for place in places for name, text in wanted.items()}


@dataclass(frozen=True)
class WorkerSize:
    """The size of a run's driver and of each of its executors.

    It has vCPUs, memory of the JVM, and memory of Python beside it: "" for Spark's own default.
    """

    cores: int
    memory: str
    executors: int
    beside: str = ""

    def use(self, hours: float) -> Use:
        """Return what driver and all executors use in so many hours, without more storage."""
        workers = 1 + self.executors
        heap = _gigabytes(self.memory)
        memory = heap + (_gigabytes(self.beside) if self.beside else heap * _BESIDE)
        return Use(workers * self.cores * hours, workers * rounded(self.cores, memory) * hours)


_BESIDE = 0.1  # of the JVM's memory is reserved beside it (Spark, "spark.driver.memoryOverhead")


def _gigabytes(memory: str) -> float:
    """Return an amount of memory as Spark writes it (`14g`, `512m`) in gigabytes."""
    return float(memory[:-1]) / {"g": 1, "m": 1024}[memory[-1].lower()]


# Four GB a worker, of the two to eight that EMR Serverless gives to one vCPU. Half is Python's,
# which decodes the files of a group in the driver (spark_jobs/groups/group_arrow.py).
SMALL = WorkerSize(cores=1, memory="2g", executors=1, beside="2g")
_SHARED_EXECUTORS = 4


def _size(told: JobSpec | SharedRun, settings: Settings) -> WorkerSize:
    """Return the size of a run's workers; small ones are enough for a small spec.

    A file of a group is one task of seconds, so a group of 100 keeps a few small executors busy.
    More of them would idle while Nessie commits, and each is charged for at least a minute. Spark
    releases idle ones after a minute, so a run that waits is charged for its driver alone. Large
    files, which need more memory, have runs of their own.
    """
    if isinstance(told, SharedRun):
        return replace(SMALL, executors=min(_SHARED_EXECUTORS, settings.job_max_executors))
    if told.small:
        return SMALL
    return WorkerSize(
        settings.job_worker_cores, settings.job_worker_memory, settings.job_max_executors
    )


def _workers(size: WorkerSize) -> dict[str, str]:
    """Return the settings of the workers.

    Spark begins with the largest of three numbers of executors. EMR Serverless sets one of them,
    `spark.executor.instances`, to 3 (User Guide, "Spark job properties").
    """
    workers = ("driver", "executor") if size.beside else ()
    return {
        **{f"spark.{each}.memoryOverhead": size.beside for each in workers},
        "spark.driver.cores": str(size.cores),
        "spark.driver.memory": size.memory,
        "spark.executor.cores": str(size.cores),
        "spark.executor.memory": size.memory,
        "spark.executor.instances": "1",
        "spark.dynamicAllocation.initialExecutors": "1",
        "spark.dynamicAllocation.maxExecutors": str(size.executors),
    }


def monitoring(settings: Settings) -> dict[str, Any]:
    """Return where logs go: EMR's own storage, which its Spark UI reads, and a log group."""
    own = {"managedPersistenceMonitoringConfiguration": {"enabled": True}}
    if not settings.job_log_group:
        return own
    group = {"enabled": True, "logGroupName": settings.job_log_group, "logTypes": _STREAMS}
    return {**own, "cloudWatchLoggingConfiguration": group}
