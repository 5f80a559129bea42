"""Check a contract against the standard's JSON Schema and Lakegate's rules, before it is pushed.

The Lambdas and the job do not carry the schema. There, `parse` alone refuses whatever
Lakegate would not honour. The schema judges the keys that `parse` does not use.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from access.contract.hints import hints
from access.contract.sql import sql_problems
from access.contract.standard_schema import schema_problems
from access.contract.tables import by_table, lake_names
from lakegate.contract.claims import refuse_clashes
from lakegate.contract.model import Contract, ContractInvalid, read
from lakegate.contract.rules import Reference
from lakegate.contract.text.problems import Problem
from lakegate.contract.text.yaml import Node, load
from lakegate.errors import LakegateError, Permanent
from lakegate.limits import DEFAULTS, Limits

_LONGEST_LINE = 500  # in which a comment is looked for


@dataclass(frozen=True)
class Checked:
    """A contract file and the result of its check: the contract, or the reason why it is refused.

    Of a file with several tables, each is a contract of its own, and `text` the text for it.
    `problems` have a line in the file. `hints` are about valid but doubtful settings.
    """

    file: Path
    text: str = ""
    contract: Contract | None = None
    refusal: str = ""
    problems: tuple[Problem, ...] = ()
    hints: tuple[Problem, ...] = ()

    def valid(self) -> Contract:
        """Return the contract. Raises LakegateError CONTRACT_INVALID with all its problems."""
        if self.contract is None:
            raise LakegateError("CONTRACT_INVALID", self.refusal)
        return self.contract


def checked(file: Path, limits: Limits) -> list[Checked]:
    """Read and check a file; return the contract of each table, or its problems."""
    try:
        text = file.read_text(encoding="utf-8")
        texts = by_table(text, str(file), limits)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        reason = "is not UTF-8 text: save the file in this encoding"
        return [_refused(file, "", ContractInvalid(str(file), [Problem(line, "", reason)]))]
    except OSError as error:
        reason = f"cannot be read: {error}"
        return [Checked(file, refusal=f"{file} {reason}", problems=(Problem(1, "", reason),))]
    except ContractInvalid as invalid:
        return [_refused(file, text, invalid)]
    names = lake_names(text, str(file), limits) if len(texts) > 1 else {}
    tables = (_with_names(_checked_table(file, each, limits), names) for each in texts)
    return [_numbered(each, number) for number, each in enumerate(tables)]


def named(files: Iterable[Checked]) -> dict[str, Contract]:
    """Return the valid contracts by their files and tables.

    Raises Permanent CONTRACTS_CLASH for a file that describes one table twice.
    """
    contracts: dict[str, Contract] = {}
    for each in files:
        if not each.contract:
            continue
        name = f"{each.file} ({each.contract.table})"
        if name in contracts:
            message = f"{each.file} describes the table {each.contract.table} twice"
            raise Permanent("CONTRACTS_CLASH", message)
        contracts[name] = each.contract
    return contracts


def checked_one(file: Path, limits: Limits, table: str = "") -> Checked:
    """Read and check a file of one table, or of several the contract of the one named.

    Raises LakegateError SEVERAL_TABLES, or CONTRACTS_CLASH as `named` does.
    """
    tables = checked(file, limits)
    known = [each.contract.table for each in tables if each.contract]
    chosen = [
        each for each in tables if not table or (each.contract and each.contract.table == table)
    ]
    if len(chosen) == 1:
        return chosen[0]
    if refused := [each for each in tables if each.refusal]:
        return refused[0]
    named(tables)
    message = f"{file} has the tables {', '.join(known)}: name one of them with --table"
    raise LakegateError("SEVERAL_TABLES", message)


def _checked_table(file: Path, text: str, limits: Limits) -> Checked:
    try:
        tree, contract = _checked(text, str(file), limits)
    except ContractInvalid as invalid:
        return _refused(file, text, invalid)
    return Checked(file, text, contract, hints=hints(tree, contract))


def _with_names(checked: Checked, names: Mapping[str, str]) -> Checked:
    """Return the check of a table with hints at columns that another table here calls otherwise."""
    if checked.contract is None:
        return checked
    every = [*checked.hints, *_misnamed(checked.contract, names)]
    return replace(checked, hints=tuple(sorted(every, key=lambda hint: hint.line)))


def _misnamed(contract: Contract, names: Mapping[str, str]) -> Iterator[Problem]:
    for check in contract.checks:
        if not isinstance(check.rule, Reference) or check.rule.table == contract.table:
            continue
        for column in check.rule.columns:
            full = f"{check.rule.table}.{column}"
            name = full.partition(".")[2]
            if (stored := names.get(name, full)) != full:
                reason = f"{name} is looked up as {full}, and is stored as {stored}: write that"
                yield Problem(check.line, "relationships", reason)


def _numbered(checked: Checked, number: int) -> Checked:
    """Return the check of a table with paths by its number in the file: it is 0 in its own text."""
    hints = _renumbered(checked.hints, number)
    if checked.contract:
        return replace(checked, hints=hints)
    problems = _renumbered(checked.problems, number)
    return _refused(checked.file, checked.text, ContractInvalid(str(checked.file), problems))


def _renumbered(problems: Iterable[Problem], number: int) -> tuple[Problem, ...]:
    first = re.compile(r"^schema\[0\]")
    return tuple(replace(p, field=first.sub(f"schema[{number}]", p.field)) for p in problems)


def _refused(file: Path, text: str, invalid: ContractInvalid) -> Checked:
    return Checked(file, text, refusal=invalid.message, problems=invalid.problems)


def clash(files: Iterable[Checked]) -> Permanent | None:
    """Return why contracts cannot be in force together, None if they can."""
    try:
        refuse_clashes(named(files))
    except Permanent as clashing:
        return clashing
    return None


def check(text: str, source: str, limits: Limits = DEFAULTS) -> Contract:
    """Return the contract that a text declares, if it also meets the standard's schema.

    Raises ContractInvalid with the problems of both; `parse` takes precedence for a field.
    """
    return _checked(text, source, limits)[1]


def _checked(text: str, source: str, limits: Limits) -> tuple[Node, Contract]:
    problems: list[Problem] = []
    tree = load(text, source, problems, limits)
    if tool := other_tool(tree.value):
        reason = (
            f"this is for {tool}, not a contract of the Open Data Contract Standard: draft one "
        )
        raise ContractInvalid(source, [Problem(1, "", f"{reason}with lakegate contract suggest")])
    contract = read(tree, text, problems)
    refused = _Refused(problem.field for problem in problems)
    problems += [each for each in schema_problems(tree) if not refused.covers(each.field)]
    problems += [] if problems else sql_problems(tree, contract)
    if problems:
        lines = text.splitlines()
        raise ContractInvalid(source, [_with_comment(problem, lines) for problem in problems])
    return tree, contract


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


def _with_comment(problem: Problem, lines: Sequence[str]) -> Problem:
    """Return the problem; if the key's value begins with #, which makes it a comment, say so."""
    line = lines[problem.line - 1][:_LONGEST_LINE]
    key = re.escape(problem.field.rpartition(".")[2])
    if not re.search(rf"\b{key}[\"']?:\s+#", line):
        return problem
    return replace(problem, reason=f"{problem.reason} (# begins a comment: put the text in quotes)")


class _Refused:
    """Fields that are refused: a problem of one probably caused those of others.

    That is so at or below it, or above it. The schema chooses the rules of a property by its
    logicalType: with a wrong logicalType it refuses the other keys of the property too.
    """

    def __init__(self, fields: Iterable[str]) -> None:
        named = list(fields)
        self._above = {outer for field in named for outer in _outwards(field)}
        self._parents = {field.removesuffix(".logicalType") for field in named}

    def covers(self, field: str) -> bool:
        """Return whether a refused field probably caused a problem of another."""
        return field in self._above or not self._parents.isdisjoint(_outwards(field))


def _outwards(field: str) -> Iterator[str]:
    """Yield the path of a field, and of each that it is in."""
    yield field
    for end in re.finditer(r"[.\[]", field):
        yield field[: end.start()]
