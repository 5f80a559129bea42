"""Hostile cells in every text format have the same verdict and value."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.spark.conftest import Read
from tests.spark.hostile_cells import BAD, CELLS, COLUMNS, LINE_ENDS, Cell, same

pytestmark = pytest.mark.spark
Reading = Callable[..., Read]
NAMES = [column[0] for column in COLUMNS]


def assert_read(found: Read, cells: list[Cell], wanted: list[Any]) -> None:
    """Assert that each row, by its id, has its one value or is bad."""
    assert (found.code, found.promised) == ("", len(cells))
    assert len(found.rows) + len(found.bad) == len(cells)
    values = {row[0]: next((v for v in row[1:] if v is not None), None) for row in found.rows}
    got = [values.get(n, BAD) for n in range(len(cells))]
    rows = zip(cells, wanted, got, strict=True)
    wrong = [f"{cell.column} {cell.text!r}: {g!r}" for cell, w, g in rows if not same(w, g)]
    assert not wrong, "\n".join(wrong)


def separated(cells: list[Cell], delimiter: str, end: str) -> str:
    """Return a file with a cell in each row, quoted where needed."""
    lines = [delimiter.join(NAMES)]
    for n, cell in enumerate(cells):
        text = cell.text
        if not text or any(sign in text for sign in (delimiter, '"', "\r", "\n")):
            text = '"' + text.replace('"', '""') + '"'
        row = {"id": str(n), cell.column: text}
        lines.append(delimiter.join(row.get(name, "") for name in NAMES))
    return end.join(lines) + end


@pytest.mark.parametrize(
    ("format_", "end", "with_line_ends"),
    [
        ("csv", "\n", False),
        ("tsv", "\r\n", False),
        ("tsv", "\n", True),
        ("csv", "\r\n", True),
        ("csv", "\r", True),
    ],
)
def test_every_cell_of_csv_is_its_value_or_bad(
    reading: Reading, format_: str, end: str, with_line_ends: bool
) -> None:
    """A cell has the same value with any line end, read by lines or by quotes."""
    cells = [*CELLS, *(Cell("s", text, text, BAD, text) for text in LINE_ENDS if with_line_ends)]
    body = separated(cells, {"csv": ",", "tsv": "\t"}[format_], end).encode()
    assert_read(reading(body, format_, COLUMNS), cells, [cell.csv for cell in cells])


@pytest.mark.parametrize("layout", ["lines", "lines by CRLF", "array", "spread array"])
def test_every_value_of_json_is_its_value_or_bad(reading: Reading, layout: str) -> None:
    """An array is read as strictly as lines."""
    texts = [*CELLS, *(Cell("s", text, text, BAD, text) for text in LINE_ENDS)]
    bare = [cell for cell in CELLS if cell.column != "s"]
    spread = layout == "spread array"
    objects = [f'"{c.column}": {c.text}' for c in bare]
    objects += [f'"{c.column}": {json.dumps(c.text, ensure_ascii=spread)}' for c in texts]
    between = " \n,\r\n" if spread else ", "
    objects = [f'{{"id": {n}{between}{each}}}' for n, each in enumerate(objects)]
    body = {
        "lines": "\n".join(objects),
        "lines by CRLF": "\r\n".join(objects),
        "array": f"[{','.join(objects)}]",
        "spread array": f"\ufeff\n[\n {between.join(objects)}\n]\r\n",
    }[layout]
    wanted = [*(cell.bare for cell in bare), *(cell.quoted for cell in texts)]
    assert_read(reading(body.encode(), "json", COLUMNS), [*bare, *texts], wanted)
