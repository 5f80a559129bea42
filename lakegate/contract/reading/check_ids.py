"""Drafts of checks, each with its place in the contract, and the ids that they get."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lakegate.contract.checks import Check, Window
from lakegate.contract.reading.fields import Field
from lakegate.contract.reading.properties import Property
from lakegate.contract.reading.yaml import suggestion

_MOMENTS = ("date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class Draft:
    """A check without its id, which is made from its columns and its own name or metric."""

    field: Field
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
    known = {found.name: found.column for found in properties if found.column.kind in _MOMENTS}
    if window.column not in known:
        words = f"{window.column!r} is not a column of dates or timestamps"
        draft.field.refuse(words + suggestion(window.column, known), "customProperties")
        return draft
    scope = Window(window.days, known[window.column].name)
    return replace(draft, check=replace(draft.check, scope=scope))


def with_ids(drafts: list[Draft]) -> tuple[Check, ...]:
    """Return the checks with ids: given ids first; repeated preferred ids get `#2`, `#3`."""
    taken: dict[str, Field] = {}
    for draft in filter(lambda draft: draft.own, drafts):
        if draft.stem in taken:
            line = taken[draft.stem].node.line
            draft.field.refuse(f"the check {draft.stem!r} exists already, in line {line}")
        taken.setdefault(draft.stem, draft.field)
    checks = []
    for draft in drafts:
        id_ = draft.stem if draft.own else _free(draft.stem, taken)
        taken.setdefault(id_, draft.field)
        checks.append(replace(draft.check, id=id_, line=draft.field.node.line))
    return tuple(checks)


def _free(stem: str, taken: Mapping[str, Field]) -> str:
    number, id_ = 1, stem
    while id_ in taken:
        number += 1
        id_ = f"{stem}#{number}"
    return id_
