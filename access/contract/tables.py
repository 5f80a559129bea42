"""Divide a contract of several tables: Lakegate keeps a contract for each table.

The text for a table is the whole text with the lines of the other tables left empty, so that each
problem has its line in the owner's file.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from lakegate.contract.model import qualified
from lakegate.contract.text.fields import Field
from lakegate.contract.text.problems import ContractInvalid, Problem
from lakegate.contract.text.yaml import Node, load
from lakegate.limits import Limits

_SCHEMA = "schema"
_KEY = re.compile(r"[^\s#-]")  # how a line with a key of the contract itself begins


def by_table(text: str, source: str, limits: Limits) -> list[str]:
    """Return a text for each table of a contract, in their order; the text itself for one table.

    Raises ContractInvalid for a text that is no YAML, or whose tables share lines or anchors.
    """
    tree = load(text, source, [], limits)
    tables = _tables(tree)
    if len(tables) < 2:
        return [text]
    parts = list(_parts(text.split("\n"), [table.line for table in tables]))
    for table, part in zip(tables, parts, strict=True):
        if not _describes(part, tree, table, source, limits):
            reason = "begin each table on a line of its own, and let it use no anchor of another"
            raise ContractInvalid(source, [Problem(table.line, _SCHEMA, reason)])
    return parts


def lake_names(text: str, source: str, limits: Limits) -> Mapping[str, str]:
    """Return each `table.column` of a contract as it is called in the lake."""
    names: dict[str, str] = {}
    for table in (Field(node, "", []) for node in _tables(load(text, source, [], limits))):
        stored = qualified(table.text("physicalName") or table.text("name"))
        for column in table.at("properties").items():
            name = column.text("name")
            names[f"{table.text('name')}.{name}"] = (
                f"{stored}.{column.text('physicalName') or name}"
            )
    return names


def _tables(tree: Node) -> tuple[Node, ...]:
    schema = tree.value.get(_SCHEMA) if isinstance(tree.value, dict) else None
    return schema.value if schema and isinstance(schema.value, tuple) else ()


def _parts(lines: list[str], starts: list[int]) -> Iterator[str]:
    """Yield the text for each table that starts in one of these lines, counted from 1."""
    last = starts[-1]
    keys = (number for number, line in enumerate(lines[last:], last + 1) if _KEY.match(line))
    spans = list(pairwise([*starts, next(keys, len(lines) + 1)]))
    for kept in spans:
        left = list(lines)
        for start, end in spans:
            if (start, end) != kept:
                left[start - 1 : end - 1] = [""] * (end - start)
        yield "\n".join(left).rstrip("\n") + "\n"


def _describes(part: str, whole: Node, table: Node, source: str, limits: Limits) -> bool:
    """Return whether a text says of one table what the whole text says of it."""
    try:
        tree = load(part, source, [], limits)
    except ContractInvalid:
        return False
    return _plain(tree) == _plain(whole) | {_SCHEMA: [table.plain()]}


def _plain(tree: Node) -> dict[str, object]:
    parts = tree.value if isinstance(tree.value, dict) else {}
    return {key: node.plain() for key, node in parts.items()}
