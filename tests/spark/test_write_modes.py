"""Files whose rows replace those of their table, by key or by partition, over real services."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from functions.adapters.iceberg.tables import Tables
from lakegate.audit.report import AuditReport, Verdict
from lakegate.job.change import Effect
from tests.spark.conftest import Job, new_table, parquet, reason
from tests.spark.measuring import contract_of, options

pytestmark = pytest.mark.spark

_FIRST = date(2026, 1, 1)
_KEY = {"name": "id", "logicalType": "integer", "primaryKey": True}
_ID = {"name": "id", "logicalType": "integer", "required": True}
_AT = {"name": "at", "logicalType": "integer", "required": True}
_OP = {"name": "op", "logicalType": "string"}
_NAME = {"name": "name", "logicalType": "string", "logicalTypeOptions": {"pattern": "^n[0-9]+$"}}
_DAY = {"name": "day", "logicalType": "date", "partitioned": True}
_SETTINGS = {"writeMode": "upsert", "latestBy": "at", "deleteWhen": {"column": "op", "value": "D"}}
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A table with its contract; files are published one after the other."""

    job: Job
    columns: Sequence[Mapping[str, Any]]
    settings: Mapping[str, Any]
    arrow: Mapping[str, pa.DataType] = field(default_factory=dict)
    name: str = field(default_factory=new_table)

    @property
    def contract(self) -> str:
        return contract_of(self.columns, [], self.name, **self.settings)

    def audit(self, rows: Sequence[Row]) -> AuditReport:
        """Return the report on a file with these rows."""
        names = [column["name"] for column in self.columns]
        return self.job.ingest(
            parquet({n: pa.array([row.get(n) for row in rows], self.arrow.get(n)) for n in names}),
            self.contract,
            self.name,
        )

    def publish(self, *rows: Row) -> AuditReport:
        """Publish a file with these rows, as the publisher would."""
        report = self.audit(rows)
        self.job.publish(report)
        return report

    def rows(self, branch: str = "main") -> list[Row]:
        """Return the rows that a consumer reads, by their key."""
        return _sorted(self.job.rows(self.name, branch))

    def rows_by_all(self, folder: Path) -> list[Row]:
        """Return the rows that Spark reads; pyiceberg and DuckDB must read the same."""
        found = self.rows()
        assert self.rows_by_pyiceberg() == found
        assert _sorted(self.job.rows_by_duckdb(self.name, folder / new_table())) == found
        return found

    def rows_by_pyiceberg(self) -> list[Row]:
        """Return the rows that pyiceberg reads."""
        return _sorted(self.job.rows_by_pyiceberg(self.name))


TableT = TypeVar("TableT", bound=Table)


def _sorted(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["id"], str(row)))


def row(id_: int, number: int, at: int = 0, op: str | None = None) -> Row:
    return {"id": id_, "name": f"n{number}", "at": at, "op": op}


def test_a_key_may_have_any_name(job: Job) -> None:
    """The names by which Spark counts keys are not taken for the columns of the key."""
    key = {"name": "count", "logicalType": "integer", "primaryKey": True}
    table = Table(job, (_ID, key), {"writeMode": "upsert", "write": "spark"})
    table.publish({"id": 1, "count": 1}, {"id": 2, "count": 2})
    table.publish({"id": 3, "count": 2})
    assert table.rows() == [{"id": 1, "count": 1}, {"id": 3, "count": 2}]


def test_a_file_that_changes_nothing_is_published(job: Job) -> None:
    """A file with only older rows than the table's has a commit of its own, and changes no row."""
    table = Table(job, (_KEY, _NAME, _AT, _OP), _SETTINGS)
    table.publish(row(1, 1, 5))
    report = table.publish(row(1, 2, 4), row(7, 7, 0, "D"))
    assert report.effect == Effect(1, 1, added=0, removed=0)
    assert report.audited_hash not in ("", report.base_hash)
    assert table.rows() == [row(1, 1, 5)]


def test_of_one_key_in_a_file_the_latest_row_stays(job: Job) -> None:
    """Several rows of a key are no fault if one is the latest; else the file is rejected."""
    table = Table(job, (_KEY, _NAME, _AT, _OP), _SETTINGS)
    table.publish(row(1, 1, 1), row(1, 3, 3))
    alike = table.audit([row(1, 8, 9), row(1, 9, 9)])
    assert (alike.verdict, reason(alike).code) == (Verdict.REJECTED, "CHECKS_FAILED")
    assert alike.audited_hash == ""
    assert [each["id"] for each in table.rows(alike.branch)] == [1, 1, 1]  # as they came: evidence


def test_a_rejected_upsert_could_be_published_anyway(job: Job) -> None:
    """Of a file whose other checks fail, the branch has the table as it would be on main."""
    table = Table(job, (_KEY, _NAME, _AT, _OP), _SETTINGS)
    table.publish(row(1, 1), row(2, 2))
    bad = table.audit([{**row(2, 0, 1), "name": "bad"}, row(3, 3)])
    assert bad.verdict is Verdict.REJECTED
    assert bad.effect == Effect(2, 3, added=2, removed=1, updated=1)
    assert [each["name"] for each in table.rows(bad.branch)] == ["n1", "bad", "n3"]
    assert [each["name"] for each in table.rows()] == ["n1", "n2"]


@dataclass(frozen=True)
class Twin:
    """A column of a key with a value, and the other one that differs least from it."""

    type_: str
    arrow: pa.DataType
    one: Any
    other: Any

    def declared(self, name: str) -> dict[str, Any]:
        """Return the property of a column of the primary key."""
        types = zip(("logicalType", "physicalType"), self.type_.split(), strict=False)
        return {"name": name, **dict(types), "primaryKey": True}


_TEXT, _NOON = pa.string(), datetime(2024, 2, 29, 12, tzinfo=UTC)
_KEYS = {
    "int_": Twin("integer", pa.int64(), 2**53, 2**53 + 1),
    "money": Twin("number decimal(38,2)", pa.decimal128(38, 2), Decimal("1.10"), Decimal("1.11")),
    "blank": Twin("string", _TEXT, "a", "a "),
    "upper": Twin("string", _TEXT, "ß", "ẞ"),
    "composed": Twin("string", _TEXT, "é", "e\u0301"),
    "empty": Twin("string", _TEXT, "", "\0"),
    "date_": Twin("date", pa.date32(), date(1582, 10, 15), date(1582, 10, 14)),
    "time_": Twin("timestamp", pa.timestamp("us", "UTC"), _NOON, _NOON + timedelta(microseconds=1)),
    "flag": Twin("boolean", pa.bool_(), True, False),
}


def keyed(table_type: type[TableT], job: Job, **settings: Any) -> tuple[TableT, list[Row], Row]:
    """Return a partitioned table, a row and others that differ least from it, and its like."""
    keys = [twin.declared(name) for name, twin in _KEYS.items()]
    keys[2] |= {"partitioned": True, **options(partitionTransform="bucket[4]")}
    arrow = {name: twin.arrow for name, twin in _KEYS.items()}
    table = table_type(job, (_ID, *keys), {"writeMode": "upsert", **settings}, arrow)
    ones = {name: twin.one for name, twin in _KEYS.items()}
    every = [ones, *({**ones, name: twin.other} for name, twin in _KEYS.items())]
    return table, [{"id": n, **each} for n, each in enumerate(every)], {"id": 100, **ones}


def test_keys_that_differ_least_are_two(job: Job) -> None:
    """Of rows that each differ least in one column of the key, only the one with it is updated.

    The table is partitioned and has an order.
    """
    table, rows, like = keyed(Table, job, sortOrder=["int_ desc nulls last"])
    table.publish(*rows)
    assert table.publish(like).effect == Effect(10, 10, added=1, removed=1, updated=1)
    assert [each["id"] for each in table.rows()] == [*range(1, 10), 100]


def test_an_upsert_takes_a_table_as_others_made_it(job: Job) -> None:
    """Names in other cases, a key that is there twice and one that is null do not stop it."""
    table = Table(job, (_KEY, _NAME), {"writeMode": "upsert"})
    others = job.session("main", "publisher")
    others.sql("CREATE NAMESPACE IF NOT EXISTS lake.tests")
    others.sql(f"CREATE TABLE lake.{table.name} (ID bigint, NAME string) USING iceberg")
    others.sql(f"INSERT INTO lake.{table.name} VALUES (1, 'n1'), (1, 'n2'), (NULL, 'n3')")
    report = table.publish({"id": 1, "name": "n9"}, {"id": 2, "name": "n2"})
    assert report.effect == Effect(3, 4, added=3, removed=2, updated=2)
    found = [(each["ID"], each["NAME"]) for each in job.rows(table.name, "main")]
    assert sorted(found, key=str) == [(1, "n9"), (1, "n9"), (2, "n2"), (None, "n3")]


def test_rows_that_another_engine_hid_are_rewritten_without_a_trace(job: Job) -> None:
    """The publisher's count may be off by as many: Spark drops them with their data file."""
    table, services = Table(job, (_KEY, _NAME), {"writeMode": "upsert"}), job.services
    table.publish(*({"id": n, "name": f"n{n}"} for n in (1, 2, 3)))
    others = job.session("main", "publisher")
    for statement in (
        "ALTER TABLE lake.{t} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')",
        "DELETE FROM lake.{t} WHERE id = 1",
    ):
        others.sql(statement.replace("{t}", table.name))
    report = table.audit([{"id": 2, "name": "n20"}, {"id": 9, "name": "n9"}])
    assert report.effect == Effect(2, 3, added=2, removed=1, updated=1)
    tables = Tables(services.nessie_uri, services.tokens["publisher"], services.s3)
    references = [f"main@{hash_}" for hash_ in (report.base_hash, report.audited_hash)]
    before, after = (tables.rows(table.name, each) for each in references)
    assert (before.live, after.live, before.hidden) == (2, 2, 1)
    change = tables.change(table.name, *references)
    assert (change.rows, change.hidden) == (0, 1)


@pytest.mark.parametrize("mode", ["append", "upsert", "overwrite"])
def test_a_file_whose_rows_are_all_in_quarantine_changes_nothing(job: Job, mode: str) -> None:
    """Without a good row a file has nothing for the partitions, and is rejected."""
    name = {**_NAME, **options(onBadRow="quarantine")}
    id_ = {**_ID, "primaryKey": True}
    settings = {"writeMode": mode, "quarantine": {"maxRows": 5}}
    table = Table(job, (id_, name, _DAY), settings)
    table.publish({"id": 1, "name": "n1", "day": _FIRST})
    report = table.audit([{"id": 2, "name": "bad", "day": _FIRST}])
    assert (report.verdict, report.rows_rejected) == (Verdict.REJECTED, 1)
    assert "file.has_rows" in {check.id for check in report.failed}
    assert [each["id"] for each in table.rows()] == [1]


def test_a_contract_that_adds_a_column_merges_into_it(job: Job) -> None:
    """A newer contract's column comes with the first file of an upsert; older rows have null."""
    table = Table(job, (_KEY, _NAME), {"writeMode": "upsert"})
    table.publish({"id": 1, "name": "n1"}, {"id": 2, "name": "n2"})
    more = {"name": "more", "logicalType": "integer"}
    grown = Table(job, (_KEY, _NAME, more), {"writeMode": "upsert"}, name=table.name)
    grown.publish({"id": 2, "name": "n3", "more": 7})
    assert [(each["id"], each["more"]) for each in grown.rows()] == [(1, None), (2, 7)]


def test_an_overwrite_refuses_files_of_earlier_partitions(job: Job) -> None:
    """Data files from before the table was partitioned would stay, so the file is not published."""
    plain = Table(job, (_ID, {**_DAY, "partitioned": False}), {})
    plain.publish({"id": 1, "day": _FIRST})
    report = Table(job, (_ID, _DAY), {"writeMode": "overwrite"}, name=plain.name).audit(
        [{"id": 2, "day": _FIRST}]
    )
    assert (report.verdict, reason(report).code) == (Verdict.ERRORED, "PARTITIONS_CHANGED")
    statement = f"UPDATE {plain.name} SET id = id"
    assert f"`lakegate change {plain.name} --sql '{statement}'`" in reason(report).message
    Table(job, (_ID, _DAY), {}, name=plain.name).publish({"id": 3, "day": _FIRST})
    job.session("main", "publisher").sql(statement.replace("UPDATE ", "UPDATE lake."))
    again = Table(job, (_ID, _DAY), {"writeMode": "overwrite"}, name=plain.name)
    assert again.publish({"id": 2, "day": _FIRST}).effect == Effect(2, 1, added=1, removed=2)


_FILES = 6


def upserted(table: dict[int, Row], file: Sequence[Row], settings: Mapping[str, Any]) -> Effect:
    """Put a file's rows into a table by their key; return the effect."""
    by_time = "latestBy" in settings
    last: dict[int, Row] = {}
    for each in sorted(file, key=lambda found: found["at"]) if by_time else file:
        last[each["id"]] = each
    before, counts = len(table), {"inserted": 0, "updated": 0, "deleted": 0}
    for id_, each in last.items():
        deletes = "deleteWhen" in settings and each["op"] == "D"
        old = table.get(id_)
        if old is None and not deletes:
            counts["inserted"] += 1
            table[id_] = each
        elif old is not None and (not by_time or each["at"] >= old["at"]):
            counts["deleted" if deletes else "updated"] += 1
            table.pop(id_) if deletes else table.update({id_: each})
    inserted, updated, deleted = counts.values()
    return Effect(before, len(table), inserted + updated, deleted + updated, updated)


@pytest.mark.parametrize("settings", [_SETTINGS, {"writeMode": "upsert"}], ids=["latest", "landed"])
def test_upserts_leave_what_a_plain_model_has(
    job: Job, settings: Mapping[str, Any], tmp_path: Path
) -> None:
    """After each of many random files the counts are the model's, and what engines read."""
    draw, model = random.Random(len(settings)), dict[int, Row]()  # noqa: S311 - no secret
    table = Table(job, (_KEY, _NAME, _AT, _OP), settings)
    for number in range(_FILES):
        ids = draw.sample(range(20), draw.randint(1, 10))
        if "latestBy" in settings:
            ids += draw.sample(ids, draw.randint(0, len(ids)))
        at = draw.sample(range(100), len(ids))
        ops = [draw.choice(["D", "U", None]) for _ in ids]
        file = [row(id_, 100 * number + n, at[n], ops[n]) for n, id_ in enumerate(ids)]
        report = table.publish(*file)
        assert report.effect == upserted(model, file, settings)
        assert table.rows_by_pyiceberg() == [model[id_] for id_ in sorted(model)]
    assert table.rows_by_all(tmp_path) == [model[id_] for id_ in sorted(model)]


def test_overwrites_leave_what_a_plain_model_has(job: Job, tmp_path: Path) -> None:
    """After each of many random files engines read of every month its last file's rows."""
    month = {**_DAY, **options(partitionTransform="month")}
    table, draw = Table(job, (_ID, month), {"writeMode": "overwrite"}), random.Random(7)  # noqa: S311
    model: dict[tuple[int, int], list[Row]] = {}
    for number in range(_FILES):
        days = [_FIRST + timedelta(days=draw.randrange(150)) for _ in range(draw.randint(1, 6))]
        file = [{"id": 100 * number + n, "day": day} for n, day in enumerate(days)]
        months = {(day.year, day.month) for day in days}
        gone = sum(len(model.get(each, [])) for each in months)
        for each in months:
            model[each] = [f for f, day in zip(file, days, strict=True) if day.month == each[1]]
        effect = table.publish(*file).effect
        assert effect
        assert (effect.added, effect.removed) == (len(file), gone)
        expected = _sorted([each for rows in model.values() for each in rows])
        assert table.rows_by_pyiceberg() == expected
    assert table.rows_by_all(tmp_path) == expected
