from dataclasses import replace

import pytest

from access.ingestions.follow import TrackedIngestion, dropped, ended, finished, follow, sentence
from functions.adapters.emr import RunState
from lakegate.audit.report import Reason
from lakegate.errors import LakegateError
from lakegate.job.landing import ingestion_id
from tests.fakes.deployment import Deployment
from tests.fakes.job import rejected
from tests.unit.cli.cli_examples import ERRORED, LANDED, PUBLISHED, QUEUED, REJECTED, SUBMITTED
from tests.unit.pipeline.test_shared_runs import SHARED

_KEY = "shop/orders/a.parquet"


def _unseen(tracked: list[TrackedIngestion]) -> None:
    """Show nothing."""


def test_a_file_is_followed_from_its_upload_to_main() -> None:
    """The progress starts before the ledger has the file and ends when it is published."""
    deployment = Deployment()
    landed = deployment.land(_KEY)
    said: list[str] = []

    def show(tracked: list[TrackedIngestion]) -> None:
        said.append(sentence(tracked[0]))
        deployment.deliver()
        if len(said) > 1:
            deployment.run_jobs()

    (seen,) = follow(deployment.adapters, [dropped(landed)], finished, 10, show)

    assert said[0] == "uploaded"
    assert said[1] == f"job running on branch {seen.ingestion.branch}"
    assert said[-1] == f"published {seen.ingestion.audit.rows:,} rows"
    assert seen.ingestion == deployment.ingestion(landed)


def test_many_files_are_read_together() -> None:
    """A look at thousands of files takes a request for a hundred of them, not one for each."""
    deployment = Deployment()
    landed = [deployment.land(f"shop/orders/{number}.parquet") for number in range(9)]
    deployment.settle()
    del deployment.journal.calls[:]
    follow(deployment.adapters, map(dropped, landed), finished, 10, _unseen)
    assert deployment.journal.calls == ["ledger.together"]


def test_files_are_followed_through_a_shared_run() -> None:
    """Files wait for a shared run, without branch and run of their own, and end together."""
    deployment = Deployment(SHARED)
    landed = [deployment.land(f"shop/orders/{name}.parquet") for name in ("a", "b", "c")]
    said: list[str] = []

    def show(tracked: list[TrackedIngestion]) -> None:
        said.append(sentence(tracked[0]))
        deployment.deliver()
        if len(said) > 1:
            deployment.run_jobs()

    seen = follow(deployment.adapters, map(dropped, landed), finished, 10, show)

    assert said[:2] == ["uploaded", "waits for a shared run; next in line"]
    assert said[-1] == f"published {seen[0].ingestion.audit.rows:,} rows with 2 other files"
    (run,) = deployment.jobs.runs()
    assert [item.ingestion.job_run for item in seen] == 3 * [run.id]


def test_the_queue_is_read_once_a_round() -> None:
    """The places of all files are read together, and only while one of them waits."""
    deployment = Deployment(SHARED)
    landed = [deployment.land(f"shop/orders/{name}.parquet") for name in ("a", "b", "c")]
    deployment.deliver()
    for asked in (1, 0):
        deployment.journal.calls.clear()
        tracked = map(dropped, landed)
        follow(deployment.adapters, tracked, lambda item: bool(item.ingestion.times), 10, _unseen)
        assert deployment.journal.calls.count("ledger.due_landings") == asked
        deployment.settle()


def test_a_file_has_ended_before_all_is_done_for_it() -> None:
    """A final state comes at once; an ingestion is finished only after its notifications."""
    deployment = Deployment()
    landed = deployment.land(_KEY, script=rejected)
    deployment.settle()
    needs_alert = next(i for i in deployment.ledger.history(ingestion_id(landed)) if i.ended)

    assert ended(TrackedIngestion(needs_alert))
    assert not finished(TrackedIngestion(needs_alert))
    assert finished(TrackedIngestion(deployment.ingestion(landed)))


@pytest.mark.parametrize(("lost", "state"), [(False, "running"), (True, "submitted")])
def test_a_timeout_names_the_file_and_its_state(lost: bool, state: str) -> None:
    """A file that takes too long is named with its state, also if EMR deleted its run."""
    deployment = Deployment()
    landed = deployment.land(_KEY)
    deployment.deliver()
    if lost:
        deployment.jobs.lose(deployment.ingestion(landed).job_run)

    with pytest.raises(LakegateError, match="TIMED_OUT") as caught:
        follow(deployment.adapters, [dropped(landed)], ended, 0, lambda tracked: None)

    assert f"{_KEY}: job {state} on branch ingest/shop.orders/" in caught.value.message
    assert "lakegate status" in caught.value.message


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (TrackedIngestion(LANDED), "landed"),
        (TrackedIngestion(QUEUED), "waits for a shared run"),
        (TrackedIngestion(SUBMITTED, RunState.SUCCESS), f"job ended on branch {SUBMITTED.branch}"),
        (TrackedIngestion(PUBLISHED), "published 1,842 rows, 1 warning"),
        (
            TrackedIngestion(replace(PUBLISHED, audit=replace(PUBLISHED.audit, checks=()))),
            "published 1,842 rows",
        ),
        (TrackedIngestion(REJECTED), "rejected, 1 of 3 checks failed"),
        (TrackedIngestion(ERRORED), "errored, no contract claims the key"),
        (
            TrackedIngestion(replace(ERRORED, reason=Reason("BAD_STATEMENT", "no SQL\nSpark: …"))),
            "errored, no SQL",
        ),
    ],
)
def test_every_state_has_a_text(item: TrackedIngestion, words: str) -> None:
    """Each state has a short text."""
    assert sentence(item) == words


def test_seconds_count_from_the_landing() -> None:
    """A step's seconds count from the landing; a future step has none."""
    assert TrackedIngestion(PUBLISHED).seconds("published") == 4.25
    assert TrackedIngestion(PUBLISHED).seconds("audited") is None
