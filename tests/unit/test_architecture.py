"""docs/architecture.md describes the code as it is."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def test_every_module_on_the_page_exists() -> None:
    """Each module in the reading order and the instructions is a file of this checkout."""
    named = set(re.findall(r"`((?:functions|lakegate|spark_jobs|dashboard)/[\w/]+\.py)`", PAGE))
    assert len(named) > 30
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_package_is_on_the_page() -> None:
    """The table of packages names each package of the functions, and no other."""
    rows = re.findall(r"^\| `functions\.(\w+)` \|", PAGE, re.MULTILINE)
    packages = {path.parent.name for path in (ROOT / "functions").glob("*/__init__.py")}
    assert set(rows) == packages
