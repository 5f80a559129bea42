"""The page of the Python API and its notebook, followed to the letter on the running stack.

tests/unit/access/test_gate.py has each method.
"""

import json
import sys
from pathlib import Path

import pytest

from access.deployment.checkout import ROOT
from tests.e2e.conftest import done, followed

pytestmark = pytest.mark.stack


def test_the_page_and_the_notebook_work(tmp_path: Path, newcomer: dict[str, str]) -> None:
    """The page's commands and programs succeed, and then the notebook, cell by cell."""
    said = followed(ROOT / "docs/python.md", tmp_path, newcomer)
    assert "published 2" in said
    notebook = json.loads((ROOT / "docs/examples/decisions.ipynb").read_text())
    cells = ["".join(each["source"]) for each in notebook["cells"] if each["cell_type"] == "code"]
    said = done([sys.executable, "-c", "\n".join(cells)], tmp_path, newcomer)
    assert "approved by Ada" in said
