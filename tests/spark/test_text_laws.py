"""Random texts, for what reads them."""

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract, parse
from spark_jobs.files.source import FILE
from spark_jobs.files.text.cells import read_text
from spark_jobs.files.text.text_lines import LINE
from tests.fakes.amounts import RUNS, SEED
from tests.spark.conftest import Job
from tests.spark.hostile_cells import BAD, CELLS, COLUMNS, LINE_ENDS
from tests.spark.measuring import contract_of, reading_session

pytestmark = pytest.mark.spark

_LINES = 2 * RUNS
_TEXTS = [cell.text for cell in CELLS] + list(LINE_ENDS)
_BARE = [
    *(
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-0.0",
        "0.0",
        "0e5",
        "-0e0",
        "7",
        "1.50",
        "1e5",
        "1E400",
    ),
    *("12345678901234567890", "123456789012345678901234567890123456789", "1e-999", "[]", "{}"),
    *('[1,"]"]', '{"a":1}', '{"id":1,"id":2}', "NaN", "'x'", "\t1", "1 "),
]
_GOOD = {
    name: [each.text for each in CELLS if each.column == name and each.bare != BAD]
    + [json.dumps(each.text) for each in CELLS if each.column == name and each.quoted != BAD]
    for name, *_ in COLUMNS
}
_DAMAGE = ("{", "}", "[", "]", '"', "\\", ",", ":", " ", "'", "0", "-", "\\ud83d", "\x01", "")
_KEYS = ["ID", 'i"d', "more", ""]


@pytest.fixture(scope="module")
def spark(job: Job) -> SparkSession:
    return reading_session(job.warm_spark)


def contract() -> Contract:
    names = ("name", "logicalType", "physicalType")
    properties = [dict(zip(names, column, strict=False)) for column in COLUMNS]
    rule = {"metric": "rowCount", "mustBeGreaterThan": 0}
    return parse(contract_of(properties, [rule], format="json"), "laws.yaml")


def line(random: Random) -> str:
    """Return a random object, of which one in five is damaged."""
    blank = random.choice(("", "", " "))
    own = random.sample([column[0] for column in COLUMNS], random.randint(1, 4))
    keys = own + random.choices(_KEYS, k=random.random() < 0.1)
    keys += random.choices(keys, k=random.random() < 0.05)
    members = [f"{json.dumps(key)}:{blank}{value(random, key)}" for key in keys]
    text = "{" + f",{blank}".join(members) + "}"
    if random.random() < 0.2:
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice(_DAMAGE) + text[at + random.randint(0, 1) :]
    return text


def value(random: Random, key: str) -> str:
    """Return a value as JSON; four in five are good ones of their column."""
    if random.random() < 0.8 and _GOOD.get(key):
        return random.choice(_GOOD[key])
    if random.random() < 0.4:
        return random.choice(_BARE)
    text = random.choice(_TEXTS)
    if random.random() < 0.3:
        return text
    return json.dumps(text, ensure_ascii=random.random() < 0.5)


def frame(spark: SparkSession, lines: Sequence[str]) -> DataFrame:
    return spark.createDataFrame(pa.table({FILE: range(len(lines)), LINE: lines}))


def shown(rows: DataFrame) -> dict[int, tuple[Any, ...]]:
    """Return each row's values as text; of a bad row only its text."""
    *names, bad, file = rows.columns
    sql = [f"if({bad} IS NULL, CAST({quoted(name)} AS STRING), NULL)" for name in names]
    found = rows.selectExpr(file, bad, *sql).collect()
    return {row[0]: tuple(row)[1:] for row in found}


def whole_number(text: str, bits: int) -> str | None:
    fits = re.fullmatch(r"[+-]?[0-9]+", text) and -(2**bits) <= int(text) < 2**bits
    return str(int(text)) if fits else None


def fraction(text: str) -> str | None:
    found = re.fullmatch(r"[+-]?([0-9]*)(?:\.([0-9]*))?", text)
    if not found or not any(found.groups()):
        return None
    number = Decimal(text)
    fits = abs(number) < 10**4 and not (found[2] or "")[2:].strip("0")
    return str(abs(number) if not number else number.quantize(Decimal("0.01"))) if fits else None


def test_numbers_are_complete_texts(spark: SparkSession) -> None:
    """A text is a number exactly if all of it is digits in the order that its type allows."""
    random = Random(SEED + 3)  # noqa: S311 - no secret
    signs = "0123456789" * 2 + "+-..eE \t\n\r\x00\x7f\u00a0\u0663\uff17dDfFL_,xX"
    texts = ["".join(random.choices(signs, k=random.randint(1, 7))) for _ in range(_LINES * 5)]
    texts += [random.choice(_TEXTS).strip() + random.choice(signs) for _ in range(_LINES)]
    cells = {type_: read_text(LINE, type_) for type_ in ("int", "bigint", "decimal(6,2)")}
    sql = [f"if({cell.broken}, NULL, CAST({cell.value} AS STRING))" for cell in cells.values()]
    found = frame(spark, [text for text in texts if text]).selectExpr(LINE, *sql).collect()
    for text, int_, bigint, decimal in found:
        assert (text, int_) == (text, whole_number(text, 31))
        assert (text, bigint) == (text, whole_number(text, 63))
        if decimal is None or fraction(text) is None:
            assert (text, decimal) == (text, fraction(text))
        else:
            assert (text, Decimal(decimal)) == (text, Decimal(fraction(text) or 0))
