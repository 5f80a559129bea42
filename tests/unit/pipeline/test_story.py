"""The path of one file over fakes: main, its branches, the ledger and alerts."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

import pytest

from functions.adapters.emr import RunState
from functions.model.ingestion import State
from functions.pipeline.complete import conclude
from functions.pipeline.intake import take_in
from lakegate.errors import Permanent, Transient
from lakegate.jobspec import JobSpec
from lakegate.landing import ingestion_id
from tests.fakes.deployment import SETTINGS, TABLE, Deployment
from tests.fakes.faults import Fault, unavailable
from tests.fakes.job import ROWS, crashed, errored, rejected, run_job
from tests.fakes.promises import check_promises, publishing

KEY = "shop/orders/a.parquet"


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment where nothing has landed."""
    return Deployment()


def refuse(code: str) -> Callable[[], None]:
    """Raise a permanent error, as an adapter does."""

    def effect() -> None:
        raise Permanent(code, "no")

    return effect


def alerts(deployment: Deployment) -> list[tuple[str, str]]:
    """Return the channel and the text of each alert."""
    return [(channel, str(alert.blocks)) for channel, alert in deployment.alerts.posted]


def test_a_good_file_is_published(deployment: Deployment) -> None:
    """A file that passes its audit is on main once, without its branch and without an alert."""
    landed = deployment.land(KEY)
    deployment.settle()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.state is State.PUBLISHED
    assert ingestion.rows == ROWS
    assert deployment.published_files() == [f"s3://landing/{KEY}@v1"]
    assert deployment.catalog.branches("") == ["main"]
    assert deployment.alerts.posted == []


def test_the_commit_on_main_says_what_it_published(deployment: Deployment) -> None:
    """The merge commit names ingestion, source, rows, report, contract, run and audited hash."""
    landed = deployment.land(KEY)
    deployment.settle()
    ingestion = deployment.ingestion(landed)
    commit = publishing(deployment)[0]
    assert commit.hash == ingestion.merge_hash
    assert commit.message == "Publish 3 rows of a.parquet to shop.orders"
    assert commit.properties["lakegate.table"] == TABLE
    assert json.loads(commit.properties["lakegate.ingestions"]) == [
        {
            "id": ingestion_id(landed),
            "object": f"s3://landing/{KEY}",
            "version": "v1",
            "rows": 3,
            "report": f"reports/{TABLE}/{ingestion.id}/1.json",
            "contract": f"contracts/{TABLE}.yaml@v1",
            "job_run": ingestion.job_run,
            "audited_hash": ingestion.audited_hash,
        }
    ]


def test_the_job_gets_all_that_it_needs(deployment: Deployment) -> None:
    """The job run gets the landed version, its branch and contract, and a secret's name only."""
    landed = deployment.land(KEY)
    head = deployment.catalog.head("main")
    deployment.deliver()
    (run,) = deployment.jobs.runs()
    id_ = ingestion_id(landed)
    spec = deployment.jobs.spec(run.id)
    assert replace(spec, landed=landed) == JobSpec(
        ingestion=id_,
        attempt=1,
        landed=landed,
        table=TABLE,
        branch=f"ingest/{TABLE}/a-parquet-{id_[:12]}",
        base_hash=head,
        lake_bucket="lake",
        contract_key=f"contracts/{TABLE}.yaml",
        contract_version="v1",
        report_key=f"reports/{TABLE}/{id_}/1.json",
        nessie_uri="http://nessie:19120",
        token_secret="job",
        timeout_minutes=60,
    )
    assert ingestion_id(spec.landed) == id_


def test_the_ledger_follows_each_step(deployment: Deployment) -> None:
    """The ledger is written at each step, in order, with the time of each."""
    landed = deployment.land(KEY)
    deployment.settle()
    history = deployment.ledger.history(ingestion_id(landed))
    states = [state.value for state, _ in groupby(revision.state for revision in history)]
    assert states == ["landed", "branched", "submitted", "audited", "published"]
    steps = ["landed", "branched", "submitted", "audited", "published", "cleaned"]
    assert list(history[-1].times) == [*steps, "announced", "recorded"]


def test_a_rejected_file_stays_on_its_branch(deployment: Deployment) -> None:
    """A file that breaks its contract is not on main; its branch is kept, owners are alerted."""
    landed = deployment.land(KEY, script=rejected)
    deployment.settle()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.state is State.REJECTED
    assert deployment.published_files() == []
    assert deployment.catalog.head(ingestion.branch) == ingestion.audited_hash
    ((channel, text),) = alerts(deployment)
    assert channel == "#orders"
    assert ingestion.branch in text
    assert "id.required" in text


def test_a_file_that_cannot_be_read_is_alerted(deployment: Deployment) -> None:
    """A job run that could not read its file ends errored, with the report's reason."""
    landed = deployment.land(KEY, script=errored)
    deployment.settle()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.state is State.ERRORED
    assert ingestion.reason is not None
    assert ingestion.reason.code == "CORRUPT_FILE"
    assert len(deployment.alerts.posted) == 1


@pytest.mark.parametrize(
    ("state", "details", "code"),
    [
        (RunState.CANCELLED, "Job run timed out after 60 minutes.", "JOB_CANCELLED"),
        (RunState.SUCCESS, "", "NO_REPORT"),
    ],
)
def test_a_run_without_report_is_alerted(
    deployment: Deployment, state: RunState, details: str, code: str
) -> None:
    """A run that ends without a report is alerted with its state, and nothing is published."""
    landed = deployment.land(KEY)
    deployment.deliver()
    (run,) = deployment.jobs.runs()
    deployment.jobs.end(run.id, state, details)
    deployment.send_job_run(run.id)
    deployment.settle()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.reason is not None
    assert ingestion.reason.code == code
    assert details in ingestion.reason.message


def test_a_job_that_keeps_crashing_is_alerted(deployment: Deployment) -> None:
    """A job that crashes at each attempt ends errored, with EMR's details of the last run."""
    landed = deployment.land(KEY, script=crashed)
    deployment.settle()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.reason is not None
    assert ingestion.reason.code == "JOB_FAILED"
    assert "ExitCode: 1." in ingestion.reason.message
    assert len(deployment.jobs.runs()) == SETTINGS.max_crashes
    assert len(deployment.alerts.posted) == 1


def test_a_job_that_crashed_once_is_tried_again(deployment: Deployment) -> None:
    """After one crash the next run, on a fresh branch, is published without an alert."""
    landed = deployment.land(KEY, script=lambda report: report if report.attempt > 1 else None)
    deployment.settle()
    check_promises(deployment)
    assert deployment.ingestion(landed).state is State.PUBLISHED
    assert len(deployment.jobs.runs()) == 2
    assert deployment.alerts.posted == []


@pytest.mark.parametrize("point", ["ledger.get", "ledger.save", "catalog.delete_branch"])
@pytest.mark.parametrize("skipped", [0, 1, 2])
def test_a_late_report_loses_no_evidence(deployment: Deployment, point: str, skipped: int) -> None:
    """A report that comes late, while the job is to run again, loses no evidence."""
    landed = deployment.land(KEY, script=crashed)
    deployment.deliver()
    deployment.run_jobs()
    (run,) = deployment.jobs.runs()

    def report_late() -> None:
        run_job(run.id, rejected, deployment.catalog, deployment.lake, deployment.jobs)
        conclude(deployment.adapters, run.id)

    deployment.journal.strike_later(point, Fault(report_late), skipped)
    deployment.settle()
    check_promises(deployment)
    assert deployment.ingestion(landed).state in (State.REJECTED, State.ERRORED)


def test_a_report_that_cannot_be_read_is_no_pass(deployment: Deployment) -> None:
    """A run that succeeded and left an unreadable report is alerted, not published."""
    landed = deployment.land(KEY)
    deployment.deliver()
    (run,) = deployment.jobs.runs()
    deployment.lake.put_text(deployment.jobs.spec(run.id).report_key, b'{"verdict": "passed"}')
    deployment.jobs.end(run.id, RunState.SUCCESS)
    deployment.send_job_run(run.id)
    deployment.settle()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.reason is not None
    assert ingestion.reason.code == "BAD_REPORT"


def test_duplicates_change_nothing(deployment: Deployment) -> None:
    """Every message delivered again after the end starts, publishes and posts nothing."""
    deployment.land(KEY)
    deployment.land("shop/orders/b.parquet", script=rejected)
    deployment.land("shop/orders/c.parquet", script=crashed)
    deployment.settle()
    writes = ("catalog.create_branch", "catalog.merge", "jobs.start", "alerts.post", "ledger.save")
    before = [call for call in deployment.journal.calls if call in writes]
    deployment.send_all_again()
    deployment.settle()
    assert [call for call in deployment.journal.calls if call in writes] == before


def test_a_duplicate_while_the_job_runs_starts_no_second_one(deployment: Deployment) -> None:
    """The same upload delivered again while its job runs leaves run and ledger as they are."""
    landed = deployment.land(KEY)
    deployment.deliver()
    before = deployment.ingestion(landed)
    deployment.send_upload(landed)
    deployment.deliver()
    assert len(deployment.jobs.runs()) == 1
    assert deployment.ingestion(landed) == before


def test_the_end_may_come_before_the_ledger_knows_the_run(deployment: Deployment) -> None:
    """A job run that ended before its start was saved is published all the same."""
    deployment.loses_events = True
    landed = deployment.land(KEY)
    deployment.journal.strike_at(5, Fault(unavailable))
    with pytest.raises(Transient):
        take_in(deployment.adapters, landed)
    assert deployment.journal.calls[4:] == ["jobs.start", "ledger.save"]
    deployment.run_jobs()
    (run,) = deployment.jobs.runs()
    deployment.send_job_run(run.id)
    deployment.deliver()
    check_promises(deployment)
    assert deployment.ingestion(landed).state is State.PUBLISHED
    assert deployment.ingestion(landed).job_run == run.id


def test_an_event_while_the_job_still_runs_decides_nothing(deployment: Deployment) -> None:
    """A change of state while the job runs leaves the ingestion as it is."""
    landed = deployment.land(KEY)
    deployment.deliver()
    (run,) = deployment.jobs.runs()
    deployment.send_job_run(run.id)
    deployment.deliver()
    assert deployment.ingestion(landed).state is State.SUBMITTED


def test_a_strange_job_run_is_left_alone(deployment: Deployment) -> None:
    """The end of another program's job run has no effect."""
    deployment.land(KEY)
    deployment.deliver()
    (run,) = deployment.jobs.runs()
    stranger = replace(deployment.jobs.spec(run.id), ingestion="nightly")
    strange_run = deployment.jobs.start(stranger)
    deployment.jobs.end(strange_run, RunState.FAILED)
    deployment.send_job_run(strange_run)
    deployment.deliver()
    deployment.run_jobs()
    deployment.settle()
    check_promises(deployment)
    assert deployment.alerts.posted == []


def test_a_refused_job_run_is_alerted_with_its_branch(deployment: Deployment) -> None:
    """If EMR refuses the job run, the first delivery alerts owners, with the branch."""
    deployment.journal.strike("jobs.start", Fault(refuse("JOB_REFUSED")))
    landed = deployment.land(KEY)
    deployment.deliver()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.reason is not None
    assert ingestion.reason.code == "JOB_REFUSED"
    assert ingestion.branch in alerts(deployment)[0][1]


def test_an_alert_waits_for_slack(deployment: Deployment) -> None:
    """An outage of Slack delays the alert, and does not change the verdict."""
    deployment.journal.strike("alerts.post", Fault(unavailable, times=float("inf")))
    landed = deployment.land(KEY, script=rejected)
    for _ in range(8):
        deployment.deliver()
        deployment.run_jobs()
    assert deployment.ingestion(landed).state is State.REJECTED
    assert deployment.alerts.posted == []
    deployment.journal.repair("alerts.post")
    deployment.settle()
    check_promises(deployment)
    assert len(deployment.alerts.posted) == 1


@pytest.mark.parametrize("point", ["announcements.send", "catalog.tip", "catalog.metadata"])
def test_a_failed_announcement_blocks_no_publish(deployment: Deployment, point: str) -> None:
    """If an announcement fails, the file is on main all the same; the sweep announces it."""
    deployment.journal.strike(point, Fault(unavailable))
    landed = deployment.land(KEY)
    deployment.deliver()
    deployment.run_jobs()
    deployment.deliver()
    assert deployment.ingestion(landed).state is State.PUBLISHED
    assert deployment.announcements.sent == []
    assert not deployment.ingestion(landed).announced
    deployment.sweep()
    (told,) = deployment.announcements.sent
    assert told.commit == deployment.ingestion(landed).merge_hash
    assert deployment.ingestion(landed).announced


def test_an_announcement_names_the_newest_metadata(deployment: Deployment) -> None:
    """A late announcement names the table's metadata of now, not of the merge."""
    deployment.journal.strike("announcements.send", Fault(unavailable))
    deployment.land(KEY)
    deployment.deliver()
    deployment.run_jobs()
    deployment.deliver()
    deployment.others.append(TABLE)
    deployment.settle()
    (told,) = deployment.announcements.sent
    tip = deployment.catalog.tip()
    assert told.metadata_location == deployment.catalog.metadata(tip.hash, TABLE)


def test_a_redelivered_upload_posts_an_alert_that_failed(deployment: Deployment) -> None:
    """An alert that failed is posted by the next delivery, without the sweep."""
    deployment.journal.strike("alerts.post", Fault(unavailable))
    landed = deployment.land("elsewhere/a.parquet")
    deployment.deliver()
    assert deployment.alerts.posted == []
    deployment.deliver()
    assert len(deployment.alerts.posted) == 1
    assert deployment.ingestion(landed).alerted
