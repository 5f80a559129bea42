"""Public files are read row by row as Python's own readers read them."""

import csv
import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from tests.spark.conftest import Read

pytestmark = pytest.mark.spark
Reading = Callable[..., Read]

PENGUINS = files("palmerpenguins") / "data"
VEGA = files("vega_datasets") / "_data"
_READ = {"string": str, "integer": int, "number": float}


def _cell(text: str, logical: str, null: str) -> Any:
    return None if text in ("", null) else _READ[logical](text)


@pytest.mark.parametrize(
    ("file", "types"),
    [
        (PENGUINS / "penguins.csv", "string string number number integer integer string integer"),
        (PENGUINS / "penguins-raw.csv",
         "string integer" + 7 * " string" + " number number integer integer string number number"
         + " string"),
        (VEGA / "airports.csv", "string string string string string number number"),
        (VEGA / "seattle-weather.csv", "string number number number number string"),
        (VEGA / "la-riots.csv", " ".join(["string"] * 11)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
def test_csv_is_read_as_python_reads_it(reading: Reading, file: Any, types: str) -> None:
    """Every cell has its value and type; the contract's null value is null."""
    body, null = file.read_bytes(), "NA"
    header, *rows = csv.reader(body.decode().splitlines())
    logical = types.split()
    found = reading(body, "csv", list(zip(header, logical, strict=True)), nullValue=null)
    assert (found.bad, found.code, found.promised) == ([], "", len(rows))
    assert found.rows == [
        tuple(_cell(cell, type_, null) for cell, type_ in zip(row, logical, strict=True))
        for row in rows
    ]


def test_json_is_read_as_python_reads_it(reading: Reading) -> None:
    """Every object of a pretty-printed array has its values, nulls and types."""
    body = (VEGA / "cars.json").read_bytes()
    numbers = ("Miles_per_Gallon", "Displacement", "Horsepower", "Weight_in_lbs", "Acceleration")
    types = {
        "Name": "string", "Cylinders": "integer", "Year": "string", "Origin": "string",
        **dict.fromkeys(numbers, "number"),
    }  # fmt: skip
    found = reading(body, "json", list(types.items()))
    assert (found.bad, found.code) == ([], "")
    assert found.rows == [tuple(car.get(name) for name in types) for car in json.loads(body)]
