"""The smoke test drops files that must end as they should, and is not confused by earlier ones."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.operate.smoke import TABLE, samples, smoke
from functions.adapters.all import Adapters
from functions.model.ingestion import State
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject
from tests.fakes.job import Script, passed, rejected
from tests.fakes.scenario import Scenario

_CONTRACT = Path(__file__).parents[4] / "infra" / "smoke" / f"{TABLE}.yaml"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ENDS = [State.PUBLISHED, State.PUBLISHED, State.REJECTED, State.PUBLISHED]


@dataclass
class Landing:
    """A landing bucket whose objects are worked off at once; `bad` is a bad row's audit."""

    deployment: Scenario
    bad: Script = rejected
    bucket: str = "landing"
    dies_at: int = 100

    def put(self, key: str, body: bytes) -> LandedObject:
        """See Landing.put."""
        self.dies_at -= 1
        if not self.dies_at:
            raise KeyboardInterrupt
        landed = self.deployment.land(key, body, self.bad if body.endswith(b",\n") else passed)
        self.deployment.settle()
        return landed


@pytest.fixture
def deployment() -> Scenario:
    """Return a deployment with the contract of the smoke test."""
    made = Scenario()
    made.upload_contract(_CONTRACT.read_text(), TABLE)
    return made


def adapters(deployment: Scenario, **others: object) -> Adapters:
    return replace(deployment.adapters, landing=Landing(deployment, **others))  # type: ignore[arg-type]


def ends(deployment: Scenario, at: datetime = AT) -> list[State]:
    return [each.ingestion.state for each in smoke(adapters(deployment), at, "r1", 10)]


def test_each_file_ends_as_it_must(deployment: Scenario) -> None:
    """Good ones are published, the bad one is told to its owners, and its correction settles it."""
    assert ends(deployment) == ENDS
    bad = samples(AT, "r1")[2]
    rejected_one, corrected = sorted(
        deployment.adapters.ledger.versions(LandedObject("landing", bad.key, "", "", 0)),
        key=lambda each: each.landed.landed_at,
    )
    assert rejected_one.alerted
    assert rejected_one.superseded_by == corrected.id
    assert not any(each.is_open for each in deployment.adapters.ledger.all())


def test_the_same_deployment_drops_nothing_again(deployment: Scenario) -> None:
    """A repeated smoke test takes the files of the first; the next deployment has its own."""
    ends(deployment)
    before = len(list(deployment.landing.landed()))
    assert ends(deployment) == ENDS
    assert len(list(deployment.landing.landed())) == before
    assert ends(deployment, AT.replace(minute=5)) == ENDS
    assert len(list(deployment.landing.landed())) == 2 * before


@pytest.mark.parametrize("at", range(1, 6))
def test_an_interrupted_smoke_test_is_continued(deployment: Scenario, at: int) -> None:
    """After an interruption at any object the next try drops the rest alone."""
    with pytest.raises(KeyboardInterrupt):
        smoke(adapters(deployment, dies_at=at), AT, "r1", 10)
    assert ends(deployment) == ENDS
    published = [each for each in deployment.adapters.ledger.all() if each.state is State.PUBLISHED]
    assert len(published) == 3


def test_a_bad_file_that_is_published_is_told(deployment: Scenario) -> None:
    """An audit that lets the bad file pass ends the smoke test with what to do."""
    with pytest.raises(LakegateError, match=r"bad file .* is published and not rejected") as told:
        smoke(adapters(deployment, bad=passed), AT, "r1", 10)
    assert told.value.code == "SMOKE_FAILED"
    assert len(told.value.message.splitlines()) == 2
