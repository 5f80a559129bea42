"""`lakegate probe` keeps what it measured."""

import json
from pathlib import Path

import pytest

from cli.operate.probe import save
from lakegate.errors import LakegateError


def test_findings_are_saved_or_the_place_is_refused(tmp_path: Path) -> None:
    """A place that cannot be written is an error in words, as for other commands."""
    save({"runs": []}, tmp_path / "found.json")
    assert json.loads((tmp_path / "found.json").read_text()) == {"runs": []}
    with pytest.raises(LakegateError, match=r"CANNOT_WRITE.*No such file.*\nGive another"):
        save({}, tmp_path / "missing" / "found.json")
