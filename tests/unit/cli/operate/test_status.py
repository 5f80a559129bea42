"""`lakegate status` counts ingestions, and shows the shared runs."""

from dataclasses import replace

import pytest
import typer

from cli.operate.status import (
    counted,
    counts,
    overdue_words,
    print_status,
    require_up,
    shared_runs_table,
    upkeep_words,
)
from functions.model.decisions import Approval, Decisions
from functions.model.ingestion import State
from functions.model.notes.freshness import Freshness
from functions.model.notes.upkeep_note import TableUpkeep, UpkeepNote
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.faults import Fault, unavailable
from tests.unit.cli.shown import shown
from tests.unit.pipeline.test_shared_runs import SHARED


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment with a published file, and two that wait for a shared run."""
    made = Deployment(SHARED)
    made.land("shop/orders/a.parquet")
    made.settle()
    for name in ("b", "c"):
        made.land(f"shop/orders/{name}.parquet")
    made.deliver()
    return made


def test_files_that_wait_are_counted_beside_the_runs(deployment: Deployment) -> None:
    """Waiting files are landed ones, counted apart, with each run that is up."""
    (run,) = deployment.jobs.shared_runs()
    name = deployment.jobs.get(run).name
    document = counts(deployment.adapters)
    assert document["counts"]["landed"] == 2
    assert document["counts"]["published"] == 1
    up = [{"id": run, "name": name, "state": "RUNNING"}]
    assert document["shared_runs"] == {"waiting": 2, "up": up, "problem": None}
    text = shown(shared_runs_table(document["shared_runs"]))
    assert text == f"files that wait for a shared run 2 shared run running, {name}, {run}"


def test_what_the_day_cost_is_told_under_a_budget(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    """The amounts are shown once, and why no run is started; nothing without a budget."""
    assert counts(deployment.adapters)["budget"] == ""
    bound = replace(deployment.settings, daily_budget_usd=2)
    document = counts(replace(deployment.adapters, settings=bound))
    assert document["budget"] == "$0.00 of $2.00 are used"
    print_status({"health": {}, **document})
    assert capsys.readouterr().out.count("$0.00 of $2.00 are used") == 1


def test_runs_that_cannot_be_read_hide_nothing_else(deployment: Deployment) -> None:
    """Without permission for EMR the files are counted, and the reason is shown."""
    deployment.journal.strike("jobs.get", Fault(unavailable))
    document = counts(deployment.adapters)
    assert document["counts"]["published"] == 1
    assert document["shared_runs"]["up"] is None
    assert document["shared_runs"]["problem"] in shown(shared_runs_table(document["shared_runs"]))


def test_the_last_upkeep_is_summed(deployment: Deployment) -> None:
    """Small files, metadata and dead bytes of all tables are those that the last upkeep found."""
    assert counts(deployment.adapters)["upkeep"]["at"] == ""
    tables = {"a.b": TableUpkeep(8, 6, 1, 2_000, 30), "a.c": TableUpkeep(2, 0, 1, 500, 0)}
    deployment.ledger.save_upkeep(UpkeepNote("2026-03-01", "2026-02", tables))
    words = upkeep_words(counts(deployment.adapters)["upkeep"])
    assert words == "2026-03-01: 6 of 10 data files are small, 2,500 bytes of metadata, 30 dead"
    note = replace(deployment.ledger.upkeep(), doubt="main lacks a commit")
    deployment.ledger.save_upkeep(note)
    words = upkeep_words(counts(deployment.adapters)["upkeep"])
    assert words == "in doubt: main lacks a commit"


def test_overdue_tables_are_named(deployment: Deployment) -> None:
    """A table whose next file is overdue is named with the time of its last one."""
    assert counts(deployment.adapters)["overdue"] == {}
    deployment.ledger.save_freshness(Freshness("2027", {"a.b": "2026", "a.c": "2027"}, ("a.b",)))
    assert counts(deployment.adapters)["overdue"] == {"a.b": "2026"}


def test_an_overdue_table_is_told_with_the_time_when_its_file_was_due(
    deployment: Deployment,
) -> None:
    """The due time follows from the last file and the contract, which may be gone."""
    last = "2026-03-01T14:28:00.000+00:00"
    deployment.ledger.save_freshness(Freshness("2027", {TABLE: last, "a.b": last}, (TABLE, "a.b")))
    found = counts(deployment.adapters)
    assert overdue_words(found["overdue"], found["due"]) == [
        f"{TABLE}: no file since 1 Mar 2026, 14:28:00 UTC, due 27 Feb 2036, 14:28:00 UTC",
        "a.b: no file since 1 Mar 2026, 14:28:00 UTC, due by no contract",
    ]


def test_a_deployment_without_shared_runs_has_none_to_show() -> None:
    """Without shared runs nothing is shown of them."""
    found = counts(Deployment().adapters)["shared_runs"]
    assert found == {"waiting": 0, "up": [], "problem": None}
    assert shown(shared_runs_table(found)) == ""


def test_states_are_counted_as_people_mean_them(deployment: Deployment) -> None:
    """Each ingestion counts once, a discarded one as such; approved ones are noted."""
    published, *_ = deployment.ledger.in_state(State.PUBLISHED)
    approval = Approval("Ada", "a refund", "2026", ())
    deployment.ledger.save(published.but(decisions=Decisions(approval)))
    one, _ = deployment.ledger.in_state(State.LANDED)
    deployment.ledger.save(one.but(state=State.REJECTED, decisions=Decisions(discarded=True)))
    document = counts(deployment.adapters)
    found = {name: many for name, many in document["counts"].items() if many}
    assert found == {"landed": 1, "published": 1, "discarded": 1}
    assert document["approved"] == 1
    assert shown(counted(document)) == "landed 1 published 1 (1 approved) discarded 1"


@pytest.mark.parametrize(
    ("lake", "told"), [("down", "Start what is down: `lakegate up`\n"), ("S3 refused: denied", "")]
)
def test_a_part_that_is_down_is_an_exit_code(
    capsys: pytest.CaptureFixture[str], lake: str, told: str
) -> None:
    """`status` ends with 1 when a part is down, and tells how a local one is started."""
    require_up({"health": {"nessie": "up", "lake": "up"}})
    with pytest.raises(typer.Exit) as ending:
        require_up({"health": {"nessie": "up", "lake": lake}})
    assert ending.value.exit_code == 1
    assert capsys.readouterr().err == told
