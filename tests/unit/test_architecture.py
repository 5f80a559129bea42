"""docs/architecture.md describes the code as it is."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
SHARED, OWN = "From a landed object to main: a small file", "A file with a run of its own"
PACKAGES = ("access", "cli", "dashboard", "functions", "infra", "lakegate", "spark_jobs", "tests")
ENTRIES = {"functions/on_upload.py", "spark_jobs/main.py", "functions/on_job_run.py"}


def way(title: str) -> tuple[tuple[int, int], list[str]]:
    """Return how many modules and lines a path has by the page, and its modules in order."""
    start = PAGE.index(f"**{title}** (")
    form = r".*?\((\d+) modules, ([\d,]+) lines[^\n]*\n\n(.*?)\n\n"
    found = re.match(form, PAGE[start:], re.DOTALL)
    assert found
    modules = re.findall(r"`((?:functions|spark_jobs)/[\w/]+\.py)`", found[3])
    return (int(found[1]), int(found[2].replace(",", ""))), modules


def imported(path: str) -> set[str]:
    """Return the files that a module may import from, by its import statements."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    names = {node.module for node in found} | {
        f"{node.module}.{alias.name}" for node in found for alias in node.names
    }
    return {f"{str(name).replace('.', '/')}.py" for name in names}


def test_every_module_on_the_page_exists() -> None:
    """Each module in the reading order and the instructions is a file of this checkout."""
    named = set(
        re.findall(r"`((?:access|cli|functions|lakegate|spark_jobs|dashboard)/[\w/]+\.py)`", PAGE)
    )
    assert len(named) > 30
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(("title", "most", "longest"), [(SHARED, 22, 4000), (OWN, 15, 3000)])
def test_a_files_way_can_be_read(title: str, most: int, longest: int) -> None:
    """The path has few modules and lines, and the page says how many."""
    said, modules = way(title)
    lines = sum(len((ROOT / path).read_text("utf-8").splitlines()) for path in modules)
    assert (len(modules), round(lines, -2)) == said
    assert len(modules) <= most
    assert lines <= longest


@pytest.mark.parametrize("title", [SHARED, OWN])
def test_each_step_of_a_way_leads_to_the_next(title: str) -> None:
    """Each module of the path but the entries of processes is imported by one before it."""
    _, modules = way(title)
    for number, path in enumerate(modules):
        if path not in ENTRIES:
            assert any(path in imported(before) for before in modules[:number]), path


def test_a_package_has_at_most_twelve_modules() -> None:
    """Who opens a room sees all of it; but each Lambda is a module."""
    names = ("access", "cli", "dashboard", "functions", "infra", "lakegate", "spark_jobs")
    packages = {file.parent for name in names for file in (ROOT / name).rglob("__init__.py")}
    packages -= {ROOT / "functions"}
    rooms = {str(path): len(list(path.glob("[!_]*.py"))) for path in packages}
    assert {name: count for name, count in rooms.items() if count > 12} == {}


def test_no_comment_divides_a_module() -> None:
    """A module has one subject: what needs a heading has a module of its own."""
    divided = re.compile(r"\n\n(?:# .*\n)+\n")
    modules = (file for name in PACKAGES for file in (ROOT / name).rglob("*.py"))
    assert [str(file) for file in modules if divided.search(file.read_text("utf-8"))] == []


def test_every_package_is_on_the_page() -> None:
    """The table of packages names each package of the functions, and no other."""
    rows = re.findall(r"^\| `functions\.(\w+)` \|", PAGE, re.MULTILINE)
    packages = {path.parent.name for path in (ROOT / "functions").glob("*/__init__.py")}
    assert set(rows) == packages
