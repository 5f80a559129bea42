"""A copy of the project, by which an installed package runs the local stack.

The stack needs files of a checkout, pinned libraries and two Pythons. The package brings the files
(pyproject.toml, `force-include`); the copy has the shape of a checkout and is set up as one.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import NoReturn

import uv

from infra.local.stack_file import COPIED
from infra.setup import only_one
from infra.versions import PYTHON
from lakegate.errors import LakegateError

_PACKAGES = Path(__file__).parents[2]
_FILES = _PACKAGES / "infra" / "project"
# They would lead a command of the copy to libraries of another environment.
_MISLEADING = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV")


def program(home: Path) -> Path:
    """Return the command line of the copy at a home, which `ensure` makes."""
    return home / "project" / ".venv" / "bin" / "lakegate"


def ensure(home: Path, tell: Callable[[str], None]) -> None:
    """Make the copy that belongs to this package, and set it up, as far as that is missing.

    Raises LakegateError SETUP_FAILED; repeat it then.
    """
    root = home / "project"
    root.mkdir(parents=True, exist_ok=True)
    if not program(home).exists():
        tell("setting up the local stack: the first time it downloads about 1 GB")
    with only_one(home):
        copy(root)
        # Isolated: set-up may delete the copy's own environment, so it must not run in it.
        words = ("run", "--quiet", "--no-project", "--isolated", "--python", PYTHON)
        command = (uv.find_uv_bin(), *words, "python", "-m", "infra.setup", "local")
        done = subprocess.run(
            command, cwd=root, env=_environment(home), stdout=sys.stderr, check=False
        )
    if done.returncode:
        message = (
            f"the local stack could not be set up; the reason is above\nIts files are in {root}."
        )
        raise LakegateError("SETUP_FAILED", message)


def copy(root: Path) -> None:
    """Copy the package's files to a root, unless they are there; environments and builds stay."""
    record = distribution("lakegate").read_text("RECORD") or ""  # it has every file's hash
    release = hashlib.sha256(record.encode()).hexdigest()
    stamp = root / COPIED
    if stamp.is_file() and stamp.read_text() == release:
        return
    stamp.unlink(missing_ok=True)
    shutil.copytree(_FILES, root, dirs_exist_ok=True)
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    for package in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        shutil.rmtree(root / package, ignore_errors=True)
        unwanted = shutil.ignore_patterns("__pycache__", _FILES.name)
        shutil.copytree(_PACKAGES / package, root / package, ignore=unwanted)
    stamp.write_text(release)


def continue_there(home: Path) -> NoReturn:
    """Become the same command of the copy."""
    command = program(home)
    arguments = [str(command), *sys.argv[1:]]
    os.execve(command, arguments, _environment(home))  # noqa: S606  no shell is wanted


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _MISLEADING}
    return {**kept, "LAKEGATE_HOME": str(home)}
