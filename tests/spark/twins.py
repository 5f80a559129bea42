"""Pairs of columns that differ in one cell, which one check must detect."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from lakegate.audit.report import Status
from tests.spark.measuring import custom, options

# The number of rows of every column; a column `base` beside it holds 5 in each.
ROWS = 4
_MICRO = timedelta(microseconds=1)
_NEW_YEAR = datetime(1969, 1, 1, tzinfo=UTC)
INVALID, NULL = ".invalidValues", ".nullValues"


@dataclass(frozen=True)
class Twin:
    """A property, good values, and bad values for which one check has the status `status`.

    `check` is the end of that check's id, after the column's name. `rule` is a rule of the whole
    object, in which COLUMN stands for the column's name.
    """

    name: str
    property: Mapping[str, Any]
    good: Sequence[Any]
    bad: Sequence[Any]
    check: str = INVALID
    status: Status = Status.FAIL
    rule: Mapping[str, Any] = field(default_factory=dict)


def _last(good: Any, bad: Any) -> tuple[list[Any], list[Any]]:
    return [good] * ROWS, [*[good] * (ROWS - 1), bad]


def _declared(name: str, logical: str, good: Any, bad: Any, /, **facets: Any) -> Twin:
    kind, _, physical = logical.partition(" ")
    made = {"logicalType": kind, "logicalTypeOptions": facets}
    return Twin(name, made | ({"physicalType": physical} if physical else {}), *_last(good, bad))


def _ruled(
    name: str,
    logical: str,
    rule: Mapping[str, Any],
    good: Sequence[Any],
    bad: Sequence[Any],
    status: Status = Status.FAIL,
) -> Twin:
    kind, _, physical = logical.partition(" ")
    made = {"logicalType": kind, "quality": [{"id": "it", **rule}]}
    typed = made | ({"physicalType": physical} if physical else {})
    return Twin(name, typed, good, bad, ".it", status)


def _texts() -> Iterator[Twin]:
    yield Twin("required", {"logicalType": "string", "required": True}, *_last("", None), NULL)
    yield _declared("pattern", "string", "12345", "12345\n", pattern="^[0-9]{5}$")
    yield _declared("minLength", "string", "\U0001f600a", "\U0001f600", minLength=2)
    yield _declared("maxLength", "string", "\U0001f600a", "\U0001f600ab", maxLength=2)
    yield _declared("varchar", "string varchar(2)", "ab", "abc")
    yield _declared("time", "time", "23:59:59", "24:00:00")
    for format_, good, bad in (
        ("email", "a.b+c@x.org", "a.b@x"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-42661417400g"),
        ("uri", "urn:isbn:0451450523", "//no.scheme/x"),
        ("hostname", "a-b.example", "-ab.example"),
        ("ipv4", "255.0.1.9", "256.0.1.9"),
        ("ipv6", "2001:db8::1", "2001:db8::1::2"),
        ("byte", "YWI=", "YWI"),
    ):
        yield _declared(f"format {format_}", "string", good, bad, format=format_)


def _enums() -> Iterator[Twin]:
    for logical, good, bad, written in (
        ("string", "it's a \\ ${env:HOME}", "it's a \\ ", "it's a \\ ${env:HOME}"),
        ("integer int", 7, 8, 7),
        ("number", -0.0, math.nan, 0),
        ("timestamp", _NEW_YEAR, _NEW_YEAR + _MICRO, "1969-01-01T01:00:00+01:00"),
    ):
        kind, _, physical = logical.partition(" ")
        made = {"logicalType": kind, "enum": [{"value": written}]}
        typed = made | ({"physicalType": physical} if physical else {})
        yield Twin(f"enum {logical} {bad!r}", typed, *_last(good, bad))


_RANGES: Sequence[Sequence[Any]] = (
    ("integer decimal(38)", 10**37, 10**37 + 1, 10**37 + 2, 10**37 + 1),
    ("number float", 0.09999999403953552, 0.10000000149011612, 0.10000000894069672, 0.1),
    ("time", "11:59:59", "12:00:00", "12:00:01", "12:00:00"),
)


def _ranges() -> Iterator[Twin]:
    for logical, *values, bound in _RANGES:
        below, at, above = (Decimal(v) if "decimal" in logical else v for v in values)
        yield _declared(f"minimum {logical}", logical, at, below, minimum=bound)
        yield _declared(f"maximum {logical}", logical, at, above, maximum=bound)
        yield _declared(f"exclusiveMinimum {logical}", logical, above, at, exclusiveMinimum=bound)
        yield _declared(f"exclusiveMaximum {logical}", logical, below, at, exclusiveMaximum=bound)
    yield _declared("NaN under a minimum", "number", 0.0, math.nan, minimum=0)
    yield _declared("NaN over a maximum", "number float", 0.0, math.nan, maximum=0)
    yield _declared("infinity", "number", 1e308, math.inf, maximum=1e308)
    yield _declared("zero is no negative", "number", -0.0, -5e-324, minimum=0)
    yield _declared("zero is not above zero", "number", 5e-324, -0.0, exclusiveMinimum=-0.0)
    yield _declared("zero is not below zero", "number", -5e-324, -0.0, exclusiveMaximum=0)


def _numbers() -> Iterator[Twin]:
    for logical, good, bad, step in (
        ("integer int", 6, 7, 3),
        ("number float", 0.30000001192092896, 0.35, 0.1),
        ("number", 0.3, 0.1 + 0.2, 0.1),
    ):
        yield _declared(f"multipleOf {step} {logical}", logical, good, bad, multipleOf=step)
    for format_, fits, beyond in (
        ("i8", 127, 128),
        ("i8", -128, -129),
        ("i16", 32767, 32768),
        ("u8", 255, 256),
        ("u16", 0, -1),
        ("u32", 2**32 - 1, 2**32),
        ("u64", Decimal(2**64 - 1), Decimal(2**64)),
    ):
        yield _declared(f"format {format_} {beyond}", "integer", fits, beyond, format=format_)


def _struct(*fields: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"logicalType": "object", "properties": fields, **more}


def _array(item: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"logicalType": "array", "items": item, **more}


_A, _B = ({"name": name, "logicalType": "integer"} for name in "ab")
_TEXT: Mapping[str, Any] = {"logicalType": "string"}
_WHOLE: Mapping[str, Any] = {"logicalType": "integer"}


def _sized(container: Mapping[str, Any], **facets: Any) -> dict[str, Any]:
    return {**container, "logicalTypeOptions": facets}


def _nested() -> Iterator[Twin]:
    texts, map_ = _array(_TEXT), {"logicalType": "map", "map": {"key": _TEXT, "value": _WHOLE}}
    yield Twin("minItems", _sized(texts, minItems=1), *_last([None], []))
    yield Twin("maxItems", _sized(texts, maxItems=1), *_last(["a"], ["a", None]))
    yield Twin("uniqueItems", _sized(texts, uniqueItems=True), *_last(["a", "A"], ["a", "a"]))
    doubles = _sized(_array({"logicalType": "number"}), uniqueItems=True)
    yield Twin("uniqueItems of numbers", doubles, *_last([0.0, 1.0, None], [0.0, -0.0, None]))
    yield Twin("map minItems", _sized(map_, minItems=1), *_last({"a": None}, {}))
    yield Twin("map maxItems", _sized(map_, maxItems=1), *_last({"a": 1}, {"a": 1, "b": 1}))
    pair = _struct(_A, _B)
    both, none = {"a": 1, "b": 1}, {"a": None, "b": None}
    yield Twin("minProperties", _sized(pair, minProperties=1), *_last({"a": None, "b": 1}, none))
    yield Twin("maxProperties", _sized(pair, maxProperties=1), *_last({"a": 1, "b": None}, both))
    left = _sized(pair, required=["a"])
    yield Twin("required fields", left, *_last({"a": 1, "b": None}, {"a": None, "b": 1}))
    vector = {"logicalType": "vector", "logicalTypeOptions": {"dimensions": 2}}
    yield Twin("vector", vector, *_last([1.0, 2.0], [1.0]))
    yield from _within(map_)


def _within(map_: Mapping[str, Any]) -> Iterator[Twin]:
    field_ = _struct({**_A, "required": True}, _B)
    yield Twin("a field", field_, *_last({"a": 1, "b": 1}, {"a": None, "b": 1}), ".a.nullValues")
    yield Twin("a field of nothing", field_, *_last(None, {"a": None, "b": 1}), ".a.nullValues")
    items = _array({**_TEXT, "required": True})
    yield Twin("an item", items, *_last([], ["a", None]), "[].nullValues")
    listed = _array({**_TEXT, "enum": [{"value": "A"}]})
    yield Twin("a valid item", listed, *_last(["A", None], ["A", None, "a"]), "[].invalidValues")
    inner = _array(_array({**_WHOLE, "logicalTypeOptions": {"minimum": 1}}))
    yield Twin("an item of items", inner, *_last([[1], None, []], [[1], [0]]), "[][].invalidValues")
    lines = _array(_struct({**_A, "required": True}, _B))
    good, bad = [{"a": 1, "b": None}, None], [{"a": 1, "b": 1}, {"a": None, "b": 1}]
    yield Twin("a field of items", lines, *_last(good, bad), "[].a.nullValues")
    parts = dict(map_["map"])
    short = {**parts, "key": {**_TEXT, "logicalTypeOptions": {"maxLength": 1}}}
    key = {"logicalType": "map", "map": short}
    yield Twin("a map's key", key, *_last({"a": 1}, {"ab": 1}), "{key}.invalidValues")
    full = {"logicalType": "map", "map": {**parts, "value": {**_WHOLE, "required": True}}}
    yield Twin("a map's value", full, *_last({"a": 1}, {"a": None}), "{value}.nullValues")
    deep = _struct({"name": "x", **_struct({"name": "y", **lines})})
    wrapped = [{"x": {"y": value}} for value in (good, bad)]
    yield Twin("four levels", deep, *_last(*wrapped), ".x.y[].a.nullValues")


def _holes(nulls: int) -> list[int | None]:
    return [*[None] * nulls, *[1] * (ROWS - nulls)]


def _library() -> Iterator[Twin]:
    missing = {"metric": "missingValues", "arguments": {"missingValues": [None, "", "N/A"]}}
    for good, bad in ((" ", ""), ("\u00a0", None), ("n/a", "N/A")):
        columns = _last(good, bad)
        yield _ruled(f"missingValues {bad!r}", "string", {**missing, "mustBe": 0}, *columns)
    numbers = {"metric": "missingValues", "arguments": {"missingValues": [-1]}, "mustBe": 0}
    yield _ruled("missing numbers", "integer", numbers, *_last(None, -1))
    for arguments, logical, *values in (
        ({"validValues": ["A", None]}, "string", None, "B"),
        ({"pattern": "^A"}, "string", "A", "BA"),
        ({"minLength": 1}, "string", "A", ""),
        ({"minimum": 1, "multipleOf": 2}, "integer", 2, 1),
    ):
        rule = {"metric": "invalidValues", "arguments": arguments, "mustBe": 0}
        yield _ruled(f"invalidValues {arguments}", str(logical), rule, *_last(*values))

    facets = {"minimum": 0, "maximum": 5, "validValues": [0, 1], "multipleOf": 1}
    once = {"metric": "invalidValues", "arguments": facets, "mustBeLessThan": 2}
    yield _ruled(
        "each row once", "number", once, [0.0, 1.0, 0.0, math.nan], [0.0, 1.0, math.nan, 6.0]
    )


def _optional() -> Iterator[Twin]:
    over = {"metric": "invalidValues", "arguments": {"maximum": 5}}
    where = options(where="base = 5 AND COLUMN < 9 -- the others are estimates")
    yield _ruled("where", "integer", {**over, "mustBe": 0, **where}, *_last(9, 8))
    share = {**over, "unit": "percent", "mustBeLessThan": 50, **where}
    yield _ruled("a percentage of where", "integer", share, [1, 1, 6, 9], [1, 9, 6, 9])
    warned: dict[str, Any] = {"metric": "nullValues", "mustBeLessThan": 3}
    warning = options(warnUnless={"mustBeLessThan": 2})
    warned.update(warning)
    yield _ruled("warnUnless", "integer", warned, _holes(1), _holes(2), Status.WARN)
    yield _ruled("beyond warnUnless", "integer", warned, _holes(1), _holes(3))
    for severity in ("info", "warning"):
        mild = {**over, "mustBe": 0, "severity": severity}
        yield _ruled(severity, "integer", mild, *_last(5, 6), Status.WARN)
    quarantine = {**over, "mustBe": 0, **options(onBadRow="quarantine")}
    yield _ruled("quarantine", "integer", quarantine, *_last(5, 6), Status.WARN)
    quiet = {"logicalType": "integer", "required": True, **options(severity="warning")}
    yield Twin("declared severity", quiet, *_last(1, None), NULL, Status.WARN)
    none = {"logicalType": "integer", "required": True, **options(where="base = 5")}
    yield Twin("declared where", none, *_last(1, None), NULL)
    rows = {"id": "COLUMN", "metric": "rowCount", "mustBe": 4, **options(where="COLUMN > 0")}
    yield Twin("rowCount where", dict(_WHOLE), *_last(1, 0), "", rule=rows)


def _own() -> Iterator[Twin]:
    positive = custom("rowExpression", expression="COLUMN > 0 -- or nothing")
    yield _ruled("rowExpression", "integer", positive, *_last(None, 0))
    limit = custom("rowExpression", expression="COLUMN > 0", mustBeLessOrEqualTo=25, unit="percent")
    yield _ruled("a share of rowExpression", "integer", limit, [1, 1, 1, 0], [1, 1, 0, 0])
    for operator, same, other in (
        ("=", 5, 4),
        ("<>", 4, 5),
        ("<", 4, 5),
        ("<=", 5, 6),
        (">", 6, 5),
        (">=", 5, 4),
    ):
        pair = {
            "logicalType": "integer",
            "quality": [custom("columnPair", operator=operator, other="base")],
        }
        values = [same, None, same, same], [same, None, same, other]
        yield Twin(f"columnPair {operator}", pair, *values, "+base.brokenRows")
    for good, bad in (("\u00fc\t\r\n", "\ufffd"), (" ", "\x00"), ("\u0080", "\x7f")):
        yield _ruled(f"encoding {bad!r}", "string", custom("encoding"), *_last(good, bad))
    huge = custom("sum", mustBeGreaterThan=0)
    digits = Decimal(2 * 10**37), Decimal(9 * 10**37)
    yield _ruled("sum of no number", "integer decimal(38)", huge, *_last(*digits))


TWINS: Sequence[Twin] = (
    *_texts(),
    *_enums(),
    *_ranges(),
    *_numbers(),
    *_nested(),
    *_library(),
    *_optional(),
    *_own(),
)
