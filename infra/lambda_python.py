"""The Python of the functions: the interpreter that runs them on this machine.

The local AWS runs functions in its own environment. `python -m infra.lambda_python` makes that
environment of Lambda's Python: one on the PATH or of pyenv, or else one that uv downloads. Where
there is none, functions run on the project's own Python, from wheels for it.
"""

import os
import subprocess
import sys
from pathlib import Path

import uv

from infra.versions import LAMBDA_PYTHON, PYTHON

_ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ".venv-ministack"


def local_stack_python(root: Path = _ROOT) -> str:
    """Return the version of the Python that runs functions here: 3.13, or else 3.11."""
    of_lambda = root / ENVIRONMENT / "lib" / f"python{LAMBDA_PYTHON}"
    return LAMBDA_PYTHON if of_lambda.is_dir() else PYTHON


def interpreter(version: str) -> str:
    """Return the path of a Python of this version, "" if set-up found none."""
    if version == PYTHON:
        return sys.executable
    python = _ROOT / ENVIRONMENT / "bin" / "python"
    return str(python) if version == local_stack_python() and python.exists() else ""


def make(environment: Path) -> str:
    """Make the empty environment of Lambda's Python, or else of this one; return which."""
    command = [uv.find_uv_bin(), "venv", "--quiet", "--clear", str(environment), "--python"]
    made = subprocess.run(
        [*command, LAMBDA_PYTHON],
        env=with_pyenv(LAMBDA_PYTHON),
        capture_output=True,
        text=True,
        check=False,
    )
    if not made.returncode:
        return LAMBDA_PYTHON
    subprocess.run([*command, sys.executable], check=True)
    return PYTHON


def with_pyenv(version: str) -> dict[str, str]:
    """Return this environment with pyenv's Pythons of a version first on the PATH.

    They are found also if pyenv has selected others.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    more = sorted(map(str, pyenv.glob(f"versions/{version}.*/bin")), reverse=True)
    return {**os.environ, "PATH": os.pathsep.join([*more, os.environ["PATH"]])}


if __name__ == "__main__":
    made = make(Path(sys.argv[1]))
    if made != LAMBDA_PYTHON:
        print(
            f"No Python {LAMBDA_PYTHON} was found or downloaded: functions run on {made} here.\n"
            f"To change that, install it, delete {ENVIRONMENT}, and run `make setup`.",
            file=sys.stderr,
        )
