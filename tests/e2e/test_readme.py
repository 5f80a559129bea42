"""The README, and the first steps that it leads to, followed to the letter by a newcomer."""

import re
from pathlib import Path

import pytest

from access.deployment.checkout import ROOT
from tests.e2e.conftest import followed

pytestmark = pytest.mark.stack


def test_every_first_step_works(tmp_path: Path, newcomer: dict[str, str]) -> None:
    """The first steps' files, commands and program, used in their order, all succeed."""
    said = followed(ROOT / "docs" / "start.md", tmp_path, newcomer)
    assert "rejected, as it should be" in said
    assert "1000.0" in said.split("rejected, as it should be")[1]


def test_what_the_readme_makes_can_be_made() -> None:
    """Every `make` command in the README names a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {"demo", "test"} <= set(named) <= targets
