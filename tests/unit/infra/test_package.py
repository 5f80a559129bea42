import hashlib
import os
import re
import zipfile
from pathlib import Path

import pytest

from infra.package import Package, build
from infra.versions import AVRO_JAR
from lakegate.errors import LakegateError

_WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return checkout(tmp_path / "checkout")


def checkout(root: Path) -> Path:
    """Return a small checkout: two libraries to install and one that Lambda has already."""
    files = {
        "lakegate/__init__.py": "",
        "functions/__init__.py": "",
        "spark_jobs/main.py": "print()",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    yaml = {"yaml/__init__.py": "PURE = True", "yaml/_yaml.so": "machine code"}
    wheels = [wheel(root, "demo", {"demo.py": "A = 1"}), wheel(root, "pyyaml", yaml)]
    lines = ["--no-index", f"--find-links {root}", *wheels, requirement("boto3", b"not to be had")]
    (root / "requirements.txt").write_text("\n".join(lines) + "\n")
    return root


def wheel(root: Path, name: str, files: dict[str, str]) -> str:
    """Put a wheel next to the checkout and return its lines of requirements.txt."""
    about = f"{name}-1.0.dist-info"
    metadata = {f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"}
    everything = files | metadata | {f"{about}/WHEEL": _WHEEL}
    record = {
        f"{about}/RECORD": "".join(f"{file},,\n" for file in [*everything, f"{about}/RECORD"])
    }
    path = root / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in (everything | record).items():
            archive.writestr(zipfile.ZipInfo(file), text)
    return requirement(name, path.read_bytes())


def requirement(name: str, content: bytes) -> str:
    return f"{name}==1.0 \\\n    --hash=sha256:{hashlib.sha256(content).hexdigest()}"


def contents(package: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(package) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def job_file(package: Package, name: str) -> Path:
    """Return the file of the job's release with that name."""
    (found,) = (file for file in package.job_files if file.name == name)
    return found


def releases(package: Package) -> tuple[str, str]:
    return package.lambda_release, package.job_release


def quiet(_: str) -> None:
    return


def test_the_same_checkout_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two clones, at other paths and other times, build files of the same hash."""
    one, two = checkout(tmp_path / "one"), checkout(tmp_path / "two")
    # A clone's requirements do not have this line: it is where this test keeps wheels.
    text = (two / "requirements.txt").read_text()
    (two / "requirements.txt").write_text(text.replace(str(two), str(one)))
    for file in two.rglob("*.py"):
        os.utime(file, (0, 0))
        file.chmod(0o600)

    assert releases(build(one, quiet)) == releases(build(two, quiet))


def test_files_are_packed_without_their_times_and_readable(root: Path) -> None:
    """A file's time changes nothing, and Lambda's user can read every file."""
    with zipfile.ZipFile(build(root, quiet).lambda_zip) as archive:
        entries = archive.infolist()

    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {entry.external_attr >> 16 & 0o777 for entry in entries} == {0o644}


def test_what_is_built_already_is_not_built_again(root: Path) -> None:
    """A second build finds everything current and touches no file."""
    build(root, quiet)
    before = {file: file.stat().st_mtime_ns for file in (root / "build").rglob("*")}
    messages: list[str] = []

    build(root, messages.append)

    assert messages == []
    assert {file: file.stat().st_mtime_ns for file in (root / "build").rglob("*")} == before


def test_changed_code_is_a_new_release_with_the_same_libraries(root: Path) -> None:
    """A change of the functions gives a new zip without installing libraries again."""
    first = build(root, quiet).lambda_release
    (root / "functions" / "__init__.py").write_text("CHANGED = True")
    messages: list[str] = []

    package = build(root, messages.append)

    assert package.lambda_release != first
    assert contents(package.lambda_zip)["functions/__init__.py"] == b"CHANGED = True"
    assert messages == []


@pytest.mark.parametrize("file", ["spark_jobs/main.py", "lakegate/__init__.py"])
def test_changed_job_code_is_a_new_release_of_the_job(root: Path, file: str) -> None:
    """A change of the job gets a new address, so running jobs keep their code."""
    first = build(root, quiet).job_release
    (root / file).write_text("CHANGED = True")

    assert build(root, quiet).job_release != first


def test_the_lambdas_zip_has_their_code_and_libraries(root: Path) -> None:
    """The zip has the functions' imports, compiled, without Lambda's own packages."""
    found = contents(build(root, quiet).lambda_zip)

    assert {"lakegate/__init__.py", "functions/__init__.py", "demo.py"} <= set(found)
    assert found["__pycache__/demo.cpython-311.pyc"][4:8] == b"\1\0\0\0"  # good at any file time
    assert not [name for name in found if name.startswith(("spark_jobs", "boto3"))]


def test_the_job_s_zip_runs_on_any_processor(root: Path) -> None:
    """The job gets its code and YAML in plain Python, and no code of the functions."""
    found = contents(job_file(build(root, quiet), "lakegate_job.zip"))

    assert set(found) == {"lakegate/__init__.py", "spark_jobs/main.py", "yaml/__init__.py"}


def test_the_job_has_the_jar_that_its_spark_lacks(root: Path) -> None:
    """The release has Spark's module for Avro, the file that set-up checked."""
    content = job_file(build(root, quiet), "spark-avro.jar").read_bytes()

    assert hashlib.sha256(content).hexdigest() == AVRO_JAR.sha256


def test_a_library_with_another_hash_is_refused(root: Path) -> None:
    """A package with another hash stops the build, and the error names it."""
    requirements = root / "requirements.txt"
    demo = next(line for line in requirements.read_text().splitlines() if "--hash" in line)
    requirements.write_text(requirements.read_text().replace(demo, f"    --hash=sha256:{'0' * 64}"))

    with pytest.raises(LakegateError, match="demo") as caught:
        build(root, quiet)

    assert caught.value.code == "PACKAGING_FAILED"


def test_a_library_without_a_hash_is_refused(root: Path) -> None:
    """A library without a pinned hash is not packed."""
    requirements = root / "requirements.txt"
    text = requirements.read_text()
    requirements.write_text(re.sub(r" \\\n    --hash=\S+", "", text))

    with pytest.raises(LakegateError):
        build(root, quiet)
