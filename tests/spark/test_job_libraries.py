"""Driver and executors find what the job takes along, by the settings of its job runs.

EMR Serverless starts a driver as Spark does on Kubernetes: archives are unpacked where it starts.
"""

import os
import shlex
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest

from functions.adapters.spark_submit import spark_submit
from infra.local.java import java_home
from lakegate.job.jobspec import AVRO, LIBRARIES, MAIN, PACKAGES
from tests.fakes.deployment import SETTINGS
from tests.unit.lakegate.test_jobspec import SPEC

pytestmark = pytest.mark.spark

_SPARK = Path(pyspark.__file__).parent
_DRIVER_ENV = "spark.emr-serverless.driverEnv."
_MASTERS = {
    "driver": ["--master=k8s://https://127.0.0.1:1", "--conf=spark.kubernetes.submitInDriver=true"],
    "executor": ["--master=local-cluster[1,1,1024]"],
}
_MAIN = """
import sys
def found(_):
    import in_both, taken_along
    return in_both.__file__, taken_along.__file__
if sys.argv[1] == "driver":
    print("FOUND", *found(0))
else:
    from pyspark import SparkContext
    print("FOUND", *SparkContext().parallelize([0], 1).map(found).first())
"""


def release(folder: Path) -> Path:
    """Return a folder with a job's release: a module is in packages and libraries, one in these."""
    folder.mkdir()
    (folder / MAIN).write_text(_MAIN)
    (folder / AVRO).touch()
    for name, modules in ((PACKAGES, ["in_both"]), (LIBRARIES, ["in_both", "taken_along"])):
        with zipfile.ZipFile(folder / name, "w") as archive:
            for module in modules:
                archive.writestr(f"{module}.py", "")
    return folder


def spark_home(folder: Path) -> Path:
    """Return a Spark whose executors work in the folder."""
    folder.mkdir()
    for each in ("bin", "jars", "python"):
        (folder / each).symlink_to(_SPARK / each)
    return folder


@pytest.mark.parametrize("worker", _MASTERS)
def test_a_worker_finds_them_after_the_job_s_own_code(tmp_path: Path, worker: str) -> None:
    """The libraries are unpacked before Python starts, and the job's packages come before them."""
    code = release(tmp_path / "release")
    driver = spark_submit(SPEC, replace(SETTINGS, job_code=code.as_uri()))
    given = shlex.split(driver["sparkSubmitParameters"])
    conf = dict(each.split("=", 1) for each in given if each.startswith("spark."))
    needed = ("spark.archives", "spark.executorEnv.PYTHONPATH")
    options = [f"--conf={name}={conf[name]}" for name in needed]
    environment = {
        **os.environ,
        **{k.removeprefix(_DRIVER_ENV): v for k, v in conf.items() if k.startswith(_DRIVER_ENV)},
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(spark_home(tmp_path / "spark")),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
    }
    py_files = given[given.index("--py-files") :][:2]
    command = [str(_SPARK / "bin" / "spark-submit"), *_MASTERS[worker], *options, *py_files]

    run = subprocess.run(
        [*command, driver["entryPoint"], worker],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    lines = [line.split() for line in run.stdout.splitlines() if line.startswith("FOUND")]
    assert lines, run.stderr[-3000:]
    _, in_both, taken_along = lines[0]
    assert PACKAGES in in_both
    assert taken_along.endswith("/libraries/taken_along.py")
