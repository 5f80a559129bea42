"""The Lambdas' handlers return the messages that must be delivered again."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from functions.adapters.all import Adapters
from functions.adapters.emr import RunState
from functions.model.ingestion import State
from functions.model.merge_commit import published
from functions.on_job_run import job_run, job_run_judged
from functions.on_upload import upload
from functions.sqs_handler import Work, sqs_handler
from functions.wiring import connect
from lakegate.errors import Transient
from lakegate.job.landing import ingestion_id
from tests.fakes.deployment import SETTINGS
from tests.fakes.job import rejected
from tests.fakes.lambda_context import Context
from tests.fakes.messages import sqs_batch, state_change
from tests.fakes.messages import upload as notification
from tests.fakes.metrics import metrics_of
from tests.fakes.scenario import Scenario

EVENTS = Path(__file__).parents[2] / "events"


@pytest.fixture
def deployment() -> Scenario:
    """Return a deployment whose messages come from the test alone."""
    return Scenario()


def handled(deployment: Scenario, work: Work, event: dict[str, Any]) -> list[str]:
    """Return the messages that the handler wants delivered again."""
    handler: Any = sqs_handler(work, lambda: deployment.adapters)
    answer = handler(event, Context())
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def uploads(deployment: Scenario) -> dict[str, Any]:
    """Return a batch about three landed files."""
    landed = [deployment.landing.put(f"shop/orders/{n}", b"x") for n in range(3)]
    return sqs_batch(notification(each) for each in landed)


def test_an_upload_starts_a_job(deployment: Scenario) -> None:
    """A batch of valid uploads is done."""
    assert handled(deployment, upload, uploads(deployment)) == []
    assert len(deployment.jobs.runs()) == 3


def test_only_what_failed_comes_again(deployment: Scenario) -> None:
    """In a batch with S3's test event and an invalid message only the latter is left."""
    document = (EVENTS / "s3_batch.json").read_text()
    event = json.loads(document.replace("lakegate-dev-landing-123456789012", "landing"))
    identifier = event["Records"][2]["messageId"]
    assert handled(deployment, upload, event) == [identifier]
    assert len(deployment.jobs.runs()) == 2


def test_a_passing_fault_brings_its_message_again(deployment: Scenario) -> None:
    """A message with a transient error comes again; those after it are done."""
    event = uploads(deployment)
    deployment.fail("catalog.create_branch")
    assert handled(deployment, upload, event) == ["m0"]
    assert handled(deployment, upload, event) == []
    assert len(deployment.jobs.runs()) == 3


def test_a_batch_that_fails_whole_comes_again_whole(deployment: Scenario) -> None:
    """If the ledger is unreachable every message comes again and the Lambda does not fail."""
    event = uploads(deployment)
    deployment.fail("ledger.together", times=3)
    assert handled(deployment, upload, event) == ["m0", "m1", "m2"]


def test_a_world_that_cannot_be_made_yet_fails_the_messages() -> None:
    """If the secrets cannot be read the messages come again and the Lambda does not fail."""

    def no_world() -> Adapters:
        raise Transient("SECRET_UNAVAILABLE", "cannot read the secret")

    handler: Any = sqs_handler(upload, no_world)
    answer = handler(sqs_batch(["x"]), Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}


def test_a_batch_has_one_set_of_adapters(deployment: Scenario) -> None:
    """All messages of a batch are handled with the same adapters."""
    made: list[Adapters] = []

    def one_more() -> Adapters:
        made.append(deployment.adapters)
        return made[-1]

    handler: Any = sqs_handler(job_run, one_more, first=job_run_judged)
    for number in range(2):
        deployment.run(f"shop/orders/{number}.parquet")
    handler(sqs_batch(state_change(run.id) for run in deployment.jobs.runs()), Context())
    assert len(made) == 1


def test_ended_runs_are_concluded(deployment: Scenario) -> None:
    """A batch of finished runs publishes, alerts, and leaves what must wait."""
    good = deployment.land("shop/orders/a.parquet")
    bad = deployment.run("shop/orders/b.parquet", script=rejected)
    runs = [run.id for run in deployment.jobs.runs()]
    event = sqs_batch([state_change(runs[0]), state_change("00unknown"), state_change(runs[1])])
    assert handled(deployment, job_run, event) == ["m1"]
    assert deployment.ingestion(good).state is State.PUBLISHED
    assert deployment.ingestion(bad).state is State.REJECTED


def test_files_of_one_batch_are_published_together(deployment: Scenario) -> None:
    """Of five runs that ended together the first is merged, and the other four by one commit."""
    deployment.ended("shop/orders/before.parquet")
    before = len(deployment.jobs.runs())
    landed = [deployment.land(f"shop/orders/{n}.parquet") for n in range(5)]
    deployment.go()
    event = sqs_batch(state_change(run.id) for run in deployment.jobs.runs()[before:])
    handler: Any = sqs_handler(job_run, lambda: deployment.adapters, first=job_run_judged)
    assert handler(event, Context()) == {"batchItemFailures": []}
    assert {deployment.ingestion(each).state for each in landed} == {State.PUBLISHED}
    assert [n for commit in deployment.catalog.log() if (n := len(published(commit)))][:2] == [4, 1]


def test_a_shared_run_ends_once(
    deployment: Scenario, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message about a shared run that died counts it once in the metric of an alarm."""
    monkeypatch.setenv("LAKEGATE_STAGE", "test")
    deployment.share(1)
    deployment.submit()
    (run,) = deployment.jobs.shared_runs()
    deployment.jobs.end(run, RunState.FAILED)
    handler: Any = sqs_handler(job_run, lambda: deployment.adapters, first=job_run_judged)
    event = sqs_batch([state_change(run)])
    found = metrics_of(lambda: handler(event, Context()), capsys)
    stage = {"service": "lakegate", "stage": "test"}
    assert ("SharedRunsFailed", 1, stage) in found
    assert ("SharedRunsEnded", 1, stage) in found


def test_emrs_own_event_is_understood(deployment: Scenario) -> None:
    """EventBridge's document leads to its job run."""
    landed = deployment.land("shop/orders/a.parquet")
    deployment.deliver()
    (run,) = deployment.jobs.runs()
    deployment.jobs.end(run.id, RunState.FAILED)
    document = (EVENTS / "emr_failed.json").read_text().replace("00f1cbn5g4bb0c01", run.id)
    assert handled(deployment, job_run, json.loads(document)) == []
    assert deployment.ingestion(landed).attempt == 2


def test_each_line_names_its_ingestion(deployment: Scenario, log: io.StringIO) -> None:
    """Each log line about an ingestion has its id and key, and no other's."""
    landed = [deployment.landing.put(f"elsewhere/{n}", b"x") for n in range(2)]
    handled(deployment, upload, sqs_batch(["no event", *map(notification, landed), "no event"]))
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    ids = [line["ingestion"] for line in lines if "ingestion" in line]
    assert ids == [ingestion_id(each) for each in landed]
    assert all("NO_CONTRACT" in str(line) for line in lines if "ingestion" in line)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Yield an empty AWS account."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield


def test_the_wiring_needs_settings_only(account: None) -> None:
    """Settings suffice to create every adapter; a missing secret is named when it is used."""
    adapters = connect(SETTINGS)
    with pytest.raises(Transient, match="publisher"):
        adapters.catalog.head("main")
    assert adapters.settings == SETTINGS
    assert adapters.landing.bucket == "landing"
    assert adapters.job_run_dead_letters.name == "job-runs-dead"
