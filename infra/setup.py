"""Set the project up: two environments, the Java runtime and the jars, as far as they are missing.

With the argument `deploy` it makes a third environment: the tools that deploy and check. With
`local` the first one has only what the local stack needs (infra/local/own_project.py). It runs on a
plain Python with nothing installed, so it uses the standard library only.
"""

import fcntl
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra import versions

ROOT = Path(__file__).resolve().parents[1]

# Runs one command from the checkout's root to its end. Raises Failed.
Run = Callable[[str], None]


class Failed(Exception):
    """A failed step of the set-up."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment and the steps that make it from an empty directory."""

    path: Path
    inputs: tuple[bytes, ...]  # all files that the result depends on
    steps: tuple[str, ...]  # commands, run from the checkout's root

    @property
    def stamp(self) -> Path:
        """Return the file that is written after the last step, with the digest of the inputs."""
        return self.path / "lakegate-setup"

    def digest(self) -> str:
        """Return a digest of the inputs and of the path, which scripts and links inside contain."""
        digest = hashlib.sha256()
        for part in (os.fsencode(self.path), *self.inputs):
            digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest()

    def is_current(self) -> bool:
        """Return whether it was completely made of these inputs."""
        python = self.path / "bin" / "python"
        return python.exists() and self.stamp.is_file() and self.stamp.read_text() == self.digest()


def project_environment(root: Path, *, only_local: bool = False) -> Environment:
    """Return the environment that the project runs in, with the project itself installed.

    With `only_local` it has no tools of development. Files that do not have their pinned hash are
    refused.
    """
    with (root / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    uv = ".venv/bin/uv pip {} --quiet --python .venv/bin/python --no-build-isolation"
    libraries = (
        (f"{uv.format('install')} --constraints requirements/dev.txt --editable .[local]",)
        if only_local
        else (
            f"{uv.format('sync')} --require-hashes requirements/dev.txt",
            f"{uv.format('install')} --no-deps --editable .",
        )
    )
    return Environment(
        root / ".venv",
        (
            *_contents(root, "requirements/build.txt", "requirements/dev.txt"),
            json.dumps([project["project"], project["build-system"], *libraries]).encode(),
        ),
        (
            f"{shlex.quote(sys.executable)} -m venv --clear .venv",
            # The build tools are installed first, with hashes, so that no build downloads any.
            ".venv/bin/python -m pip install --quiet --require-hashes -r requirements/build.txt",
            *libraries,
        ),
    )


def ministack_environment(root: Path) -> Environment:
    """Return the environment of the local AWS, whose pins must not bind the project.

    Its Python runs the functions, so it is Lambda's if possible.
    """
    make_it = ".venv/bin/python -m infra.lambda_python .venv-ministack"
    return _wheel_venv(root, "ministack", make_it, versions.LAMBDA_PYTHON.encode())


def deploy_environment(root: Path) -> Environment:
    """Return the environment of the deploy tools: sam, cfn-lint, pip-audit, node with osls."""
    python = shlex.quote(sys.executable)
    wheels = _wheel_venv(root, "deploy", f"{python} -m venv --clear --without-pip .venv-deploy")
    # No script of a package may run when it is installed.
    npm = ".venv-deploy/bin/npm ci --ignore-scripts --no-audit --no-fund --loglevel=error"
    inputs = (*wheels.inputs, *_contents(root, "package.json", "package-lock.json"))
    return Environment(wheels.path, inputs, (*wheels.steps, npm))


def _wheel_venv(root: Path, name: str, first: str, *inputs: bytes) -> Environment:
    """Return the environment `.venv-<name>` of `requirements/<name>.txt`, without any build.

    The command `first` makes it, empty.
    """
    path, requirements = f".venv-{name}", f"requirements/{name}.txt"
    uv = f".venv/bin/uv pip sync --quiet --python {path}/bin/python --only-binary :all:"
    return Environment(
        root / path,
        (*_contents(root, requirements), *inputs),
        (first, f"{uv} --require-hashes {requirements}"),
    )


def _contents(root: Path, *names: str) -> tuple[bytes, ...]:
    return tuple((root / name).read_bytes() for name in names)


def make(environment: Environment, run: Run) -> bool:
    """Make the environment again unless it is current; return whether it was made.

    The stamp is deleted first and written last: an interrupted environment is made again.
    """
    if environment.is_current():
        return False
    print(f"Making {environment.path.name} ...", flush=True)
    environment.stamp.unlink(missing_ok=True)
    for step in environment.steps:
        run(step)
    environment.stamp.write_text(environment.digest())
    return True


def run_command(command: str) -> None:
    """Run a command from the checkout's root and show its output. Raises Failed."""
    try:
        done = subprocess.run(shlex.split(command), cwd=ROOT, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Failed(f"Could not start ({error.strerror}): {command}") from error
    if done.returncode:
        raise Failed(f"Failed with exit status {done.returncode}: {command}")


@contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Hold the directory's lock, for which others wait; a killed process does not hold it."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def main() -> int:
    """Set up, print the versions in one line, and return the exit status."""
    only_local = sys.argv[1:] == ["local"]
    again = f"Run `{'lakegate up' if only_local else 'make setup'}` to go on."
    try:
        with only_one(ROOT):
            if sys.argv[1:] == ["deploy"]:
                make(deploy_environment(ROOT), run_command)
                return 0
            make(project_environment(ROOT, only_local=only_local), run_command)
            make(ministack_environment(ROOT), run_command)
            run_command(".venv/bin/python -m infra.local.jars")
    except Failed as failure:
        print(f"Set-up stopped. {failure}\n{again}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"Set-up was interrupted. {again}", file=sys.stderr)
        return 130
    print(
        f"Set up: Python {versions.PYTHON}, Spark {versions.SPARK},"
        f" Iceberg {versions.ICEBERG}, Nessie {versions.NESSIE}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
