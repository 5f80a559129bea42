"""The example of a pipeline runs commands that exist."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from cli.main import app

_ROOT = Path(__file__).parents[2]
_EXAMPLE = yaml.safe_load((_ROOT / "docs" / "examples" / "github-actions.yml").read_text())
_STEPS = [step for job in _EXAMPLE["jobs"].values() for step in job["steps"]]
_LAKEGATE: Any = get_command(app)
_COMMANDS = sorted({step["run"] for step in _STEPS if "run" in step})


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_step_of_the_example_can_be_run(command: str) -> None:
    """Each step is a target of the Makefile or parses as a command of lakegate."""
    program, *words = shlex.split(command.replace("$STAGE", "dev"))
    if program == "make":
        (target,) = words
        assert f"\n{target}:" in (_ROOT / "Makefile").read_text()
        return
    assert program == ".venv/bin/lakegate"
    name = next(word for word in words if word in _LAKEGATE.commands)
    rest = words[words.index(name) + 1 :]
    _LAKEGATE.commands[name].make_context(name, rest)


def test_the_example_stores_no_key() -> None:
    """The example gets its credentials by OpenID Connect, where it deploys and nowhere else."""
    asks = {n for n, job in _EXAMPLE["jobs"].items() if "id-token" in job.get("permissions", {})}
    assert asks == {"dev", "prod"}
    assert "secrets." not in (_ROOT / "docs" / "examples" / "github-actions.yml").read_text()
