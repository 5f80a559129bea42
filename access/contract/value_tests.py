"""What JSON Schema's words for one value demand of it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from lakegate.contract.text.yaml import Node

_NAMES = {
    "object": "a mapping of keys to values",
    "array": "a list",
    "string": "text, in quotes if it looks like a number, true or null",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}


_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (tuple,),
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _is(name: str, value: object) -> bool:
    """Return if a value has a type of JSON Schema, in which 1.0 is a whole number."""
    if isinstance(value, bool):
        return name == "boolean"
    has_part = isinstance(value, float) and not value.is_integer()
    return isinstance(value, _TYPES[name]) and not (name == "integer" and has_part)


_is_number = partial(_is, "number")


def _type_test(named: str | Sequence[str]) -> tuple[Callable[[Any], bool], str]:
    """Return the test of a type, or of one of several types."""
    names = [named] if isinstance(named, str) else named
    expected = " or ".join(_NAMES[name] for name in names)
    return lambda value: any(_is(name, value) for name in names), f"must be {expected}"


def _are_different(items: tuple[Node, ...]) -> bool:
    written = [json.dumps(each.plain(), sort_keys=True) for each in items]
    return len({*written}) == len(written)


# What holds for a value, and what to say if it does not.
TESTS: Mapping[str, Callable[[Any], tuple[Callable[[Any], bool], str]]] = {
    "type": _type_test,
    "const": lambda one: (lambda v: type(v) is type(one) and v == one, f"must be {one}"),
    "pattern": lambda form: (
        lambda v: not isinstance(v, str) or bool(re.search(form, v)),
        f"must have the form {form}",
    ),
    "minimum": lambda least: (
        lambda v: not _is_number(v) or v >= least,
        f"must be at least {least}",
    ),
    "exclusiveMinimum": lambda least: (
        lambda v: not _is_number(v) or v > least,
        f"must be above {least}",
    ),
    "minItems": lambda least: (
        lambda v: not isinstance(v, tuple) or len(v) >= least,
        f"must have at least {least} items",
    ),
    "maxItems": lambda most: (
        lambda v: not isinstance(v, tuple) or len(v) <= most,
        f"must have at most {most} items",
    ),
    "uniqueItems": lambda wanted: (
        lambda v: not (wanted and isinstance(v, tuple)) or _are_different(v),
        "must not have an item twice",
    ),
}
