"""Files of an ordered table that are ingested together, compared with the same files in turn."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakegate.audit.report import AuditReport, Verdict
from lakegate.job.change import Effect
from lakegate.job.jobspec import JobSpec
from spark_jobs.groups.in_order import ingest_in_order
from spark_jobs.lake.storage import Storage
from tests.fakes.schema import validate_report
from tests.services import fresh_session
from tests.spark.conftest import Job, new_table, parquet
from tests.spark.measuring import contract_of, custom, options
from tests.spark.test_group import _files as taken_files
from tests.spark.test_write_modes import (
    _AT,
    _DAY,
    _FIRST,
    _ID,
    _KEY,
    _NAME,
    _OP,
    _SETTINGS,
    Row,
    Table,
    keyed,
    row,
    upserted,
)

pytestmark = pytest.mark.spark
_FILES = 6
_PASSED_BUT_ONE = [Verdict.PASSED, Verdict.REJECTED, Verdict.PASSED]
_COLUMNS = (_KEY, _NAME, _AT, _OP)
_LANDED = {"writeMode": "upsert", "deleteWhen": {"column": "op", "value": "D"}}


@dataclass(frozen=True)
class Turns(Table):
    """A table whose files come in turns."""

    rules: Sequence[Mapping[str, Any]] = ()

    @property
    def contract(self) -> str:
        return contract_of(self.columns, self.rules, self.name, **self.settings)

    @cached_property
    def version(self) -> str:
        return self.job.services.put_contract(self.name, self.contract)

    def spec(self, file: Sequence[Row]) -> JobSpec:
        """Land a file with these rows; return its job spec, without a branch."""
        names = [column["name"] for column in self.columns]
        types = {"name": pa.string(), "op": pa.string(), **self.arrow}
        body = parquet({n: pa.array([each.get(n) for each in file], types.get(n)) for n in names})
        landed = self.job.services.land(f"{self.name}/{new_table()}", body)
        spec = self.job.services.spec(landed, self.version, self.name)
        self.job.services.catalog.delete_branch(spec.branch)  # the run makes its own
        return replace(spec, branch="", base_hash="")

    def turn(self, *files: Sequence[Row]) -> list[AuditReport]:
        """Return the reports of a turn of these files, of which the first has one."""
        return self.reports([self.spec(file) for file in files])

    def reports(self, specs: Sequence[JobSpec]) -> list[AuditReport]:
        """Return the reports of a turn of these attempts, of which the first has one."""
        lakes = [Storage.connect(spec) for spec in specs]
        token = self.job.services.tokens["job"]
        begun = ingest_in_order(fresh_session(self.job.warm_spark), lakes, token)
        alone = begun.refused if begun.reports else begun.refused or lakes[:1]
        for lake in alone:
            taken_files(self.job, specs).ingest_alone(lake.spec)
        found = [report for lake in lakes if (report := lake.finished_report())]
        for report in found:
            validate_report(report.to_json())
        assert {each.ingestion for each in begun.reports} <= {each.ingestion for each in found}
        assert len(found) == len(begun.reports) + len(alone)
        return found

    def publish_all(self, *files: Sequence[Row]) -> list[AuditReport]:
        """Publish a turn of these files, which all are merged in one commit; return the reports."""
        reports = self.turn(*files)
        assert {report.verdict for report in reports} == {Verdict.PASSED}
        assert len({(each.branch, each.base_hash, each.audited_hash) for each in reports}) == 1
        assert {each.group for each in reports} == {tuple(each.ingestion for each in reports)}
        self.job.publish(reports[0])
        return reports


def _drawn(draw: random.Random, settings: Mapping[str, Any], number: int) -> list[Row]:
    """Return the rows of a file with few keys, which the table often has."""
    ids = draw.sample(range(20), draw.randint(1, 10))
    if "latestBy" in settings:
        ids += draw.sample(ids, draw.randint(0, len(ids)))
    at = draw.sample(range(60), len(ids))
    ops = [draw.choice(["D", "U", None]) for _ in ids]
    return [row(id_, 100 * number + n, at[n], ops[n]) for n, id_ in enumerate(ids)]


@pytest.mark.parametrize("settings", [_SETTINGS, _LANDED], ids=["latest", "landed"])
def test_a_turn_is_like_its_files_one_by_one(
    job: Job, settings: Mapping[str, Any], tmp_path: Path
) -> None:
    """After random turns the counts of each file are a plain model's, as are all engines' rows."""
    draw, model = random.Random(len(settings)), dict[int, Row]()  # noqa: S311 - no secret
    table = Turns(job, _COLUMNS, settings)
    for number in range(2):
        files = [_drawn(draw, settings, _FILES * number + n) for n in range(_FILES)]
        reports = table.publish_all(*files)
        assert [each.effect for each in reports] == [upserted(model, f, settings) for f in files]
        assert [each.rows_read for each in reports] == list(map(len, files))
        assert all(each.effect and each.rows_written == each.effect.added for each in reports)
        assert table.rows_by_all(tmp_path) == [model[id_] for id_ in sorted(model)]


def test_a_refused_file_changes_nothing_for_the_others(job: Job) -> None:
    """A file that fails a check is reported on a branch of its own; those around it are merged."""
    table = Turns(job, _COLUMNS, _SETTINGS)
    bad = [{**row(1, 0, 5), "name": "bad"}, row(7, 7)]
    reports = table.turn([row(1, 1)], bad, [row(1, 2, 1), row(2, 2)])
    assert [each.verdict for each in reports] == _PASSED_BUT_ONE
    assert [each.effect for each in (reports[0], reports[2])] == [
        Effect(0, 1, added=1, removed=0),
        Effect(1, 2, added=2, removed=1, updated=1),
    ]
    assert reports[1].branch != reports[0].branch == reports[2].branch
    job.publish(reports[0])
    assert table.rows() == [row(1, 2, 1), row(2, 2)]


def test_a_check_in_sql_refuses_a_file_of_a_turn(job: Job) -> None:
    """What only SQL can tell about a file decides about it as if it were alone."""
    rule = custom("rowExpression", expression="hash(id) <> hash(2L)")
    table = Turns(job, _COLUMNS, _SETTINGS, rules=(rule,))
    reports = table.turn([row(1, 1)], [row(2, 22)], [row(3, 3)])
    assert [each.verdict for each in reports] == _PASSED_BUT_ONE
    job.publish(reports[0])
    assert [each["id"] for each in table.rows()] == [1, 3]


def test_a_file_on_which_sql_fails_ends_a_turn(job: Job) -> None:
    """A file with a row that a check's SQL cannot take, and all later ones, have no report."""
    rule = custom("rowExpression", expression="hash(10 div (id - 3)) <> 1")
    table = Turns(job, _COLUMNS, _SETTINGS, rules=(rule,))
    reports = table.turn([row(1, 1)], [row(2, 2)], [row(3, 3)], [row(4, 4)])
    assert [each.verdict for each in reports] == [Verdict.PASSED] * 2
    (alone,) = table.turn([row(3, 3)], [row(4, 4)])
    assert alone.verdict is Verdict.ERRORED


def test_a_file_with_rows_to_show_ends_a_turn(job: Job) -> None:
    """A file that passes with a row in quarantine is merged alone, and later ones wait."""
    name = {**_NAME, **options(onBadRow="quarantine")}
    settings = {**_SETTINGS, "quarantine": {"maxRows": 1}}
    table = Turns(job, (_KEY, name, _AT, _OP), settings)
    odd = [row(1, 2, 3), {**row(2, 3, 3), "name": "bad"}]
    reports = table.turn([row(1, 1)], [row(2, 2)], odd, [row(3, 3)])
    assert [each.group for each in reports] == [tuple(each.ingestion for each in reports)] * 2
    job.publish(reports[0])
    (report,) = table.turn(odd, [row(3, 3)])
    assert (report.verdict, report.rows_rejected, report.group) == (Verdict.PASSED, 1, ())
    job.publish(report)
    assert table.rows() == [row(1, 2, 3), row(2, 2)]


def test_a_table_with_a_key_twice_takes_files_one_by_one(job: Job) -> None:
    """Of rows with one key in the table some may be newer than a file's, which are not replaced."""
    table = Turns(job, _COLUMNS, _SETTINGS)
    table.publish_all([row(1, 1, 9), row(2, 2, 0)])
    others = job.session("main", "publisher")
    others.sql(f"INSERT INTO lake.{table.name} VALUES (1, 'n5', 0, NULL), (2, 'n5', 9, NULL)")
    (report,) = table.turn([row(1, 7, 5), row(2, 8, 5), row(3, 3)], [row(2, 3)])
    assert (report.effect, report.group) == (Effect(4, 5, added=3, removed=2, updated=2), ())


def test_a_new_contract_ends_a_turn(job: Job) -> None:
    """Files that landed under a newer contract wait for a turn of their own."""
    table = Turns(job, _COLUMNS, _SETTINGS)
    newer = Turns(job, _COLUMNS, _LANDED, name=table.name)
    specs = [table.spec([row(1, 1)]), newer.spec([row(1, 2)]), table.spec([row(1, 3)])]
    (report,) = table.reports(specs)
    assert report.group == (specs[0].ingestion,)


def test_the_first_overwrite_of_a_turn_comes_alone(job: Job) -> None:
    """Files that replace partitions are ingested one by one."""
    table = Turns(job, (_ID, _DAY), {"writeMode": "overwrite"})
    (report,) = table.turn([{"id": 1, "day": _FIRST}], [{"id": 2, "day": _FIRST}])
    assert (report.effect, report.group) == (Effect(0, 1, added=1, removed=0), ())


def test_a_turn_that_changes_nothing_has_a_commit(job: Job) -> None:
    """Files with only older rows than the table's change no row, and have a commit of their own."""
    table = Turns(job, _COLUMNS, _SETTINGS)
    table.publish_all([row(1, 1, 5), row(2, 2, 5)])
    reports = table.publish_all([row(1, 2, 4), row(7, 7, 0, "D")], [row(2, 3, 4)])
    assert [each.effect for each in reports] == [Effect(2, 2, added=0, removed=0)] * 2
    assert reports[0].audited_hash not in ("", reports[0].base_hash)
    assert table.rows() == [row(1, 1, 5), row(2, 2, 5)]


def test_a_turn_names_the_file_that_brought_a_row(job: Job) -> None:
    """The columns of provenance say which file of a turn brought the present row of a key."""
    table = Turns(job, _COLUMNS, {**_SETTINGS, "provenance": {"ingestion": "gate"}})
    first, second = table.publish_all([row(1, 1), row(2, 2)], [row(2, 3, 1)])
    assert [each["gate"] for each in table.rows()] == [first.ingestion, second.ingestion]


def test_keys_of_a_turn_that_differ_least_are_two(job: Job) -> None:
    """Of rows that each differ least in one column of the key, only the one with it is updated.

    So it is within a turn, and for a row of the table.
    """
    table, rows, like = keyed(Turns, job)
    updated = Effect(10, 10, added=1, removed=1, updated=1)
    assert table.publish_all(rows, [like])[1].effect == updated
    assert table.publish_all([{**like, "id": 200}])[0].effect == updated
    assert [each["id"] for each in table.rows()] == [*range(1, 10), 200]


def test_a_turn_finds_keys_of_any_date(job: Job) -> None:
    """Rows are found by the first day of all, and by one that only some calendars have."""
    day = {"name": "day", "logicalType": "date", "primaryKey": True}
    table = Turns(job, (_ID, day), {"writeMode": "upsert"}, {"day": pa.date32()})
    days = [date(1, 1, 1), date(1582, 10, 10)]
    for number in range(2):
        (report,) = table.publish_all([{"id": number, "day": each} for each in days])
        assert report.effect == Effect(2 * number, 2, 2, removed=2 * number, updated=2 * number)
    assert sorted(each["id"] for each in table.rows()) == [1, 1]


@pytest.mark.parametrize(
    ("type_", "arrow", "flag", "other"),
    [
        ("boolean", pa.bool_(), True, False),
        ("integer", pa.int64(), -1, 1),
        ("number decimal(9,2)", pa.decimal128(9, 2), Decimal("1.50"), Decimal("1.51")),
    ],
)
def test_a_turn_deletes_by_flags_of_each_type(
    job: Job, type_: str, arrow: pa.DataType, flag: Any, other: Any
) -> None:
    """Exactly rows with the contract's value delete their keys: none with another or without."""
    op = {"name": "op", **dict(zip(("logicalType", "physicalType"), type_.split(), strict=False))}
    value = flag if isinstance(flag, int) else float(flag)
    settings = {"writeMode": "upsert", "deleteWhen": {"column": "op", "value": value}}
    table = Turns(job, (_KEY, op), settings, {"op": arrow})
    first = [{"id": n, "op": None} for n in range(3)]
    table.publish_all(first, [{"id": 0, "op": flag}, {"id": 1, "op": other}, {"id": 2}])
    assert table.rows() == [{"id": 1, "op": other}, {"id": 2, "op": None}]


def test_a_row_without_a_place_is_replaced_by_a_turn(job: Job) -> None:
    """A row of the table that has no value to be ordered by gives way to any row of its key."""
    table = Turns(job, _COLUMNS, _SETTINGS)
    table.publish_all([row(1, 1, 5)])
    others = job.session("main", "publisher")
    others.sql(f"INSERT INTO lake.{table.name} VALUES (2, 'n2', NULL, NULL)")
    reports = table.publish_all([row(2, 3, -9)], [row(2, 4, -10)])
    assert [each.effect for each in reports] == [
        Effect(2, 2, added=1, removed=1, updated=1),
        Effect(2, 2, added=0, removed=0),
    ]
    assert table.rows() == [row(1, 1, 5), row(2, 3, -9)]
