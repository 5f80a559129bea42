from dataclasses import replace

import pytest

from cli.follow import Sight, dropped, ended, finished, follow, sentence
from functions.adapters.emr import RunState
from lakegate.errors import LakegateError
from lakegate.landing import ingestion_id
from tests.fakes.deployment import Deployment
from tests.fakes.job import rejected
from tests.unit.cli.cli_examples import ERRORED, LANDED, PUBLISHED, REJECTED, SUBMITTED

_KEY = "shop/orders/a.parquet"


def test_a_file_is_followed_from_its_upload_to_main() -> None:
    """What is shown begins before the ledger knows the file and ends when it is published."""
    deployment = Deployment()
    landed = deployment.land(_KEY)
    said: list[str] = []

    def show(sights: list[Sight]) -> None:
        said.append(sentence(sights[0]))
        deployment.deliver()
        if len(said) > 1:
            deployment.run_jobs()

    (seen,) = follow(deployment.adapters, [dropped(landed)], finished, 10, show)

    assert said[0] == "uploaded"
    assert said[1] == f"job running on branch {seen.ingestion.branch}"
    assert said[-1] == f"published {seen.ingestion.rows:,} rows"
    assert seen.ingestion == deployment.ingestion(landed)


def test_a_file_has_ended_before_all_is_done_for_it() -> None:
    """A verdict is final at once; nothing is due any more only when the people were told."""
    deployment = Deployment()
    landed = deployment.land(_KEY, script=rejected)
    deployment.settle()
    needs_alert = next(i for i in deployment.ledger.history(ingestion_id(landed)) if i.ended)

    assert ended(Sight(needs_alert))
    assert not finished(Sight(needs_alert))
    assert finished(Sight(deployment.ingestion(landed)))


def test_what_hangs_is_named() -> None:
    """When its time is over the wait ends in an error that names the file and where it is."""
    deployment = Deployment()
    landed = deployment.land(_KEY)
    deployment.deliver()

    with pytest.raises(LakegateError, match="TIMED_OUT") as caught:
        follow(deployment.adapters, [dropped(landed)], ended, 0, lambda sights: None)

    assert f"{_KEY}: job running on branch ingest/shop.orders/" in caught.value.message
    assert "lakegate status" in caught.value.message


def test_a_run_that_emr_forgot_is_waited_for() -> None:
    """Where EMR does not know the run any more, the file is still followed by its ledger item."""
    deployment = Deployment()
    landed = deployment.land(_KEY)
    deployment.deliver()
    deployment.jobs.lose(deployment.ingestion(landed).job_run)

    with pytest.raises(LakegateError, match="job submitted on branch"):
        follow(deployment.adapters, [dropped(landed)], ended, 0, lambda sights: None)


@pytest.mark.parametrize(
    ("sight", "words"),
    [
        (Sight(LANDED), "landed"),
        (Sight(SUBMITTED, RunState.SUCCESS), f"job ended on branch {SUBMITTED.branch}"),
        (Sight(PUBLISHED), "published 1,842 rows, 1 warning"),
        (Sight(replace(PUBLISHED, checks=())), "published 1,842 rows"),
        (Sight(REJECTED), "rejected, 1 of 3 checks failed"),
        (Sight(ERRORED), "errored, no contract claims the key"),
    ],
)
def test_every_state_has_words(sight: Sight, words: str) -> None:
    """A file's state is said in a few words that fit one line."""
    assert sentence(sight) == words


def test_seconds_count_from_the_landing() -> None:
    """A step's seconds are those since the file landed; a step to come has none."""
    assert Sight(PUBLISHED).seconds("published") == 4.25
    assert Sight(PUBLISHED).seconds("audited") is None
