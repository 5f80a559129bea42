"""The README, followed to the letter by a newcomer."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from access.deployment import ROOT
from tests.e2e.conftest import Gate

pytestmark = pytest.mark.stack

_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def newcomer(tmp_path: Path, gate: Gate) -> dict[str, str]:
    """Return the environment of a newcomer in an empty folder, with the project's environment.

    The stack runs already; `gate` itself tests that `lakegate up` starts it from nothing.
    """
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "LAKEGATE_"))}
    return env | {"LAKEGATE_HOME": str(gate.home), "COLUMNS": "120"}


def test_every_command_in_the_readme_works(tmp_path: Path, newcomer: dict[str, str]) -> None:
    """The README's files, commands and program, used in their order, all succeed."""
    script = ["set -euo pipefail"]
    for language, name, text in _BLOCK.findall((ROOT / "README.md").read_text()):
        if name:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        elif language == "sh":
            script.append(text)
        elif language == "python":
            script.append(f"python - <<'PROGRAM'\n{text}PROGRAM\n")
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=newcomer,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rejected, as it should be" in done.stdout
    assert "1000.0" in done.stdout.split("rejected, as it should be")[1]


def test_what_the_readme_makes_can_be_made() -> None:
    """Every `make` command in the README names a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {"demo", "test"} <= set(named) <= targets
