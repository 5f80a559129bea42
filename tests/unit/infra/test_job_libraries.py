"""The job's libraries, as they are built for EMR, are enough for the job's code."""

import ast
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.package import X86_64, job_libraries, job_versions

ROOT = Path(__file__).resolve().parents[3]
PINNED = {name.replace("-", "_") for name in job_versions(ROOT)} - {"python"}
OWN = {"lakegate", "spark_jobs"}
# EMR's image has these; PyYAML is among the job's packages.
OF_THE_IMAGE = {"py4j", "pyspark", "yaml"}
USE = """
import io
import numpy, pyarrow, pyarrow.compute, pyarrow.parquet
file = io.BytesIO()
numbers = numpy.arange(1000)
pyarrow.parquet.write_table(pyarrow.table({"a": numbers}), file, compression="zstd")
# Without threads, as this Python may end before they do.
how = {"page_checksum_verification": True, "use_threads": False, "pre_buffer": False}
read = pyarrow.parquet.read_table(file, **how)
assert pyarrow.compute.sum(read["a"]).as_py() == numbers.sum()
import zoneinfo
zoneinfo.reset_tzpath(())  # the image may have none
zoneinfo.ZoneInfo("Europe/Berlin")
import boto3
for service in ("s3", "sqs", "secretsmanager"):
    boto3.client(service, region_name="eu-central-1")
print(numpy.__file__, pyarrow.__file__, boto3.__file__)
"""


@pytest.fixture(scope="module")
def built() -> Path:
    """Return the zip for this machine's processors."""
    return job_libraries(ROOT, ROOT / "build", X86_64, print)


def imports() -> Iterator[tuple[str, str]]:
    """Yield each import statement of the job's code that is not its own: the package, the text."""
    for file in (ROOT / "spark_jobs").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            for package in {name.partition(".")[0] for name in names} - OWN:
                yield package, ast.unparse(node)


def test_they_are_all_that_the_job_needs(built: Path, tmp_path: Path) -> None:
    """The job's imports and a Parquet file work in a Python that has nothing but the zip."""
    with zipfile.ZipFile(built) as archive:
        archive.extractall(tmp_path)
    own = sorted({text for package, text in imports() if package in PINNED})
    code = "\n".join([f"import sys; sys.path.append({str(tmp_path)!r})", *own, USE])

    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, check=False)

    assert run.returncode == 0, run.stderr.decode()
    assert all(file.startswith(str(tmp_path)) for file in run.stdout.decode().split())


def test_the_job_imports_nothing_else() -> None:
    """The job imports only Python itself, EMR's packages and the libraries that it takes along."""
    known = OF_THE_IMAGE | PINNED | set(sys.stdlib_module_names)
    assert {text for package, text in imports() if package not in known} == set()


def test_they_are_small_and_need_no_newer_glibc_than_emr_has(built: Path) -> None:
    """The zip stays below 70 MB, and its libraries load on Amazon Linux 2023."""
    with zipfile.ZipFile(built) as archive:
        found = [archive.read(name) for name in archive.namelist() if ".so" in name]

    needed = {int(minor) for library in found for minor in re.findall(rb"GLIBC_2\.(\d+)", library)}
    assert needed
    assert max(needed) <= 34
    assert built.stat().st_size < 70_000_000
