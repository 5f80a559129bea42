"""Find a short story that breaks a promise after a guard is removed."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from hypothesis.errors import FlakyFailure

from functions.telemetry import metrics
from tests.fakes.guards.guard import Guard
from tests.fakes.machine import tell
from tests.fakes.openings import NOTHING
from tests.fakes.sabotage import patched
from tests.fakes.stage import Story
from tests.fakes.stories import OPENINGS, explore_with, stories

_MOST_STORIES = 30_000
_T = TypeVar("_T")


class _Found(Exception):
    """A story breaks the promise."""


def find(guard: Guard, before: Story = NOTHING) -> Story:
    """Return a short story that breaks the promise without the guard. Raise LookupError.

    `before` is the story that broke it earlier: stories with the same beginning are tried.
    """
    with patched(guard.patches):
        return _shortened(_drawn(guard, before), lambda story: breaks(guard, story))


def breaks(guard: Guard, story: Story) -> bool:
    """Return whether the story breaks the guard's promise with the code as it is patched now."""
    metrics.clear_metrics()
    try:
        tell(story)
    except AssertionError as broken:
        return bool(re.search(guard.breach, str(broken)))
    except Exception:  # noqa: BLE001 - the story fails in another way: it proves nothing
        return False
    return False


def _drawn(guard: Guard, before: Story) -> Story:
    found: list[Story] = []

    def play(story: Story) -> None:
        if breaks(guard, story):
            found.append(story)
            raise _Found

    openings = [guard.opening] if guard.opening else list(OPENINGS)
    openings += [before[:length] for length in range(1, len(before) + 1)]
    with suppress(_Found, FlakyFailure):
        explore_with(play, stories(openings), _MOST_STORIES, 0, shrinks=False)
    if not found:
        raise LookupError(f"no story breaks the promise without this guard: {guard.name}")
    return found[0]


def _shortened(story: Story, is_enough: Callable[[Story], bool]) -> Story:
    """Return the story with only the necessary events, each as plain as possible."""
    before: Story = ()
    while tuple(story) != tuple(before):
        before = story
        story = _fewer(story, is_enough)
        for nth in range(len(story)):
            story = _plainer(story, nth, is_enough)
    return tuple(story)


def _fewer(items: Sequence[_T], is_enough: Callable[[Sequence[_T]], bool]) -> Sequence[_T]:
    """Return only the necessary items; remove many at once where possible."""
    size = len(items)
    while size := size // 2:
        nth = len(items)
        while (nth := nth - size) > -size:
            fewer = (*items[: max(nth, 0)], *items[nth + size :])
            if is_enough(fewer):
                items = fewer
    return items


def _plainer(story: Story, nth: int, is_enough: Callable[[Story], bool]) -> Story:
    """Return the story with its nth event as plain as possible."""
    for plain in _plain(story[nth]):
        plainer = (*story[:nth], plain, *story[nth + 1 :])
        if is_enough(plainer):
            return _plainer(plainer, nth, is_enough)
    return story


def _plain(event: Any) -> Iterator[Any]:
    """Yield the event with one field plainer: its default, a smaller number, fewer events."""
    for field in fields(event) if is_dataclass(event) else ():
        value: Any = getattr(event, field.name)
        plainer: list[Any] = [] if field.default is MISSING else [field.default]
        if isinstance(value, int):
            plainer += range(value)
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
            plainer += [(*value[:nth], *value[nth + 1 :]) for nth in range(len(value))]
        for each in plainer:
            if each != value:
                yield replace(event, **{field.name: each})


def source(event: Any) -> str:
    """Return the Python expression that makes the event, without default values."""
    if isinstance(event, Enum):
        return f"{type(event).__name__}.{event.name}"
    if is_dataclass(event):
        given: list[str] = []
        for nth, field in enumerate(fields(event)):
            value = getattr(event, field.name)
            if value != field.default:
                name = "" if nth == len(given) else f"{field.name}="
                given.append(name + source(value))
        return f"{type(event).__name__}({', '.join(given)})"
    if isinstance(event, tuple | list):
        return f"({''.join(f'{source(each)}, ' for each in event)})"
    return repr(event)
