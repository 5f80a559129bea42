"""Read a contract field by field: each problem is noted with its place, and reading goes on."""

from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from math import isfinite
from typing import TypeVar

from lakegate.contract.text.problems import Problem, suggestion, unknown_key
from lakegate.contract.text.yaml import Node

_ENOUGH = 100  # problems: to find what was probably meant takes long
_Known = TypeVar("_Known")


class Field:
    """A place in a contract's text.

    Every method returns a value of its type; if the contract has something else there, the problem
    is noted, and the caller must look for problems at the end.
    """

    def __init__(self, node: Node, path: str, problems: list[Problem]) -> None:
        self.node = node
        self.path = path
        self.problems = problems

    @property
    def given(self) -> bool:
        """Return if there is anything but null here."""
        return self.node.value is not None

    def refuse(self, reason: str, key: str = "") -> None:
        """Note that this field, or the one under `key` in it, is wrong."""
        place = self._keys().get(key, self.node)
        self.problems.append(Problem(place.line, self._path(key), reason))

    def limit_keys(
        self,
        known: Collection[str],
        ignored: Collection[str] = (),
        refused: Mapping[str, str] | None = None,
    ) -> None:
        """Refuse every key that is neither known nor ignored; `refused` gives reasons for some.

        A known key must have a value: a text such as NULL is null in YAML.
        """
        if not isinstance(self.node.value, dict):
            self.refuse("must be a mapping of keys to values")
        for key in self._keys():
            if refused and key in refused:
                self.refuse(refused[key], key)
            elif key not in (*known, *ignored):
                alike = len(self.problems) < _ENOUGH
                self.refuse(unknown_key(key, known, alike=alike), key)
            elif key in known and not self.has(key):
                self.refuse("is null: give a value (text that looks like null in quotes)", key)

    def has(self, key: str) -> bool:
        """Return if the key is given, with anything but null."""
        return self._value(key) is not None

    def at(self, key: str) -> "Field":
        """Return the field under a key, null if it is not given."""
        node = self._keys().get(key, Node(self.node.line, None))
        return Field(node, self._path(key), self.problems)

    def items(self) -> "Iterator[Field]":
        """Return the fields of a list."""
        if isinstance(self.node.value, tuple):
            for index, node in enumerate(self.node.value):
                yield Field(node, f"{self.path}[{index}]", self.problems)
        elif self.given:
            self.refuse("must be a list")

    def text(self, key: str, default: str = "") -> str:
        """Return the text under a key."""
        value = self._value(key)
        if isinstance(value, str):
            return value
        if self.has(key):
            self.refuse("must be text; numbers and true or false become text in quotes", key)
        return default

    def required_text(self, key: str) -> str:
        """Return the text under a key that is required and not empty."""
        text = self.text(key)
        if not self.has(key):
            self.refuse("is missing", key)
        elif not text and isinstance(self._value(key), str):
            self.refuse("is empty", key)
        return text

    def choice(self, key: str, choices: Collection[str], default: str = "") -> str:
        """Return the text under a key, one of the choices; required without a default."""
        if not default and not self.has(key):
            self.refuse(f"is missing: give one of {', '.join(choices)}", key)
            return default
        text = self.text(key, default) if default else self.required_text(key)
        if text in choices:
            return text
        if text or default:
            near = suggestion(text, choices)
            self.refuse(f"unknown {key} {text!r}{near}; use one of {', '.join(choices)}", key)
        return default

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Return the boolean under a key."""
        value = self._value(key)
        if isinstance(value, bool):
            return value
        if self.has(key):
            self.refuse("must be true or false, without quotes", key)
        return default

    def count(self, key: str) -> int | None:
        """Return the whole number, not below zero, under a key; None if it is not given."""
        value = self._value(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if self.has(key):
            self.refuse("must be a whole number, zero or more", key)
        return None

    def number(self, fits: Callable[[int | float], bool], reason: str) -> Decimal | None:
        """Return the number here as it is written; refuse another value, for a reason."""
        value = self.node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not fits(value):
            self.refuse(reason)
            return None
        is_written = isinstance(value, float) and isfinite(value)  # 0x1F and .inf are not
        return Decimal(self.node.text if is_written else value)

    def known(
        self, name: str, known: Mapping[str, _Known], what: str, key: str = ""
    ) -> _Known | None:
        """Return what a name stands for; refuse an unknown one, as no `what`."""
        if name not in known:
            self.refuse(f"{name!r} is not {what}{suggestion(name, known)}", key)
        return known.get(name)

    def _keys(self) -> Mapping[str, Node]:
        return self.node.value if isinstance(self.node.value, dict) else {}

    def _value(self, key: str) -> object:
        node = self._keys().get(key)
        return node.value if node else None

    def _path(self, key: str) -> str:
        return f"{self.path}.{key}".strip(".") if key else self.path
