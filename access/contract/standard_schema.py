"""Judge a contract by the standard's JSON Schema.

The schema closes an object to all keys but those that any of its rules knows. To find these keys,
jsonschema judges the nested values again, for each level three times. Here no value is judged for
it, so that the work grows with the contract.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, cast

from lakegate.contract.text.problems import Problem, suggestion, unknown_key
from lakegate.contract.text.yaml import Node

if TYPE_CHECKING:  # a tenth of a second, which help does not need
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

_LONGEST_REASON = 200
_MISSING, _UNKNOWN = "missing", "unknown"
_TYPES = {
    "object": "a mapping of keys to values",
    "array": "a list",
    "string": "text, in quotes if it looks like a number, true or null",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}
# What to say of a value that does not hold to a word of the schema, by the word's own value.
_REASONS = {
    "const": "must be {}",
    "pattern": "must have the form {}",
    "minimum": "must be at least {}",
    "exclusiveMinimum": "must be above {}",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "uniqueItems": "must not have an item twice",
    "oneOf": "fits several alternatives of the standard, and must fit one",
    "not": "has what the standard excludes here",
}


def schema_problems(tree: Node) -> list[Problem]:
    """Return what breaks the standard's schema in a contract.

    Unknown keys are left out beside and above another fault, which may be why they are unknown.
    """
    document: Any = tree.plain()
    errors = [_telling(each) for each in _standard().iter_errors(document)]
    telling = [each for each in errors if each.validator != _UNKNOWN]
    blamed = {path for each in telling for path in _around([*each.absolute_path])}
    unknown = [each for each in errors if each.validator == _UNKNOWN]
    unknown = [each for each in unknown if tuple(each.absolute_path) not in blamed]
    return [_problem(each, tree) for each in (*telling, *unknown)]


def standard_schema() -> dict[str, Any]:
    """Return the standard's JSON Schema.

    What v3.2.0 demands of maps holds there for every property without a logicalType, too.
    """
    file = resources.files("open_data_contract_standard") / "schema.json"
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    for each in schema["$defs"]["SchemaBaseProperty"]["allOf"]:
        if each.get("if") == {"properties": {"logicalType": {"const": "map"}}}:
            each["if"]["required"] = ["logicalType"]
    return schema


@cache
def _standard() -> "Validator":
    from jsonschema import Draft201909Validator, validators

    words = {
        "required": _required,
        "additionalProperties": _additional,
        "unevaluatedProperties": _unevaluated,
        "uniqueItems": _unique,
    }
    return validators.extend(Draft201909Validator, words)(standard_schema())


def _required(_: "Validator", keys: list[str], value: Any, __: Any) -> "Iterator[ValidationError]":
    if isinstance(value, dict):
        yield from (_of_key(key, _MISSING) for key in keys if key not in value)


def _additional(
    _: "Validator", __: bool, value: Any, schema: Mapping[str, Any]
) -> "Iterator[ValidationError]":
    return _closed(value, {*schema.get("properties", ())})


def _unevaluated(
    validator: "Validator", _: bool, value: Any, schema: Mapping[str, Any]
) -> "Iterator[ValidationError]":
    return _closed(value, _known(validator, value, schema))


def _unique(_: "Validator", __: bool, value: Any, ___: Any) -> "Iterator[ValidationError]":
    """Find an item that is there twice; jsonschema compares each mapping with all before it."""
    from jsonschema import ValidationError

    if isinstance(value, list) and len({_hashable(each) for each in value}) < len(value):
        yield ValidationError("an item is there twice")


def _hashable(value: Any) -> Any:
    """Return what equal values have in common: 1 is 1.0, but not true."""
    if isinstance(value, dict):
        return frozenset((key, _hashable(each)) for key, each in value.items())
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return isinstance(value, bool), value


def _closed(value: Any, known: set[str]) -> "Iterator[ValidationError]":
    if isinstance(value, dict):
        yield from (_of_key(key, _UNKNOWN, known) for key in value if key not in known)


def _of_key(key: str, rule: str, known: Iterable[str] = ()) -> "ValidationError":
    from jsonschema import ValidationError

    return ValidationError(key, validator=rule, validator_value=[*known])


def _known(validator: "Validator", value: Any, schema: Mapping[str, Any]) -> set[str]:
    """Return the keys that a schema knows in a mapping, without judging what they hold."""

    def fits(part: Mapping[str, Any]) -> bool:
        return validator.evolve(schema=part).is_valid(value)

    parts = [*schema.get("allOf", ())]
    parts += [each for word in ("anyOf", "oneOf") for each in schema.get(word, ()) if fits(each)]
    if "if" in schema and fits(schema["if"]):
        parts.append(schema.get("then", {}))
    if name := schema.get("$ref"):
        parts.append(_named(name))
    return {*schema.get("properties", ())}.union(*(_known(validator, value, p) for p in parts))


def _named(name: str) -> Mapping[str, Any]:
    """Return a part of the schema by its place, such as `#/$defs/Server`."""
    schema: Any = _standard().schema
    for step in name.removeprefix("#/").split("/"):
        schema = schema[step]
    return schema


def _telling(error: "ValidationError") -> "ValidationError":
    """Return, of alternatives none of which holds, the fault that is deepest in the value."""
    inner = map(_telling, error.context)
    return max(inner, key=lambda each: len(each.absolute_path), default=error)


def _around(path: list[str | int]) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths to a place and to all that is around it."""
    return (tuple(path[:length]) for length in range(len(path) + 1))


def _problem(error: "ValidationError", tree: Node) -> Problem:
    steps, node = [*error.absolute_path], cast(Any, tree)
    for step in steps:
        node = node.value[step]
    reason = _reason(error, node)
    if error.validator in (_MISSING, _UNKNOWN):
        steps.append(error.message)
    names = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    place = node.value[error.message] if error.validator == _UNKNOWN else node
    return Problem(place.line, "".join(names).removeprefix("."), reason)


def _reason(error: "ValidationError", node: Node) -> str:
    value: Any = error.validator_value
    match error.validator:
        case "missing":
            return "is missing"
        case "unknown":
            return unknown_key(error.message, value)
        case "type":
            names = [value] if isinstance(value, str) else value
            return f"must be {' or '.join(_TYPES[name] for name in names)}"
        case "enum":
            reason = f"unknown {error.absolute_path[-1]} {node.text!r}; use one of"
            return f"{reason} {', '.join(value)}"[:_LONGEST_REASON] + suggestion(node.text, value)
    return _REASONS.get(str(error.validator), error.message).format(value)
