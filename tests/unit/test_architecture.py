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


def test_a_files_way_through_the_job_can_be_read() -> None:
    """The named path has at most 10 modules and 2,000 lines, and the page says how many."""
    found = re.search(
        r"way through the job\*\* \((\d+) modules, ([\d,]+) lines\):(.*?)\n\n", PAGE, re.DOTALL
    )
    assert found
    modules = re.findall(r"`(spark_jobs/[\w/]+\.py)`", found[3])
    lines = sum(len((ROOT / path).read_text().splitlines()) for path in modules)
    assert (len(modules), round(lines, -2)) == (int(found[1]), int(found[2].replace(",", "")))
    assert len(modules) <= 10
    assert lines <= 2000


def test_a_package_of_the_job_has_at_most_twelve_modules() -> None:
    """Who opens a room of the job sees all of it."""
    packages = {file.parent for file in (ROOT / "spark_jobs").rglob("__init__.py")}
    rooms = {path.name: len(list(path.glob("[!_]*.py"))) for path in packages}
    assert {name: count for name, count in rooms.items() if count > 12} == {}


def test_every_package_is_on_the_page() -> None:
    """The table of packages names each package of the functions, and no other."""
    rows = re.findall(r"^\| `functions\.(\w+)` \|", PAGE, re.MULTILINE)
    packages = {path.parent.name for path in (ROOT / "functions").glob("*/__init__.py")}
    assert set(rows) == packages
