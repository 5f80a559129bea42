"""What Arrow decodes from text means what the strict readers mean, for random cells and objects."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from infra.local.settings import LAKE_BUCKET
from lakegate.audit_tables import QUARANTINE
from lakegate.contract.columns import Column, quoted
from lakegate.contract.model import Contract, parse
from lakegate.report import ADDRESS, AuditReport, CheckResult
from spark_jobs.files.arrow import MustRewrite
from spark_jobs.files.arrow_text import Block, Decoded
from spark_jobs.files.cells import read_text
from spark_jobs.files.json import typed_rows
from spark_jobs.files.source import FILE
from spark_jobs.one_pass.examined import WAY
from spark_jobs.one_pass.text import rows_of
from tests.fakes.amounts import RUNS, SEED
from tests.spark.conftest import Job
from tests.spark.hostile_cells import CELLS
from tests.spark.measuring import contract_of, custom, reading_session
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


def test_objects_are_decoded_like_their_variants(spark: SparkSession) -> None:
    """An object that Arrow decodes is a good row with the same values, or bad for both."""
    random = Random(SEED)  # noqa: S311 - no secret
    lines = [line(random) for _ in range(4 * RUNS)]
    columns = [column for column in contract().columns if column.type not in _LEFT]
    asked = replace(contract(), columns=tuple(columns))
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


def damaged(random: Random, text: str) -> str:
    """Return a text, in one of two cases with a character exchanged, added or removed."""
    if random.random() < 0.5:
        return text
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(("", *_SIGNS)) + text[at + random.randint(0, 1) :]


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
    column = {"name": "c", "logicalType": logical, "physicalType": type_}
    rule = {"metric": "rowCount", "mustBeGreaterThan": 0}
    asked = parse(contract_of([column], [rule], format="csv"), "laws.yaml")
    plain = [cell.text for cell in CELLS if cell.text and "\0" not in cell.text]
    texts = sorted({damaged(random, random.choice(plain)) for _ in range(2 * RUNS)})
    bodies = ['c\n"' + text.replace('"', '""') + '"\n' for text in texts]
    found = {n: decoded(asked, body) for n, body in enumerate(bodies)}
    taken = {n: table for n, table in found.items() if table is not None and texts[n]}
    fast = as_texts(by_arrow(spark, taken), asked.columns)
    fast |= {n: ("broken",) for n, each in taken.items() if len(each.bad)}
    cell = read_text("c", type_)
    rows = spark.createDataFrame(pa.table({FILE: list(taken), "c": [texts[n] for n in taken]}))
    value = f"if({cell.broken}, 'broken', CAST({cell.value} AS STRING)) AS c"
    strict = as_texts(rows.selectExpr(FILE, value), asked.columns)
    wrong = [f"{texts[n]}: {row}, {strict[n]}" for n, row in fast.items() if strict[n] != row]
    assert not wrong, "\n".join(wrong[:20])
    assert len(texts) * 0.2 < list(fast.values()).count(("broken",)) < len(fast)


_MEASURED: list[dict[str, Any]] = [
    {"name": "id", "logicalType": "integer", "required": True, "unique": True},
    {
        "name": "size",
        "logicalType": "number",
        "logicalTypeOptions": {"minimum": 0},
        "quality": [custom("mean", mustBeGreaterThan=1), custom("sum", mustBeGreaterThan=1)],
    },
    {"name": "name", "logicalType": "string", "logicalTypeOptions": {"pattern": "^n"}},
    {"name": "day", "logicalType": "date"},
]
_SECRET = [{**each, "classification": "confidential"} for each in _MEASURED[2:3]]
_FINE = "1,2.5,n1,2026-11-24"
_WRONG = ["x,1,n2,2026-11-24", "2", '3,"1,5",é,2026-02-30', '4,1,n3,today,"a"",b"', "5,-,,"]
_OBJECTS = [
    '{"id":1,"size":2.5,"name":"n1","day":"2026-11-24"}',
    '{"id": "x", "size": "1,5", "name": 7}',
    '{"id":2,"size":true,"name":"\\u00e9","day":"2026-02-30"}',
    '{"id":2.5,"name":"n","day":20261124}',
]


@pytest.mark.parametrize(
    ("format_", "body"),
    [
        ("csv", "\n".join(["id,size,name,day", "", _FINE, *_WRONG, _FINE, *_WRONG, "8,-1,x,"])),
        ("csv", "id,size,name,day\r\n" + "".join(f"{row}\r\n" for row in _WRONG * 3)),
        ("json", "\n\n" + "\n".join([*_OBJECTS * 5, '{"id":3,"name":"x"}'])),
        ("json", f"[ {' , '.join(_OBJECTS[1:] * 6)} ]\n"),
    ],
    ids=["csv", "csv, all bad", "lines", "array, all bad"],
)
@pytest.mark.parametrize("hides", [False, True], ids=["public", "confidential"])
def test_bad_rows_are_reported_alike(
    job: Job, table: str, format_: str, body: str, hides: bool
) -> None:
    """Decoded or read strictly, a file with bad rows has the same report and quarantine."""
    columns = [*_MEASURED[:2], *(_SECRET if hides else _MEASURED[2:3]), *_MEASURED[3:]]
    told, rows, ways = [], [], []
    for write in ("auto", "spark"):
        text = contract_of(columns, [], table, format=format_, write=write)
        report = job.ingest(body.encode(), text, table)
        ways.append(report.engine["write"])
        checks = [replace(each, tier="", samples=_samples(each)) for each in report.checks]
        told.append((report.verdict, report.reason, checks, _counts(report)))
        rows.append(_quarantined(job, report))
    assert ways == [WAY, "written by Spark: its contract has write: spark"]
    assert told[0] == told[1]
    assert rows[0] == rows[1]
    assert len(rows[0]) == report.rows_rejected > 0


def _samples(check: CheckResult) -> tuple[dict[str, str | None], ...]:
    """Return a check's sample rows without their addresses, which no two data files share."""
    return tuple({k: v for k, v in each.items() if k not in ADDRESS} for each in check.samples)


def _counts(report: AuditReport) -> tuple[int, ...]:
    held = sum(file.rows for file in report.files)
    counted = (report.rows_read, report.rows_rejected, report.rows_unreadable, report.rows_nulled)
    return (*counted, report.rows_written, held, sum(file.rows for file in report.records[:1]))


def _quarantined(job: Job, report: AuditReport) -> list[tuple[Any, ...]]:
    """Return the quarantined rows as a consumer reads them, without what names the run."""
    folder = QUARANTINE.files(LAKE_BUCKET)
    files = [each.path.replace("s3://", "s3a://") for each in report.records]
    kept = [path for path in files if path.startswith(folder.replace("s3://", "s3a://"))]
    rows = job.session("main").read.parquet(*kept)
    names = ("row", "reasons", "table_name")
    return sorted(tuple(row[name] for name in names) for row in rows.collect())
