"""docs/commands.md lists the commands as they are, and no page shows another one."""

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from access.deployment.checkout import ROOT
from cli.main import app

PAGES = (ROOT / "docs" / "commands.md", ROOT / "README.md")
ALL_PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_SHOWN = re.compile(r"(?:^ *|`)lakegate (?:--stage \S+ )?([a-z][^`\n|>&#]*)", re.MULTILINE)


def listed(text: str) -> list[str]:
    """Return the commands in the first column of a page's tables, without the name `lakegate`."""
    cells = re.findall(r"^\| (`lakegate .*?`) \|", text, re.MULTILINE)
    return [each for cell in cells for each in re.findall(r"`lakegate (.*?)`", cell)]


def options(shown: str) -> set[str]:
    """Return the options of a command as a page shows it, without what stands in quotes."""
    return set(re.findall(r"(?<!\w)--?[a-z][a-z-]*", re.sub(r'"[^"]*"', "", shown)))


def known() -> Iterator[tuple[str, set[str]]]:
    """Yield each command's words, with the options that it knows."""
    top: Any = get_command(app)
    for name, later in top.commands.items():
        command = later.loaded() if hasattr(later, "loaded") else later
        for under, each in getattr(command, "commands", {"": command}).items():
            given = [{*param.opts, *param.secondary_opts} for param in each.params]
            yield f"{name} {under}".strip(), set().union(*given)


COMMANDS = dict(known())


def words(shown: str) -> str:
    """Return the words of a command before its arguments and options."""
    return " ".join(takewhile(lambda word: word.isalpha() and word.islower(), shown.split()))


def test_every_command_is_listed() -> None:
    """The page has each command of the command line, and no other."""
    assert {words(each) for each in listed(PAGES[0].read_text())} == set(COMMANDS)


@pytest.mark.parametrize("shown", [each for page in PAGES for each in listed(page.read_text())])
def test_a_command_has_the_options_that_it_is_listed_with(shown: str) -> None:
    """Each option beside a command in a table is one of that command."""
    assert options(shown) <= COMMANDS[words(shown)]


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_a_page_shows_commands_that_exist(page: Path) -> None:
    """Each command in a page's code, with its options, is one of the command line."""
    for shown in _SHOWN.findall(page.read_text()):
        names = [name for name in COMMANDS if f"{shown} ".startswith(f"{name} ")]
        assert names, shown
        assert options(shown) <= {"--help"}.union(*(COMMANDS[name] for name in names)), shown
