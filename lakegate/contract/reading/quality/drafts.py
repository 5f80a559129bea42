"""Drafts of checks, each with its place in the contract, and the ids that they get."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lakegate.contract.checks import Check, CheckSpec, Metric, Severity, Window
from lakegate.contract.expectations import Expectation, Unit
from lakegate.contract.reading.literals import MOMENTS
from lakegate.contract.reading.properties import Property
from lakegate.contract.rules import Rule
from lakegate.contract.text.fields import Field


@dataclass(frozen=True)
class Measured:
    """What a rule measures, the unit of its thresholds, and what it expects without an operator.

    `severity` is the default of its rules.
    """

    metric: Metric
    columns: tuple[str, ...] = ()
    rule: CheckSpec = field(default_factory=Rule)
    unit: Unit = Unit.ROWS
    usual: Expectation | None = None
    severity: Severity = Severity.ERROR


def listed(place: Field, known: Mapping[str, str], what: str) -> tuple[str, ...]:
    """Return the columns whose names are listed, each once; refuse a name that is no `what`."""
    columns: list[str] = []
    for item in place.items():
        column = item.known(item.node.text, known, what)
        if column in columns:
            item.refuse(f"{item.node.text!r} is listed twice")
        elif column is not None:
            columns.append(column)
    return tuple(columns)


@dataclass(frozen=True)
class Draft:
    """A check without its id, which is made from its columns and its own name or metric."""

    place: Field
    check: Check
    own: str = ""

    @property
    def stem(self) -> str:
        """Return the preferred id; rules of the whole object need no columns before their name."""
        many = len(self.check.columns)
        on_object = many == 0 or (self.own and many > 1)
        columns = "" if on_object else "+".join(self.check.columns) + "."
        window = isinstance(self.check.scope, Window)
        beyond = "InWindow" if window else "InTable" if self.check.checks_whole_table else ""
        return columns + (self.own or self.check.metric + beyond)


def with_window(draft: Draft, properties: list[Property]) -> Draft:
    """Return the draft with its window's column by the name in the table, if it has a window."""
    window = draft.check.scope
    if not isinstance(window, Window):
        return draft
    known = {entry.name: entry.column for entry in properties if entry.column.kind in MOMENTS}
    what = "a column of dates or timestamps"
    column = draft.place.known(window.column, known, what, "customProperties")
    scope = Window(window.days, column.name) if column else window
    return replace(draft, check=replace(draft.check, scope=scope))


def with_ids(drafts: list[Draft]) -> tuple[Check, ...]:
    """Return the checks with ids and words: given ids first; repeated ones get `#2`, `#3`."""
    taken: dict[str, Field] = {}
    for draft in filter(lambda draft: draft.own, drafts):
        if draft.stem in taken:
            line = taken[draft.stem].node.line
            draft.place.refuse(f"the check {draft.stem!r} exists already, in line {line}")
        taken.setdefault(draft.stem, draft.place)
    checks = []
    for draft in drafts:
        id_ = draft.stem if draft.own else _free(draft.stem, taken)
        taken.setdefault(id_, draft.place)
        words = draft.check.description or draft.check.measure
        checks.append(replace(draft.check, id=id_, description=words, line=draft.place.node.line))
    return tuple(checks)


def _free(stem: str, taken: Mapping[str, Field]) -> str:
    number, id_ = 1, stem
    while id_ in taken:
        number += 1
        id_ = f"{stem}#{number}"
    return id_
