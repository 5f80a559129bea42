"""Compile a contract's checks to Spark SQL: conditions on rows, and aggregates of columns. Pure.

Every condition is true or false for each row, never null.
"""

from collections.abc import Callable, Iterator, Sequence

from lakegate.contract.checks import OF_ROWS, Check, Metric
from lakegate.contract.columns import ITEM, KEY, VALUE, Column, quoted
from lakegate.contract.model import Contract
from lakegate.contract.rules import Condition, Quantile, Query, Reference, Rule
from lakegate.ecma_patterns import PATTERNS, java_pattern
from spark_jobs.schema.types import digits

# Control characters and the replacement character: signs of a wrong encoding.
_UNDECODED = r"[\x00-\x08\x0B\x0C\x0E-\x1F\x7F\uFFFD]"
_FLOATING = ("float", "double")
_INTEGERS = ("int", "bigint")
_RANKS = 10_000
_ValueTest = Callable[[str], str]


def counts_row(check: Check, contract: Contract) -> str:
    """Return the condition for rows that the check, one of `OF_ROWS`, counts."""
    broken = _violation(check, contract)
    return f"({broken} AND {checks_row(check)})" if check.where else broken


def checks_row(check: Check) -> str:
    """Return the condition for rows that the check applies to (its `where`)."""
    return f"coalesce({_in_parentheses(check.where)}, false)" if check.where else "true"


def value(check: Check, contract: Contract) -> str:
    """Return the aggregate that a check of `OF_VALUES` compares; null where there is no value.

    NaN is left out. A sum that does not fit decimal(38) is null. A mean is always a double, because
    Spark's mean of decimals has four more digits than the column. A quantile is exact to one rank
    in 10,000. `Metric.AGE` is the age of the newest timestamp in hours.
    """
    column = contract.column(check.columns[0])
    name = quoted(column.name)
    given = f"CASE WHEN {checks_row(check)} THEN {name} END" if check.where else name
    number = f"nanvl({given}, NULL)" if column.type in _FLOATING else given
    match check.metric, check.rule:
        case Metric.SUM, _:
            return f"try_sum({_widened(number, column)})"
        case Metric.MEAN, _:
            total = f"CAST(try_sum({_widened(number, column)}) AS DOUBLE)"
            return f"try_divide({total}, count({number}))"
        case Metric.STDDEV, _:
            return f"stddev_samp(CAST({number} AS DOUBLE))"
        case Metric.QUANTILE, Quantile(share):
            return f"percentile_approx(CAST({number} AS DOUBLE), {share:f}D, {_RANKS})"
        case _:
            newest = f"unix_micros(max(CAST({given} AS TIMESTAMP)))"
            return f"(unix_micros(current_timestamp()) - {newest}) / 3600000000D"


def evidence_query(check: Check, contract: Contract, named: Callable[[str], str]) -> str:
    """Return a query for the rows behind a check's measure, or "" where there is none.

    `named` returns a table's name in Spark SQL.
    """
    table = named(contract.table)
    keys = [path(contract.column(name)) for name in check.columns]
    given = " AND ".join([checks_row(check), *(f"{key} IS NOT NULL" for key in keys)])
    match check.metric, check.rule:
        case Metric.DUPLICATE, _:
            names = ", ".join(keys)
            shown = f"{names}, count(*) AS rows"
            return f"SELECT {shown} FROM {table} WHERE {given} GROUP BY {names} HAVING count(*) > 1"
        case Metric.ORPHAN, Reference(other, columns):
            pairs = zip(keys, map(quoted, columns), strict=True)
            same = " AND ".join(f"a.{key} = b.{column}" for key, column in pairs)
            rows = f"(SELECT * FROM {table} WHERE {given})"
            return f"SELECT * FROM {rows} a LEFT ANTI JOIN {named(other)} b ON {same}"
        case Metric.QUERY, Query(text):
            return text
        case _ if check.metric in OF_ROWS:
            return f"SELECT * FROM {table} WHERE {counts_row(check, contract)}"
        case _:
            return ""


def path(column: Column) -> str:
    """Return a column as Spark SQL names it, a nested one by its path."""
    return ".".join(map(quoted, column.steps))


def literal(text: str, type_: str) -> str:
    """Return a literal of the contract as a value of the column's type."""
    return string(text) if type_ == "string" else f"CAST({string(text)} AS {type_})"


def string(text: str) -> str:
    """Return a text as a Spark SQL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _widened(number: str, column: Column) -> str:
    """Cast a number to a type in which sums overflow late; a decimal keeps its scale."""
    if column.kind == "decimal":
        return f"CAST({number} AS DECIMAL(38,{digits(column.type)[1]}))"
    return f"CAST({number} AS {'DECIMAL(38,0)' if column.type in _INTEGERS else 'DOUBLE'})"


def _in_parentheses(condition: str) -> str:
    """Return a data owner's condition in parentheses, also if it ends with a comment."""
    return f"({condition}\n)" if "--" in condition else f"({condition})"


def _violation(check: Check, contract: Contract) -> str:
    if isinstance(check.rule, Condition):
        return f"coalesce(NOT {_in_parentheses(check.rule.sql)}, false)"
    column = contract.column(check.columns[0])
    return f"coalesce({_any_value_fails(column.steps, _value_test(check, column))}, false)"


def _value_test(check: Check, column: Column) -> _ValueTest:
    """Return the function that writes the condition for one value of the column."""
    rule = check.rule if isinstance(check.rule, Rule) else Rule()
    match check.metric:
        case Metric.NULL:
            return lambda value: f"{value} IS NULL"
        case Metric.MISSING:
            return lambda value: _any(_missing(value, rule, column))
        case Metric.UNDECODED:
            return lambda value: f"{value} RLIKE {string(_UNDECODED)}"
        case _:
            return lambda value: _any(_broken(value, rule, column))


def _any_value_fails(
    steps: Sequence[str], test: _ValueTest, within: str = "", depth: int = 0
) -> str:
    """Return the condition that the test holds for a nested value, or for any item of an array.

    A value whose parent is null is skipped: the parent has its own check for nulls.
    """
    head, rest = steps[0], steps[1:]
    if head in (ITEM, KEY, VALUE):
        items = {KEY: f"map_keys({within})", VALUE: f"map_values({within})"}.get(head, within)
        item = f"x{depth}"
        return f"exists({items}, {item} -> {_test_here(rest, test, item, depth + 1)})"
    return _test_here(rest, test, f"{within}.{quoted(head)}" if within else quoted(head), depth)


def _test_here(rest: Sequence[str], test: _ValueTest, here: str, depth: int) -> str:
    """Return the condition that the test holds for the value `here` or for a value below it."""
    if not rest:
        return test(here)
    return f"({here} IS NOT NULL AND {_any_value_fails(rest, test, here, depth)})"


def _missing(value: str, rule: Rule, column: Column) -> Iterator[str]:
    texts = [text for text in rule.missing_values if text is not None]
    if texts:
        yield f"coalesce({value} IN {_literals(texts, column.type)}, false)"
    if None in rule.missing_values:
        yield f"{value} IS NULL"


def _broken(value: str, rule: Rule, column: Column) -> Iterator[str]:
    if rule.valid_values:
        yield f"{value} NOT IN {_literals(rule.valid_values, column.type)}"
    for pattern in (rule.pattern, PATTERNS.get(rule.format or "")):
        if pattern is not None:
            yield f"NOT {value} RLIKE {string(java_pattern(pattern))}"
    for comparison, bound in rule.bounds:
        yield f"{value} {comparison} {literal(bound, column.type)}"
    if rule.multiple_of is not None:
        yield _not_a_multiple(value, rule.multiple_of, column)
    yield from _wrong_size(value, rule, column.fields)
    if rule.unique_items:
        # array_distinct, unlike the rest of Spark, distinguishes 0.0 and -0.0.
        floating = column.type in ("array<float>", "array<double>")
        items = f"transform({value}, x -> x + CAST(0 AS FLOAT))" if floating else value
        yield f"size(array_distinct({items})) < size({value})"
    if column.type in _FLOATING:  # Spark orders NaN above every number: a lower bound lets it pass
        yield f"isnan({value})"


def _wrong_size(value: str, rule: Rule, fields: Sequence[str]) -> Iterator[str]:
    """Yield the conditions for a wrong size of a text, an array, a map or a struct."""
    present = " + ".join(f"int({value}.{quoted(name)} IS NOT NULL)" for name in fields) or "0"
    for size, low, high in (
        (f"length({value})", rule.min_length, rule.max_length),
        (f"size({value})", rule.min_items, rule.max_items),
        (f"if({value} IS NULL, NULL, {present})", rule.min_properties, rule.max_properties),
    ):
        yield from [f"{size} < {low}"] if low is not None else []
        yield from [f"{size} > {high}"] if high is not None else []
    for name in rule.required_properties:
        yield f"({value} IS NOT NULL AND {value}.{quoted(name)} IS NULL)"


def _not_a_multiple(value: str, step: str, column: Column) -> str:
    """Return the condition that a value is no multiple, exact in decimal digits (0.3 of 0.1)."""
    if column.type in _INTEGERS and "." not in step:
        return f"{value} % {step}L <> 0"
    exact = f"CAST({string(step)} AS DECIMAL(38,18))"
    if column.type not in _FLOATING:
        return f"{value} % {exact} <> 0"
    # Exact with all digits of the step up to 10^20, and with whole numbers up to 10^38.
    small, large = (
        f"try_cast(CAST({value} AS STRING) AS DECIMAL(38,{scale}))" for scale in (18, 0)
    )
    rounded = f"CAST({small} AS {column.type}) <> {value}"
    broken = f"coalesce({small} % {exact} <> 0 OR {rounded}, {large} % {exact} <> 0, true)"
    return f"({value} IS NOT NULL AND {broken})"


def _any(conditions: Iterator[str]) -> str:
    return f"({' OR '.join(conditions) or 'false'})"


def _literals(texts: Sequence[str], type_: str) -> str:
    return f"({', '.join(literal(text, type_) for text in texts)})"
