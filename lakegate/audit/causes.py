"""What is wrong with a file, in words: what each failed check found, and all in one sentence."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakegate.audit import failing_rows
from lakegate.audit.diagnosis import HIDDEN, WHOLE, cell_of
from lakegate.audit.report import READABLE, TIMES, CheckResult
from lakegate.text import count, one_line

if TYPE_CHECKING:  # whoever shows a report has no contract, and should not wait for it
    from lakegate.contract.checks import Check

_LONGEST, _MOST_CHECKS, _MOST_VALUES, _MOST_KEYS, _MOST_CELLS = 1000, 4, 3, 2, 2
_NO_ROWS, _OF_FILE, _ROW_COUNT = "0 rows", "file", "rowCount"
_COLUMNS = "file.columns"
_TOLD = ("found", "expected", "message")
_OUTSIDE = {"<": "below", ">": "above", "<=": "not above", ">=": "not below"}


def sentence(failed: Sequence[CheckResult], checks: Mapping[str, "Check"]) -> str:
    """Return what failed checks found, the first ones in full; `checks` are the contract's."""
    causes = [_cause(each, checks.get(each.id)) for each in failed[:_MOST_CHECKS]]
    left = len(failed) - _MOST_CHECKS
    more = [f"and {count(left, 'more failed check')}"] if left > 0 else []
    return one_line(", ".join(dict.fromkeys([*causes, *more])))[:_LONGEST]


def finding(check: Mapping[str, Any]) -> str:
    """Return what a check found, as far as its result tells: `2 rows without hotel`.

    It is given by the names of `CheckResult`, as the ledger has it.
    """
    found, expected, message = (str(check.get(name) or "") for name in _TOLD)
    many = check.get("counted")
    if check["id"].endswith(READABLE) or _COLUMNS in check["id"]:
        return found
    if check.get("metric") == _ROW_COUNT:
        return _row_count(found, expected)
    if expected == _NO_ROWS and found != HIDDEN:
        rows = count(many, "row") if many else found
        if message.startswith("rows "):
            return f"{rows} {_agreeing(message.removeprefix('rows '), many)}"
        return ": ".join(filter(None, (rows, message)))
    about = f" ({message})" if message else ""
    return f"{found}, expected {expected}{about}"


def row_cause(check: "Check") -> str:
    """Return what is wrong with one row that breaks a check: `a row without hotel`."""
    measure = check.measure
    if check.metric == "brokenRows" and check.description not in ("", measure):
        return f"a row against “{check.description}”"
    return f"a row {_agreeing(measure.removeprefix('rows '), 1)}"


def _cause(check: CheckResult, rule: "Check | None") -> str:
    """Return what a check found, with the values at fault where these may be shown."""
    if check.id == READABLE:
        return check.found + _cells_at_fault(check)
    if rule is None or check.metric in (_OF_FILE, _ROW_COUNT) or not check.counted:
        return finding(vars(check))
    if check.samples and all(TIMES in row for row in check.samples):
        return _keys(check)
    allowed = "" if rule.expect.wording == _NO_ROWS else f" (allowed: {check.expected})"
    if check.metric == "invalidValues" and not rule.where:
        return f"{_values(check, rule)}{allowed}"
    if not rule.measure.startswith("rows ") or check.found == HIDDEN:
        return finding(vars(check))
    words = _agreeing(rule.measure.removeprefix("rows "), check.counted)
    if rule.description and check.metric == "brokenRows":
        words = f"against “{rule.description}”"
    return f"{count(check.counted, 'row')} {words}{_keys_at_fault(check)}{allowed}"


def _cells_at_fault(check: CheckResult) -> str:
    """Return the first columns that could not be read, with reasons: `: day not a date`."""
    cells = filter(None, map(cell_of, check.samples))
    told = (f"{each.column} {each.reason}".removeprefix(f"{WHOLE} ") for each in cells)
    reasons = list(dict.fromkeys(told))
    more = ["…"] if len(reasons) > _MOST_CELLS else []
    return f": {'; '.join([*reasons[:_MOST_CELLS], *more])}" if reasons else ""


def _keys_at_fault(check: CheckResult) -> str:
    """Return the keys that another table lacks, or the table has already, where they are shown."""
    values = list(dict.fromkeys(_single_values(check)))
    is_key = check.metric in ("missingReferences", "duplicateValues") and len(check.columns) == 1
    if not is_key or not values or HIDDEN in values:
        return ""
    are_all = len(values) <= _MOST_VALUES and len(check.samples) == check.counted
    return f": {', '.join(values[:_MOST_VALUES])}{'' if are_all else ', …'}"


def _agreeing(words: str, many: int | None) -> str:
    """Return which rows they are in the number of a verb that fits one row, or many."""
    return words.replace("that repeat ", "that repeats ", 1) if many == 1 else words


def _row_count(found: str, expected: str) -> str:
    return f"{found} (the contract allows {expected.removesuffix(' rows')})"


def _keys(check: CheckResult) -> str:
    """Return the first keys that are there several times, with their places in parentheses."""
    repeated = failing_rows.repeated(check)
    keys = [f"{key} ({at})" if at else key for key, at in repeated[:_MOST_KEYS]]
    return ", ".join([*keys, *(["…"] if len(repeated) > _MOST_KEYS else [])])


def _values(check: CheckResult, rule: "Check") -> str:
    """Return the invalid values: `nights below 0 in 1 row`, `status 'Booked' (1)`."""
    name, bounds = ", ".join(check.columns), rule.values.bounds
    rows = count(check.counted or 0, "row")
    if len(bounds) == 1 and " and " not in rule.values.wording:
        ((comparison, bound),) = bounds
        return f"{name} {_OUTSIDE[comparison]} {bound} in {rows}"
    values = Counter(_single_values(check))
    if bounds or not values or HIDDEN in values:
        return f"{name} not {rule.values.wording} in {rows}"
    shown = values.most_common(_MOST_VALUES)
    if values.total() == check.counted and len(values) == len(shown):
        return f"{name} " + ", ".join(f"{value!r} ({many:,})" for value, many in shown)
    return f"{name} {', '.join(repr(value) for value, _ in shown)}, … in {rows}"


def _single_values(check: CheckResult) -> Iterator[str]:
    for row in failing_rows.own_values(check):
        yield from (value for value in row.values() if value is not None)
