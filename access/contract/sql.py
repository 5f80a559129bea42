"""Find mistakes in a contract's SQL without Spark: unknown columns, and what no SQL allows.

duckdb parses another SQL than Spark. What it cannot parse may be right, and what Spark could take
for something else is left alone: this finds fewer mistakes than there are, and no others.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from lakegate.contract.model import Contract, Problem
from lakegate.contract.reading.sql import tokens
from lakegate.contract.text.problems import suggestion
from lakegate.contract.text.yaml import Node

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# The keys that have SQL, and of which kind it is: in a rule, and in a setting of this name.
_OF_RULES = {"expression": "condition", "query": "query"}
_OF_SETTINGS = {"where": {"value": "condition"}, "transform": {"value": "transform"}}
_ENOUGH = 20  # mistakes: the nearest of many columns takes long to find
_LONGEST = 20_000  # characters
# A text in Spark's SQL, a name with a backtick in it, or the argument of a lambda.
_UNSURE = re.compile(r'"|``|->|\$\{')
_CURLY = "\u201c\u201d\u201e\u2018\u2019"
_WRONG = {"=<": "<=", "=!": "!=", "&&": "AND"}
_PLACEHOLDER = re.compile(r"`?\$?\{(object|table)\}`?")
_NESTED = re.compile(r"\.(items|map)\b|properties\[.*properties\[")
# Words that Spark takes for functions, without parentheses.
_FUNCTIONS = ("current_", "localtimestamp", "session_user", "user", "_")
_LAST = ("AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "=", "<", ">", "+", "-", "/", ",", ".")
_UNITS = (  # arguments of date_add, timestampdiff and the like
    *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND"),
    *("MILLISECOND", "MICROSECOND"),
)


@dataclass(frozen=True)
class _Stated:
    """SQL in a contract: its node and path, and its kind: condition, query or transform."""

    node: Node
    path: str
    kind: str

    @property
    def sql(self) -> str:
        return self.node.text.strip().removesuffix(";")

    def problem(self, reason: str) -> Problem:
        return Problem(self.node.line, self.path, reason)


def sql_problems(tree: Node, contract: Contract) -> list[Problem]:
    """Return the mistakes in the SQL of a contract with the tree `tree`."""
    import duckdb  # half a second, which help does not need

    faults: list[Problem] = []
    columns = {column.name.lower(): column.name for column in contract.columns}
    with duckdb.connect() as connection:
        for stated in _stated(tree, ""):
            wrong = _misspelled(stated.sql)
            reasons = [wrong] if wrong else _reasons(connection, stated, contract, columns)
            faults += [stated.problem(reason) for reason in islice(reasons, _ENOUGH - len(faults))]
    return faults


def _stated(node: Node, path: str) -> Iterator[_Stated]:
    named = node.value.get("property") if isinstance(node.value, Mapping) else None
    kinds = _OF_SETTINGS.get(named.text if named else "", _OF_RULES)
    for key, each, place in node.parts(path):
        if key in kinds and isinstance(each.value, str):
            yield _Stated(each, place, kinds[key])
        else:
            yield from _stated(each, place)


def _misspelled(sql: str) -> str:
    """Return a mistake that the words of any SQL show; "" without one."""
    parts = tokens(sql)
    depth = 0
    for part in parts:
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if part[0] in _CURLY:
            return f"has the curly quote {part[0]}: write ' around a text, ` around a name"
        if part.lastgroup == "unclosed":
            return f"has {part[0]} at character {part.start() + 1}, which is never closed"
        if depth < 0:
            return f"has a ) at character {part.start() + 1} that nothing opened"
    for before, after in pairwise(parts):
        pair = before[0] + after[0]
        if pair in _WRONG:
            return f"has {pair} at character {before.start() + 1}: write {_WRONG[pair]}"
    if depth:
        return "has a ( that is never closed"
    last = parts[-1][0].upper() if parts else ""
    return f"ends with {last}, after which something is missing" if last in _LAST else ""


def _reasons(
    connection: "DuckDBPyConnection",
    stated: _Stated,
    contract: Contract,
    columns: Mapping[str, str],
) -> Iterator[str]:
    if len(stated.sql) > _LONGEST:
        return  # which takes duckdb long, and people write none such
    is_unsure = _UNSURE.search(stated.sql) or _NESTED.search(stated.path)
    if is_unsure or contract.extra_columns == "add":
        return
    sql = _PLACEHOLDER.sub("`{table}`", stated.sql).replace("`", '"')
    node = _parsed(connection, f"SELECT {sql}" if stated.kind == "condition" else sql)
    if not node:
        return
    if stated.kind == "transform":
        yield from _column_differences(node, contract, columns)
    elif stated.kind == "condition" or _reads_own_table(node, contract):
        yield from _unknown(node, columns)


def _parsed(connection: "DuckDBPyConnection", sql: str) -> Mapping[str, Any]:
    """Return the tree of one SELECT; {} if it is not for duckdb, too deep, or of another form."""
    ((text,),) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    try:
        document = json.loads(text)
    except RecursionError:
        return {}
    nodes = [each["node"] for each in document.get("statements", ())]
    return nodes[0] if len(nodes) == 1 and nodes[0]["type"] == "SELECT_NODE" else {}


def _reads_own_table(node: Mapping[str, Any], contract: Contract) -> bool:
    """Return if a query reads nothing but the contract's table, so that all names are its."""
    tables = [
        each for each in _walk(node) if each.get("type") in ("BASE_TABLE", "SUBQUERY", "JOIN")
    ]
    names = ("{table}", contract.table.partition(".")[2])
    return len(tables) == 1 and tables[0].get("table_name") in names and not node["cte_map"]["map"]


def _unknown(node: Mapping[str, Any], columns: Mapping[str, str]) -> Iterator[str]:
    aliases = {each["alias"].lower() for each in _walk(node) if each.get("alias")}
    names = [each["column_names"] for each in _walk(node) if each.get("class") == "COLUMN_REF"]
    for name in dict.fromkeys(path[0] for path in names):
        known = name.lower() in columns or name.lower() in aliases or name.upper() in _UNITS
        if not known and not name.lower().startswith(_FUNCTIONS):
            near = suggestion(name, list(columns.values()))
            yield f"names {name}, which is not a column of the contract{near}"


def _column_differences(
    node: Mapping[str, Any], contract: Contract, columns: Mapping[str, str]
) -> Iterator[str]:
    """Yield the columns of the result that are not the contract's, and those that it lacks."""
    names = [_result_name(each) for each in node["select_list"]]
    if not all(names):
        return  # a star, or an expression without a name
    given = {name.lower(): name for name in names}
    for lowered, name in given.items():
        if lowered not in columns and contract.extra_columns == "fail":
            near = suggestion(name, list(columns.values()))
            yield f"makes the column {name}, which is not in the contract{near}"
    for lowered, name in columns.items():
        if lowered not in given and contract.missing_columns == "fail":
            yield f"does not make the contract's column {name}"


def _result_name(item: Mapping[str, Any]) -> str:
    if item.get("class") == "COLUMN_REF":
        return str(item["alias"] or item["column_names"][-1])
    return str(item.get("alias") or "")


def _walk(root: Any) -> Iterator[Mapping[str, Any]]:
    left = [root]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left.extend(reversed(node.values()))
        elif isinstance(node, list):
            left.extend(reversed(node))
