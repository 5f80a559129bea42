"""The path of one landed object over fakes: main, its branches, the ledger and alerts."""

import json
from dataclasses import replace
from itertools import groupby

import pytest

from functions.adapters.emr import RunState
from functions.model.ingestion import State
from lakegate.errors import Permanent
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import ingestion_id
from tests.fakes.deployment import ORDERS, SETTINGS, TABLE
from tests.fakes.faults import Fault
from tests.fakes.job import ROWS, crashed, rejected
from tests.fakes.promises import publishing
from tests.fakes.scenario import KEY, Scenario
from tests.fakes.stage import File

BROKEN = ORDERS.replace("integer", "intger")
RUNS = {File.CRASHING: SETTINGS.max_crashes, File.CRASHING_ONCE: 2}
WITHOUT_RUN = (File.EMPTY, File.UNCLAIMED, File.MARKER)


@pytest.mark.parametrize("file", File)
def test_each_kind_of_file_ends_as_it_should(deployment: Scenario, file: File) -> None:
    """Good files are on main without an alert; owners are alerted once of all others."""
    body = b"" if file in (File.EMPTY, File.MARKER) else b"rows"
    ended = deployment.ended(file.key(KEY), body, file.script)
    assert deployment.end(ended) == file.end
    is_good = ended.state is State.PUBLISHED
    assert ended.audit.rows == (ROWS if is_good else ended.audit.rows)
    assert deployment.published_files() == [f"s3://landing/{KEY}@v1"] * is_good
    is_silent = is_good and file is not File.WARNED
    assert len(deployment.told()) == (not is_silent and file is not File.MARKER)
    runs = 0 if file in WITHOUT_RUN else RUNS.get(file, 1)
    assert len(deployment.jobs.runs()) == runs
    kept = ["main", *([ended.branch] if ended.branch and not is_good else [])]
    assert sorted(deployment.catalog.branches("")) == sorted(kept)


def test_the_commit_on_main_names_its_content(deployment: Scenario) -> None:
    """The merge commit names ingestion, source, rows, report, contract, run and audited hash."""
    ingestion = deployment.ended()
    commit = publishing(deployment)[0]
    assert commit.hash == ingestion.merge_hash
    assert commit.message == "Publish 3 rows of a.parquet to shop.orders"
    assert commit.properties["lakegate.table"] == TABLE
    assert json.loads(commit.properties["lakegate.ingestions"]) == [
        {
            "id": ingestion.id,
            "object": f"s3://landing/{KEY}",
            "version": "v1",
            "rows": 3,
            "report": f"reports/{TABLE}/{ingestion.id}/1.json",
            "contract": f"contracts/{TABLE}.yaml@v1",
            "job_run": ingestion.job_run,
            "audited_hash": ingestion.audited_hash,
        }
    ]


def test_the_job_gets_all_that_it_needs(deployment: Scenario) -> None:
    """The job run gets the landed version, its branch and contract, and a secret's name only."""
    head = deployment.catalog.head("main")
    ingestion = deployment.submit()
    spec = deployment.jobs.spec(ingestion.job_run)
    assert spec == JobSpec(
        ingestion=ingestion.id,
        attempt=1,
        landed=spec.landed,
        table=TABLE,
        branch=f"ingest/{TABLE}/a-parquet-{ingestion.id[:12]}",
        base_hash=head,
        lake_bucket="lake",
        contract_key=f"contracts/{TABLE}.yaml",
        contract_version="v1",
        report_key=f"reports/{TABLE}/{ingestion.id}/1.json",
        nessie_uri="http://nessie:19120",
        token_secret="job",
        timeout_minutes=60,
        small=True,
    )
    assert ingestion_id(spec.landed) == ingestion.id


def test_the_ledger_follows_each_step(deployment: Scenario) -> None:
    """The ledger is written at each step, in order, with the time of each."""
    history = deployment.ledger.history(deployment.ended().id)
    states = [state.value for state, _ in groupby(revision.state for revision in history)]
    assert states == ["landed", "branched", "submitted", "audited", "published"]
    steps = ["landed", "branched", "submitted", "audited", "published", "cleaned"]
    assert list(history[-1].times) == [*steps, "announced", "recorded"]


def test_a_rejection_names_branch_and_check(deployment: Scenario) -> None:
    """The owners' channel gets the branch, which has the audited rows, and the failed check."""
    ingestion = deployment.ended(script=rejected)
    assert deployment.catalog.head(ingestion.branch) == ingestion.audited_hash
    ((channel, alert),) = deployment.alerts.posted
    assert channel == "#orders"
    assert ingestion.branch in str(alert.blocks)
    assert "id.required" in str(alert.blocks)


@pytest.mark.parametrize(
    ("key", "body", "contract", "code"),
    [
        ("elsewhere/a.parquet", b"rows", ORDERS, "NO_CONTRACT"),
        (KEY, b"", ORDERS, "EMPTY_OBJECT"),
        (KEY, b"rows", BROKEN, "CONTRACT_INVALID"),
    ],
)
def test_a_file_that_cannot_be_audited_is_alerted_at_once(
    deployment: Scenario, key: str, body: bytes, contract: str, code: str
) -> None:
    """It ends errored by the first delivery, with one alert, and without a branch or run."""
    deployment.upload_contract(contract)
    landed = deployment.land(key, body)
    deployment.deliver()
    assert deployment.end(landed) == f"errored {code}"
    assert ("intger" in deployment.message(landed)) is (contract == BROKEN)
    assert [to for to, _ in deployment.alerts.posted] == [""]
    assert (deployment.jobs.runs(), deployment.catalog.branches("ingest/")) == ([], [])


@pytest.mark.parametrize(
    ("key", "body"),
    [
        *((key, b"") for key in ("shop/orders/_SUCCESS", "shop/orders/", "shop/.a.parquet.crc")),
        ("shop/orders/_temporary/0/task_1/a.parquet", b"rows"),
    ],
)
def test_a_marker_is_ignored_by_a_written_rule(deployment: Scenario, key: str, body: bytes) -> None:
    """A key that is not data, or not yet, is ignored by the first delivery without an alert."""
    landed = deployment.land(key, body)
    deployment.deliver()
    assert deployment.states(landed) == [State.IGNORED]
    assert ("not data" in deployment.message(landed)) is ("_temporary" not in key)
    assert deployment.told() == []


def test_a_broken_contract_blocks_no_other_table(deployment: Scenario) -> None:
    """An invalid contract does not prevent publication of files of other contracts."""
    deployment.upload_contract(BROKEN.replace("shop.orders", "shop.other"), "shop.other")
    deployment.lake.put_text("contracts/README.md", b"# Contracts")
    assert deployment.ended().state is State.PUBLISHED


def test_a_refused_job_run_is_alerted_with_its_branch(deployment: Scenario) -> None:
    """If EMR refuses the job run, the first delivery alerts owners, with the branch."""

    def refuse() -> None:
        raise Permanent("JOB_REFUSED", "no")

    deployment.journal.strike("jobs.start", Fault(refuse))
    ingestion = deployment.submit()
    assert deployment.end(ingestion) == "errored JOB_REFUSED"
    assert ingestion.branch in deployment.told()[0]


def test_a_report_that_cannot_be_read_is_no_pass(deployment: Scenario) -> None:
    """A run that succeeded and left an unreadable report is alerted, not published."""
    submitted = deployment.submit()
    key = deployment.jobs.spec(submitted.job_run).report_key
    deployment.lake.put_text(key, b'{"verdict": "passed"}')
    deployment.end_run(submitted, RunState.SUCCESS)
    deployment.settle()
    assert deployment.end(submitted) == "errored BAD_REPORT"


def test_duplicates_change_nothing(deployment: Scenario) -> None:
    """Every message delivered again after the end starts, publishes and posts nothing."""
    for key, script in (("a", None), ("b", rejected), ("c", crashed)):
        deployment.ended(f"shop/orders/{key}.parquet", script=script or (lambda report: report))
    writes = ("catalog.create_branch", "catalog.merge", "jobs.start", "alerts.post", "ledger.save")
    before = [call for call in deployment.journal.calls if call in writes]
    deployment.send_all_again()
    deployment.settle()
    assert [call for call in deployment.journal.calls if call in writes] == before


def test_another_programs_job_run_is_left_alone(deployment: Scenario) -> None:
    """The end of another program's job run has no effect."""
    own = deployment.submit()
    stranger = replace(deployment.jobs.spec(own.job_run), ingestion="nightly")
    strange_run = deployment.jobs.start(stranger)
    deployment.jobs.end(strange_run, RunState.FAILED)
    deployment.send_job_run(strange_run)
    deployment.go()
    deployment.settle()
    assert deployment.told() == []


@pytest.mark.parametrize("point", ["announcements.send", "catalog.tip", "catalog.metadata"])
def test_a_failed_announcement_blocks_no_publish(deployment: Scenario, point: str) -> None:
    """If an announcement fails, the file is on main, and the sweep announces the newest table."""
    deployment.fail(point)
    landed = deployment.run()
    deployment.deliver()
    assert deployment.states(landed) == [State.PUBLISHED]
    assert deployment.announcements.sent == []
    deployment.others.append(TABLE)
    deployment.sweep()
    (told,) = deployment.announcements.sent
    assert told.commit == deployment.ingestion(landed).merge_hash
    tip = deployment.catalog.tip()
    assert told.metadata_location == deployment.catalog.metadata(tip.hash, TABLE)


def test_a_redelivered_upload_posts_an_alert_that_failed(deployment: Scenario) -> None:
    """An alert that failed is posted by the next delivery, without the sweep."""
    deployment.fail("alerts.post")
    landed = deployment.land("elsewhere/a.parquet")
    deployment.deliver()
    assert deployment.told() == []
    deployment.deliver()
    assert len(deployment.told()) == 1
    assert deployment.ingestion(landed).alerted
