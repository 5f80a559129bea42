"""The full check of a contract, before it is pushed: the standard's JSON Schema and Lakegate's own.

The Lambdas and the job go without the schema, whose libraries they do not carry: `parse` refuses by
itself whatever it would not honour. The schema judges what `parse` has no use for.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import cast

from jsonschema import Draft201909Validator
from jsonschema.exceptions import ValidationError

from cli.column_names import looks_like_a_key, looks_like_money, looks_personal
from lakegate.contract.claims import refuse_clashes
from lakegate.contract.model import Contract, ContractInvalid, parse
from lakegate.contract.reading.fields import Field
from lakegate.contract.reading.yaml import Node, Problem, load, suggestion
from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits

# Hints to a contract's author: what is allowed and likely not what was meant.

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


_QUOTED = re.compile(r"'([^']+)'")
_LONGEST_REASON = 200


@dataclass(frozen=True)
class Checked:
    """A contract's file and what came of its check: the contract, or why it is refused.

    `problems` are those with a place in the text. `hints` are about what is allowed.
    """

    file: Path
    text: str = ""
    contract: Contract | None = None
    refusal: str = ""
    problems: tuple[Problem, ...] = ()
    hints: tuple[Problem, ...] = ()


def checked(file: Path, limits: Limits) -> Checked:
    """A file, read and checked; whatever is wrong is in the answer."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"cannot be read: {error}"
        return Checked(file, refusal=f"{file} {reason}", problems=(Problem(1, "", reason),))
    try:
        found = check(text, str(file), limits)
    except ContractInvalid as invalid:
        return Checked(file, text, refusal=invalid.message, problems=invalid.problems)
    return Checked(file, text, found, hints=hints(text, str(file), limits))


def clash(found: Iterable[Checked]) -> Permanent | None:
    """Why contracts cannot stand side by side, if they cannot."""
    try:
        refuse_clashes({str(each.file): each.contract for each in found if each.contract})
    except Permanent as clashing:
        return clashing
    return None


def check(text: str, source: str, limits: Limits = DEFAULTS) -> Contract:
    """The contract in a text that keeps to the standard's schema, too; otherwise as `parse`.

    Raises ContractInvalid with the problems of both. Where both object, `parse` has the word.
    """
    tree = load(text, source, [], limits)
    found: list[Problem] = []
    try:
        contract = parse(text, source, limits)
    except ContractInvalid as invalid:
        found.extend(invalid.problems)
    fields = [problem.field for problem in found]
    found += [p for p in _schema_problems(tree) if not any(_covers(f, p.field) for f in fields)]
    if found:
        raise ContractInvalid(source, found)
    return contract


def _covers(refused: str, field: str) -> bool:
    """Whether what was said of one field is likely the reason for an objection to another.

    The schema chooses its rules for a property by its logicalType, so where that is wrong it
    objects to whatever stands beside it.
    """
    whole = refused.removesuffix(".logicalType")
    return _holds(whole, field) or _holds(field, refused)


def _holds(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}["))


@cache
def _validator() -> Draft201909Validator:
    file = resources.files("open_data_contract_standard") / "schema.json"
    return Draft201909Validator(json.loads(file.read_text(encoding="utf-8")))


def _schema_problems(tree: Node) -> list[Problem]:
    errors = list(_validator().iter_errors(tree.plain()))
    telling = [error for error in errors if error.validator != "unevaluatedProperties"]
    telling += [e for e in errors if e not in telling and not any(_inside(t, e) for t in telling)]
    return [p for error in telling for p in _problems(tree, _deepest(error))]


def _deepest(error: ValidationError) -> ValidationError:
    """Of several alternatives that all do not fit, the objection of the one that got furthest."""
    while error.context:
        error = max(error.context, key=lambda inner: len(inner.absolute_path))
    return error


def _inside(error: ValidationError, other: ValidationError) -> bool:
    """Whether an error lies where another one does, or deeper, and so makes keys unevaluated."""
    place = list(other.absolute_path)
    return list(error.absolute_path)[: len(place)] == place


def _problems(tree: Node, error: ValidationError) -> Iterator[Problem]:
    node, path = _find(tree, error)
    keys = _QUOTED.findall(error.message)
    match error.validator:
        case "required":
            yield Problem(node.line, f"{path}.{keys[0]}".strip("."), "is missing")
        case "additionalProperties" | "unevaluatedProperties":
            known = node.value if isinstance(node.value, dict) else {}
            for key in (key for key in keys if key in known):
                reason = "is no key that the standard knows here"
                near = suggestion(key, _keys(error))
                yield Problem(known[key].line, f"{path}.{key}".strip("."), reason + near)
        case "enum":
            choices = list(map(str, cast(list[object], error.validator_value)))
            reason = f"{node.text!r} is none of {', '.join(choices)}"[:_LONGEST_REASON]
            yield Problem(node.line, path, reason + suggestion(node.text, choices))
        case _:
            yield Problem(node.line, path, error.message[:_LONGEST_REASON])


def _keys(error: ValidationError) -> Collection[str]:
    return error.schema.get("properties", ()) if isinstance(error.schema, dict) else ()


def _find(tree: Node, error: ValidationError) -> tuple[Node, str]:
    node, path = tree, ""
    for step in error.absolute_path:
        if isinstance(node.value, dict):
            node, path = node.value[str(step)], f"{path}.{step}".strip(".")
        elif isinstance(node.value, tuple):
            node, path = node.value[int(step)], f"{path}[{step}]"
    return node, path
