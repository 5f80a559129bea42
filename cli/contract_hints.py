"""Hints to a contract's author: what is allowed and likely not what was meant."""

from collections.abc import Iterator

from cli.column_names import looks_like_a_key, looks_like_money, looks_personal
from lakegate.contract_fields import Field
from lakegate.contract_yaml import Problem, load
from lakegate.limits import DEFAULTS, Limits

_FLOATS = ("", "double", "float", "real", "double precision")


def hints(text: str, source: str, limits: Limits = DEFAULTS) -> tuple[Problem, ...]:
    """What might be better in a contract that is taken as it is, in the order of the lines."""
    root = Field(load(text, source, [], limits), "", [])
    found: list[Problem] = []
    for table in root.at("schema").items():
        for column in _columns(table.at("properties")):
            found += _on_column(column)
    if not any(item.has("channel") for item in root.at("support").items()):
        found.append(
            _hint(root, "support", "without a Slack channel nobody is told of a rejected file")
        )
    return tuple(sorted(found, key=lambda hint: hint.line))


def _columns(properties: Field) -> Iterator[Field]:
    for column in properties.items():
        yield column
        yield from _columns(column.at("properties"))
        yield from _columns(column.at("items").at("properties"))


def _on_column(column: Field) -> Iterator[Problem]:
    name = column.text("name")
    if looks_personal(name) and not column.has("classification"):
        reason = "looks personal: with classification: confidential no report or alert shows it"
        yield _hint(column, "name", reason)
    is_double = column.text("physicalType").lower() in _FLOATS
    if is_double and column.text("logicalType") == "number" and looks_like_money(name):
        reason = "looks like money, and a double rounds: physicalType: decimal(12,2) does not"
        yield _hint(column, "name", reason)
    whole = column.flag("unique") or column.flag("primaryKey") or looks_like_a_key(name)
    options = [rule.at("arguments") for rule in column.at("quality").items()]
    for place in (column.at("logicalTypeOptions"), *options):
        if place.has("pattern") and not _anchored(place.text("pattern"), whole=whole):
            reason = (
                "is found anywhere in the value: write ^ before and $ after it to mean all of it"
            )
            yield _hint(place, "pattern", reason)


def _anchored(pattern: str, *, whole: bool) -> bool:
    """Whether a pattern says where it begins or ends, or both if it is to be the whole value."""
    ends = (pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith(r"\$"))
    return all(ends) if whole else any(ends)


def _hint(field: Field, key: str, reason: str) -> Problem:
    place = field.at(key)
    return Problem(place.node.line, place.path, reason)
