"""Read a JSON sample as the job reads it: one object a line, or one array of objects."""

import json
import re
from collections.abc import Iterator
from typing import Any

from cli.contract.suggest.cells import Cells, refusal, refuse_bad_rows
from cli.contract.suggest.columns import Outlier
from cli.contract.suggest.readers.json_columns import Number, Row, cells

_BLANKS = " \t\r\n"


def read_json(content: str) -> Cells:
    """Return the cells of a JSON text. Raises LakegateError UNREADABLE, with a remedy."""
    content = content.strip(_BLANKS)
    is_array = content.startswith("[")
    every = list(_items(content) if is_array else _lines(content))
    rows = [row for row in every if not row.broken]
    bad = tuple(Outlier(row.line, row.broken) for row in every if row.broken)
    if not is_array and (not rows or every[0].broken or len(every) == 1):
        _refuse_document(content, is_line=len(every) == 1)
    what = "an item that is" if is_array else "a line that is"
    refuse_bad_rows(bad, len(rows), _why_bad(what))
    return cells(rows, bad, "row" if is_array else "line")


def _why_bad(what: str) -> tuple[str, str]:
    return f"is JSON with {what} no object, or no valid one", "Write one object a line."


def _lines(content: str) -> Iterator[Row]:
    for number, line in enumerate(re.split(r"\r\n?|\n", content), 1):
        if text := line.strip(_BLANKS):
            yield _row(number, text)


def _row(number: int, text: str) -> Row:
    try:
        value = _loaded(text)
    except (ValueError, RecursionError):
        return Row(number, {}, text)
    is_row = isinstance(value, dict) and _is_text(value, text)
    return Row(number, value) if is_row else Row(number, {}, text)


def _items(content: str) -> Iterator[Row]:
    try:
        items = _loaded(content)
    except (ValueError, RecursionError) as error:
        message = f"begins as a JSON array, but is none: {error}"
        raise refusal(message, "Write one object a line, or mend the array.") from error
    for number, item in enumerate(items, 1):
        is_row = isinstance(item, dict) and _is_text(item, content)
        yield Row(number, item) if is_row else Row(number, {}, json.dumps(item))


def _is_text(value: Any, written: str) -> bool:
    """Return whether a value has no half of a surrogate pair, which only an escape can write."""
    try:
        return "\\u" not in written or bool(json.dumps(value, ensure_ascii=False).encode())
    except UnicodeEncodeError:
        return False


def _loaded(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError for NaN, and for a key given twice."""
    return json.loads(
        text, parse_float=Number, parse_constant=_refuse_constant, object_pairs_hook=_object
    )


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key is given twice")
    return members


def _refuse_document(content: str, *, is_line: bool) -> None:
    """Refuse a text that is one object around the rows, or has objects over several lines."""
    try:
        value, end = json.JSONDecoder().raw_decode(content)
    except (ValueError, RecursionError):
        return
    if not isinstance(value, dict):
        return
    lists = [key for key, each in value.items() if _is_table(each)]
    if "features" in lists and value.get("type") == "FeatureCollection":
        raise refusal(
            "is GeoJSON: one object with all features, where the job needs one object a line",
            "Write its features as lines: jq -c '.features[]' FILE > lines.json",
        )
    if is_line or not set("\r\n") & set(content[:end]):
        return
    if end == len(content) and lists:
        raise refusal(
            f"is one JSON object with its rows under {lists[0]!r}, not one object a line",
            f"""Write them as lines: jq -c '."{lists[0]}"[]' FILE > lines.json""",
        )
    raise refusal(
        "is JSON with objects over several lines, where the job needs one object a line",
        "Write each object as one line: jq -c . FILE > lines.json",
    )


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)
