"""Whichever way a file takes, by Arrow or by Spark, its report, rows and table are the same."""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from infra.local.settings import LAKE_BUCKET
from lakegate.audit.audit_tables import QUARANTINE
from lakegate.audit.report import ADDRESS, AuditReport, CheckResult, DataFile, Verdict
from spark_jobs.one_pass.examined import WAY
from tests.spark.conftest import Job, parquet, reason
from tests.spark.measuring import contract_of, custom, options
from tests.spark.test_group import _ingest as together
from tests.spark.test_group import _specs as specs_of

pytestmark = pytest.mark.spark

_BY_SPARK = "written by Spark: its contract has write: spark"


@dataclass(frozen=True)
class Told:
    """What is told of a file, and what its branch holds, but for what differs with each run."""

    outcome: tuple[Any, ...]
    checks: tuple[CheckResult, ...]
    counts: tuple[int, ...]
    quarantined: list[tuple[Any, ...]]
    rows: list[str]
    schema: str


def both_ways(
    job: Job,
    table: str,
    body: bytes,
    columns: Sequence[Mapping[str, Any]],
    rules: Sequence[Mapping[str, Any]] = (),
    **settings: Any,
) -> AuditReport:
    """Ingest a file by Arrow and by Spark, which must tell the same; return Arrow's report."""
    texts = [contract_of(columns, rules, table, write=write, **settings) for write in _WAYS]
    reports = [job.ingest(body, text, table) for text in texts]
    assert [report.engine["write"] for report in reports] == [WAY, _BY_SPARK]
    by_arrow, by_spark = (asdict(_told(job, report)) for report in reports)
    for part, found in by_arrow.items():
        assert found == by_spark[part], part
    return reports[0]


_WAYS = ("auto", "spark")


def _told(job: Job, report: AuditReport) -> Told:
    checks = [replace(each, tier="", samples=_samples(each)) for each in report.checks]
    branch = job.session(report.branch).table(f"lake.{report.table}")
    return Told(
        (report.verdict, report.reason, report.schema_changes, report.effect),
        tuple(checks),
        _counts(report),
        _quarantined(job, report),
        sorted(map(_shown, branch.collect())),
        branch.schema.simpleString(),
    )


def _shown(row: Any) -> str:
    """Return a row as text, without what names its run."""
    return repr({name: value for name, value in row.asDict().items() if name not in _OF_RUN})


_OF_RUN = ("ingestion_id", "landed_key", "landed_version", "landed_at")


def _samples(check: CheckResult) -> tuple[dict[str, str | None], ...]:
    """Return a check's sample rows without their addresses, which no two data files share."""
    return tuple({k: v for k, v in each.items() if k not in ADDRESS} for each in check.samples)


def _counts(report: AuditReport) -> tuple[int, ...]:
    held = sum(file.rows for file in report.files)
    counted = (report.rows_read, report.rows_rejected, report.rows_unreadable, report.rows_nulled)
    recorded = sum(file.rows for file in _quarantine(report))
    return (*counted, report.rows_written, held, recorded)


def _quarantine(report: AuditReport) -> list[DataFile]:
    folder = QUARANTINE.files(LAKE_BUCKET)
    return [file for file in report.records if file.path.startswith(folder)]


def _quarantined(job: Job, report: AuditReport) -> list[tuple[Any, ...]]:
    """Return the quarantined rows as a consumer reads them, without what names the run."""
    kept = [each.path.replace("s3://", "s3a://") for each in _quarantine(report)]
    rows = job.session("main").read.parquet(*kept).collect() if kept else []
    names = ("row", "reasons", "table_name", "attempt")
    return sorted(tuple(row[name] for name in names) for row in rows)


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
_COLUMNS = "id,size,name,day"
_FINE = "1,2.5,n1,2026-11-24"
_WRONG = ["x,1,n2,2026-11-24", "2", '3,"1,5",é,2026-02-30', '4,1,n3,today,"a"",b"', "5,-,,"]
_OBJECTS = [
    '{"id":1,"size":2.5,"name":"n1","day":"2026-11-24"}',
    '{"id": "x", "size": "1,5", "name": 7}',
    '{"id":2,"size":true,"name":"\\u00e9","day":"2026-02-30"}',
    '{"id":2.5,"name":"n","day":20261124}',
]


@pytest.mark.parametrize(
    ("format_", "body", "hides"),
    [
        ("csv", "\n".join([_COLUMNS, "", _FINE, *_WRONG, _FINE, *_WRONG, "8,-1,x,"]), False),
        ("csv", f"{_COLUMNS}\r\n" + "".join(f"{row}\r\n" for row in _WRONG * 3), True),
        ("json", "\n\n" + "\n".join([*_OBJECTS * 5, '{"id":3,"name":"x"}']), True),
        ("json", f"[ {' , '.join(_OBJECTS[1:] * 6)} ]\n", False),
    ],
    ids=["csv", "csv, all bad, confidential", "lines, confidential", "array, all bad"],
)
def test_bad_rows_are_reported_alike(
    job: Job, table: str, format_: str, body: str, hides: bool
) -> None:
    """Decoded or read strictly, a file with bad rows has the same report and quarantine."""
    columns = [*_MEASURED[:2], *(_SECRET if hides else _MEASURED[2:3]), *_MEASURED[3:]]
    report = both_ways(job, table, body.encode(), columns, format=format_)
    assert report.rows_rejected > 0


_EUROPEAN: list[dict[str, Any]] = [
    {"name": "id", "logicalType": "integer", "required": True},
    {"name": "größe", "logicalType": "number", "physicalType": "decimal(9,2)"},
    {"name": "name", "logicalType": "string", "logicalTypeOptions": {"pattern": "^[nü]"}},
    {"name": "day", "logicalType": "date", "logicalTypeOptions": {"format": "dd.MM.yyyy"}},
    {"name": "at", "logicalType": "timestamp", "logicalTypeOptions": {"format": "d.M.yyyy HH:mm"}},
]


def test_files_as_europe_writes_them_are_read_alike(job: Job, table: str) -> None:
    """Days, decimal commas and letters of one byte are the same values and bad rows both ways."""
    header = ";".join(each["name"] for each in _EUROPEAN)
    good = [
        "1;1,50;ü;29.02.2024;1.12.2026 07:05",
        '2;-0,5;"n;ß";;',
        "3;;ö;31.12.1999;31.1.2026 23:59",
    ]
    bad = [
        "4;1.5;n;2026-11-24;",
        "5;1;n;31.02.2026;",
        "6;1;n;;1.2.2026 24:00",
        "7;x;é",
        "8;;n;nie;",
    ]
    body = "\r\n".join([header, *good, *bad]).encode("cp1252")
    written: Any = {"delimiter": ";", "decimalSeparator": ",", "encoding": "WINDOWS-1252"}
    of: Any = {"format": "csv", "options": written, "quarantine": _ALLOWED}
    report = both_ways(job, table, body, _EUROPEAN, **of)
    assert (report.rows_read, report.rows_unreadable) == (8, 5)


_OUT = options(onBadRow="quarantine")
_ALLOWED = {"maxPercent": 100, "unreadable": True}
_GUARDED: list[dict[str, Any]] = [
    {"name": "id", "logicalType": "integer", "required": True, "unique": True, **_OUT},
    {"name": "size", "logicalType": "number", "logicalTypeOptions": {"minimum": 0}, **_OUT},
    {"name": "name", "logicalType": "string", "logicalTypeOptions": {"pattern": "^n"}, **_OUT},
    {"name": "price", "logicalType": "number", "physicalType": "decimal(9,2)"},
    {"name": "at", "logicalType": "timestamp"},
    {"name": "day", "logicalType": "date", "required": True, **_OUT},
]
# A check that warns without a row, and one that no row in quarantine changes.
_ODD = {"id": "odd", "metric": "nullValues", "mustBeGreaterThan": 9, **_OUT}
_QUALITY = {"size": [custom("mean", mustBeGreaterThan=1)], "name": [_ODD]}
_CHECKED = [{**each, "quality": _QUALITY.get(each["name"], [])} for each in _GUARDED]
_KEPT = ["1,2.5,n1,1.5,2026-11-24T10:00:00Z,2026-11-24", "7,1e3,n7,,,2026-01-01"]
# Broken by one check and by several; a key that only rows in quarantine repeat; unparseable in
# other columns than those that checks look at, and in these.
_BROKEN = [
    "2,-1,x,0.10,2026-11-24T10:00:00.5Z,2026-11-24",
    "1,-0.5,n1,,,2026-01-01",
    ",3,n2,1.00,,",
    '8,-1e-7,"n, ""q""",,,2026-11-24',
    "9,,ü,-0.01,1999-12-31T23:59:59.999999Z,",
]
_UNREADABLE = ["x,-1,n1,,,2026-01-01", "3,1,x,zero,,2026-01-01", "4,1,n4", "5,y,,,,"]
_HEAD = ",".join(each["name"] for each in _GUARDED)


def _csv(*rows: str) -> bytes:
    return "\n".join([_HEAD, *rows, ""]).encode()


@pytest.mark.parametrize(
    ("body", "quarantined"),
    [
        (_csv(*_BROKEN, *_BROKEN), 10),
        (gzip.compress(_csv(*_KEPT, *_BROKEN, *_UNREADABLE)), 9),
    ],
    ids=["all broken", "each kind, gzip"],
)
def test_rows_are_quarantined_alike(job: Job, table: str, body: bytes, quarantined: int) -> None:
    """A row that breaks a rule, or cannot be read, stays out with the same text and reasons."""
    of: Any = {"format": "csv", "quarantine": _ALLOWED}
    report = both_ways(job, table, body, _CHECKED, **of)
    assert report.rows_rejected == quarantined


def test_objects_are_quarantined_alike(job: Job, table: str) -> None:
    """Objects stay out as JSON of the contract's columns, or as they stand in the file."""
    objects = [
        '{"id":1,"size":2.5,"name":"n1","day":"2026-11-24"}',
        '{"id":2,"size":-2.5e-8,"name":"x\\u00e9\\n","at":"2026-11-24T10:00:00Z","day":"2026-11-24"}',
        '{"id":"x","size":-1,"name":"n","day":"2026-11-24"}',
        '{"id":3,"size":-1,"day":20261124}',
        '{"name":"n3"}',
    ]
    body = f"[{', '.join(objects)}]".encode()
    of: Any = {"format": "json", "quarantine": _ALLOWED}
    columns = [each for each in _GUARDED if each["name"] != "price"]
    assert both_ways(job, table, body, columns, **of).rows_rejected == 4


def _stored() -> bytes:
    """Return rows of many types, of which only the first is not broken."""
    pair = pa.struct({"a": pa.string(), "b": pa.int64()})
    rows = {
        "id": [1, 2, None, 4, 2],
        "size": [0.0, -0.1, 1e22, float("nan"), -1.5e-7],
        "name": ["n1", None, 'n\n"é\u2028', "n4", "\x00"],
        "price": pa.array([Decimal("1.50"), None, Decimal("-0.01")] * 2, pa.decimal128(9, 2))[:5],
        "at": pa.array([datetime(2026, 1, 1, n, tzinfo=UTC) for n in range(5)], _MOMENT),
        "day": [date(2026, 11, n) for n in (1, 2, 3, 4, 5)],
        "raw": [b"", b"\xff\x00", None, b"x", b"y"],
        "pair": pa.array([{"a": "x", "b": 1}, None, {"a": None, "b": 2}] * 2, pair)[:5],
        "items": pa.array([[1], [], None, [None, 2], [3]], pa.list_(pa.int64())),
        "truth": [True, None, False, True, False],
        "local": pa.array([datetime(1999, 1, 1, n, tzinfo=UTC) for n in range(5)], _MOMENT).cast(
            pa.timestamp("us")
        ),
        "single": pa.array([0.1, -0.0, None, 1e10, 3.4e38], pa.float32()),
    }
    return parquet(rows, row_group_size=2)


_MOMENT = pa.timestamp("us", "UTC")
_OF_STORED = [
    *_GUARDED,
    {"name": "raw", "logicalType": "string", "physicalType": "binary"},
    {
        "name": "pair",
        "logicalType": "object",
        "properties": [
            {"name": "a", "logicalType": "string"},
            {"name": "b", "logicalType": "integer", "logicalTypeOptions": {"maximum": 1}},
        ],
    },
    {"name": "items", "logicalType": "array", "items": {"logicalType": "integer"}},
    {"name": "truth", "logicalType": "boolean"},
    {"name": "local", "logicalType": "timestamp", "physicalType": "timestamp_ntz"},
    {"name": "single", "logicalType": "number", "physicalType": "float"},
]


def test_stored_rows_are_quarantined_alike(job: Job, table: str) -> None:
    """A row of Parquet stays out as JSON, with values of every type as Spark writes them."""
    report = both_ways(job, table, _stored(), _OF_STORED, quarantine=_ALLOWED)
    assert report.rows_rejected == 4


def _of_lists() -> list[dict[str, Any]]:
    inner = [
        {"name": "a", "logicalType": "string", "required": True, **_OUT},
        {"name": "b", "logicalType": "integer", "logicalTypeOptions": {"maximum": 1}, **_OUT},
    ]
    pair = {"name": "pair", "logicalType": "object", "properties": inner}
    items = {"name": "items", "logicalType": "array", "items": {"logicalType": "integer"}}
    return [pair, {**items, "required": True, **_OUT}]


def test_nested_columns_keep_rows_out_alike(job: Job, table: str) -> None:
    """A null list keeps a row out, and so does a null field, but only of a struct that is there."""
    type_ = pa.struct({"a": pa.string(), "b": pa.int64()})
    pairs = [{"a": "x", "b": 1}, None, {"a": None, "b": 2}, {"a": "x", "b": 1}]
    body = parquet({"pair": pa.array(pairs, type_), "items": [[1], [1], [], None]})
    report = both_ways(job, table, body, _of_lists(), quarantine=_ALLOWED)
    assert (report.rows_rejected, report.rows_written) == (2, 2)


_DAILY = [{**each, "partitioned": True} if each["name"] == "day" else each for each in _GUARDED]


def test_rows_of_a_real_table_are_quarantined_alike(job: Job, table: str) -> None:
    """Rows keep their numbers, partitions and order if others between them stay out."""
    rows = [*_BROKEN[:1], *_KEPT[:1], *_UNREADABLE, *_BROKEN[1:], *_KEPT[1:]]
    real: Any = {"format": "csv", "sortOrder": ["id desc"], "provenance": "all"}
    report = both_ways(job, table, _csv(*rows), _DAILY, quarantine=_ALLOWED, **real)
    found = {row["id"]: row["row_number"] for row in job.rows(table, report.branch)}
    assert found == {1: 2, 7: 11}


@pytest.mark.parametrize(("mode", "kept"), [("upsert", 1), ("overwrite", 1), ("overwrite", 0)])
def test_rows_that_replace_others_are_quarantined_alike(
    job: Job, table: str, mode: str, kept: int
) -> None:
    """Only the rows that stay in replace others."""
    keyed = {"primaryKey": True} if mode == "upsert" else {}
    columns = [{**each, **keyed} if each["name"] == "id" else each for each in _DAILY]
    of: Any = {"format": "csv", "quarantine": _ALLOWED, "writeMode": mode}
    first = contract_of(columns, (), table, **of)
    job.publish(job.ingest(_csv(*_KEPT, "6,1,n6,,,2025-01-01"), first, table))
    report = both_ways(job, table, _csv(*_KEPT[:kept], *_BROKEN, *_UNREADABLE), columns, **of)
    assert (report.rows_rejected, len(job.rows(table, report.branch))) == (9, 3)


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [
        ({"maxPercent": 71.5, "unreadable": True}, Verdict.PASSED),
        ({"maxRows": 4, "unreadable": True}, Verdict.REJECTED),
    ],
)
def test_limits_hold_alike(
    job: Job, table: str, limits: Mapping[str, Any], verdict: Verdict
) -> None:
    """A file with more rows to quarantine than its contract allows is rejected, either way."""
    body = _csv(*_KEPT, *_BROKEN[:3], *_UNREADABLE[1:3])
    report = both_ways(job, table, body, _GUARDED, format="csv", quarantine=limits)
    assert report.verdict is verdict


_NAMED = [
    {"name": "id", "logicalType": "integer", "required": True, "unique": True},
    {"name": "name", "logicalType": "string", "logicalTypeOptions": {"pattern": "^n"}, **_OUT},
    {"name": "day", "logicalType": "date", "partitioned": True},
]
_POLICIES = [{"extraColumns": "drop"}, {"extraColumns": "add", "missingColumns": "null"}]


@pytest.mark.parametrize(
    ("policy", "packed"), [(_POLICIES[0], False), (_POLICIES[1], True)], ids=["drop", "add, gzip"]
)
def test_cells_of_other_columns_are_written_alike(
    job: Job, table: str, policy: dict[str, str], packed: bool
) -> None:
    """Columns of a text that the contract lacks are left out or added, and it may lack some."""
    body = 'more,ID,Name,"x, y",day\n1,1,n1,,2026-01-01\n,2,n2,"""",\n7,3,bad,x,\nx,x,n4,,\n5,n\n'
    if "missingColumns" in policy:
        body = body.replace("day", "date")
    sent = gzip.compress(body.encode()) if packed else body.encode()
    of: Any = {"format": "csv", "provenance": "all", "quarantine": _ALLOWED, **policy}
    report = both_ways(job, table, sent, _NAMED, **of)
    assert (report.rows_written, report.rows_rejected) == (2, 3)
    assert report.schema_changes


def test_columns_that_files_added_are_written_alike(job: Job, table: str) -> None:
    """A column that an earlier file added is filled by later ones that have it, and else null."""
    bodies = [
        b"id,name,day,More\n1,n1,,007\n",
        b"id,name,day\n2,n2,\n",
        b"MORE,id,name,day\n1,3,,\n",
    ]
    of: Any = {"format": "csv", "quarantine": _ALLOWED, "extraColumns": "add"}
    for body in bodies:
        job.publish(both_ways(job, table, body, _NAMED, **of))
    rows = {row["id"]: row["More"] for row in job.rows(table, "main")}
    assert rows == {1: "007", 2: None, 3: "1"}


@pytest.mark.parametrize("policy", _POLICIES, ids=["drop", "add or null"])
def test_stored_columns_are_written_alike(job: Job, table: str, policy: dict[str, str]) -> None:
    """Other columns of Parquet keep their types and values where they are added."""
    day = {} if "missingColumns" in policy else {"day": [date(2026, 1, 1), None, None]}
    pair = pa.struct({"a": pa.string(), "b": pa.list_(pa.int32())})
    more = {
        "whole": pa.array([1, None, 3], pa.int32()),
        "pair": pa.array([{"a": "x", "b": [1]}, None, {"a": None, "b": None}], pair),
        "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None, None], _MOMENT),
        "nothing": pa.array([None] * 3, pa.string()),
    }
    body = parquet({"id": [1, 2, 3], **more, **day, "name": ["n1", "x", None]}, row_group_size=2)
    of: Any = {"quarantine": _ALLOWED, **policy}
    report = both_ways(job, table, body, _NAMED, **of)
    assert (report.rows_written, report.rows_rejected) == (2, 1)


def test_other_keys_are_left_out_alike(job: Job, table: str) -> None:
    """Keys that are no columns are named, even if one comes once, has null, or is in a bad row."""
    objects = [
        '{"id":1,"name":"n1","zero":0,"more":"x"}',
        '{"id":2,"none":null}',
        '{"id":3,"name":"x","":true}',
        '{"id":"y","name":"n","rare":1.5}',
    ]
    of: Any = {"format": "json", "quarantine": _ALLOWED, "extraColumns": "drop"}
    report = both_ways(job, table, "\n".join(objects).encode(), _NAMED, **of)
    assert (report.rows_written, len(report.schema_changes)) == (2, 5)


@pytest.mark.parametrize(
    ("body", "code", "why"),
    [
        (b'{"id":1,"Sold":"2026-11-24"}', "EXTRA_COLUMN", "renamed or dropped a column of this"),
        (b'{"sku":1}\n{"sku":2}', "MISSING_COLUMN", "2 of 2 columns are missing"),
    ],
)
def test_objects_of_which_all_would_be_left_out_are_refused(
    job: Job, table: str, body: bytes, code: str, why: str
) -> None:
    """Values under a former name, or another table's, are not left out, as absent keys may be."""
    day = {"name": "day", "logicalType": "date", **options(formerName="sold")}
    of: Any = {"format": "json", "extraColumns": "drop", "missingColumns": "null"}
    columns = [{"name": "id", "logicalType": "integer"}, day]
    report = job.ingest(body, contract_of(columns, (), table, **of), table)
    assert (report.verdict, reason(report).code) == (Verdict.REJECTED, code)
    assert why in reason(report).message


def test_keys_that_files_added_are_written_alike(job: Job, table: str) -> None:
    """Spark alone adds a key as a column; afterwards Arrow writes its texts, and Spark the rest."""
    of: Any = {"format": "json", "quarantine": _ALLOWED, "extraColumns": "add"}
    text = contract_of(_NAMED, (), table, **of)
    first = job.ingest(b'{"id":1,"name":"n1","more":"x"}', text, table)
    assert first.engine["write"].startswith("written by Spark: it has values or keys")
    job.publish(first)
    job.publish(both_ways(job, table, b'{"id":2,"more":"y"}\n{"id":"z","more":"y"}', _NAMED, **of))
    job.publish(both_ways(job, table, b'{"id":3,"name":"n3"}', _NAMED, **of))
    last = job.ingest(b'{"id":4,"more":7}', text, table)
    assert (last.verdict, last.engine["write"] == WAY) == (Verdict.PASSED, False)
    rows = {row["id"]: row["more"] for row in job.rows(table, last.branch)}
    assert rows == {1: "x", 2: "y", 3: None, 4: "7"}


def test_a_group_may_have_other_columns(job: Job, table: str) -> None:
    """Files with columns more and fewer share a commit, and each report names its own."""
    of: Any = {"quarantine": _ALLOWED, "extraColumns": "drop", "missingColumns": "null"}
    text = contract_of(_NAMED, (), table, format="csv", **of)
    bodies = {
        "more": b"id,name,day,more\n1,n1,,x\n",
        "fewer": b"id,name\n2,n2\n",
        "exact": b"id,name,day\n3,n3,\n",
        "quarantines": b"id,name,day\n4,n4,\n5,x,\n",
    }
    reports = together(job, specs_of(job, bodies, text, table))
    assert [report.engine["write"] for report in reports] == [WAY] * 4
    assert [len(report.group) for report in reports] == [3, 3, 3, 0]
    assert [report.schema_changes for report in reports] == [
        ("column more of the file is not in the contract: left out",),
        ("column day is not in the file: its rows have null",),
        (),
        (),
    ]
    assert [report.rows_rejected for report in reports] == [0, 0, 0, 1]
