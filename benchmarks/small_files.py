"""Files for benchmarks: readings of sensors as Parquet, CSV, gzipped CSV and JSON."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.results import parquet

_DAYS = 4  # of which files bring one each
_ONE_BAD_IN = 100
_BAD_VALUE = -1.0  # below the contract's minimum
_KINDS = ("a", "b", "c")
# By how a file's name ends: `jsonl` is one object a line, `json` one array.
_FORMATS = {
    "parquet": "parquet",
    "csv": "csv",
    "csv.gz": "csv",
    "jsonl": "json",
    "json": "json",
}


@dataclass(frozen=True)
class Kind:
    """Files of one kind for one table: how their names end, and how many rows each has.

    With `some_bad` one in a hundred, from the first on, has a row that breaks its contract. With
    `unreadable` each row of every file has a number that is none.
    """

    table: str
    ending: str
    rows: int
    some_bad: bool = False
    unreadable: bool = False

    @property
    def contract(self) -> str:
        """Return the table's contract, with checks of several tiers."""
        return readings_contract(self.table, _FORMATS[self.ending], key="unique: true")

    def key(self, number: int) -> str:
        """Return the key of a file."""
        return f"{self.table.replace('.', '/')}/{number:06}.{self.ending}"

    def is_bad(self, number: int) -> bool:
        """Return whether a file breaks its contract."""
        return self.some_bad and number % _ONE_BAD_IN == 0

    def body(self, number: int) -> bytes:
        """Return a file, always the same for its number, and another for each number and table."""
        seed = [number, *self.table.encode()]
        columns = _readings(seed, self.rows, bad=self.is_bad(number))
        if self.unreadable:
            columns["value"] = [f"{value} or so" for value in columns["value"]]
        return _WRITERS[self.ending](columns)

    def good_rows(self, files: int) -> int:
        """Return how many rows so many files bring to main."""
        return self.rows * sum(not self.is_bad(number) for number in range(files))


@dataclass(frozen=True)
class Real(Kind):
    """Parquet files of a day each, for a table with days, an order, provenance and own SQL."""

    @property
    def contract(self) -> str:
        """Return the table's contract."""
        return real_contract(self.table, key="unique: true")

    def body(self, number: int) -> bytes:
        """Return a file."""
        columns = _readings([number, *self.table.encode()], self.rows, bad=False)
        day = np.datetime64("2026-01-01") + number % _DAYS
        return parquet({**columns, "day": np.full(self.rows, day)})


@dataclass(frozen=True)
class Keyed(Kind):
    """Parquet files whose keys must be new in a table that has `known` rows before."""

    known: int = 1_000_000

    @property
    def contract(self) -> str:
        """Return the table's contract."""
        return readings_contract(self.table, _FORMATS[self.ending], key=_UNIQUE_IN_TABLE)

    def before(self) -> bytes:
        """Return a file with the rows that the table has before."""
        return parquet(self._rows_before())

    def _rows_before(self) -> dict[str, Any]:
        return _readings([*self.table.encode()], self.known, bad=False)

    def good_rows(self, files: int) -> int:
        """Return how many rows the table has after so many files."""
        return self.known + super().good_rows(files)


@dataclass(frozen=True)
class Upserts(Keyed):
    """Parquet files of which a tenth of the rows replace some of the table's `known` rows."""

    @property
    def contract(self) -> str:
        """Return the table's contract."""
        key = "primaryKey: true"
        return readings_contract(self.table, _FORMATS[self.ending], key=key, mode="upsert")

    def _rows_before(self) -> dict[str, Any]:
        return {**super()._rows_before(), "id": np.arange(self.known)}

    def body(self, number: int) -> bytes:
        """Return a file."""
        seed = [number, *self.table.encode()]
        columns = _readings(seed, self.rows, bad=False)
        known = np.random.default_rng(seed).choice(self.known, self._replacing, replace=False)
        columns["id"][: self._replacing] = known
        return parquet(columns)

    def good_rows(self, files: int) -> int:
        """Return how many rows the table has after so many files."""
        return self.known + files * (self.rows - self._replacing)

    @property
    def _replacing(self) -> int:
        return self.rows // 10


def _readings(seed: list[int], rows: int, *, bad: bool) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    values = random.random(rows) * 1000
    if bad:
        values[rows // 2] = _BAD_VALUE
    return {
        "id": random.integers(0, 2**60, rows),
        "sensor": [f"s{n}" for n in random.integers(0, 500, rows)],
        "value": values,
        "kind": random.choice(_KINDS, rows).tolist(),
    }


def _csv(columns: Mapping[str, Any]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def _objects(columns: Mapping[str, Any]) -> list[str]:
    values = (each if isinstance(each, list) else each.tolist() for each in columns.values())
    rows = zip(*values, strict=True)
    return [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]


_WRITERS: Mapping[str, Callable[[Mapping[str, Any]], bytes]] = {
    "parquet": parquet,
    "csv": _csv,
    "csv.gz": lambda columns: gzip.compress(_csv(columns), mtime=0),
    "jsonl": lambda columns: "\n".join(_objects(columns)).encode(),
    "json": lambda columns: f"[{','.join(_objects(columns))}]".encode(),
}


def readings_contract(
    table: str, format_: str, *, key: str = "unique: false", mode: str = "append"
) -> str:
    """Return the contract of a table of readings; `key` is what it says of their ids."""
    return _CONTRACT.format(table=table, format=format_, key=key, mode=mode)


def real_contract(table: str, *, key: str = "unique: false") -> str:
    """Return the contract of a table of readings with days, an order, provenance and own SQL."""
    text = readings_contract(table, "parquet", key=key)
    own = "customProperties: [{property: provenance, value: all}, "
    own += "{property: sortOrder, value: [sensor]}, "
    text = text.replace("customProperties: [", own, 1)
    return text.replace("    properties:\n", f"    properties:\n{_DAY}", 1)


_DAY = """\
      - name: day
        logicalType: date
        partitioned: true
        partitionKeyPosition: 1
        customProperties: [{property: partitionTransform, value: day}]
        quality:
          - id: day_by_kind
            type: custom
            engine: lakegate
            implementation: {check: rowExpression, expression: "kind <> 'a' OR day IS NOT NULL"}
"""
_UNIQUE_IN_TABLE = (
    "quality: [{metric: duplicateValues, mustBe: 0, "
    "customProperties: [{property: scope, value: table}]}]"
)
_CONTRACT = """\
kind: DataContract
apiVersion: v3.1.0
id: {table}
version: 1.0.0
status: active
customProperties: [{{property: format, value: {format}}}, {{property: writeMode, value: {mode}}}]
schema:
  - name: {table}
    logicalType: object
    quality: [{{metric: rowCount, mustBeBetween: [1, 10000000]}}]
    properties:
      - name: id
        logicalType: integer
        physicalType: bigint
        required: true
        {key}
      - {{name: sensor, logicalType: string, logicalTypeOptions: {{pattern: "^s[0-9]+$"}}}}
      - name: value
        logicalType: number
        physicalType: double
        logicalTypeOptions: {{minimum: 0, maximum: 1000}}
      - name: kind
        logicalType: string
        quality:
          - {{metric: invalidValues, arguments: {{validValues: [a, b, c]}}, mustBe: 0}}
"""
