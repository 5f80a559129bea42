"""Measure the runtime of a job run: versions, classes, and the speed of its first steps."""

import json
import os
import platform
import re
import time
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakegate.job.jobspec import JobSpec
from lakegate.job.probe import DRIVER, EXECUTOR, LOCAL_MASTER
from lakegate.text import one_line
from spark_jobs.lake.storage import Storage
from spark_jobs.spark import jvm
from spark_jobs.spark.session import CATALOG, on_branch, open_session

_ACCOUNT = re.compile(r"\d{12}")  # findings are sent to strangers
_JARS = re.compile(r"(avro|hadoop-aws|iceberg|parquet|s3|spark-core).*\.jar$")
_IMAGE = Path("/usr/share/aws")
_COPIED_BYTES = 8 * 1024 * 1024
_ROWS = 1000


def probe(spec: JobSpec, storage: Storage, began: float) -> None:
    """Write the findings to the run's report key; a measurement that fails does not stop others.

    `began` is when the job's first line ran, in seconds since 1970.
    """
    findings: dict[str, Any] = {"began": began, "python": _tried(_python)}
    findings[DRIVER] = _tried(_libraries)
    spark = SparkSession.builder
    if spec.probe == LOCAL_MASTER:
        spark = spark.master(LOCAL_MASTER)
    session = spark.getOrCreate()
    findings["spark"] = _tried(lambda: _spark(session, began))
    findings[EXECUTOR] = _tried(lambda: _on_executor(session))
    findings["java"] = _tried(lambda: _java(session))
    findings["jars"] = _tried(lambda: _jars(session))
    findings["iceberg"] = _tried(lambda: _iceberg(session))
    findings["catalog"] = _tried(lambda: _catalog(spec, storage))
    findings["copy"] = _tried(lambda: _copy(spec, storage))
    storage.s3.put_object(
        Bucket=spec.lake_bucket, Key=spec.report_key, Body=json.dumps(findings).encode()
    )


def _tried(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return measure()
    except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
        return {"error": _ACCOUNT.sub("…", one_line(f"{type(error).__name__}: {error}")[:500])}


def _python() -> dict[str, Any]:
    packages = {each.metadata["Name"].lower(): each.version for each in distributions()}
    return {
        "version": platform.python_version(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "packages": dict(sorted(packages.items())),
    }


def _libraries() -> dict[str, Any]:
    """Return the versions of the libraries that the job takes along, after a use of them."""
    started = time.monotonic()
    from zoneinfo import ZoneInfo

    import boto3
    import botocore
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    written = pa.table({"number": np.arange(_ROWS), "text": [str(n) for n in range(_ROWS)]})
    sink = pa.BufferOutputStream()
    pq.write_table(written, sink, compression="zstd")
    read = pq.read_table(pa.BufferReader(sink.getvalue()))
    if read != written or pc.sum(read["number"]).as_py() != sum(range(_ROWS)):
        raise ValueError("a Parquet file was read otherwise than it was written")
    ZoneInfo("Europe/Berlin")  # which contracts may name
    return {
        "python": platform.python_version(),
        "boto3": boto3.__version__,
        "botocore": botocore.__version__,
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "seconds": round(time.monotonic() - started, 2),
    }


def _on_executor(spark: SparkSession) -> dict[str, Any]:
    """Return the libraries that a task finds."""
    tasks = spark.sparkContext.parallelize([0], 1)
    return dict(tasks.map(lambda _: _libraries()).first())


def _spark(spark: SparkSession, began: float) -> dict[str, Any]:
    """Return versions, and the seconds until Spark had started and until its first task ended."""
    context = spark.sparkContext
    started = time.time()
    context.parallelize([0], 1).count()
    return {
        "version": spark.version,
        "master": re.sub(r"//.*", "//…", str(context.master)),
        "parallelism": context.defaultParallelism,
        "seconds_to_session": round(started - began, 1),
        "seconds_to_first_task": round(time.time() - began, 1),
    }


def _java(spark: SparkSession) -> dict[str, Any]:
    read = jvm.java_class(spark, "java.lang.System").getProperty
    memory = jvm.java_class(spark, "java.lang.Runtime").getRuntime().maxMemory()
    return {
        "version": str(read("java.version")),
        "vendor": str(read("java.vendor")),
        "megabytes": memory // 1024 // 1024,
    }


def _jars(spark: SparkSession) -> dict[str, Any]:
    """Return the jars that matter on the class path, and those of the image below /usr/share."""
    path = str(jvm.java_class(spark, "java.lang.System").getProperty("java.class.path"))
    folders = {Path(each).parent if each.endswith("*") else Path(each) for each in path.split(":")}
    files = [file for each in folders for file in (each.glob("*.jar") if each.is_dir() else [each])]
    image = _IMAGE.glob("**/*.jar") if _IMAGE.is_dir() else ()
    return {
        "class_path": sorted({file.name for file in files if _JARS.search(file.name)}),
        "image": sorted(str(file) for file in image if _JARS.search(file.name)),
    }


def _iceberg(spark: SparkSession) -> dict[str, Any]:
    build = jvm.java_class(spark, "org.apache.iceberg.IcebergBuild")
    return {"version": str(build.version()), "commit": str(build.gitCommitShortId())}


def _catalog(spec: JobSpec, storage: Storage) -> dict[str, Any]:
    """Return the class of the catalog that jobs use; another than Iceberg's is an error."""
    session = on_branch(open_session, spec, storage.nessie_token())
    return {"class": jvm.iceberg_catalog_class(session, CATALOG)}


def _copy(spec: JobSpec, storage: Storage) -> dict[str, Any]:
    """Return how fast S3 copies an object within the lake bucket."""
    key = f"{spec.report_key}.bytes"
    storage.s3.put_object(Bucket=spec.lake_bucket, Key=key, Body=bytes(_COPIED_BYTES))
    source = {"Bucket": spec.lake_bucket, "Key": key}
    before = time.monotonic()
    storage.s3.copy_object(Bucket=spec.lake_bucket, Key=f"{key}.copy", CopySource=source)
    return {"bytes": _COPIED_BYTES, "seconds": round(time.monotonic() - before, 3)}
