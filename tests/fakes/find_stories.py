"""Find the stories of the guards again: `.venv/bin/python -m tests.fakes.find_stories [NAME …]`.

Without names these are the stories that no longer break a promise, as happens when the number of
calls changes. The stories are written to tests/fakes/guards/stories.py; review them before commit.
"""

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from functions.telemetry import logger
from tests.fakes import events, forgeries, stage, upkeep_events
from tests.fakes.sabotage import patched, second_copy
from tests.fakes.stage import Story

_STORIES = Path(__file__).parent / "guards" / "stories.py"
_PREFIX = "tests.fakes.guards"


def main(names: list[str]) -> None:
    """Search for the stories with these names, and write them."""
    with second_copy():
        guards = importlib.import_module(f"{_PREFIX}.guards").GUARDS
    if unknown := set(names) - set(guards):
        raise SystemExit(f"unknown guards: {', '.join(sorted(unknown))}")
    told = _told()
    failed = False
    with ProcessPoolExecutor() as pool:
        lasting = dict(zip(guards, pool.map(_still_breaks, guards), strict=True))
        wanted = names or [name for name in guards if not lasting[name]]
        searches = {pool.submit(_searched, name): name for name in wanted}
        for search in as_completed(searches):
            name = searches[search]
            try:
                told[name] = search.result()
            except LookupError as error:
                failed = True
                sys.stderr.write(f"{name}: {error}\n")
                continue
            sys.stdout.write(f"{name}: {told[name]}\n")
            _write({each: told[each] for each in guards if each in told})
    raise SystemExit(int(failed))


def _still_breaks(name: str) -> bool:
    """Return whether the stored story breaks the promise without the guard."""
    logger.setLevel("CRITICAL")
    with second_copy():
        guard = importlib.import_module(f"{_PREFIX}.guards").GUARDS[name]
        search = importlib.import_module(f"{_PREFIX}.search")
        with patched(guard.patches):
            return bool(search.breaks(guard, _stored().get(name, ())))


def _searched(name: str) -> str:
    """Return the story of a guard as Python."""
    logger.setLevel("CRITICAL")
    with second_copy():
        guard = importlib.import_module(f"{_PREFIX}.guards").GUARDS[name]
        search = importlib.import_module(f"{_PREFIX}.search")
        return str(search.source(search.find(guard, _stored().get(name, ()))))


def _told() -> dict[str, str]:
    """Return the stored stories as Python."""
    with second_copy():
        search = importlib.import_module(f"{_PREFIX}.search")
        return {name: search.source(story) for name, story in _stored().items()}


def _stored() -> Mapping[str, Story]:
    """Return the stored stories, made of the copy's classes."""
    try:
        stories: Mapping[str, Story]
        stories = importlib.import_module(f"{_PREFIX}.stories").STORIES
    except (ImportError, AttributeError):  # the file is missing, or names events that are gone
        return {}
    return stories


def _write(told: dict[str, str]) -> None:
    text = "".join(f"    {name!r}: {story},\n" for name, story in told.items())
    used = {"Story", *re.findall(r"\b([A-Z][A-Za-z]*)[.(]", text)}
    imports = (f"from {module} import {name}\n" for name in used for module in _modules(name))
    doc = "The stories of the guards, each of which breaks a promise, by find_stories."
    stories = f"STORIES: dict[str, Story] = {{\n{text}}}\n"
    _STORIES.write_text(f'"""{doc}"""\n\n{"".join(imports)}\n{stories}')
    ruff = Path(sys.executable).with_name("ruff")
    for command in (["check", "--select", "I", "--fix", "--quiet"], ["format", "--quiet"]):
        subprocess.run([ruff, *command, _STORIES], check=True)


def _modules(name: str) -> Iterator[str]:
    """Yield the module that defines the class of an event's text, or Story."""
    if name == "Story":
        yield stage.__name__
    for module in (events, forgeries, stage, upkeep_events):
        if getattr(vars(module).get(name), "__module__", "") == module.__name__:
            yield module.__name__


if __name__ == "__main__":
    main(sys.argv[1:])
