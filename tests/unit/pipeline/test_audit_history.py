"""The results of every run are added to main's tables of results exactly once."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from functions.model.ingestion import State
from functions.operations.failed import publish_anyway, replay
from functions.pipeline.audit_history import RUNS, accept, record, record_recent
from lakegate.audit_tables import QUARANTINE, RESULTS
from lakegate.errors import LakegateError
from lakegate.landing import LandedObject
from lakegate.report import AuditReport, Status
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.faults import Fault, die, unavailable
from tests.fakes.job import USUAL, crashed, crashed_once, passed, rejected, run_job
from tests.fakes.promises import check_promises, left_behind

KEY = "shop/orders/a.parquet"


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment where nothing has landed."""
    return Deployment()


def on_main(deployment: Deployment) -> list[tuple[str, bool]]:
    """Return the runs in main's table of results, and whether each is published."""
    table = deployment.catalog.table("main", RESULTS.name)
    files = [file.rpartition("/")[2].rpartition("|") for file in table.files] if table else []
    return sorted((name.rpartition("-")[0], said == "True") for name, _, said in files)


def records(deployment: Deployment) -> list[dict[str, bool]]:
    """Return the recorded runs in main's commits, the oldest first."""
    log = (each.properties for each in deployment.catalog.log() if RUNS in each.properties)
    return [json.loads(each[RUNS]) for each in log][::-1]


def run_of(deployment: Deployment, landed: LandedObject, attempt: int = 1) -> str:
    return f"{deployment.ingestion(landed).id}-{attempt}"


@pytest.mark.parametrize(("script", "published"), [(passed, True), (rejected, False)])
def test_a_run_is_recorded_when_its_ingestion_ended(
    deployment: Deployment, script: Callable[[AuditReport], AuditReport], published: bool
) -> None:
    """The results of a run are on main, published or not, and the commit names it."""
    landed = deployment.land(KEY, script=script)
    deployment.settle()
    run = run_of(deployment, landed)
    assert on_main(deployment) == [(run, published)]
    assert records(deployment) == [{run: published}]
    assert bool(deployment.catalog.table("main", QUARANTINE.name)) is not published
    check_promises(deployment)


def test_ingestions_that_end_together_are_recorded_by_one_commit(deployment: Deployment) -> None:
    """Many ingestions cause one change of the tables."""
    deployment.journal.strike("tables.enter", Fault(unavailable, times=3))
    for name in "abc":
        deployment.land(f"shop/orders/{name}.parquet", script=rejected)
    deployment.settle()
    assert [len(each) for each in records(deployment)] == [3]
    check_promises(deployment)


@pytest.mark.parametrize("call", ["tables.enter", "ledger.needs_recording", "lake.put_baselines"])
def test_publishing_never_waits_for_it(deployment: Deployment, call: str) -> None:
    """If nothing can be recorded, files are published all the same, and recorded later."""
    deployment.journal.strike(call, Fault(unavailable, times=float("inf")))
    deployment.land(KEY)
    for _ in range(4):
        deployment.deliver()
        deployment.run_jobs()
    assert len(deployment.published_files()) == 1
    deployment.journal.repair(call)
    deployment.settle()
    check_promises(deployment)


def test_all_runs_of_an_ingestion_are_recorded(deployment: Deployment) -> None:
    """A replayed ingestion has its first run's results as well; a run that crashed has none."""
    landed = deployment.land(KEY, script=rejected)
    other = deployment.land("shop/orders/b.parquet", script=crashed_once)
    deployment.settle()
    deployment.script(landed, passed)
    replay(deployment.adapters, deployment.ingestion(landed))
    deployment.settle()
    assert on_main(deployment) == sorted(
        [
            (run_of(deployment, landed), False),
            (run_of(deployment, landed, 2), True),
            (run_of(deployment, other, 2), True),
        ]
    )
    check_promises(deployment)


def test_a_run_on_main_is_not_recorded_again_after_a_replay(
    deployment: Deployment,
) -> None:
    """A run that is on main, though the ledger does not say so, is not recorded again."""
    landed = deployment.land(KEY, script=rejected)
    deployment.deliver()
    deployment.run_jobs()
    deployment.journal.strike("ledger.save_all", Fault(unavailable))
    deployment.deliver()
    assert deployment.ingestion(landed).needs_recording
    assert on_main(deployment) == [(run_of(deployment, landed), False)]
    deployment.script(landed, passed)
    replay(deployment.adapters, deployment.ingestion(landed))
    deployment.settle()
    assert len(on_main(deployment)) == 2
    check_promises(deployment)


def test_an_approved_run_is_recorded_as_published(deployment: Deployment) -> None:
    """The results of an approved run are recorded once, with the quarantined rows."""
    landed = deployment.land(KEY, script=rejected)
    deployment.settle()
    publish_anyway(deployment.adapters, deployment.ingestion(landed), "Ann", "known")
    deployment.settle()
    assert on_main(deployment) == [(run_of(deployment, landed), True)]
    check_promises(deployment)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "call", ["catalog.create_branch", "catalog.log", "tables.enter", "catalog.merge"]
)
def test_two_processes_record_a_run_once(call: str, when: str) -> None:
    """A process that hangs while another records the same finds it done, or is refused."""
    deployment = Deployment()
    deployment.journal.strike("tables.enter", Fault(unavailable))
    deployment.land(KEY)
    deployment.deliver()
    deployment.run_jobs()
    deployment.deliver()
    meanwhile = partial(record_recent, deployment.adapters)
    deployment.journal.strike(call, Fault(meanwhile, when))  # type: ignore[arg-type]
    record_recent(deployment.adapters)
    deployment.settle()
    assert [len(each) for each in records(deployment)] == [1]
    check_promises(deployment)


@pytest.mark.parametrize("call", ["tables.enter", "catalog.merge", "lake.put_baselines"])
def test_a_process_that_died_leaves_no_branch(deployment: Deployment, call: str) -> None:
    """Once the runs are recorded, the sweep deletes the branch of a process that died."""
    deployment.land(KEY)
    deployment.deliver()
    deployment.run_jobs()
    skipped = 1 if call == "catalog.merge" else 0  # the first publishes the file
    deployment.journal.strike_later(call, Fault(die, "after"), skipped)
    deployment.deliver()
    deployment.settle()
    assert not left_behind(deployment)
    check_promises(deployment)


@pytest.mark.parametrize("call", ["alerts.post", "announcements.send"])
def test_recording_waits_for_the_alert(deployment: Deployment, call: str) -> None:
    """An ingestion is recorded after its alert, which is posted once and at once."""
    deployment.journal.strike(call, Fault(partial(record_recent, deployment.adapters), "after"))
    landed = deployment.land(KEY, script=rejected)
    deployment.deliver()
    deployment.run_jobs()
    deployment.deliver()
    assert len(deployment.alerts.posted) == len(deployment.announcements.sent) == 1
    assert not deployment.ingestion(landed).unfinished
    check_promises(deployment)


def test_files_of_others_are_left_out(deployment: Deployment) -> None:
    """A report that names files of another run adds nothing to the tables."""
    landed = deployment.land(KEY)
    deployment.deliver()
    deployment.run_jobs()
    (key,) = deployment.lake.reports()
    report = deployment.lake.report(key)
    foreign = replace(report.records[0], path="s3://lake/warehouse/shop/orders/data/1.parquet")
    deployment.lake.put_text(key, replace(report, records=(foreign,)).to_json().encode())
    deployment.settle()
    assert deployment.published_files()
    assert not on_main(deployment)
    assert not deployment.ingestion(landed).needs_recording


def test_published_runs_make_the_baselines(deployment: Deployment) -> None:
    """Baselines contain what published runs measured, and nothing of rejected ones."""
    deployment.land(KEY)
    deployment.land("shop/orders/b.parquet", script=rejected)
    deployment.settle()
    known, _ = deployment.lake.baselines(TABLE)
    assert known.values(USUAL.id, "rule") == [3.0]


def test_recording_again_changes_no_baseline(deployment: Deployment) -> None:
    """Recording a run twice changes its baseline once."""
    landed = deployment.land(KEY)
    deployment.settle()
    before = deployment.lake.baselines(TABLE)
    ingestion = deployment.ingestion(landed)
    deployment.ledger.save(replace(ingestion, recorded=0))
    record(deployment.adapters, [deployment.ingestion(landed)])
    assert deployment.lake.baselines(TABLE) == before
    check_promises(deployment)


def drifted(report: AuditReport) -> AuditReport:
    """Script a run that is rejected for its drift."""
    failed = replace(USUAL, status=Status.FAIL, baseline=replace(USUAL.baseline, measured=90.0))  # type: ignore[type-var]
    return replace(rejected(report), checks=(*report.checks[:1], failed))


def test_a_rejected_change_is_accepted(deployment: Deployment) -> None:
    """An acceptance restarts the baseline at that run, with name and reason, once."""
    deployment.land("shop/orders/before.parquet")
    landed = deployment.land(KEY, script=drifted)
    deployment.settle()
    for name in ("Ann", "Bob"):
        accepted = accept(deployment.adapters, deployment.ingestion(landed), name, "a new shop")
        assert (accepted.by, accepted.reason) == ("Ann", "a new shop")
    known, _ = deployment.lake.baselines(TABLE)
    assert 90.0 in known.values(USUAL.id, "rule")


def test_an_acceptance_meets_a_publication(deployment: Deployment) -> None:
    """Two processes that change the baselines at once lose nothing of each other's."""
    landed = deployment.land(KEY, script=drifted)
    deployment.settle()

    def publish_another() -> None:
        deployment.land("shop/orders/b.parquet")
        deployment.settle()

    deployment.journal.strike("lake.put_baselines", Fault(publish_another))
    accept(deployment.adapters, deployment.ingestion(landed), "Ann", "a new shop")
    known, _ = deployment.lake.baselines(TABLE)
    assert sorted(known.values(USUAL.id, "rule")) == [3.0, 90.0]


@pytest.mark.parametrize(("by", "reason"), [("", "why"), ("Ann", " ")])
def test_an_acceptance_needs_a_name_and_a_reason(
    deployment: Deployment, by: str, reason: str
) -> None:
    """Without a name and a reason nothing changes."""
    landed = deployment.land(KEY, script=drifted)
    deployment.settle()
    with pytest.raises(LakegateError, match="who accepts"):
        accept(deployment.adapters, deployment.ingestion(landed), by, reason)


def test_a_late_report_is_recorded(deployment: Deployment) -> None:
    """A late report changes no verdict and causes no alert, but its results are recorded once."""
    landed = deployment.land(KEY, script=crashed)
    deployment.settle()
    ended = deployment.ingestion(landed)
    run_job(ended.job_run, rejected, deployment.catalog, deployment.lake, deployment.jobs)
    deployment.sweep()
    recorded = deployment.ingestion(landed)
    assert on_main(deployment) == [(run_of(deployment, landed, 2), False)]
    assert (recorded.state, recorded.reason) == (State.ERRORED, ended.reason)
    assert len(deployment.alerts.posted) == 1
    check_promises(deployment)
    deployment.sweep()
    assert deployment.ingestion(landed) == recorded
