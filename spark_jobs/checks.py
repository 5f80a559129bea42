"""A contract's checks in Spark's terms: which rows break one, and how many do."""

from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from lakegate.contract import Check, Contract, Metric, Rule
from lakegate.patterns import java_pattern
from spark_jobs.names import quoted
from spark_jobs.read import BAD_ROW

ROWS = "rows"
BAD_ROWS = "bad_rows"


def aggregates(contract: Contract) -> list[Expression]:
    """What one pass over the rows must count: all rows, bad ones, and those that break a check."""
    types = {column.name: column.type for column in contract.columns}
    counts = [
        F.count_if(violation(check, types)).alias(count_name(n))
        for n, check in enumerate(contract.checks)
        if is_row_check(check)
    ]
    bad = F.count_if(F.col(BAD_ROW).isNotNull())
    return [F.count(F.lit(1)).alias(ROWS), bad.alias(BAD_ROWS), *counts]


def count_name(n: int) -> str:
    """The name under which the count for the contract's check number `n` is kept."""
    return f"check_{n}"


def is_row_check(check: Check) -> bool:
    """Whether single rows break the check, so that a pass over the rows can count them."""
    return check.metric in (Metric.NULL, Metric.MISSING, Metric.INVALID)


def violation(check: Check, types: dict[str, str]) -> Expression:
    """True for a row that the check counts, false for any other; never null."""
    name = check.columns[0]
    value = F.col(quoted(name))
    if check.metric is Metric.NULL:
        return value.isNull()
    if check.metric is Metric.MISSING:
        return _is_missing(value, check.rule, types[name])
    broken = _broken_rules(value, check.rule, types[name])
    return F.coalesce(reduce(lambda a, b: a | b, broken, F.lit(False)), F.lit(False))


def _is_missing(value: Expression, rule: Rule, type_: str) -> Expression:
    texts = [_literal(text, type_) for text in rule.missing_values if text is not None]
    listed = F.coalesce(value.isin(texts), F.lit(False))
    return listed | value.isNull() if None in rule.missing_values else listed


def _broken_rules(value: Expression, rule: Rule, type_: str) -> list[Expression]:
    broken = [
        *(
            [~value.isin([_literal(v, type_) for v in rule.valid_values])]
            if rule.valid_values
            else []
        ),
        *([~value.rlike(java_pattern(rule.pattern))] if rule.pattern is not None else []),
        *([value < _literal(rule.minimum, type_)] if rule.minimum is not None else []),
        *([value > _literal(rule.maximum, type_)] if rule.maximum is not None else []),
    ]
    if rule.exclusive_minimum is not None:
        broken.append(value <= _literal(rule.exclusive_minimum, type_))
    if rule.exclusive_maximum is not None:
        broken.append(value >= _literal(rule.exclusive_maximum, type_))
    if rule.min_length is not None:
        broken.append(F.length(value) < rule.min_length)
    if rule.max_length is not None:
        broken.append(F.length(value) > rule.max_length)
    # Spark orders NaN above every number, so a lower bound alone would let it pass.
    return [*broken, F.isnan(value)] if type_ in ("float", "double") else broken


def _literal(text: str, type_: str) -> Expression:
    return F.lit(text).cast(type_)
