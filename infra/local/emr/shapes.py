"""Requests as botocore's own service model describes them: read, checked, refused as AWS would."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
from botocore.model import ServiceModel, Shape
from botocore.utils import parse_timestamp
from werkzeug.datastructures import MultiDict


class AwsError(Exception):
    """An answer that is an error: `code` is the name of the exception that a client gets."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> int:
        """The HTTP status that AWS answers this error with."""
        return model().shape_for(self.code).metadata["error"]["httpStatusCode"]


def invalid(message: str) -> AwsError:
    """The refusal of a request that is not as it should be."""
    return AwsError("ValidationException", message)


@cache
def model() -> ServiceModel:
    """EMR Serverless as botocore knows it."""
    return botocore.session.get_session().get_service_model("emr-serverless")


def parsed(
    operation: str, path: dict[str, str], query: MultiDict[str, str], body: Any
) -> dict[str, Any]:
    """An operation's input, put together from its three places.

    Raises AwsError (ValidationException) where the service model does not allow it. Members that
    the model does not know are left out.
    """
    shape = model().operation_model(operation).input_shape
    if not isinstance(body, dict):
        raise invalid("the body of the request is not a JSON object")
    given: dict[str, Any] = {}
    for name, member in shape.members.items():
        place = member.serialization.get("location", "body")
        if place == "uri":
            given[name] = path[name]
        elif place == "querystring" and name in query:
            given[name] = _from_query(name, member, query)
        elif place == "body" and body.get(name) is not None:
            given[name] = body[name]
    _check(shape, given)
    return given


def _from_query(name: str, shape: Shape, query: MultiDict[str, str]) -> Any:
    if shape.type_name == "list":
        return query.getlist(name)
    try:
        if shape.type_name == "timestamp":
            return parse_timestamp(query[name]).timestamp()
        return int(query[name]) if shape.type_name == "integer" else query[name]
    except ValueError as error:
        raise invalid(f"Value '{query[name]}' at '{name}' is not a {shape.type_name}") from error


def _check(shape: Shape, value: Any) -> None:
    problems = list(_problems(shape, value, ""))
    if problems:
        counted = f"{len(problems)} validation error{'s' * (len(problems) > 1)} detected"
        raise invalid(f"{counted}: {'; '.join(problems)}"[:1024])


_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "structure": dict,
    "map": dict,
    "list": list,
    "string": str,
    "integer": int,
    "long": int,
    "boolean": bool,
    "timestamp": (int, float),
}


def _problems(shape: Shape, value: Any, path: str) -> Iterator[str]:
    """What the service model has against a value, in AWS's words."""
    if not isinstance(value, _PYTHON_TYPES[shape.type_name]):
        yield f"Value at '{path}' failed to satisfy constraint: Member must be a {shape.type_name}"
        return
    for rule in _broken_rules(shape, value):
        shown = "" if shape.metadata.get("sensitive") else f" '{value}'"
        yield f"Value{shown} at '{path}' failed to satisfy constraint: Member must {rule}"
    for inner, inside, name in _inside(shape, value):
        yield from _problems(inner, inside, f"{path}.{name}".lstrip("."))


def _broken_rules(shape: Shape, value: Any) -> Iterator[str]:
    rules = shape.metadata
    is_number = shape.type_name in ("integer", "long")
    size, noun = (value, "value") if is_number else (_size(value), "length")
    if size < rules.get("min", size):
        yield f"have {noun} greater than or equal to {rules['min']}"
    if size > rules.get("max", size):
        yield f"have {noun} less than or equal to {rules['max']}"
    if "pattern" in rules and not re.fullmatch(rules["pattern"], value, re.DOTALL):
        yield f"satisfy regular expression pattern: {rules['pattern']}"
    if value not in rules.get("enum", [value]):
        yield f"satisfy enum value set: {rules['enum']}"
    for name in rules.get("required", ()):
        if name not in value:
            yield f"not be null: {name}"
    if rules.get("union") and len(value) != 1:
        yield "have exactly one member"


def _size(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else 0


def _inside(shape: Shape, value: Any) -> Iterator[tuple[Shape, Any, str]]:
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            if value.get(name) is not None:
                yield member, value[name], name
    elif shape.type_name == "list":
        for number, item in enumerate(value, start=1):
            yield shape.member, item, f"{number}.member"
    elif shape.type_name == "map":
        for key, item in value.items():
            yield shape.key, key, f"{key}.key"
            yield shape.value, item, f"{key}.value"
