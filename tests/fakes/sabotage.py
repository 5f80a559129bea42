"""A second copy of Lakegate and its fakes, in which single functions are replaced."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from types import ModuleType
from typing import Any

_OURS = ("functions", "lakegate", "spark_jobs", "tests")
# The test configures log lines and metrics, and schemas need no second validation.
_SHARED = ("functions.telemetry", "tests.fakes.schema")
_copy: dict[str, ModuleType] = {}


@dataclass(frozen=True)
class Patch:
    """A replacement `instead` for a function, `Class.method` or property of a module or class.

    It is called with the original function, then with the call's arguments. It replaces a function
    wherever the copy has bound it; a name that a module imports is replaced in that module alone.
    """

    owner: ModuleType | type
    name: str
    instead: Callable[..., Any]


@contextmanager
def second_copy() -> Iterator[None]:
    """Make imports find a second copy of Lakegate, the same one each time.

    It shares only the modules for logs, metrics and schemas with the first copy.
    """
    first = _taken_out()
    sys.modules.update(_copy)
    try:
        yield
    finally:
        _copy.update(_taken_out())
        sys.modules.update(first)


@contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    """Replace functions of the copy that is imported now. Raise LookupError for unknown names."""
    replaced: list[tuple[Any, str, Any]] = []
    try:
        for patch in patches:
            *classes, last = patch.name.split(".")
            owner = patch.owner
            for each in classes:
                owner = _found(owner, each)
            original = _found(owner, last)
            for place, name in list(_bindings(owner, last, original)):
                replaced.append((place, name, original))
                setattr(place, name, _replacement(original, patch.instead))
        yield
    finally:
        for place, name, original in reversed(replaced):
            setattr(place, name, original)


def _found(owner: ModuleType | type, name: str) -> Any:
    """Return the attribute of a module or class. Raise LookupError for an unknown name."""
    if name not in vars(owner):
        raise LookupError(f"{owner.__name__} has no {name}: has the function got another name?")
    return vars(owner)[name]


def _bindings(owner: ModuleType | type, name: str, original: Any) -> Iterator[tuple[Any, str]]:
    """Yield each module or class that has bound the original, and its name there."""
    yield owner, name
    if isinstance(owner, ModuleType) and original.__module__ == owner.__name__:
        for module in [sys.modules[each] for each in sys.modules if _is_ours(each)]:
            for key, value in vars(module).items():
                if value is original and module is not owner:
                    yield module, key


def _replacement(original: Any, instead: Callable[..., Any]) -> Any:
    if isinstance(original, property):
        return property(_replacement(original.fget, instead))

    @wraps(original)
    def replaced(*args: Any, **named: Any) -> Any:
        return instead(original, *args, **named)

    return replaced


def _taken_out() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if _is_ours(name)}


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in _OURS and module not in _SHARED
