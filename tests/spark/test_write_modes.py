"""Files whose rows replace those of their table, by key or by partition, over real services."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pytest

from lakegate.change import Effect
from lakegate.report import AuditReport, Verdict
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
    name: str = field(default_factory=new_table)

    @property
    def contract(self) -> str:
        return contract_of(self.columns, [], self.name, **self.settings)

    def audit(self, rows: Sequence[Row]) -> AuditReport:
        """Return the report on a file with these rows."""
        names = [column["name"] for column in self.columns]
        return self.job.ingest(
            parquet({name: [row.get(name) for row in rows] for name in names}),
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
        return sorted(self.job.rows(self.name, branch), key=lambda row: (row["id"], str(row)))


def row(id_: int, number: int, at: int = 0, op: str | None = None) -> Row:
    return {"id": id_, "name": f"n{number}", "at": at, "op": op}


def test_an_upsert_updates_inserts_and_deletes_by_key(job: Job) -> None:
    """A file's rows replace those with their keys, delete by the flag, and are counted."""
    table = Table(job, (_KEY, _NAME, _AT, _OP), _SETTINGS)
    first = table.publish(row(1, 1), row(2, 2), row(3, 3))
    assert first.effect == Effect(0, 3, added=3, removed=0)
    second = table.publish(row(2, 20, 1), row(3, 3, 1, "D"), row(4, 4), row(5, 5, 0, "D"))
    assert second.effect == Effect(3, 3, added=2, removed=2, updated=1)
    assert (second.verdict, second.rows_read, second.rows_written) == (Verdict.PASSED, 4, 2)
    assert (second.engine["write"], second.files) == ("registered", ())
    assert table.rows() == [row(1, 1), row(2, 20, 1), row(4, 4)]


def test_an_overwrite_replaces_the_partitions_of_its_rows(job: Job) -> None:
    """The days that a file brings have its rows alone; other days stay as they are."""
    table = Table(job, (_ID, _DAY), {"writeMode": "overwrite"})
    days = [_FIRST + timedelta(days=n) for n in range(3)]
    table.publish({"id": 1, "day": days[0]}, {"id": 2, "day": days[1]}, {"id": 3, "day": days[1]})
    second = table.publish({"id": 4, "day": days[1]}, {"id": 5, "day": days[2]})
    assert second.effect == Effect(3, 3, added=2, removed=2)
    assert [each["id"] for each in table.rows()] == [1, 4, 5]
    assert sum(file.rows for file in second.files) == 2


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
    table.publish(row(1, 1, 1), row(1, 3, 3), row(1, 2, 2), row(2, 1, 1), row(2, 2, 2, "D"))
    assert table.rows() == [row(1, 3, 3)]
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


def test_rows_in_quarantine_replace_nothing(job: Job) -> None:
    """A bad row stays out of the merge, and the row with its key stays in the table."""
    name = {**_NAME, **options(onBadRow="quarantine")}
    table = Table(job, (_KEY, name), {"writeMode": "upsert", "quarantine": {"maxRows": 1}})
    table.publish({"id": 1, "name": "n1"}, {"id": 2, "name": "n2"})
    report = table.publish({"id": 1, "name": "bad"}, {"id": 2, "name": "n3"})
    assert (report.rows_read, report.rows_rejected, report.rows_written) == (2, 1, 1)
    assert [each["name"] for each in table.rows()] == ["n1", "n3"]


def test_what_is_merged_names_its_ingestion(job: Job) -> None:
    """The columns of provenance say which file brought the present row of a key."""
    settings = {**_SETTINGS, "provenance": {"ingestion": "gate"}}
    table = Table(job, (_KEY, _NAME, _AT, _OP), settings)
    first, second = table.publish(row(1, 1), row(2, 2)), table.publish(row(2, 3, 1))
    assert [each["gate"] for each in table.rows()] == [first.ingestion, second.ingestion]


def test_a_contract_that_adds_a_column_merges_into_it(job: Job) -> None:
    """A newer contract's column comes with the first file of an upsert; older rows have null."""
    table = Table(job, (_KEY, _NAME), {"writeMode": "upsert"})
    table.publish({"id": 1, "name": "n1"}, {"id": 2, "name": "n2"})
    more = {"name": "more", "logicalType": "integer"}
    grown = Table(job, (_KEY, _NAME, more), {"writeMode": "upsert"}, table.name)
    grown.publish({"id": 2, "name": "n3", "more": 7})
    assert [(each["id"], each["more"]) for each in grown.rows()] == [(1, None), (2, 7)]


def test_an_overwrite_refuses_files_of_earlier_partitions(job: Job) -> None:
    """Data files from before the table was partitioned would stay, so the file is not published."""
    plain = Table(job, (_ID, {**_DAY, "partitioned": False}), {})
    plain.publish({"id": 1, "day": _FIRST})
    report = Table(job, (_ID, _DAY), {"writeMode": "overwrite"}, plain.name).audit(
        [{"id": 2, "day": _FIRST}]
    )
    assert (report.verdict, reason(report).code) == (Verdict.ERRORED, "PARTITIONS_CHANGED")
    statement = f"UPDATE {plain.name} SET `id` = `id`"
    assert statement in reason(report).message
    Table(job, (_ID, _DAY), {}, plain.name).publish({"id": 3, "day": _FIRST})
    job.session("main", "publisher").sql(statement.replace("UPDATE ", "UPDATE lake."))
    again = Table(job, (_ID, _DAY), {"writeMode": "overwrite"}, plain.name)
    assert again.publish({"id": 2, "day": _FIRST}).effect == Effect(2, 1, added=1, removed=2)


# Oracles: a random sequence of files, and a plain model of the table.

_FILES = 10


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
def test_upserts_leave_what_a_plain_model_has(job: Job, settings: Mapping[str, Any]) -> None:
    """After each of many random files the table and the counts are the model's."""
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
        assert table.rows() == [model[id_] for id_ in sorted(model)]


def test_overwrites_leave_what_a_plain_model_has(job: Job) -> None:
    """After each of many random files every month has the rows of its last file."""
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
        expected = [each for rows in model.values() for each in rows]
        assert table.rows() == sorted(expected, key=lambda each: each["id"])
