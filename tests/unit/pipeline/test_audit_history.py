"""The results of every run are added to main's tables of results exactly once."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from functions.model import steps
from functions.model.ingestion import State
from functions.pipeline.outcome.audit_history import RUNS, record, record_recent
from functions.pipeline.outcome.baselines import accept
from lakegate.audit.audit_tables import QUARANTINE, RESULTS
from lakegate.audit.report import AuditReport, Status
from lakegate.errors import LakegateError
from tests.fakes.deployment import TABLE, Known
from tests.fakes.faults import Fault
from tests.fakes.job import USUAL, crashed, passed, rejected, run_job
from tests.fakes.scenario import FOREVER, KEY, Scenario


def on_main(deployment: Scenario) -> list[tuple[str, bool]]:
    """Return the runs in main's table of results, and whether each is published."""
    table = deployment.catalog.table("main", RESULTS.name)
    files = [file.rpartition("/")[2].rpartition("|") for file in table.files] if table else []
    return sorted((name.rpartition("-")[0], said == "True") for name, _, said in files)


def records(deployment: Scenario) -> list[dict[str, bool]]:
    """Return the recorded runs in main's commits, the oldest first."""
    log = (each.properties for each in deployment.catalog.log() if RUNS in each.properties)
    return [json.loads(each[RUNS]) for each in log][::-1]


def run_of(deployment: Scenario, landed: Known, attempt: int = 1) -> str:
    return f"{deployment.ingestion(landed).id}-{attempt}"


@pytest.mark.parametrize(("script", "published"), [(passed, True), (rejected, False)])
def test_a_run_is_recorded_when_its_ingestion_ended(
    deployment: Scenario, script: Callable[[AuditReport], AuditReport], published: bool
) -> None:
    """The results of a run are on main, published or not, and the commit names it."""
    landed = deployment.ended(script=script)
    run = run_of(deployment, landed)
    assert on_main(deployment) == [(run, published)]
    assert records(deployment) == [{run: published}]
    assert bool(deployment.catalog.table("main", QUARANTINE.name)) is not published


def test_ingestions_that_end_together_are_recorded_by_one_commit(deployment: Scenario) -> None:
    """Many ingestions cause one change of the tables."""
    deployment.fail("tables.enter", times=3)
    for name in "abc":
        deployment.land(f"shop/orders/{name}.parquet", script=rejected)
    deployment.settle()
    assert [len(each) for each in records(deployment)] == [3]


@pytest.mark.parametrize("is_hindered", [False, True])
def test_a_group_is_recorded_when_it_is_announced(deployment: Scenario, is_hindered: bool) -> None:
    """One write notes both; if nothing can be recorded, it notes the announcement."""
    landed = deployment.wait_together(3)
    deployment.fail("tables.enter", times=FOREVER if is_hindered else 0)
    deployment.publish(landed[0])
    members = [deployment.ingestion(each) for each in landed]
    assert all(each.announced and steps.needs_recording(each) is is_hindered for each in members)
    assert len({each.revision for each in members}) == 1
    deployment.journal.repair("tables.enter")
    deployment.settle()
    assert {run_of(deployment, each) for each in landed} < {run for run, _ in on_main(deployment)}


def test_a_sweep_lists_once_what_is_to_be_recorded(deployment: Scenario) -> None:
    """Where no branch of a hung process is left, nobody asks which ones are still needed."""
    deployment.ended()
    del deployment.journal.calls[:]
    deployment.sweep()
    assert deployment.journal.calls.count("ledger.needs_recording") == 1


@pytest.mark.parametrize("call", ["tables.enter", "ledger.needs_recording", "lake.put_baselines"])
def test_publishing_never_waits_for_it(deployment: Scenario, call: str) -> None:
    """If nothing can be recorded, files are published all the same, and recorded later."""
    deployment.fail(call, times=FOREVER)
    deployment.land(KEY)
    deployment.go(4)
    assert len(deployment.published_files()) == 1
    deployment.journal.repair(call)


@pytest.mark.parametrize("call", ["alerts.post", "announcements.send"])
def test_recording_waits_for_the_alert(deployment: Scenario, call: str) -> None:
    """An ingestion is recorded after its alert, which is posted once and at once."""
    deployment.journal.strike(call, Fault(partial(record_recent, deployment.adapters), "after"))
    landed = deployment.run(script=rejected)
    deployment.deliver()
    assert len(deployment.alerts.posted) == len(deployment.announcements.sent) == 1
    assert not steps.unfinished(deployment.ingestion(landed))


def test_files_of_others_are_left_out() -> None:
    """A report that names files of another run adds nothing to the tables."""
    deployment = Scenario()
    landed = deployment.run()
    (key,) = deployment.lake.reports()
    report = deployment.lake.report(key)
    foreign = replace(report.records[0], path="s3://lake/warehouse/shop/orders/data/1.parquet")
    deployment.lake.put_text(key, replace(report, records=(foreign,)).to_json().encode())
    deployment.settle()
    assert deployment.published_files()
    assert not on_main(deployment)
    assert not steps.needs_recording(deployment.ingestion(landed))


def test_published_runs_make_the_baselines(deployment: Scenario) -> None:
    """Baselines contain what published runs measured, and nothing of rejected ones."""
    deployment.land(KEY)
    deployment.ended("shop/orders/b.parquet", script=rejected)
    known, _ = deployment.lake.baselines(TABLE)
    assert known.values(USUAL.id, "rule") == [3.0]


def test_recording_again_changes_no_baseline(deployment: Scenario) -> None:
    """Recording a run twice changes its baseline once."""
    ingestion = deployment.ended()
    before = deployment.lake.baselines(TABLE)
    record(deployment.adapters, [deployment.ledger.save(ingestion.but(recorded=0))])
    assert deployment.lake.baselines(TABLE) == before


def drifted(report: AuditReport) -> AuditReport:
    """Script a run that is rejected for its drift."""
    failed = replace(USUAL, status=Status.FAIL, baseline=replace(USUAL.baseline, measured=90.0))  # type: ignore[type-var]
    return replace(rejected(report), checks=(*report.checks[:1], failed))


def test_a_rejected_change_is_accepted(deployment: Scenario) -> None:
    """An acceptance restarts the baseline at that run, with name and reason, once."""
    deployment.land("shop/orders/before.parquet")
    landed = deployment.ended(script=drifted)
    for name in ("Ann", "Bob"):
        accepted = accept(deployment.adapters, deployment.ingestion(landed), name, "a new shop")
        assert (accepted.by, accepted.reason) == ("Ann", "a new shop")
    known, _ = deployment.lake.baselines(TABLE)
    assert 90.0 in known.values(USUAL.id, "rule")


def test_an_acceptance_meets_a_publication(deployment: Scenario) -> None:
    """Two processes that change the baselines at once lose nothing of each other's."""
    rejection = deployment.ended(script=drifted)
    publish_another = partial(deployment.ended, "shop/orders/b.parquet")
    deployment.journal.strike("lake.put_baselines", Fault(publish_another))
    accept(deployment.adapters, rejection, "Ann", "a new shop")
    known, _ = deployment.lake.baselines(TABLE)
    assert sorted(known.values(USUAL.id, "rule")) == [3.0, 90.0]


@pytest.mark.parametrize(("by", "reason"), [("", "why"), ("Ann", " ")])
def test_an_acceptance_needs_a_name_and_a_reason(
    deployment: Scenario, by: str, reason: str
) -> None:
    """Without a name and a reason nothing changes."""
    landed = deployment.ended(script=drifted)
    with pytest.raises(LakegateError, match="who accepts"):
        accept(deployment.adapters, deployment.ingestion(landed), by, reason)


def test_a_late_report_is_recorded(deployment: Scenario) -> None:
    """A late report changes no verdict and causes no alert, but its results are recorded once."""
    ended = deployment.ended(script=crashed)
    run_job(ended.job_run, rejected, deployment.catalog, deployment.lake, deployment.jobs)
    deployment.sweep()
    recorded = deployment.ingestion(ended)
    assert on_main(deployment) == [(run_of(deployment, ended, 2), False)]
    assert (recorded.state, recorded.reason) == (State.ERRORED, ended.reason)
    assert len(deployment.alerts.posted) == 1
    deployment.sweep()
    assert deployment.ingestion(ended) == recorded
