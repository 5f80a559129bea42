"""Functions run on Lambda's Python where there is one, and a Python is never taken for another."""

import subprocess
from pathlib import Path

import pytest

from infra import lambda_python
from infra.versions import LAMBDA_PYTHON, PYTHON


def version_of(python: str | Path) -> str:
    """Return the version that an interpreter prints."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


@pytest.mark.parametrize("version", [PYTHON, LAMBDA_PYTHON, "3.12"])
def test_an_interpreter_has_the_wanted_version(version: str) -> None:
    """The interpreter found for a version has it; another version is never given."""
    found = lambda_python.interpreter(version)
    assert not found or version_of(found) == version
    assert bool(found) is (version in (PYTHON, lambda_python.local_stack_python()))


def test_the_environment_has_the_python_that_is_reported(tmp_path: Path) -> None:
    """What is made is found again, whether or not Lambda's Python is here."""
    made = lambda_python.make(tmp_path / lambda_python.ENVIRONMENT)
    assert version_of(tmp_path / lambda_python.ENVIRONMENT / "bin" / "python") == made
    assert lambda_python.local_stack_python(tmp_path) == made


def test_without_lambdas_python_the_project_s_own_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no Python of the version exists and none may be downloaded, functions run on 3.11."""
    for name, text in {
        "PATH": str(tmp_path),
        "PYENV_ROOT": str(tmp_path),
        "HOME": str(tmp_path),
        "UV_PYTHON_INSTALL_DIR": str(tmp_path / "none"),
        "UV_PYTHON_DOWNLOADS": "never",
    }.items():
        monkeypatch.setenv(name, text)
    made = lambda_python.make(tmp_path / lambda_python.ENVIRONMENT)
    assert made == PYTHON
    assert lambda_python.local_stack_python(tmp_path) == PYTHON
