"""The built package, installed where there is no checkout, as `pipx` installs it."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import uv
import yaml

from access.deployment.checkout import ROOT
from infra.lambda_python import with_pyenv
from infra.local import jars
from tests.e2e.conftest import Gate, contract

pytestmark = pytest.mark.stack

_TABLE = "installed.orders"
_PROGRAM = f"""
from importlib.resources import files

import lakegate

assert all((files(package) / "py.typed").is_file() for package in ("lakegate", "access"))
gate = lakegate.connect()
(done,) = gate.wait(*gate.drop("more.csv", table="{_TABLE}"))
print(done.state, done.rows)
print(gate.query("SELECT DISTINCT id FROM {_TABLE} WHERE id = 7").to_pylist())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the package, as `make wheel` builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    (build,) = re.findall(
        r"^\t@\S+uv (build .* build/wheel)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    _uv(*build.replace("build/wheel", str(folder)).split())
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module", params=["3.11", "3.12", "3.13"])
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, wheel: Path
) -> Path:
    """Return the `lakegate` of a new environment, for each Python that the package supports."""
    home = tmp_path_factory.mktemp("installed")
    find = [uv.find_uv_bin(), "python", "find", "--no-project", "--no-python-downloads"]
    found = subprocess.run(
        [*find, request.param],
        env=with_pyenv(request.param),
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        pytest.skip(f"no Python {request.param} is here")
    _uv("venv", "--python", found.stdout.strip(), str(home / "venv"))
    python, pins = str(home / "venv/bin/python"), str(ROOT / "requirements/dev.txt")
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


@pytest.mark.parametrize("installed", ["3.13"], indirect=True)
def test_the_demo_runs_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    """The first `up` sets up a local stack, on which all commands work, and of which one is left.

    Four days are published; the broken one is rejected and in Slack.
    """
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(jars.cache().parents[1])}
    cache = subprocess.check_output([uv.find_uv_bin(), "cache", "dir"], text=True).strip()
    home["UV_CACHE_DIR"] = cache  # that of this machine
    try:
        said = _run(installed, tmp_path, "up", **home)
        assert said.returncode == 0, said.stderr
        demo = _run(installed, tmp_path, "demo", **home)
        assert demo.returncode == 0, demo.stderr
        assert "2013-01-05.parquet was rejected" in demo.stdout
        assert "0 rows before, 3,614 rows after (+3,614)" in demo.stdout
        assert "Slack #flights-data" in demo.stdout
        status = json.loads(_run(installed, tmp_path, "status", "--json", **home).stdout)
        assert set(status["health"].values()) == {"up"}
        copied = tmp_path / ".lakegate/project/.venv/bin/lakegate"  # as the demo may name it
        rows = _run(copied, tmp_path, "query", "SELECT count(*) FROM nyc.flights", **home)
        assert "3614" in rows.stdout, rows.stderr
    finally:
        said = _run(installed, tmp_path, "down", **home)
    assert "stopped slack, emr, nessie, ministack" in said.stderr


@pytest.mark.parametrize("installed", ["3.13"], indirect=True)
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["deploy", "--stage", "dev"], "NO_CHECKOUT"),
        *((["runs"], "NO_STACK"), (["status"], "NO_STACK"), (["rotate"], "NO_STACK")),
    ],
)
def test_a_command_that_finds_nothing_to_work_on_says_so(
    installed: Path, tmp_path: Path, command: list[str], code: str
) -> None:
    """The message names what is missing, and nothing is written or downloaded."""
    said = _run(
        installed, tmp_path, *command, AWS_DEFAULT_REGION="eu-central-1", HOME=str(tmp_path)
    )
    assert (said.returncode, said.stdout) == (1, "")
    assert code in said.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("installed", ["3.13"], indirect=True)
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
