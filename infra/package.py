"""Build what is deployed: the Lambdas' zip, and the job's entry point, packages and libraries.

The same inputs give the same bytes, so a hash names a release, and an existing file is not built
again. `build/` may be deleted at any time.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import uv

from infra import lambda_python
from infra.local.jars import cached
from infra.versions import AVRO_JAR, LAMBDA_PYTHON, PYTHON
from lakegate.errors import LakegateError
from lakegate.job.jobspec import AVRO, LIBRARIES, MAIN, PACKAGES

# They only colour the output of pyiceberg's command line.
LEFT_OUT = ("markdown-it-py", "mdurl", "pygments", "rich")
# Programs, and files that only other interpreters than CPython load.
_UNUSED = ("bin/*", "zstandard/_cffi*")
# A third of the wheels: tests, what only compilers read, second copies of libraries, access to
# servers, which the job has in boto3 and Spark, and AWS's services but those that it calls: S3, SQS
# and Secrets Manager, and some more whose names begin so.
_UNUSED_BY_JOB = (
    *("bin/*", "**/tests/**/*", "**/*.[ah]", "**/*.p[xy][di]", "**/*.pyx"),
    *("pyarrow/include*/**/*", "pyarrow/src/**/*", "pyarrow/_pyarrow_cpp_tests*"),
    *("pyarrow/*flight*", "pyarrow/*_s3*"),
    *("pyarrow/libarrow_python*.so", "pyarrow/libarrow_python*.so.*.*"),
    *("numpy/distutils/**/*", "numpy/f2py/**/*"),
    *("botocore/data/[!s]*/**/*", "botocore/data/sa*/**/*", "boto3/examples/**/*"),
)
_LAMBDA_CODE = ("lakegate", "functions")
_JOB_CODE = ("lakegate", "spark_jobs")
_JOB_LIBRARIES, _JOB_DISTRIBUTIONS = ("yaml",), ("pyyaml",)  # as imported, and as installed
# Lambda's Amazon Linux 2023 has glibc 2.34, but so new a machine is not needed to run it locally;
# tests/deploy/test_zip.py checks what the chosen files really need.
_PLATFORM, _ON_ARM = "x86_64-manylinux_2_28", "aarch64-manylinux_2_28"
# The platforms on which the local stack runs its functions: system and machine as Python names
# them, and the wheels for it.
PLATFORMS = {
    ("Linux", "x86_64"): _PLATFORM,
    ("Linux", "aarch64"): _ON_ARM,
    ("Darwin", "arm64"): "aarch64-apple-darwin",
}
# The processors of job runs, of which the platform's template takes the first unless told
# otherwise. EMR's image is Amazon Linux 2023, too.
ARM64, X86_64 = "ARM64", "X86_64"
_JOB_PLATFORMS = {ARM64: _ON_ARM, X86_64: _PLATFORM}
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Package:
    """The built files; `job_release` names the job's files by their content."""

    lambda_zip: Path
    job_files: tuple[Path, ...]

    @property
    def lambda_release(self) -> str:
        """Return the hash of the Lambdas' zip."""
        return _digest(self.lambda_zip.read_bytes())

    @cached_property
    def job_release(self) -> str:
        """Return the hash of the job's files."""
        return _digest(*(file.read_bytes() for file in self.job_files))


@dataclass(frozen=True)
class _Libraries:
    """Libraries to install, the Python and the platform that load them, and what they lack."""

    of: str
    requirements: str
    python: str
    platform: str
    unused: tuple[str, ...]


def build(
    root: Path,
    tell: Callable[[str], None],
    version: str = LAMBDA_PYTHON,
    processors: str = X86_64,
    wheels: str = _PLATFORM,
) -> Package:
    """Build everything from the checkout at `root` into its `build/`, unless it is current.

    `version` and `wheels` are the Python and the platform that will run the functions, `processors`
    are those that will run the job. Raises LakegateError if a package cannot be installed.
    """
    into = root / "build"
    requirements = lambda_requirements(root)
    wanted = _Libraries("the Lambdas' libraries", requirements, version, wheels, _UNUSED)
    libraries = _built(wanted, into, tell)
    is_lambda = (version, wheels) == (LAMBDA_PYTHON, _PLATFORM)
    zipped = into / ("lambda.zip" if is_lambda else f"lambda-{version}-{wheels}.zip")
    _make_once(
        zipped, _inputs(root, _LAMBDA_CODE, libraries), partial(_lambda_zip, root, libraries)
    )
    job_files = _job_files(root, into / "job", libraries)
    package = Package(zipped, (*job_files, job_libraries(root, into, processors, tell)))
    release = package.job_release.encode()  # which serverless.yml reads
    _make_once(into / "job-release.txt", _digest(release), partial(_write, release))
    return package


def build_here(
    root: Path,
    tell: Callable[[str], None],
    machine: tuple[str, str] = (platform.system(), platform.machine()),
) -> Package:
    """Build what the local stack on a machine runs. Raises LakegateError as `build`, UNSUPPORTED.

    Nobody has run the local stack on other platforms than Linux on x86_64 yet.
    """
    if machine not in PLATFORMS:
        known = ", ".join(" on ".join(each) for each in PLATFORMS)
        message = f"the local stack does not run on {' on '.join(machine)}\nIt runs on: {known}"
        raise LakegateError("UNSUPPORTED", message)
    return build(root, tell, lambda_python.local_stack_python(), wheels=PLATFORMS[machine])


def architecture(chosen: Mapping[str, str]) -> str:
    """Return the processors of a stage's job runs, which its settings may choose."""
    return chosen.get("Architecture", ARM64)


def lambda_requirements(root: Path) -> str:
    """Return the requirements of what the Lambdas' zip has."""
    return _drop_packages(LEFT_OUT, (root / "requirements.txt").read_text())


def job_requirements(root: Path) -> str:
    """Return the requirements of what the job's zips have."""
    shared = _blocks((root / "requirements.txt").read_text())
    pure = [each for each in shared if _name(each) in _JOB_DISTRIBUTIONS]
    return "".join([(root / "requirements/job.txt").read_text(), *pure])


def job_versions(root: Path) -> dict[str, str]:
    """Return the versions of the libraries that the job takes along, and of their Python."""
    text = (root / "requirements/job.txt").read_text()
    return {"python": PYTHON, **dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))}


def job_libraries(root: Path, into: Path, processors: str, tell: Callable[[str], None]) -> Path:
    """Return a zip of the libraries that the job takes along. Raises LakegateError BAD_SETTING."""
    if processors not in _JOB_PLATFORMS:
        known = " or ".join(_JOB_PLATFORMS)
        raise LakegateError("BAD_SETTING", f"Architecture is {processors}: it must be {known}")
    requirements = (root / "requirements/job.txt").read_text()
    of, platform = f"the job's libraries for {processors}", _JOB_PLATFORMS[processors]
    return _built(_Libraries(of, requirements, PYTHON, platform, _UNUSED_BY_JOB), into, tell)


def _job_files(root: Path, into: Path, libraries: Path) -> tuple[Path, ...]:
    """Return the job's entry point, its packages, and the jar that EMR's Spark does not load."""
    main, packages, avro = (into / name for name in (MAIN, PACKAGES, AVRO))
    _make_once(packages, _inputs(root, _JOB_CODE, libraries), partial(_job_zip, root, libraries))
    for out, source in ((main, root / "spark_jobs" / "main.py"), (avro, cached(AVRO_JAR))):
        content = source.read_bytes()
        _make_once(out, _digest(content), partial(_write, content))
    return main, packages, avro


def _built(wanted: _Libraries, into: Path, tell: Callable[[str], None]) -> Path:
    """Return a zip of installed libraries, in a folder named by all that they depend on."""
    compiler = lambda_python.interpreter(wanted.python)
    kind = (wanted.platform, wanted.python, "compiled" if compiler else "source", *wanted.unused)
    digest = _digest(wanted.requirements.encode(), " ".join(kind).encode())
    made = into / f"libraries-{digest}" / LIBRARIES
    if not made.exists():
        tell(f"packaging {wanted.of}, for Python {wanted.python}")
        if not compiler:
            tell(f"without byte code, so they start later: no Python {wanted.python} is here")
        made.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=into) as name:
            work = Path(name)
            _install(wanted, work / "tree", work / "requirements.txt")
            if compiler:
                _compile(work / "tree", compiler)
            _zip_tree(work / "tree", work / "zip")
            (work / "zip").replace(made)
    return made


def _drop_packages(names: Collection[str], requirements: str) -> str:
    """Return a requirements file's text without these packages and their hashes."""
    return "".join(block for block in _blocks(requirements) if _name(block) not in names)


def _blocks(requirements: str) -> list[str]:
    """Return the head of a requirements file, then the lines of each package."""
    return re.split(r"^(?=[a-z0-9])", requirements, flags=re.MULTILINE)


def _name(block: str) -> str:
    return block.partition("==")[0]


def _install(wanted: _Libraries, into: Path, requirements: Path) -> None:
    requirements.write_text(wanted.requirements)
    command = [uv.find_uv_bin(), "pip", "install", "--quiet", "--only-binary", ":all:"]
    command += ["--python-version", wanted.python, "--python-platform", wanted.platform]
    command += ["--no-deps", "--require-hashes", "--target", str(into), "-r", str(requirements)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        message = f"{wanted.of} cannot be installed:\n{run.stderr.strip()}"
        raise LakegateError("PACKAGING_FAILED", message)
    for file in [file for pattern in wanted.unused for file in into.glob(pattern)]:
        if file.is_file():
            file.unlink()


def _compile(tree: Path, python: str) -> None:
    """Add byte code that this Python takes at any file time.

    Lambda cannot write it, so every cold start would compile everything again.
    """
    command = [python, "-m", "compileall", "-qq", "-s", str(tree), str(tree)]
    command += ["--invalidation-mode", "unchecked-hash"]
    fixed = {**os.environ, "PYTHONHASHSEED": "0"}  # sets are stored in its order
    # Its status is not 0 either if a library has a template that is no Python.
    subprocess.run(command, env=fixed, check=False, capture_output=True)


def _lambda_zip(root: Path, libraries: Path, out: Path) -> None:
    shutil.copyfile(libraries, out)
    with zipfile.ZipFile(out, "a") as archive:
        _add_all(archive, _code(root, _LAMBDA_CODE))


def _job_zip(root: Path, libraries: Path, out: Path) -> None:
    folders = tuple(f"{name}/" for name in _JOB_LIBRARIES)
    with zipfile.ZipFile(libraries) as installed, zipfile.ZipFile(out, "w") as archive:
        pure = [n for n in installed.namelist() if n.startswith(folders) and n.endswith(".py")]
        _add_all(archive, ((name, installed.read(name)) for name in pure))
        _add_all(archive, _code(root, _JOB_CODE))


def _code(root: Path, packages: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    for package in packages:
        for file in sorted((root / package).rglob("*.py")):
            yield file.relative_to(root).as_posix(), file.read_bytes()


def _zip_tree(tree: Path, out: Path) -> None:
    files = sorted(file for file in tree.rglob("*") if file.is_file())
    with zipfile.ZipFile(out, "w") as archive:
        _add_all(archive, ((f.relative_to(tree).as_posix(), f.read_bytes()) for f in files))


def _add_all(archive: zipfile.ZipFile, files: Iterable[tuple[str, bytes]]) -> None:
    for name, content in files:
        entry = zipfile.ZipInfo(name, _EPOCH)
        entry.external_attr = 0o100644 << 16
        archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


def _inputs(root: Path, packages: Iterable[str], libraries: Path) -> str:
    inputs = [name.encode() + content for name, content in _code(root, packages)]
    return _digest(libraries.parent.name.encode(), *inputs)


def _make_once(out: Path, inputs: str, make: Callable[[Path], None]) -> None:
    """Make a file unless it was made of these inputs; it appears only when it is complete."""
    note = out.with_name(f"{out.name}.inputs")
    if out.exists() and note.exists() and note.read_text() == inputs:
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    beside = out.with_name(f"{out.name}.{os.getpid()}.new")
    make(beside)
    beside.replace(out)
    note.write_text(inputs)


def _write(content: bytes, out: Path) -> None:
    out.write_bytes(content)


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


if __name__ == "__main__":
    build(Path(__file__).resolve().parents[1], print, processors=architecture({}))
