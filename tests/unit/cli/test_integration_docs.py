"""The examples in docs/integrations.md work."""

import re
import shlex
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from access.deployment.checkout import ROOT
from access.ingestions.measures import measures
from cli.main import app
from functions.model.ingestion import ALERTED, State
from functions.operations.compaction.compact import Step
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger

TEXT = (ROOT / "docs" / "integrations.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the guide's examples in a language."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


COMMANDS = [
    line
    for block in [*blocks("sh"), *blocks("yaml")]
    for line in re.findall(r"^(?: *- )?(lakegate .*)$", block, re.MULTILINE)
]


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_is_one(line: str) -> None:
    """Every command in the guide exists, with the options that it is shown with."""
    _, *words = shlex.split(line.partition(">")[0])
    said = CliRunner().invoke(app, [*words, "--help"])  # which is answered after all are parsed
    assert said.exit_code == 0, said.output


def test_the_workflow_uses_the_actions_inputs() -> None:
    """The example for GitHub sets inputs that the action has."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (job,) = yaml.safe_load(blocks("yaml")[0])["jobs"].values()
    assert job["steps"][-1]["with"].keys() <= action["inputs"].keys()


def test_the_hook_exists() -> None:
    """The example for pre-commit names a hook of this repository."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (used,) = [yaml.safe_load(block) for block in blocks("yaml") if "repos:" in block]
    assert used["repos"][0]["hooks"][0]["id"] in [hook["id"] for hook in hooks]


def test_every_metric_is_listed() -> None:
    """The guide lists what the functions and `lakegate metrics` write, and nothing else."""
    code = "".join(file.read_text() for file in (ROOT / "functions").rglob("*.py"))
    written = {*re.findall(r'(?:add_metric|count_files)\("(\w+)"', code)}
    written |= {state.capitalize() for state in (*ALERTED, State.PUBLISHED, State.IGNORED)}
    written |= {f"Compactions{step.title()}" for step in (Step.PUBLISHED, Step.DROPPED)}
    table = TEXT[TEXT.index("## CloudWatch") :]
    assert {*re.findall(r"`([A-Z]\w+[a-z])`", table[table.index("| metric") :])} == written
    ledger: Any = FakeLedger(FakeClock().now)
    names = {f"lakegate_{each.name}" for each in measures(ledger, FakeClock().now())}
    assert {*re.findall(r"^\| `(lakegate_\w+)`", TEXT, re.MULTILINE)} == names
