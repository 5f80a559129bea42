"""Files whose keys must be unique in their table, together and one by one."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakegate.audit.report import AuditReport, Verdict
from tests.spark.conftest import Job
from tests.spark.measuring import UNIQUE, custom, options, whole_table
from tests.spark.test_in_order import Turns
from tests.spark.test_write_modes import Row

pytestmark = pytest.mark.spark
_ID = {"name": "id", "logicalType": "integer"}
_UNIQUE = {**_ID, "quality": [whole_table(UNIQUE)]}
_NAME = {"name": "name", "logicalType": "string"}
_DAY = {"name": "day", "logicalType": "date", "partitioned": True}
_PAIR = whole_table({**UNIQUE, "arguments": {"properties": ["name", "id"]}})
_OPEN = {**UNIQUE, **options(scope="table", where="name <> 'n7'")}
_QUERY = custom("rowExpression", expression="hash(id) <> 0")
_FILES = ((None, 1, 2, None), (3,), (7, 3), (8, 7, 9), (12, 12))
_REAL = {**_ID, "logicalType": "number", "quality": [_OPEN]}
_TABLES: Mapping[str, tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]] = {
    "plain": ((_UNIQUE, _NAME), ()),
    "a float, a condition, a pair, partitioned, a query": ((_REAL, _NAME, _DAY), (_PAIR, _QUERY)),
}


def _rows(*ids: int | None) -> list[Row]:
    day = date(2026, 1, 1)
    return [{"id": i, "name": f"n{i}", "day": day + timedelta((i or 0) % 3)} for i in ids]


def _published(table: Turns, files: Sequence[Sequence[Row]]) -> list[AuditReport]:
    """Publish files in turns until each has its report; return the reports."""
    found: list[AuditReport] = []
    while len(found) < len(files):
        reports = table.turn(*files[len(found) :])
        for report in {each.branch: each for each in reports}.values():
            if report.verdict is Verdict.PASSED:
                table.job.publish(report)
        found += reports
    return found


def _alone(table: Turns, file: Sequence[Row]) -> AuditReport:
    report = table.audit(file)
    if report.verdict is Verdict.PASSED:
        table.job.publish(report)
    return report


def _essence(report: AuditReport) -> tuple[Any, ...]:
    rows = (report.rows_read, report.rows_written, report.rows_rejected)
    checks = [(c.id, c.status, c.counted, c.found, c.message) for c in report.checks]
    return report.verdict, rows, len(report.files), checks, report.schema_changes


@pytest.mark.parametrize("kind", _TABLES)
def test_files_in_turns_are_like_the_same_files_alone(job: Job, kind: str, tmp_path: Path) -> None:
    """Of files with known and new keys the verdicts, checks and rows are those of files alone."""
    columns, rules = _TABLES[kind]
    arrow = {"id": pa.float64() if "a float" in kind else pa.int64()}
    files = [_rows(*ids) for ids in _FILES]
    settings = {"provenance": {"row": "row"}} if kind == "plain" else {}
    one, turns = (Turns(job, columns, settings, arrow, rules=rules) for _ in range(2))
    alone = [_alone(one, file) for file in files]
    together = _published(turns, files)
    assert [n for n, each in enumerate(alone) if each.verdict is Verdict.REJECTED] == [2, 4]
    assert list(map(_essence, together)) == list(map(_essence, alone))
    assert any(len(each.group) > 1 for each in together)
    expected = _texts(columns, job.rows(one.name, "main"))
    for rows in (
        job.rows(turns.name, "main"),
        job.rows_by_pyiceberg(turns.name),
        job.rows_by_duckdb(turns.name, tmp_path / "duckdb"),
    ):
        assert _texts(columns, rows) == expected


def _texts(columns: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> list[list[str]]:
    return sorted([str(row[each["name"]]) for each in columns] for row in rows)


def test_files_with_new_keys_are_one_commit(job: Job) -> None:
    """Files of which no key is known are audited, and appended, together."""
    table = Turns(job, (_UNIQUE, _NAME), {})
    table.publish_all(_rows(1, 2), _rows(3), _rows(5, None))
    reports = table.publish_all(*(_rows(10 * n, 10 * n + 1) for n in range(1, 30)))
    assert {each.rows_written for each in reports} == {2}
    assert len(job.rows(table.name, "main")) == 63


def test_a_key_of_main_ends_a_turn(job: Job) -> None:
    """A file with a key that main has is judged alone, after those before it."""
    table = Turns(job, (_UNIQUE, _NAME), {})
    table.publish_all(_rows(3))
    reports = table.turn(_rows(1), _rows(2), _rows(3), _rows(4))
    assert [each.ingestion for each in reports] == list(reports[0].group)
    assert len(reports) == 2


def test_a_file_refused_for_its_own_rows_ends_no_turn(job: Job) -> None:
    """A file that has a key twice by itself fails; the keys of the files around it are new."""
    unique_here = {**_ID, "unique": True, "required": True, "quality": [whole_table(UNIQUE)]}
    table = Turns(job, (unique_here, _NAME), {})
    reports = table.turn(_rows(1), _rows(2, None), _rows(2))
    assert [each.verdict for each in reports] == [
        Verdict.PASSED,
        Verdict.REJECTED,
        Verdict.PASSED,
    ]
    job.publish(reports[0])
    assert [each["id"] for each in table.rows()] == [1, 2]


def test_other_checks_of_the_table_take_files_one_by_one(job: Job) -> None:
    """A file whose table may have so many rows only is judged alone, by the table as it is."""
    few = whole_table({"metric": "rowCount", "mustBeLessThan": 3})
    table = Turns(job, (_UNIQUE, _NAME), {}, rules=(few,))
    (first,) = table.turn(_rows(1), _rows(2))
    assert (first.verdict, first.group) == (Verdict.PASSED, ())
    job.publish(first)
    (second,) = table.turn(_rows(2, 3), _rows(4))
    assert [each.id for each in second.failed] == ["rowCountInTable"]
