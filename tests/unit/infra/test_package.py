import hashlib
import os
import re
import zipfile
from pathlib import Path

import pytest

from infra import template
from infra.lambda_python import interpreter
from infra.package import Package, architecture, build, build_here
from infra.versions import AVRO_JAR, LAMBDA_PYTHON, PYTHON
from lakegate.errors import LakegateError

ROOT = Path(__file__).resolve().parents[3]
_WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return checkout(tmp_path / "checkout")


def checkout(root: Path) -> Path:
    """Return a small checkout: libraries for the functions, of which one is left out, and one."""
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
    wheels.append(requirement("rich", b"not to be had"))
    arrow = ("__init__.py", "tests/test_a.py", "flight.py", "include/a.h", "lib.pyx", "a/b/tests/c")
    job = [wheel(root, "pyarrow", {f"pyarrow/{file}": "" for file in arrow})]
    for name, lines in (("requirements", wheels), ("requirements/job", job)):
        text = "\n".join(["--no-index", f"--find-links {root}", *lines])
        (root / name).parent.mkdir(exist_ok=True)
        (root / f"{name}.txt").write_text(f"{text}\n")
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
    for requirements in two.rglob("*.txt"):
        text = requirements.read_text()
        requirements.write_text(text.replace(str(two), str(one)))
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


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("functions/__init__.py", [True, False]),
        ("spark_jobs/main.py", [False, True]),
        ("lakegate/__init__.py", [True, True]),
    ],
)
def test_changed_code_is_a_new_release_with_the_same_libraries(
    root: Path, file: str, changed: list[bool]
) -> None:
    """A change gives what has the file a new address, without installing libraries again."""
    first = releases(build(root, quiet))
    (root / file).write_text("CHANGED = True")
    messages: list[str] = []

    package = build(root, messages.append)

    pairs = zip(first, releases(package), strict=True)
    assert [before != after for before, after in pairs] == changed
    assert contents(package.lambda_zip).get(file, b"CHANGED = True") == b"CHANGED = True"
    assert messages == []


def test_the_lambdas_zip_has_their_code_and_libraries(root: Path) -> None:
    """The zip has the functions' imports, without Lambda's own packages."""
    found = contents(build(root, quiet).lambda_zip)

    assert {"lakegate/__init__.py", "functions/__init__.py", "demo.py"} <= set(found)
    assert not [name for name in found if name.startswith(("spark_jobs", "rich"))]


@pytest.mark.parametrize(("version", "tag"), [(PYTHON, "311"), (LAMBDA_PYTHON, "313")])
def test_byte_code_is_that_of_the_python_that_runs_it(root: Path, version: str, tag: str) -> None:
    """Libraries are compiled by a Python of the wanted version, and the zip says which."""
    if not interpreter(version):
        pytest.skip(f"there is no Python {version} here")
    package = build(root, quiet, version)
    found = contents(package.lambda_zip)

    assert found[f"__pycache__/demo.cpython-{tag}.pyc"][4:8] == b"\1\0\0\0"  # at any file time
    assert {name.split(".")[1] for name in found if ".pyc" in name} == {f"cpython-{tag}"}
    assert (package.lambda_zip.name == "lambda.zip") is (version == LAMBDA_PYTHON)


def test_an_unknown_machine_is_named() -> None:
    """Where the functions have no wheels, the local stack says so and lists where it runs."""
    with pytest.raises(LakegateError, match="Windows on AMD64") as caught:
        build_here(Path("nowhere"), quiet, ("Windows", "AMD64"))
    assert "Linux on aarch64, Darwin on arm64" in caught.value.message


def test_without_its_python_there_is_no_byte_code(root: Path) -> None:
    """No byte code of another Python is packed, and a message says so."""
    messages: list[str] = []
    found = contents(build(root, messages.append, "3.12").lambda_zip)

    assert "demo.py" in found
    assert not [name for name in found if name.endswith(".pyc")]
    assert any("no Python 3.12" in message for message in messages)


def test_the_job_s_zip_runs_on_any_processor(root: Path) -> None:
    """The job gets its code and YAML in plain Python, and no code of the functions."""
    found = contents(job_file(build(root, quiet), "lakegate_job.zip"))

    assert set(found) == {"lakegate/__init__.py", "spark_jobs/main.py", "yaml/__init__.py"}


def test_the_job_has_the_jar_that_its_spark_lacks(root: Path) -> None:
    """The release has Spark's module for Avro, the file that set-up checked."""
    content = job_file(build(root, quiet), "spark-avro.jar").read_bytes()

    assert hashlib.sha256(content).hexdigest() == AVRO_JAR.sha256


def test_the_job_takes_its_libraries_along_without_what_it_never_loads(root: Path) -> None:
    """The release has the wheels' modules with byte code, without tests, headers and servers."""
    found = contents(job_file(build(root, quiet), "libraries.zip"))

    arrow = {name for name in found if name.startswith("pyarrow/")}
    assert arrow == {"pyarrow/__init__.py", "pyarrow/__pycache__/__init__.cpython-311.pyc"}
    assert "pyarrow-1.0.dist-info/METADATA" in found


def test_other_libraries_are_another_release_of_the_job_alone(root: Path) -> None:
    """A changed library of the job gives its files a new address, and leaves the functions'."""
    first = releases(build(root, quiet))
    changed = wheel(root, "pyarrow", {"pyarrow/__init__.py": "CHANGED = True"})
    lines = ["--no-index", f"--find-links {root}", changed, ""]
    (root / "requirements/job.txt").write_text("\n".join(lines))

    second = releases(build(root, quiet))

    assert (first[0] == second[0], first[1] == second[1]) == (True, False)


def test_the_processors_are_those_of_the_stage(root: Path) -> None:
    """A stage's libraries are for the processors of its runs, and others are refused."""
    platform = template.defaults(template.read(ROOT / "infra" / "platform.yml"))
    assert architecture({}) == platform["Architecture"]
    assert architecture({"Architecture": "X86_64"}) == "X86_64"
    folders = {
        job_file(build(root, quiet, processors=each), "libraries.zip").parent
        for each in ("ARM64", "X86_64")
    }
    assert len(folders) == 2
    with pytest.raises(LakegateError, match=r"RISCV.*ARM64 or X86_64"):
        build(root, quiet, processors="RISCV")


@pytest.mark.parametrize("wrong", [rf" \\\n    --hash=sha256:{'0' * 64}", ""])
def test_a_library_without_its_hash_is_refused(root: Path, wrong: str) -> None:
    """A package with another hash or with none stops the build, and the error names it."""
    requirements = root / "requirements.txt"
    text = requirements.read_text()
    requirements.write_text(re.sub(r"(?<=demo==1.0) \\\n    --hash=\S+", wrong, text))

    with pytest.raises(LakegateError, match="demo") as caught:
        build(root, quiet)

    assert caught.value.code == "PACKAGING_FAILED"
