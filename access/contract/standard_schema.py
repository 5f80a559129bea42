"""Judge a contract by the standard's JSON Schema: each value once by each rule for its place.

The schema closes an object to all keys but those that any of its rules knows. A library judges the
nested values again to find these keys, for each level three times; here no value is judged for it.
Of JSON Schema (draft 2019-09) this knows the words that the standard uses, and refuses others.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Any

from access.contract.fault import ROOT, Fault, Place
from access.contract.value_tests import TESTS
from lakegate.contract.text.yaml import Node

_Judge = Callable[[Node, Place, list[Fault]], None]
_Own = Callable[[], frozenset[str]]
_Keys = Callable[[Node], frozenset[str]]
_Refer = Callable[[str], "_Rules"]


@dataclass(frozen=True)
class _Rules:
    """A schema: what judges a value by it, and the keys that it knows in a mapping.

    `own` returns those that it knows in any, `keys` those and others that depend on the mapping.
    """

    judges: list[_Judge]
    own: _Own
    keys: _Keys

    def judge(self, node: Node, place: Place, flaws: list[Fault]) -> None:
        """Add the faults of a value."""
        for judge in self.judges:
            judge(node, place, flaws)

    def faults(self, node: Node, place: Place = ROOT) -> list[Fault]:
        """Return the faults of a value."""
        flaws: list[Fault] = []
        self.judge(node, place, flaws)
        return flaws


def faults(tree: Node) -> list[Fault]:
    """Return what breaks the standard's schema in a contract.

    Unknown keys are left out beside and above another fault, which may be why they are unknown.
    """
    flaws = [each.telling for each in _standard().faults(tree)]
    unknown = {(each.path, each.names): each for each in flaws if each.rule == "unknown"}
    telling = [each for each in flaws if each.rule != "unknown"]
    blamed = {path for each in telling for path in each.around}
    return telling + [each for (path, _), each in unknown.items() if path not in blamed]


@cache
def _standard() -> _Rules:
    return rules_of(standard_schema())


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


def rules_of(root: Mapping[str, Any]) -> _Rules:
    """Return the rules of a JSON Schema. Raises NotImplementedError for a word without meaning."""
    return _Compiler(root).rules(root)


class _Compiler:
    """Makes rules of the schemas within one schema, which may refer to each other by name."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self.named = cache(self._named)

    def _named(self, name: str) -> _Rules:
        schema: Any = self._root
        for step in name.removeprefix("#/").split("/"):
            schema = schema[step]
        return self.rules(schema)

    def rules(self, schema: Mapping[str, Any]) -> _Rules:
        """Return the rules of a schema."""
        made = _Rules([], cache(partial(self._own, schema)), self._keys(schema))
        made.judges.extend(self._judges(schema, made))
        return made

    def _judges(self, schema: Mapping[str, Any], made: _Rules) -> Iterator[_Judge]:
        for word, value in schema.items():
            if word in TESTS:
                yield _test(*TESTS[word](value))
            elif word in _JUDGES:
                yield _JUDGES[word](self, value)
            elif word == "additionalProperties" and value is False:
                own: _Own = partial(frozenset, schema.get("properties", ()))
                yield partial(_closed, own, lambda _: frozenset())
            elif word == "unevaluatedProperties" and value is False:
                yield partial(_closed, made.own, made.keys)
            elif word == "if":
                then = self.rules(schema.get("then", {}))
                yield partial(_conditional, self.rules(value), then)
            elif word not in _SILENT:
                raise NotImplementedError(f"a JSON Schema with {word}: {value}")

    def _own(self, schema: Mapping[str, Any]) -> frozenset[str]:
        parts = [self.rules(each).own() for each in schema.get("allOf", ())]
        parts += [self.named(schema["$ref"]).own()] if "$ref" in schema else []
        return frozenset(schema.get("properties", ())).union(*parts)

    def _keys(self, schema: Mapping[str, Any]) -> _Keys:
        """Return what finds the keys that a schema knows in a mapping, without judging values."""
        name, listed = schema.get("$ref"), frozenset(schema.get("properties", ()))
        always = [self.rules(each) for each in schema.get("allOf", ())]
        choices = [self.rules(each) for word in _ALTERNATIVES for each in schema.get(word, ())]
        pairs = [(each, each) for each in choices]
        if "if" in schema:
            pairs += [(self.rules(schema["if"]), self.rules(schema.get("then", {})))]

        def keys(node: Node) -> frozenset[str]:
            parts = [each.keys(node) for each in always]
            parts += [self.named(name).keys(node)] if name else []
            parts += [then.keys(node) for when, then in pairs if not when.faults(node)]
            return listed.union(*parts)

        return keys


_ALTERNATIVES = ("anyOf", "oneOf")
_SILENT = (
    *("$schema", "$defs", "title", "description", "examples", "default", "deprecated", "format"),
    "then",  # judged with its `if`
)


def _test(holds: Callable[[Any], bool], reason: str) -> _Judge:
    def judge(node: Node, place: Place, flaws: list[Fault]) -> None:
        if not holds(node.value):
            flaws.append(Fault(node, place, reason=reason))

    return judge


def _one_of(choices: Sequence[str], node: Node, place: Place, flaws: list[Fault]) -> None:
    if node.value not in choices:
        flaws.append(Fault(node, place, "choice", names=tuple(choices)))


def _having(keys: Sequence[str], node: Node, place: Place, flaws: list[Fault]) -> None:
    if isinstance(node.value, dict):
        missing = [key for key in keys if key not in node.value]
        flaws += [Fault(node, place, "missing", names=(key,)) for key in missing]


def _parts(rules: Mapping[str, _Rules], node: Node, place: Place, flaws: list[Fault]) -> None:
    if isinstance(node.value, dict):
        for key, value in node.value.items():
            if key in rules:
                rules[key].judge(value, (place, f".{key}"), flaws)


def _each(rules: _Rules, node: Node, place: Place, flaws: list[Fault]) -> None:
    if isinstance(node.value, tuple):
        for number, item in enumerate(node.value):
            rules.judge(item, (place, f"[{number}]"), flaws)


def _closed(own: _Own, more: _Keys, node: Node, place: Place, flaws: list[Fault]) -> None:
    if not isinstance(node.value, dict) or not node.value.keys() - own():
        return
    known = own() | more(node)
    unknown = [key for key in node.value if key not in known]
    flaws += [Fault(node, place, "unknown", names=(key,), known=known) for key in unknown]


def _referred(named: _Refer, name: str, node: Node, place: Place, flaws: list[Fault]) -> None:
    named(name).judge(node, place, flaws)


def _every(rules: Sequence[_Rules], node: Node, place: Place, flaws: list[Fault]) -> None:
    for each in rules:
        each.judge(node, place, flaws)


def _any(rules: Sequence[_Rules], node: Node, place: Place, flaws: list[Fault]) -> None:
    broken: list[Fault] = []
    for each in rules:
        faults_of_it = each.faults(node, place)
        if not faults_of_it:
            return
        broken += faults_of_it
    flaws.append(Fault(node, place, of=tuple(broken)))


def _just_one(rules: Sequence[_Rules], node: Node, place: Place, flaws: list[Fault]) -> None:
    _any(rules, node, place, flaws)
    if sum(not each.faults(node, place) for each in rules) > 1:
        reason = "fits several alternatives of the standard, and must fit one"
        flaws.append(Fault(node, place, reason=reason))


def _unlike(rules: _Rules, node: Node, place: Place, flaws: list[Fault]) -> None:
    if not rules.faults(node):
        reason = "has what the standard excludes here"
        flaws.append(Fault(node, place, reason=reason))


def _conditional(
    condition: _Rules, then: _Rules, node: Node, place: Place, flaws: list[Fault]
) -> None:
    if not condition.faults(node):
        then.judge(node, place, flaws)


_JUDGES: Mapping[str, Callable[[_Compiler, Any], _Judge]] = {
    "enum": lambda _, choices: partial(_one_of, choices),
    "required": lambda _, keys: partial(_having, keys),
    "properties": lambda to, parts: partial(_parts, {k: to.rules(v) for k, v in parts.items()}),
    "items": lambda to, schema: partial(_each, to.rules(schema)),
    "$ref": lambda to, name: partial(_referred, to.named, name),
    "allOf": lambda to, schemas: partial(_every, [*map(to.rules, schemas)]),
    "anyOf": lambda to, schemas: partial(_any, [*map(to.rules, schemas)]),
    "oneOf": lambda to, schemas: partial(_just_one, [*map(to.rules, schemas)]),
    "not": lambda to, schema: partial(_unlike, to.rules(schema)),
}
