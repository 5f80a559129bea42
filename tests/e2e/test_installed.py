"""The built package, installed where there is no checkout, as `pipx` installs it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import uv
import yaml

from access.deployment import ROOT
from tests.e2e.conftest import Gate, contract

pytestmark = pytest.mark.stack

_TABLE = "installed.orders"
_LAMBDA_PYTHON = (
    ROOT / ".venv-ministack/bin/python"
)  # newer than the checkout's, where there is one
_PROGRAM = f"""
from importlib.resources import files

import lakegate

assert all((files(package) / "py.typed").is_file() for package in ("lakegate", "access"))
gate = lakegate.connect()
(done,) = gate.wait(*gate.drop("more.csv", table="{_TABLE}"))
print(done.state, done.rows)
print(gate.query("SELECT DISTINCT id FROM {_TABLE} WHERE id = 7").to_pylist())
"""


@pytest.fixture(scope="module", params=[sys.executable, str(_LAMBDA_PYTHON)], ids=["", "newer"])
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the `lakegate` of a new environment, for a Python that the package supports."""
    home = tmp_path_factory.mktemp("installed")
    (build,) = re.findall(r"^\t@\S+uv (build .*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    _uv(*build.replace("build/wheel", str(home)).split())
    _uv("venv", "--python", request.param, str(home / "venv"))
    (wheel,) = home.glob("*.whl")
    python, pins = str(home / "venv/bin/python"), str(ROOT / "requirements-dev.txt")
    _uv("pip", "install", "--python", python, "-c", pins, str(wheel))
    return home / "venv/bin/lakegate"


def _uv(*arguments: str) -> None:
    subprocess.run([uv.find_uv_bin(), *arguments, "--quiet"], cwd=ROOT, check=True)


def _run(
    program: Path, directory: Path, *arguments: str, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a directory that is no checkout."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "LAKEGATE_"))}
    return subprocess.run(
        [program, *arguments],
        cwd=directory,
        env={**plain, "NO_COLOR": "1", **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_contracts_are_written_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    """A draft is suggested and checked, and files for a trial are made; pre-commit checks, too."""
    (tmp_path / "orders.csv").write_text("id,name\n1,Ann\n2,Bob\n")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    for command in (
        ["contract", "suggest", "orders.csv", "--table", "shop.orders", "--out", "orders.yaml"],
        [*hook["entry"].split()[1:], "orders.yaml"],
        ["generate", "--out", "made"],
    ):
        said = _run(installed, tmp_path, *command)
        assert said.returncode == 0, said.stderr
    assert list((tmp_path / "made").glob("*.parquet"))


def test_a_deployment_is_operated_without_a_checkout(
    installed: Path, gate: Gate, tmp_path: Path
) -> None:
    """The variables of a deployment lead to it: files are dropped, judged and queried."""
    gate.put_contract(contract(_TABLE, "csv", "shared"))
    (tmp_path / "orders.csv").write_text("id,amount\n1,10\n")
    said = _run(
        installed, tmp_path, *("drop", "orders.csv", "--table", _TABLE, "--wait"), **gate.stack.env
    )
    assert said.returncode == 0, said.stderr
    said = _run(installed, tmp_path, "runs", "--table", _TABLE, **gate.stack.env)
    assert "published" in said.stdout, said.stderr


def test_a_program_works_without_a_checkout(installed: Path, gate: Gate, tmp_path: Path) -> None:
    """The Python API is in the package with its types, and works with a deployment's variables."""
    gate.put_contract(contract(_TABLE, "csv", "shared"))
    (tmp_path / "more.csv").write_text("id,amount\n7,10\n")
    said = _run(installed.with_name("python"), tmp_path, "-c", _PROGRAM, **gate.stack.env)
    assert (said.returncode, said.stdout) == (0, "published 1\n[{'id': 7}]\n"), said.stderr


@pytest.mark.parametrize("command", [["up"], ["demo"], ["deploy", "--stage", "dev"], ["runs"]])
def test_a_command_that_needs_a_checkout_says_so(
    installed: Path, tmp_path: Path, command: list[str]
) -> None:
    """The message names what is missing, and nothing is written beside the package."""
    said = _run(installed, tmp_path, *command, AWS_DEFAULT_REGION="eu-central-1")
    assert (said.returncode, said.stdout) == (1, "")
    assert "NO_CHECKOUT" in said.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("command", "extra"), [("page", "page"), ("contract", "spark")])
def test_a_missing_part_of_the_package_is_named(
    installed: Path, tmp_path: Path, command: str, extra: str
) -> None:
    """The message names the extra that brings the library."""
    (tmp_path / "orders.csv").write_text("id,amount\n1,10\n")
    (tmp_path / "orders.yaml").write_text(contract("shop.orders", "csv"))
    test = ["test", "orders.yaml", "--data", "orders.csv"] if command == "contract" else []
    said = _run(installed, tmp_path, command, *test, AWS_DEFAULT_REGION="eu-central-1")
    assert said.returncode == 1
    assert f"lakegate[{extra}]" in said.stderr
