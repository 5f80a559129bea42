"""The code's imports are those that docs/architecture.md allows."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
_ROW = re.compile(r"^\| `([a-z_.]+)` \|[^|]*\|([^|]*)\|$", re.MULTILINE)
ALLOWED = {name: set(re.findall(r"`([a-z_.]+)`", row)) for name, row in _ROW.findall(PAGE)}
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for top in {name.partition(".")[0] for name in ALLOWED}
    for path in (ROOT / top).rglob("*.py")
}
_SHARED = {"functions.settings", "functions.telemetry"}


def package(module: str) -> str:
    """Return the package of the table that a module belongs to."""
    parent = module.rpartition(".")[0]
    while parent and parent not in ALLOWED:
        parent = parent.rpartition(".")[0]
    return parent or module


@cache
def imported(module: str, *, at_start: bool = False) -> frozenset[str]:
    """Return the modules of ours that a module imports: at any time, or only at its start."""
    tree = ast.parse(MODULES[module].read_text("utf-8"))
    names: list[str] = []
    for node in tree.body if at_start else ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{each.name}" for each in node.names]
    found = {name if name in MODULES else name.rpartition(".")[0] for name in names}
    return frozenset(found & MODULES.keys())


@cache
def reached(module: str) -> frozenset[str]:
    """Return every module of ours that importing a module imports."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        new = imported(waiting.pop(), at_start=True) - seen
        seen |= new
        waiting += new
    return frozenset(seen)


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_a_package_imports_only_what_it_may(name: str) -> None:
    """Each import leads to the package itself, to `lakegate`, or to a package the page allows."""
    allowed = ALLOWED[name] | {name, "lakegate"}
    refused = [
        f"{module} imports {other}"
        for module in MODULES
        if package(module) == name
        for other in sorted(imported(module))
        if package(other) not in allowed
        and package(other).partition(".")[0] not in allowed
        and not (name.startswith("functions.") and other in _SHARED)
    ]
    assert not refused


def test_every_module_belongs_to_a_package_of_the_page() -> None:
    """A new package is added to the page."""
    packages = {module.rpartition(".")[0] for module in MODULES}
    assert {name for name in packages if name.startswith("functions.")} <= ALLOWED.keys()
    assert {name.partition(".")[0] for name in packages if name} <= ALLOWED.keys()


def test_no_module_imports_itself_through_others() -> None:
    """There are no import cycles."""
    assert [module for module in MODULES if module in reached(module)] == []


def test_the_upload_lambda_stays_small() -> None:
    """The upload Lambda imports neither the publisher nor Slack."""
    unwanted = ("functions.pipeline.publish", "functions.notifications.slack")
    assert [each for each in reached("functions.on_upload") if each.startswith(unwanted)] == []


def test_every_module_on_the_page_exists() -> None:
    """The page's reading order names modules that exist."""
    named = set(re.findall(r"`((?:functions|lakegate|spark_jobs)/[\w/]+\.py)`", PAGE))
    assert len(named) > 30
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
