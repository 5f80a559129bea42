"""Output of `lakegate upkeep`."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.tables.upkeep import compacted, report, warning
from functions.adapters.iceberg.files import TableSize
from functions.adapters.s3 import StoredObject
from functions.operations.compaction.compact import Need, Progress, Step, needs
from functions.operations.upkeep.dead_files import Accepted, DeadFiles
from lakegate.errors import LakegateError
from lakegate.job.upkeep import FEWEST
from tests.fakes.scenario import Scenario

SIZE = TableSize(
    files=12, bytes=3_000_000, small=9, scattered=9, manifests=3, manifest_bytes=21_000
)
NEEDS = (
    Need("shop.orders", SIZE),
    Need("shop.returns", TableSize(), "its contract says `compaction: never`"),
)
YOUNG = (StoredObject("b", 125_000, datetime(2026, 2, 1, tzinfo=UTC)),) * 4
DEAD = DeadFiles((StoredObject("a", 2_000_000, datetime(2026, 1, 1, tzinfo=UTC)),), YOUNG)


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was printed, whatever the width of the terminal."""
    return " ".join(capsys.readouterr().out.split())


def test_tables_are_shown_with_their_small_files(capsys: pytest.CaptureFixture[str]) -> None:
    """Each table has a line with data files, the share of small ones, and what is due."""
    report(NEEDS, (), None)
    printed = shown(capsys)
    assert "shop.orders 12 75% 3.0 3 of 21 KB 9 files" in printed
    assert "compaction: never" in printed
    assert "reader" not in printed


def test_what_was_done_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A dropped compaction is shown with the reason, and deleted files with their bytes."""
    dropped = Progress("shop.orders", "upkeep/a", Step.DROPPED, "main has replaced its files")
    report(NEEDS, [dropped, Progress("shop.b", "upkeep/b", Step.STARTED)], DEAD)
    printed = shown(capsys)
    assert "shop.orders: compaction dropped: main has replaced its files" in printed
    assert "shop.b: compaction started" in printed
    assert "1 files without a reader deleted: 2.0 MB" in printed
    assert "4 more are too young for that: 0.5 MB" in printed


@pytest.mark.usefixtures("quiet")
def test_a_compaction_that_cannot_be_started_stops_no_other() -> None:
    """The command starts what is due as the schedule does, and then raises what went wrong."""
    deployment = Scenario()
    for number in range(FEWEST):
        deployment.ended(f"shop/orders/{number}.parquet")
    deployment.fail("jobs.start")
    with pytest.raises(LakegateError):
        compacted(deployment.adapters, list(needs(deployment.adapters)))
    known = deployment.ledger.compactions().under_way
    assert [each.table for each in known if each.rewriting] == ["shop.orders"]


def test_a_dry_run_deletes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run says what could be deleted."""
    report(NEEDS, (), DEAD, dry_run=True)
    assert "1 files without a reader can be deleted" in shown(capsys)


def test_files_that_wait_for_the_next_look_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """At the first look at a catalog, what is due is said to wait."""
    report(NEEDS, (), replace(DEAD, due=(), waiting=DEAD.due))
    printed = shown(capsys)
    assert "0 files without a reader deleted" in printed
    assert "1 wait for the next upkeep, as this one saw main for the first time: 2.0 MB" in printed


def test_what_is_accepted_is_said_before() -> None:
    """A person reads what is given up, and needs a terminal or --yes to accept it."""
    assert "with commit 12ab" in warning(Accepted(head="12ab"))
    assert "bytes" not in warning(Accepted(head="12ab"))
    assert "Up to 5,000 bytes" in warning(Accepted(bytes=5_000))
    said = CliRunner().invoke(app, ["upkeep", "--accept-main", "12ab"])
    assert said.exit_code == 2
    assert "add `--yes`" in " ".join(said.stderr.split())


@pytest.mark.parametrize("word", ["shop.orders", "--dry-run"])
def test_nothing_is_accepted_for_what_deletes_nothing(word: str) -> None:
    """To accept something is refused where no file would be deleted."""
    said = CliRunner().invoke(app, ["upkeep", word, "--accept-bytes", "5", "--yes"])
    assert said.exit_code == 2
    assert "neither a table nor --dry-run" in " ".join(said.stderr.replace("│", "").split())


def test_programs_get_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has the same figures."""
    report(NEEDS, [Progress("shop.b", "upkeep/b", Step.STARTED)], DEAD, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["tables"][0] == {"table": "shop.orders", **vars(SIZE), "why_not": ""}
    assert found["compactions"][0]["step"] == "started"
    assert found["dead"] == {
        "files": 1,
        "bytes": 2_000_000,
        "waiting_files": 0,
        "young_files": 4,
        "young_bytes": 500_000,
    }
