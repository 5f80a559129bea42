"""The Python API over fakes: each method does what its command does."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa
import pytest

import lakegate
from access.deployment.checkout import ROOT
from functions.model.ingestion import Ingestion
from functions.operations.decisions.failed import Outcome
from lakegate.audit.diagnosis import BadCell
from lakegate.audit.report import READABLE, AuditReport, Verdict
from lakegate.errors import LakegateError
from lakegate.job.landing import ingestion_id
from tests.fakes.deployment import ORDERS, Deployment
from tests.fakes.job import FAILED, ROWS, Script, passed, rejected

_CELL = BadCell("line 3", "id", "x", "not a whole number")
_KEY = "shop/orders/a.csv"


def unreadable(report: AuditReport) -> AuditReport:
    """Return the report of a run that found a cell that cannot be read."""
    check = replace(FAILED, id=READABLE, samples=(_CELL.sample,))
    return replace(rejected(report), checks=(check,), rows_unreadable=1, rows_read=ROWS + 1)


class FakeReader:
    """A reader of a reference that has one table."""

    def __init__(self, ref: str) -> None:
        self._ref = ref

    def all_rows(self, table: str) -> pa.Table:
        return pa.table({"table": [table], "ref": [self._ref]})

    @contextmanager
    def answer(self, sql: str) -> Iterator[pa.RecordBatchReader]:
        with duckdb.connect() as connection:
            yield connection.sql(sql).to_arrow_reader()


def gate_of(deployment: Deployment) -> lakegate.Gate:
    fake_reader: Any = FakeReader
    return lakegate.Gate("test", deployment.adapters, fake_reader)


def ended(deployment: Deployment, script: Script, key: str = _KEY) -> str:
    """Land a file, and return the id of its ended ingestion."""
    landed = deployment.land(key, script=script)
    deployment.settle()
    return deployment.ingestion(landed).id


def test_the_log_of_a_table_names_what_was_published() -> None:
    """Main's commits of a table say which ingestion brought how many rows; no table has none."""
    deployment = Deployment()
    gate, id_ = gate_of(deployment), ended(deployment, passed)
    (commit,) = gate.log("shop.orders")
    assert (commit.rows, [each.id for each in commit.ingestions]) == (ROWS, [id_])
    assert commit.hash == gate.show(id_).commit
    with pytest.raises(LakegateError, match="no commit of"):
        gate.log("shop.ordres")


def test_a_drop_that_fails_midway_names_what_has_landed(tmp_path: Path) -> None:
    """A program that tries again must not land the first files twice, so it is told their ids."""
    deployment = Deployment()
    (tmp_path / "a.csv").write_bytes(b"id\n1\n")
    with (tmp_path / "b.csv").open("wb") as large:
        large.truncate((5 << 30) + 1)
    with pytest.raises(LakegateError, match=r"PARTLY_DROPPED.*TOO_LARGE") as caught:
        gate_of(deployment).drop(tmp_path / "a.csv", tmp_path / "b.csv", table="shop.orders")
    (landed,) = deployment.landing.landed()
    assert f"{landed.key} as {ingestion_id(landed)}" in caught.value.message


def test_a_dropped_file_is_waited_for(tmp_path: Path) -> None:
    """The dropped file's ingestion, which the ledger does not know yet, is returned published."""
    deployment = Deployment()
    gate = gate_of(deployment)
    (tmp_path / "a.csv").write_bytes(b"id\n1\n")

    (dropped,) = gate.drop(str(tmp_path / "a.csv"), table="shop.orders")
    (landed,) = deployment.landing.landed()
    deployment.script(landed, passed)
    deployment.send_upload(landed)
    deployment.settle()
    (done,) = gate.wait(dropped, seconds=0)

    assert (dropped.state, dropped.key) == ("landed", _KEY)
    assert (done.id, done.state, done.rows) == (dropped.id, "published", ROWS)
    assert done.tables == ("shop.orders",)
    assert done.report is not None
    assert done.commit == deployment.ingestion(landed).merge_hash


def test_a_wait_that_takes_too_long_names_the_file(tmp_path: Path) -> None:
    """After the time the error names what has not ended."""
    gate = gate_of(Deployment())
    (tmp_path / "a.csv").write_bytes(b"id\n1\n")
    (dropped,) = gate.drop(tmp_path / "a.csv")
    with pytest.raises(LakegateError, match=rf"TIMED_OUT.*\n.*{_KEY}: uploaded"):
        gate.wait(dropped, seconds=0)
    with pytest.raises(LakegateError, match=rf"TIMED_OUT.*\n.*{dropped.id}: the ledger has no"):
        gate.wait(dropped.id, seconds=0)
    with pytest.raises(LakegateError, match="UNKNOWN_INGESTION"):
        gate.wait(dropped.id[:8], seconds=0)


def test_a_rejected_file_is_shown_with_its_cells() -> None:
    """The reason, and the place, value and reason of each named cell, are plain values."""
    deployment = Deployment()
    shown = gate_of(deployment).show(ended(deployment, unreadable)[:8])
    assert (shown.state, shown.code) == ("rejected", "CHECKS_FAILED")
    assert shown.cells == (_CELL,)


def test_a_file_whose_report_cannot_be_read_is_shown() -> None:
    """What became of a file is told though its report is broken: that may be why it failed."""
    deployment = Deployment()
    gate, id_ = gate_of(deployment), ended(deployment, rejected)
    deployment.lake.put_text(deployment.ledger.get(id_).report_key, b"{")
    (waited,) = gate.wait(id_)
    assert (waited.state, waited.report) == ("rejected", None)
    assert gate.show(id_) == waited


def test_runs_are_listed_as_wanted() -> None:
    """Ingestions are found by state, table, time, and by whether they wait for a decision."""
    deployment = Deployment()
    gate = gate_of(deployment)
    good = ended(deployment, passed)
    bad = ended(deployment, rejected, "shop/orders/b.csv")
    now = datetime.fromisoformat(deployment.clock.now())

    assert [each.id for each in gate.runs()] == [bad, good]
    assert [each.id for each in gate.runs(state="published")] == [good]
    assert [each.id for each in gate.runs(waiting=True)] == [bad]
    assert gate.runs(table="shop.returns") == gate.runs(since=now + timedelta(seconds=1)) == ()
    assert gate.runs(since=datetime.min) == gate.runs()  # noqa: DTZ901  a common way to say "all"
    with pytest.raises(LakegateError, match=r"UNKNOWN_STATE.*'done'\nStates: landed, "):
        gate.runs(state="done")


def test_rows_and_queries_are_arrow() -> None:
    """Rows and answers of main, or of a branch, come as Arrow tables."""
    gate = gate_of(Deployment())
    assert gate.rows("shop.orders").to_pylist() == [{"table": "shop.orders", "ref": "main"}]
    assert gate.rows("shop.orders", ref="b")["ref"].to_pylist() == ["b"]
    assert gate.query("SELECT 1 AS one").to_pylist() == [{"one": 1}]


def test_a_rejected_file_is_published_with_name_and_reason() -> None:
    """Publishing is recorded with name and reason, and refused without."""
    deployment = Deployment()
    gate = gate_of(deployment)
    bad = gate.show(ended(deployment, rejected))

    with pytest.raises(LakegateError, match="NAME_NEEDED"):
        gate.publish(bad, by="", reason="known")
    now = gate.publish(bad, by="Ann", reason="known")

    assert (now.state, now.approved_by, now.left) == ("published", "Ann", "")


@pytest.mark.parametrize("nulls", [False, True])
def test_unread_cells_need_a_choice(nulls: bool) -> None:
    """Rows with cells that could not be read are neither left out nor published unasked."""
    deployment = Deployment()
    gate = gate_of(deployment)
    bad = ended(deployment, unreadable)

    with pytest.raises(LakegateError, match=r"UNREADABLE_ROWS.*rows could not be read: line 3"):
        gate.publish(bad, by="Ann", reason="known")
    assert gate.show(bad).state == "rejected"
    gate.publish(bad, by="Ann", reason="known", null_unreadable=nulls)
    assert deployment.ledger.get(bad).decisions.null_unreadable is nulls


def test_a_rejected_file_is_replayed() -> None:
    """A replay is another attempt, which may pass; what is published has no replay."""
    deployment = Deployment()
    gate = gate_of(deployment)
    bad = ended(deployment, rejected)
    deployment.script(deployment.ledger.get(bad), passed)

    again = gate.replay(bad[:12], by="Ann")
    deployment.settle()

    assert (again.attempt, gate.show(again).state) == (2, "published")
    with pytest.raises(LakegateError, match="NOT_FAILED"):
        gate.replay(again)


def test_a_contract_is_checked(tmp_path: Path) -> None:
    """A good contract is returned; a bad one has problems with lines, and audits nothing."""
    gate = gate_of(Deployment())
    good = gate.check_contract(ROOT / "contracts/nyc.flights.yaml")
    (tmp_path / "bad.yaml").write_text("kind: Nonsense\n")
    bad = gate.check_contract(str(tmp_path / "bad.yaml"))

    assert good.contract is not None
    assert good.contract.table == "nyc.flights"
    assert bad.contract is None
    assert bad.problems[0].line == 1
    with pytest.raises(LakegateError, match=r"CONTRACT_INVALID.*bad\.yaml"):
        gate.test_contract(tmp_path / "bad.yaml", tmp_path)
    with pytest.raises(LakegateError, match="no data file in"):
        gate.test_contract(ROOT / "contracts/nyc.flights.yaml", tmp_path / "gone.csv")


def test_a_failed_file_is_discarded() -> None:
    """Its rows are given up under the name of who asked, and a second call is refused."""
    deployment = Deployment()
    gate = gate_of(deployment)
    done = gate.discard(ended(deployment, rejected), by="Ann")
    assert (done.state, done.left) == ("discarded", "")
    with pytest.raises(LakegateError, match="already discarded"):
        gate.discard(done)


def test_a_stage_discards_by_its_own_function() -> None:
    """Where the deployment discards for people, who lack the rights, the gate asks it to."""
    deployment, asked = Deployment(), list[str]()

    def discards(ingestion: Ingestion, by: str) -> Outcome:
        asked.append(by)
        return Outcome(ingestion, "its branch")

    gate, id_ = replace(gate_of(deployment), discards=discards), ended(deployment, rejected)
    assert (gate.discard(id_, by="Ann").left, asked) == ("its branch", ["Ann"])
    assert gate.show(id_).state == "rejected"


def test_tables_are_changed_and_get_their_rows_back() -> None:
    """A change, a retraction and a restoration are ingestions that come to main."""
    deployment = Deployment()
    gate = gate_of(deployment)
    first = gate.show(ended(deployment, passed))
    second = ended(deployment, passed, "shop/orders/b.csv")
    requests: list[Callable[[], lakegate.Ingestion]] = [
        lambda: gate.retract(second, by="Ann", reason="sent twice"),
        lambda: gate.change("shop.orders", "DELETE FROM shop.orders", by="Ann", token="once"),
        lambda: gate.restore("shop.orders", first.commit, by="Ann", reason="too much"),
    ]
    for request in requests:
        asked = request()
        deployment.settle()
        assert gate.show(asked).state == "published"
    with pytest.raises(LakegateError, match="its log begins later"):
        gate.restore("shop.orders", datetime(2000, 1, 1, tzinfo=UTC), by="Ann", reason="too much")


def test_a_time_in_text_is_a_time() -> None:
    """A restoration goes by the zone of a time that is given as text, and refuses other words."""
    deployment = Deployment()
    gate = gate_of(deployment)
    ended(deployment, passed)
    for time in ("2026-03-01T13:30+02:00", "2026-03-01 13:30+02:00"):
        with pytest.raises(LakegateError, match="its log begins later"):
            gate.restore("shop.orders", time, by="Ann", reason="too much")
    with pytest.raises(LakegateError, match="'2h' is no commit of main and no time"):
        gate.restore("shop.orders", "2h", by="Ann", reason="too much")


def test_another_writers_branch_is_taken_over() -> None:
    """The request's ingestion is returned, and the same commits are the same one."""
    deployment = Deployment()
    gate = gate_of(deployment)
    ended(deployment, passed)
    deployment.others.write_on_own_branch("write/a", "shop.orders")
    asked = gate.gate("write/a", by="Ann", reason="nightly")
    deployment.settle()
    (done,) = gate.wait(gate.gate("write/a", table="shop.orders", by="Bob"), seconds=0)
    assert (done.id, done.state, done.rows) == (asked.id, "published", ROWS)


def test_a_contract_is_tried_on_what_landed(tmp_path: Path) -> None:
    """A file that landed since then is audited by the contract's file; its record stays."""
    deployment = Deployment()
    gate = gate_of(deployment)
    csv = "customProperties: [{property: format, value: csv}]\nschema:"
    (tmp_path / "new.yaml").write_text(ORDERS.replace("schema:", csv, 1))
    landed = deployment.land(_KEY, b"id\n1\n2\n", rejected)
    deployment.settle()
    now = datetime.fromisoformat(deployment.clock.now())
    before = deployment.ingestion(landed)

    found = gate.backtest_contract(tmp_path / "new.yaml", since=now - timedelta(days=1))

    (file,) = found.files
    assert (file.recorded, file.verdict, file.rows) == (Verdict.REJECTED, Verdict.PASSED, 2)
    assert deployment.ingestion(landed) == before
    later = gate.backtest_contract(tmp_path / "new.yaml", since=now + timedelta(seconds=1))
    assert later.files == ()


def test_a_process_has_one_deployment() -> None:
    """A process that is connected refuses another stage, which would be the first one again."""
    with (
        mock.patch.dict(os.environ, {"LAKEGATE_CONNECTED": "prod"}),
        pytest.raises(LakegateError, match=r"CONNECTED_ELSEWHERE.*prod already"),
    ):
        lakegate.connect()


def test_the_package_has_no_other_names() -> None:
    """A name that the API lacks is missing as from any module."""
    with pytest.raises(AttributeError, match="no attribute 'disconnect'"):
        _ = getattr(lakegate, "disconnect")  # noqa: B009
