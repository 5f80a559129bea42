"""What Arrow decodes from text means what the strict readers mean, for random cells and objects."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.columns import Column, quoted
from lakegate.contract.model import Contract, parse
from lakegate.contract.written import FORMATS
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.text import Block, Decoded
from spark_jobs.files.source import FILE
from spark_jobs.files.text.cells import read_cell
from spark_jobs.files.text.json import typed_rows
from spark_jobs.one_pass.text import rows_of
from tests.fakes.amounts import RUNS, SEED
from tests.spark.conftest import Job
from tests.spark.hostile_cells import CELLS
from tests.spark.measuring import contract_of, reading_session
from tests.spark.test_text_laws import contract, frame, line, shown

pytestmark = pytest.mark.spark

_LEFT = ("binary", "float")  # types that Arrow leaves to Spark in JSON
_SIGNS = "0123456789+-.eE:TZ /xtrue"


@pytest.fixture(scope="module")
def spark(job: Job) -> SparkSession:
    return reading_session(job.warm_spark)


def decoded(asked: Contract, body: str) -> Decoded | None:
    """Return the rows of a file of one block; None if Arrow leaves it to Spark."""
    packed = body.encode("utf-8", "surrogatepass")
    try:
        return rows_of(packed, asked).decode(Block(packed, is_first=True, is_last=True))
    except MustRewrite:
        return None


def by_arrow(spark: SparkSession, found: dict[int, Decoded]) -> DataFrame:
    """Return the good rows that Arrow decoded, each with the number of its file."""
    numbered = [
        each.good.append_column(FILE, pa.array([n])) for n, each in found.items() if len(each.good)
    ]
    return spark.createDataFrame(pa.concat_tables(numbered))


def as_texts(rows: DataFrame, columns: Sequence[Column]) -> dict[int, tuple[Any, ...]]:
    """Return the rows' values as Spark shows them, by file."""
    texts = [F.col(quoted(column.name)).cast("string") for column in columns]
    return {row[0]: tuple(row)[1:] for row in rows.select(FILE, *texts).collect()}


@pytest.mark.parametrize("policy", ["fail", "drop"])
def test_objects_are_decoded_like_their_variants(spark: SparkSession, policy: str) -> None:
    """An object that Arrow decodes is a good row with the same values, or bad for both.

    If other keys may be there, they are those that Spark finds.
    """
    random = Random(SEED)  # noqa: S311 - no secret
    lines = [line(random) for _ in range(4 * RUNS)]
    columns = [column for column in contract().columns if column.type not in _LEFT]
    asked = replace(contract(), columns=tuple(columns), extra_columns=policy)
    found = {n: decoded(asked, text) for n, text in enumerate(lines)}
    taken = {n: table for n, table in found.items() if table is not None}
    fast = as_texts(by_arrow(spark, taken), columns)
    strict = shown(typed_rows(frame(spark, lines), {}, columns, FILE)[0])
    wrong = [f"{lines[n]}: {row}, {strict[n]}" for n, row in fast.items() if strict[n][1:] != row]
    assert not wrong, "\n".join(wrong[:20])
    assert all(strict[n][0] is None for n in fast)
    bad = {n: each.bad[0].as_py() for n, each in taken.items() if len(each.bad)}
    wrong = [f"{text}: {strict[n]}" for n, text in bad.items() if strict[n][0] != text]
    assert not wrong, "\n".join(wrong[:20])
    assert min(len(fast), len(bad)) > len(lines) * 0.05
    names = {column.name for column in columns}
    extra = {n: each.present - names for n, each in taken.items()}
    wrong = [f"{lines[n]}: {each}" for n, each in extra.items() if each != keys(lines[n]) - names]
    assert not wrong, "\n".join(wrong[:20])
    assert any(extra.values()) == (policy == "drop")


def keys(text: str) -> set[str]:
    """Return the keys of a text that is exactly one object, in which no key comes twice."""
    try:
        found = json.loads(text, object_pairs_hook=list, parse_constant=_refused)
        json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except ValueError:
        return set()
    names = [name for name, _ in found] if text.lstrip().startswith("{") else []
    return {*names} if len({*names}) == len(names) else set()


def _refused(constant: str) -> None:
    raise ValueError(constant)


def damaged(random: Random, text: str) -> str:
    """Return a text, in one of two cases with a character exchanged, added or removed."""
    if random.random() < 0.5:
        return text
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(("", *_SIGNS)) + text[at + random.randint(0, 1) :]


def differences(
    spark: SparkSession, asked: Contract, texts: Sequence[str]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return where Arrow and the strict reader differ on cells of CSV, and what Arrow decoded.

    A broken cell is decoded as "broken".
    """
    bodies = ['c\n"' + text.replace('"', '""') + '"\n' for text in texts]
    found = {n: decoded(asked, body) for n, body in enumerate(bodies)}
    taken = {n: table for n, table in found.items() if table is not None and texts[n]}
    fast = as_texts(by_arrow(spark, taken), asked.columns)
    fast |= {n: ("broken",) for n, each in taken.items() if len(each.bad)}
    cell = read_cell("c", asked.columns[0])
    rows = spark.createDataFrame(pa.table({FILE: list(taken), "c": [texts[n] for n in taken]}))
    value = f"if({cell.broken}, 'broken', CAST({cell.value} AS STRING)) AS c"
    strict = as_texts(rows.selectExpr(FILE, value), asked.columns)
    wrong = [f"{texts[n]}: {row}, {strict[n]}" for n, row in fast.items() if strict[n] != row]
    return wrong, list(fast.values())


def of_cells(logical: str, type_: str, **declared: str) -> Contract:
    """Return the contract of CSV files with one column."""
    column = {"name": "c", "logicalType": logical, "physicalType": type_}
    rule = {"metric": "rowCount", "mustBeGreaterThan": 0}
    properties = [{**column, "logicalTypeOptions": declared}]
    return parse(contract_of(properties, [rule], format="csv"), "laws.yaml")


@pytest.mark.parametrize(
    "type_",
    ["int", "bigint", "float", "double", "decimal(6,2)", "boolean", "date", "timestamp",
     "timestamp_ntz"],
)  # fmt: skip
def test_cells_are_decoded_like_texts(spark: SparkSession, type_: str) -> None:
    """A cell of CSV that Arrow decodes has the strict reader's value, or is broken for both."""
    random = Random(SEED)  # noqa: S311 - no secret
    kinds = {"date": "date", "timestamp": "timestamp", "timestamp_ntz": "timestamp"}
    kind = kinds.get(type_, "number" if type_ != "boolean" else "boolean")
    logical = "integer" if type_ in ("int", "bigint") else kind
    plain = [cell.text for cell in CELLS if cell.text and "\0" not in cell.text]
    texts = sorted({damaged(random, random.choice(plain)) for _ in range(2 * RUNS)})
    wrong, fast = differences(spark, of_cells(logical, type_), texts)
    assert not wrong, "\n".join(wrong[:20])
    assert len(texts) * 0.2 < fast.count(("broken",)) < len(fast)


_DAYS = (date(2024, 2, 29), date(2026, 9, 3), date(1999, 12, 31), date(2026, 10, 10))


@pytest.mark.parametrize("day", [each for each in FORMATS if not FORMATS[each].has_time])
def test_moments_are_decoded_like_texts_of_their_format(spark: SparkSession, day: str) -> None:
    """A cell in a usual format has the strict reader's value, or is broken for both."""
    random = Random(f"{SEED} {day}")  # noqa: S311 - no secret
    form = FORMATS[day + random.choice(("", " HH:mm", " HH:mm:ss"))]
    type_ = random.choice(["timestamp", "timestamp_ntz", *(() if form.has_time else ("date",))])
    logical = "date" if type_ == "date" else "timestamp"
    moments = [datetime.combine(day, time(7, 5, 9)) for day in _DAYS]
    others = [each.directives for each in FORMATS.values()]
    ways = [*[form.directives] * 9, *others, "%d.%m.%y", "31.02.%Y", "02/13/%Y", "n/a"]
    padded = [moment.strftime(way) for moment in moments for way in ways]
    plain = padded + [re.sub(r"\b0", "", text) for text in padded]
    texts = sorted({damaged(random, random.choice(plain)) for _ in range(RUNS)})
    wrong, fast = differences(spark, of_cells(logical, type_, format=form.pattern), texts)
    assert not wrong, "\n".join(wrong[:20])
    assert len(texts) * 0.2 < fast.count(("broken",)) < len(fast)
