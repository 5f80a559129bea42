"""Check a contract against the standard's JSON Schema and Lakegate's rules, before it is pushed.

The Lambdas and the job do not carry the schema's libraries. There, `parse` alone refuses whatever
Lakegate would not honour. The schema judges the keys that `parse` does not use.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, cast

from access.contract_hints import hints
from access.contract_sql import sql_problems
from lakegate.contract.claims import refuse_clashes
from lakegate.contract.model import Contract, ContractInvalid, parse
from lakegate.contract.reading.yaml import Node, Problem, load, suggestion
from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits

if TYPE_CHECKING:  # a third of a second, which help does not need
    from jsonschema import Draft201909Validator
    from jsonschema.exceptions import ValidationError

_QUOTED = re.compile(r"'([^']+)'")
_LONGEST_REASON = 200


@dataclass(frozen=True)
class Checked:
    """A contract file and the result of its check: the contract, or the reason why it is refused.

    `problems` have a line in the text. `hints` are about valid but doubtful settings.
    """

    file: Path
    text: str = ""
    contract: Contract | None = None
    refusal: str = ""
    problems: tuple[Problem, ...] = ()
    hints: tuple[Problem, ...] = ()


def checked(file: Path, limits: Limits) -> Checked:
    """Read and check a file; return the problems instead of raising them."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"cannot be read: {error}"
        return Checked(file, refusal=f"{file} {reason}", problems=(Problem(1, "", reason),))
    try:
        found = check(text, str(file), limits)
    except ContractInvalid as invalid:
        return Checked(file, text, refusal=invalid.message, problems=invalid.problems)
    return Checked(file, text, found, hints=hints(text, str(file), found, limits))


def clash(found: Iterable[Checked]) -> Permanent | None:
    """Return why contracts cannot be in force together, None if they can."""
    try:
        refuse_clashes({str(each.file): each.contract for each in found if each.contract})
    except Permanent as clashing:
        return clashing
    return None


def check(text: str, source: str, limits: Limits = DEFAULTS) -> Contract:
    """Return the contract that a text declares, if it also meets the standard's schema.

    Raises ContractInvalid with the problems of both; `parse` takes precedence for a field.
    """
    tree = load(text, source, [], limits)
    if tool := other_tool(tree.plain()):
        reason = (
            f"this is for {tool}, not a contract of the Open Data Contract Standard: draft one "
        )
        raise ContractInvalid(source, [Problem(1, "", f"{reason}with lakegate contract suggest")])
    found: list[Problem] = []
    try:
        contract = parse(text, source, limits)
    except ContractInvalid as invalid:
        found.extend(invalid.problems)
    fields = [problem.field for problem in found]
    found += [p for p in _schema_problems(tree) if not any(_covers(f, p.field) for f in fields)]
    found += [] if found else sql_problems(tree, contract)
    if found:
        raise ContractInvalid(source, [_with_comment(problem, text) for problem in found])
    return contract


def other_tool(document: object) -> str:
    """Return the tool whose file a document is, by its top-level keys; "" if it may be a contract.

    Soda has `checks for …` or `dataset` with `checks`, dbt `models` or `sources`, Great
    Expectations a suite of `expectations`.
    """
    keys = {*document} if isinstance(document, dict) else set()
    if "apiVersion" in keys:
        return ""
    if any(key.startswith("checks for ") for key in keys) or {"dataset", "checks"} <= keys:
        return "Soda"
    if keys & {"models", "sources", "seeds", "snapshots"} and "version" in keys:
        return "dbt"
    if "expectations" in keys:
        return "Great Expectations"
    return "the Data Contract Specification" if "dataContractSpecification" in keys else ""


def _with_comment(problem: Problem, text: str) -> Problem:
    """Return the problem; if the key's value begins with #, which makes it a comment, say so."""
    line = text.splitlines()[problem.line - 1]
    key = re.escape(problem.field.rpartition(".")[2])
    if not re.search(rf"\b{key}[\"']?:\s+#", line):
        return problem
    return replace(problem, reason=f"{problem.reason} (# begins a comment: put the text in quotes)")


def _covers(refused: str, field: str) -> bool:
    """Return whether a problem of one field probably caused a problem of another.

    The schema chooses the rules of a property by its logicalType. With a wrong logicalType it
    refuses the other keys of the property too.
    """
    parent = refused.removesuffix(".logicalType")
    return _holds(parent, field) or _holds(field, refused)


def _holds(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}["))


@cache
def _validator() -> "Draft201909Validator":
    from jsonschema import Draft201909Validator

    file = resources.files("open_data_contract_standard") / "schema.json"
    return Draft201909Validator(json.loads(file.read_text(encoding="utf-8")))


def _schema_problems(tree: Node) -> list[Problem]:
    errors = list(_validator().iter_errors(tree.plain()))
    telling = [error for error in errors if error.validator != "unevaluatedProperties"]
    telling += [e for e in errors if e not in telling and not any(_inside(t, e) for t in telling)]
    return [p for error in telling for p in _problems(tree, _deepest(error))]


def _deepest(error: "ValidationError") -> "ValidationError":
    """Return, of several alternatives that all failed, the error deepest in the document."""
    while error.context:
        error = max(error.context, key=lambda inner: len(inner.absolute_path))
    return error


def _inside(error: "ValidationError", other: "ValidationError") -> bool:
    """Return whether an error is at or below another one, and so made the schema skip keys."""
    place = list(other.absolute_path)
    return list(error.absolute_path)[: len(place)] == place


def _problems(tree: Node, error: "ValidationError") -> Iterator[Problem]:
    node, path = _find(tree, error)
    keys = _QUOTED.findall(error.message)
    match error.validator:
        case "required":
            yield Problem(node.line, f"{path}.{keys[0]}".strip("."), "is missing")
        case "additionalProperties" | "unevaluatedProperties":
            known = node.value if isinstance(node.value, dict) else {}
            for key in (key for key in keys if key in known):
                reason = "unknown key"
                near = suggestion(key, _keys(error))
                yield Problem(known[key].line, f"{path}.{key}".strip("."), reason + near)
        case "enum":
            choices = list(map(str, cast(list[object], error.validator_value)))
            key = path.rpartition(".")[2]
            reason = f"unknown {key} {node.text!r}; use one of {', '.join(choices)}"
            reason = reason[:_LONGEST_REASON]
            yield Problem(node.line, path, reason + suggestion(node.text, choices))
        case _:
            yield Problem(node.line, path, error.message[:_LONGEST_REASON])


def _keys(error: "ValidationError") -> Collection[str]:
    return error.schema.get("properties", ()) if isinstance(error.schema, dict) else ()


def _find(tree: Node, error: "ValidationError") -> tuple[Node, str]:
    node, path = tree, ""
    for step in error.absolute_path:
        if isinstance(node.value, dict):
            node, path = node.value[str(step)], f"{path}.{step}".strip(".")
        elif isinstance(node.value, tuple):
            node, path = node.value[int(step)], f"{path}[{step}]"
    return node, path
