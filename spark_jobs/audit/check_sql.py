"""A contract's checks in Spark SQL: which rows break one, and what a column's values come to. Pure.

Every condition is true or false for each row, never null.
"""

from collections.abc import Callable, Iterator, Sequence

from lakegate.contract.checks import OF_ROWS, Check, Metric
from lakegate.contract.columns import ITEM, KEY, VALUE, Column, quoted
from lakegate.contract.model import Contract
from lakegate.contract.rules import Condition, Quantile, Query, Reference, Rule
from lakegate.ecma_patterns import PATTERNS, java_pattern

# What a decoder leaves where the bytes were no text of its encoding, and what no text has.
_UNDECODED = r"[\x00-\x08\x0B\x0C\x0E-\x1F\x7F\uFFFD]"
_FLOATING = ("float", "double")
_INTEGERS = ("int", "bigint")
_RANKS = 10_000
_Test = Callable[[str], str]


def counted(check: Check, contract: Contract) -> str:
    """That a row is one of those that the check, one of `OF_ROWS`, counts."""
    broken = _violation(check, contract)
    return f"({broken} AND {looked_at(check)})" if check.where else broken


def looked_at(check: Check) -> str:
    """That a row is one of those that the check looks at."""
    return f"coalesce({_own(check.where)}, false)" if check.where else "true"


def value(check: Check, contract: Contract) -> str:
    """The aggregate that a check of `OF_VALUES` compares; null where there is no value.

    NaN is left out; a sum that no decimal(38) holds is null. A mean is a double, whatever the
    column is: Spark's own of decimals has four more digits than they. A quantile is exact to one
    rank in 10,000. For `Metric.AGE` it is how many hours the newest moment lies back.
    """
    column = contract.column(check.columns[0])
    name = quoted(column.name)
    given = f"CASE WHEN {looked_at(check)} THEN {name} END" if check.where else name
    number = f"nanvl({given}, NULL)" if column.type in _FLOATING else given
    match check.metric, check.rule:
        case Metric.SUM, _:
            return f"try_sum({_wide(number, column)})"
        case Metric.MEAN, _:
            total = f"CAST(try_sum({_wide(number, column)}) AS DOUBLE)"
            return f"try_divide({total}, count({number}))"
        case Metric.STDDEV, _:
            return f"stddev_samp(CAST({number} AS DOUBLE))"
        case Metric.QUANTILE, Quantile(share):
            return f"percentile_approx(CAST({number} AS DOUBLE), {share:f}D, {_RANKS})"
        case _:
            newest = f"unix_micros(max(CAST({given} AS TIMESTAMP)))"
            return f"(unix_micros(current_timestamp()) - {newest}) / 3600000000D"


def finding(check: Check, contract: Contract, named: Callable[[str], str]) -> str:
    """A query for the rows behind a check's measure, "" where there are none.

    `named` gives a table's name in Spark SQL.
    """
    table = named(contract.table)
    keys = [_path(contract.column(name)) for name in check.columns]
    given = " AND ".join([looked_at(check), *(f"{key} IS NOT NULL" for key in keys)])
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
            return f"SELECT * FROM {table} WHERE {counted(check, contract)}"
        case _:
            return ""


def _path(column: Column) -> str:
    return ".".join(map(quoted, column.steps))


def literal(text: str, type_: str) -> str:
    """A literal of the contract as a value of the column's type."""
    return string(text) if type_ == "string" else f"CAST({string(text)} AS {type_})"


def string(text: str) -> str:
    """A text as Spark SQL reads it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _wide(number: str, column: Column) -> str:
    """A number as a type in which sums overflow late; a decimal keeps its scale."""
    if column.kind == "decimal":
        scale = column.type.rstrip(")").rpartition(",")[2]
        return f"CAST({number} AS DECIMAL(38,{scale}))"
    return f"CAST({number} AS {'DECIMAL(38,0)' if column.type in _INTEGERS else 'DOUBLE'})"


def _own(condition: str) -> str:
    """A data owner's condition in parentheses, which a comment at its end leaves alone."""
    return f"({condition}\n)" if "--" in condition else f"({condition})"


def _violation(check: Check, contract: Contract) -> str:
    if isinstance(check.rule, Condition):
        return f"coalesce(NOT {_own(check.rule.sql)}, false)"
    column = contract.column(check.columns[0])
    return f"coalesce({_somewhere(column.steps, _test(check, column))}, false)"


def _test(check: Check, column: Column) -> _Test:
    """What to ask of one value of the column."""
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


def _somewhere(steps: Sequence[str], test: _Test, within: str = "", depth: int = 0) -> str:
    """That the test holds for a value at the end of the way, or for any one of an array's items.

    A value whose parent is null is not looked at: whether the parent may be is the parent's check.
    """
    head, rest = steps[0], steps[1:]
    if head in (ITEM, KEY, VALUE):
        items = {KEY: f"map_keys({within})", VALUE: f"map_values({within})"}.get(head, within)
        item = f"x{depth}"
        return f"exists({items}, {item} -> {_there(rest, test, item, depth + 1)})"
    return _there(rest, test, f"{within}.{quoted(head)}" if within else quoted(head), depth)


def _there(rest: Sequence[str], test: _Test, here: str, depth: int) -> str:
    """That the test holds for what is `here`, or for something further on the way from it."""
    if not rest:
        return test(here)
    return f"({here} IS NOT NULL AND {_somewhere(rest, test, here, depth)})"


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
        yield _no_multiple(value, rule.multiple_of, column)
    yield from _of_other_size(value, rule, column.fields)
    if rule.unique_items:
        # Spark tells 0.0 and -0.0 apart here, as it does nowhere else.
        floating = column.type in ("array<float>", "array<double>")
        items = f"transform({value}, x -> x + CAST(0 AS FLOAT))" if floating else value
        yield f"size(array_distinct({items})) < size({value})"
    if column.type in _FLOATING:  # Spark orders NaN above every number: a lower bound lets it pass
        yield f"isnan({value})"


def _of_other_size(value: str, rule: Rule, fields: Sequence[str]) -> Iterator[str]:
    """What is wrong with the size of a text, an array, a map, a struct."""
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


def _no_multiple(value: str, step: str, column: Column) -> str:
    """Exact, by the digits that a number is written with: 0.3 is a multiple of 0.1."""
    if column.type in _INTEGERS and "." not in step:
        return f"{value} % {step}L <> 0"
    exact = f"CAST({string(step)} AS DECIMAL(38,18))"
    if column.type not in _FLOATING:
        return f"{value} % {exact} <> 0"
    # Up to 10^20 with all digits that a step may have, up to 10^38 without any after the point.
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
