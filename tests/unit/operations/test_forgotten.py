"""The search for landed objects finds each within a round, and looks up only what is new."""

from random import Random

import pytest

from functions.model.ingestion import State
from functions.model.notes.search import Search
from functions.operations.reconcile.compare import reconciled
from functions.operations.recovery.rebuild_ledger import rebuild
from functions.sweep import sweep
from lakegate.job.landing import LandedObject
from tests.fakes.faults import Fault, unavailable
from tests.fakes.scenario import KEY, Scenario

_DAY = 24 * 3600


@pytest.fixture
def deployment() -> Scenario:
    """Return a deployment that loses all events, and whose S3 lists two versions at once."""
    lossy = Scenario()
    lossy.loses_events = True
    lossy.landing.page_size = 2
    return lossy


def sweep_page(deployment: Scenario) -> dict[str, int]:
    """Let the grace time pass, then sweep with one page of the landing bucket."""
    deployment.clock.pass_(deployment.settings.grace_seconds + 1)
    return sweep(deployment.adapters, pages=1)


def is_known(deployment: Scenario, landed: LandedObject) -> bool:
    """Return whether the ledger has the ingestion of a landed object."""
    return any(each.landed.key == landed.key for each in deployment.ledger.all())


def lookups(deployment: Scenario) -> int:
    """Return how often the ledger was asked which ingestions it has."""
    return deployment.journal.calls.count("ledger.known")


def settled(deployment: Scenario, *keys: str) -> list[LandedObject]:
    """Land objects and run everything to its end, so that only the search is left."""
    landed = [deployment.land(key) for key in keys]
    deployment.settle()
    return landed


def test_a_large_bucket_is_searched_in_parts(deployment: Scenario) -> None:
    """A sweep searches so many pages, the next one continues, and none is left out."""
    for number in range(7):
        deployment.land(f"elsewhere/{number}")
    assert [sweep_page(deployment)["forgotten"] for _ in range(5)] == [2, 2, 2, 1, 0]


def test_a_small_bucket_is_searched_in_each_sweep(deployment: Scenario) -> None:
    """Objects under any keys are found by the next sweep if the bucket fits into it."""
    for key in ("m", "a", "z"):
        landed = deployment.land(f"elsewhere/{key}")
        deployment.sweep()
        assert is_known(deployment, landed)


@pytest.mark.parametrize("seed", range(20))
def test_every_object_is_found_within_two_rounds(deployment: Scenario, seed: int) -> None:
    """Whatever lands where and when, two rounds through the bucket find it."""
    random = Random(seed)  # noqa: S311 - no secret
    deployment.landing.page_size = random.randint(1, 4)
    waiting: dict[LandedObject, int] = {}
    for step in range(60):
        for _ in range(random.choice((0, 0, 1, 2)) if step < 30 else 0):
            waiting[deployment.land(f"elsewhere/{random.randint(0, 9)}")] = step
        deployment.clock.pass_(random.choice((0, 0, 0, _DAY)))
        sweep_page(deployment)
    known = {(i.landed.key, i.landed.version) for i in deployment.ledger.all()}
    assert known == {(landed.key, landed.version) for landed in waiting}


def test_what_is_found_is_looked_for_among_the_runs_since_it_landed(deployment: Scenario) -> None:
    """Runs of hours before are not listed: EMR Serverless tells only fifty a second."""
    settled(deployment, "shop/orders/a.csv", "shop/orders/b.csv")
    deployment.clock.pass_(2 * 3600)
    deployment.jobs.listed = 0
    landed = deployment.land("shop/orders/c.csv")
    deployment.sweep()
    assert is_known(deployment, landed)
    assert deployment.jobs.listed == 0


def test_what_is_found_after_days_is_looked_for_among_the_runs_in_flight(
    deployment: Scenario,
) -> None:
    """However long ago it landed, no run is listed that has surely ended."""
    landed = deployment.land("shop/orders/c.csv")
    deployment.loses_events = False
    deployment.run("shop/orders/a.csv")
    deployment.deliver()
    deployment.clock.pass_(2 * _DAY)
    deployment.jobs.listed = 0
    deployment.sweep()
    assert is_known(deployment, landed)
    assert deployment.jobs.listed == 0


def test_a_sweep_looks_up_only_what_is_new(deployment: Scenario) -> None:
    """What an earlier round found in the ledger is listed, but not looked up again."""
    settled(deployment, "elsewhere/a", "elsewhere/b")
    deployment.clock.pass_(2 * _DAY)
    deployment.sweep()
    deployment.sweep()
    before = lookups(deployment)
    deployment.sweep()
    assert lookups(deployment) == before
    landed = deployment.land("elsewhere/c")
    deployment.sweep()
    assert is_known(deployment, landed)


def test_each_week_everything_is_looked_up(deployment: Scenario) -> None:
    """An old object that the ledger lacks is found within a week, or at once on request."""
    (landed,) = settled(deployment, KEY)
    deployment.clock.pass_(2 * _DAY)
    deployment.sweep()
    deployment.sweep()
    for found_at_once in (True, False):
        deployment.ledger.lose(deployment.ingestion(landed).id)
        deployment.sweep()
        assert not is_known(deployment, landed)
        deployment.clock.pass_(0 if found_at_once else 7 * _DAY)
        deployment.sweep()
        sweep(deployment.adapters, everything=found_at_once)
        assert is_known(deployment, landed)
        deployment.sweep()
        deployment.clock.pass_(2 * _DAY)
        deployment.sweep()
        deployment.sweep()


def test_a_ledger_that_lost_one_ingestion_is_searched_thoroughly(deployment: Scenario) -> None:
    """If a recent ingestion is lost, older ones are looked up too."""
    (old,) = settled(deployment, KEY)
    deployment.clock.pass_(2 * _DAY)
    (recent,) = settled(deployment, "shop/orders/b.parquet")
    deployment.sweep()
    deployment.ledger.lose(*(deployment.ingestion(each).id for each in (old, recent)))
    deployment.sweep()
    assert is_known(deployment, recent)
    deployment.sweep()
    assert is_known(deployment, old)


def test_a_rebuild_of_the_ledger_begins_the_search_again(deployment: Scenario) -> None:
    """After a rebuild the sweep looks up everything; a dry run leaves the search as it is."""
    settled(deployment, KEY)
    deployment.sweep()
    search = deployment.ledger.search()
    assert search
    assert search.since
    list(rebuild(deployment.adapters, dry_run=True))
    assert deployment.ledger.search() == search
    list(rebuild(deployment.adapters))
    begun = deployment.ledger.search()
    assert begun == Search.first(begun.began if begun else "")


def test_a_sweep_under_way_does_not_undo_a_search_that_begins_again(deployment: Scenario) -> None:
    """An old entry that a ledger loses while a sweep searches comes back by the next sweep."""
    (old,) = settled(deployment, KEY)
    deployment.clock.pass_(3 * _DAY)
    deployment.sweep()
    deployment.sweep()

    def lose() -> None:
        deployment.ledger.lose(deployment.ingestion(old).id)
        deployment.ledger.begin_search(deployment.clock.now())

    deployment.journal.strike("landing.page", Fault(lose, when="after"))
    deployment.sweep()
    deployment.sweep()
    assert is_known(deployment, old)


def test_an_object_that_could_not_be_taken_in_is_looked_up_again(deployment: Scenario) -> None:
    """A round that left an object out does not make the next one skip it, however late it is."""
    settled(deployment, "elsewhere/a")
    landed = deployment.land("elsewhere/b")
    deployment.journal.strike("ledger.together", Fault(unavailable, times=4))
    for _ in range(4):
        assert deployment.sweep()["failed"] == 1
        deployment.clock.pass_(2 * _DAY)
    deployment.sweep()
    assert is_known(deployment, landed)


def test_a_position_that_is_gone_begins_the_listing_again(deployment: Scenario) -> None:
    """If the version at which the listing stopped is deleted, no other is left out."""
    landed = [deployment.land(f"elsewhere/{number}") for number in range(4)]
    sweep_page(deployment)
    deployment.landing.lose(landed[1].key)
    sweep_page(deployment)
    sweep_page(deployment)
    assert is_known(deployment, landed[2])
    assert is_known(deployment, landed[3])


def test_landed_objects_may_expire(deployment: Scenario) -> None:
    """Landed objects that a lifecycle rule deletes cause no alert, work or problem."""
    ended = deployment.ended()
    deployment.clock.pass_(8 * _DAY)
    deployment.landing.lose()
    assert not any(deployment.sweep().values())
    assert deployment.alerts.posted == []
    assert deployment.ingestion(ended).state is State.PUBLISHED
    assert not reconciled(deployment.adapters).problems
