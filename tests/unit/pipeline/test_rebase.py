"""Who is registered on a fresh branch with a refused intent, and which branches go for it."""

from dataclasses import replace

import pytest

from functions.model.ingestion import State
from lakegate.job.landing import LandedObject
from tests.fakes.deployment import OTHER_TABLE, RETURNS, SETTINGS, TABLE
from tests.fakes.faults import Fault, unavailable
from tests.fakes.job import rejected
from tests.fakes.scenario import FIRST, FOREVER, Scenario

pytestmark = pytest.mark.usefixtures("quiet")
BATCH = {"orders.parquet": TABLE, "returns.parquet": OTHER_TABLE}


def published(deployment: Scenario, key: str) -> LandedObject:
    """Publish a file in a process of its own, while no other is delivered."""
    landed = deployment.land(key)
    deployment.deliver_one(-1)
    deployment.run_one_job(-1)
    deployment.deliver_one(-1)
    assert deployment.states(landed) == [State.PUBLISHED]
    return landed


def audited(deployment: Scenario, *keys: str) -> list[LandedObject]:
    """Bring files to the point where they passed their audit, and a merge did not answer."""
    landed = [deployment.land(key) for key in keys]
    deployment.fail("catalog.merge", times=FOREVER)
    deployment.go(2)
    deployment.journal.repair("catalog.merge")
    assert set(deployment.states(*landed)) == {State.AUDITED}
    return landed


def test_the_branch_that_a_batch_leaves_is_deleted_at_once(deployment: Scenario) -> None:
    """Before the fresh branch is merged, the refused one is gone."""
    deployment.ended(FIRST)
    deployment.others.append(OTHER_TABLE)
    batch = deployment.batch("monday", BATCH)
    deployment.go()
    refused = deployment.ingestion(batch).branch
    deployment.move_main()
    deployment.journal.strike_later("catalog.merge", Fault(unavailable), 1)
    deployment.deliver()
    assert deployment.ingestion(batch).branch not in ("", refused)
    assert refused not in deployment.catalog.references()


def test_the_branches_that_a_group_leaves_are_deleted_at_once(deployment: Scenario) -> None:
    """Of those that were registered together none keeps its refused branch."""
    landed = deployment.wait_together(2)
    refused = {deployment.ingestion(each).branch for each in landed}
    deployment.share_an_intent(landed)
    assert not refused & deployment.catalog.references().keys()


def test_a_file_that_was_registered_alone_keeps_its_branch_as_evidence() -> None:
    """It is no group of one: where it is given up, its owner can look at its rows."""
    deployment = Scenario(replace(SETTINGS, max_branches=1))
    (alone,) = deployment.share_an_intent(deployment.wait_together(1))
    assert not alone.group
    deployment.others.require_column(TABLE)
    ended = deployment.end_of(alone)
    assert (ended.state, ended.branch) == (State.ERRORED, alone.branch)
    assert alone.branch in deployment.catalog.references()


def test_a_file_that_is_published_by_decision_takes_no_other_along(deployment: Scenario) -> None:
    """Main may refuse what a person decided: the fresh branch has nothing but that."""
    bad = deployment.ended("shop/orders/bad.parquet", script=rejected)
    waiting = deployment.wait_together(2)
    deployment.publish_anyway(bad)
    assert deployment.states(bad, *waiting) == [State.PUBLISHED] + [State.AUDITED] * 2


def test_no_other_takes_a_file_along_that_is_published_by_decision(deployment: Scenario) -> None:
    """A newer version of it may still keep it from main."""
    bad = deployment.ended("shop/orders/bad.parquet", script=rejected)
    waiting = deployment.wait_together(2)
    deployment.fail("catalog.merge")
    deployment.publish_anyway(bad)
    deployment.publish(waiting[0])
    assert deployment.states(bad, *waiting) == [State.AUDITED] + [State.PUBLISHED] * 2


def test_a_replay_by_its_original_contract_joins_no_group(deployment: Scenario) -> None:
    """The contract in force is no reason to run its job again, but may be one for the others."""
    usual, pinned = deployment.wait_together(2)
    deployment.ledger.save(deployment.ingestion(pinned).but(contract_pinned=True))
    deployment.publish(usual)
    assert deployment.states(usual, pinned) == [State.PUBLISHED, State.AUDITED]


def test_whoever_main_refuses_for_ever_is_registered_with_others(deployment: Scenario) -> None:
    """All that main published since counts, not only what came first."""
    deployment.upload_contract(RETURNS, OTHER_TABLE)
    deployment.ended(FIRST)
    waiting = audited(deployment, "shop/orders/a.parquet", "shop/orders/b.parquet")
    published(deployment, "shop/returns/a.parquet")
    published(deployment, "shop/orders/quick.parquet")
    deployment.publish(waiting[0])
    assert deployment.states(*waiting) == [State.PUBLISHED] * 2
