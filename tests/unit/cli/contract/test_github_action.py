"""The GitHub Action: its shell steps, run as a runner runs them."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
import yaml

from access.deployment.checkout import ROOT
from tests.unit.contract.contract_texts import contract_text

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
# `contract test` starts Spark: here it only says that it was called, and fails for `bad`.
_LAKEGATE = f"""\
#!/usr/bin/env bash
if [ "$2" = test ]; then echo "tested $3 with $5${{9:+ as $9}}"; [[ $3 != *bad* ]]; exit; fi
PYTHONPATH={quote(str(ROOT))} exec {quote(sys.executable)} -c 'from cli.main import app; app()' "$@"
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with contracts, samples and a `lakegate` on its PATH."""
    program = tmp_path / "bin" / "lakegate"
    program.parent.mkdir()
    program.write_text(_LAKEGATE)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    home = tmp_path / "repository"
    for name in ("good", "same", "bad", "bare"):
        file = home / "contracts" / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(contract_text().replace("shop.orders", f"shop.{name}"))
        if name != "bare":
            (home / "samples" / name).mkdir(parents=True)
            (home / "samples" / name / "a.csv").write_text("id\n1\n")
    git(home, "init", "--quiet")
    commit(home)
    return home


def git(home: Path, *arguments: str) -> str:
    own = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *own, *arguments], cwd=home, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(home: Path) -> str:
    """Commit everything; return the commit."""
    git(home, "add", ".")
    git(home, "commit", "--quiet", "--allow-empty", "-m", "x")
    return git(home, "rev-parse", "HEAD")


def run(home: Path, step: str, **inputs: str) -> tuple[int, list[str]]:
    """Run a step as GitHub's runner does; return its exit code and its lines."""
    (script,) = [each["run"] for each in ACTION["runs"]["steps"] if each.get("name") == step]
    path = f"{home.parent / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=home,
        env={**os.environ, "PATH": path, "CONTRACTS": "contracts", "SAMPLES": "samples", **inputs},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_all_contracts_are_checked(repository: Path) -> None:
    """The step fails with annotations if one contract is wrong."""
    assert run(repository, "Check all contracts")[0] == 0
    (repository / "contracts" / "bad.yaml").write_text("kind: DataContract\n")
    code, said = run(repository, "Check all contracts")
    assert code == 1
    assert any(line.startswith("::error file=contracts/bad.yaml,line=1,") for line in said)


def test_only_what_changed_is_audited(repository: Path) -> None:
    """A contract is tried if it or its samples changed since the base, and has samples."""
    base = git(repository, "rev-parse", "HEAD")
    (repository / "samples" / "good" / "b.csv").write_text("id\n2\n")
    with (repository / "contracts" / "bare.yaml").open("a") as file:
        file.write("# changed\n")
    commit(repository)
    assert run(repository, "Audit samples", BASE=base) == (
        0,
        ["tested contracts/good.yaml with samples/good"],
    )
    with (repository / "contracts" / "bad.yaml").open("a") as file:
        file.write("# changed\n")
    commit(repository)
    code, said = run(repository, "Audit samples", BASE=base)
    assert (code, len(said)) == (1, 2), "one failure stops no other audit"


def test_each_table_of_a_contract_has_a_folder_of_samples(repository: Path) -> None:
    """Files in a folder are audited as of the table with its name; `_` hides a folder."""
    for name in ("shop.bad", "shop.lines", "_drafts"):
        (repository / "samples" / "bad" / name).mkdir()
        (repository / "samples" / "bad" / name / "a.csv").write_text("id\n1\n")
    (repository / "samples" / "bad" / "a.csv").rename(repository / "samples" / "bad" / ".gitkeep")
    code, said = run(repository, "Audit samples", BASE="")
    assert (code, [line for line in said if "bad" in line]) == (
        1,
        [
            "tested contracts/bad.yaml with samples/bad/shop.bad/ as shop.bad",
            "tested contracts/bad.yaml with samples/bad/shop.lines/ as shop.lines",
        ],
    )


@pytest.mark.parametrize("base", ["", "0" * 40])
def test_without_a_base_everything_is_audited(repository: Path, base: str) -> None:
    """In a shallow clone, and for a new branch, no contract is left out."""
    assert len(run(repository, "Audit samples", BASE=base)[1]) == 3


def test_the_steps_have_what_they_use() -> None:
    """Each input of a step is declared, and each variable of its script is set."""
    for step in ACTION["runs"]["steps"]:
        for name in step.get("env", {}):
            assert f"${name}" in step["run"].replace("{", "")
        for value in {**step.get("env", {}), **step.get("with", {})}.values():
            assert value.split("inputs.")[1].split()[0] in ACTION["inputs"]
