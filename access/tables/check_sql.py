"""Translate a contract's checks to duckdb SQL that finds the rows that break them. Pure.

Each rule means the same as in the job's SQL (spark_jobs/audit/check_sql.py): a null breaks only a
required value, NaN breaks every rule of a number, and a key with a null is no key. duckdb orders
NaN, compares text and counts characters as Spark does. Its patterns are RE2's, so characters newer
than its Unicode have no general category here.
"""

from collections.abc import Iterator, Mapping

from lakegate.contract.checks import Check, Metric
from lakegate.contract.model import Contract
from lakegate.contract.rules import Rule
from lakegate.ecma_patterns import PATTERNS
from spark_jobs.audit.arrow.patterns import re2_pattern


def quoted(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


FILE, POSITION, COUNTED = "_file", "_pos", "_counted"

_OF_ROWS = (Metric.NULL, Metric.MISSING, Metric.INVALID, Metric.DUPLICATE)
_NESTED = {"struct", "array", "map"}
_TYPES = {
    "int": "INTEGER",
    "string": "VARCHAR",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "binary": "BLOB",
}


def about_rows(check: Check, contract: Contract) -> bool:
    """Return whether single rows break the check, and duckdb can find them."""
    unsupported = check.where or check.values.multiple_of or "" in _searched(check.values)
    kinds = {contract.column(name).kind for name in check.columns}
    top_level = all(len(contract.column(name).steps) == 1 for name in check.columns)
    return check.metric in _OF_ROWS and not unsupported and top_level and not kinds & _NESTED


def addresses(check: Check, types: Mapping[str, str]) -> str:
    """Return the SELECT of the address (`FILE`, `POSITION`) of each row that breaks the check.

    `COUNTED` is false for the first row of a key, which the check does not count. It reads a
    relation `rows` with those addresses and the check's columns. `types` are Spark's.
    """
    if check.metric is Metric.DUPLICATE:
        return _repeats(check.columns)
    return (
        f"SELECT {FILE}, {POSITION}, true AS {COUNTED} FROM rows WHERE {_violation(check, types)}"
    )


def _repeats(columns: tuple[str, ...]) -> str:
    keys = [quoted(name) for name in columns]
    all_set = " AND ".join(f"{key} IS NOT NULL" for key in keys)
    of_key = f"PARTITION BY {', '.join(keys)}"
    nth = f"row_number() OVER ({of_key} ORDER BY {FILE}, {POSITION})"
    selected = f"SELECT {FILE}, {POSITION}, {nth} > 1 AS {COUNTED} FROM rows WHERE {all_set}"
    return f"{selected} QUALIFY count(*) OVER ({of_key}) > 1"


def _violation(check: Check, types: Mapping[str, str]) -> str:
    """Return a condition: true for each row that the check counts, else false, never null."""
    (name,) = check.columns
    value, type_ = quoted(name), types[name]
    match check.metric:
        case Metric.NULL:
            return f"{value} IS NULL"
        case Metric.MISSING:
            listed = [text for text in check.values.missing_values if text is not None]
            missing = [f"{value} IN {_literals(listed, type_)}"] if listed else []
            nulls = [f"{value} IS NULL"] if None in check.values.missing_values else []
            return _any([*missing, *nulls])
        case _:
            return _any(_broken_rules(value, check.values, type_))


def _broken_rules(value: str, rule: Rule, type_: str) -> Iterator[str]:
    if rule.valid_values:
        yield f"{value} NOT IN {_literals(rule.valid_values, type_)}"
    for pattern in _searched(rule):
        yield f"NOT regexp_matches({value}, {_literal(pattern, 'string')})"
    for comparison, bound in rule.bounds:
        yield f"{value} {comparison} {_literal(bound, type_)}"
    if rule.min_length is not None:
        yield f"length({value}) < {rule.min_length}"
    if rule.max_length is not None:
        yield f"length({value}) > {rule.max_length}"
    if type_ in ("float", "double"):
        yield f"isnan({value})"


def _searched(rule: Rule) -> list[str]:
    """Return the patterns of a rule in RE2's notation; "" for one that RE2 cannot search for."""
    both = (rule.pattern, PATTERNS.get(rule.format or ""))
    return [re2_pattern(pattern) for pattern in both if pattern is not None]


def _any(conditions: Iterator[str] | list[str]) -> str:
    return f"coalesce({' OR '.join(conditions)}, false)"


def _literals(texts: tuple[str, ...] | list[str], type_: str) -> str:
    return f"({', '.join(_literal(text, type_) for text in texts)})"


def _literal(text: str, type_: str) -> str:
    written = text.replace("'", "''")
    return f"CAST('{written}' AS {_TYPES.get(type_, type_)})"
