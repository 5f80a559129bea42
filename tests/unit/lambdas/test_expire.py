"""The daily function expires on schedule, and discards one ingestion at a person's request."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from functions.adapters.s3 import StoredObject
from functions.expire import answer
from functions.operations.upkeep.recognition import InDoubt
from lakegate.errors import Permanent
from tests.fakes.deployment import TABLE
from tests.fakes.job import rejected
from tests.fakes.scenario import FIRST, Scenario

pytestmark = pytest.mark.usefixtures("quiet")


def asked(deployment: Scenario, ingestion: str, by: str = "Ann") -> dict[str, Any]:
    """Return the answer to a person's request, as JSON brings it."""
    event = {"do": "discard", "ingestion": ingestion, "by": by}
    found: dict[str, Any] = json.loads(json.dumps(answer(deployment.adapters, event)))
    return found


def test_a_request_discards_one_ingestion(deployment: Scenario) -> None:
    """The branches of one ingestion are gone, and the ledger says who asked."""
    deployment.ended(FIRST)
    bad, other = (deployment.ended(f"shop/orders/{n}.parquet", script=rejected) for n in "ab")
    assert asked(deployment, bad.id) == {"left": ""}
    now = deployment.ingestion(bad)
    assert (now.decisions.discarded, now.decisions.actions[-1].by) == (True, "Ann")
    assert deployment.catalog.branches("ingest/") == [other.branch]


def test_a_refusal_is_an_answer(deployment: Scenario) -> None:
    """A published ingestion and an unknown one are refused with a code and a message."""
    published = deployment.ended(FIRST)
    assert asked(deployment, published.id)["code"] == "NOT_FAILED"
    assert "UNKNOWN_INGESTION" in asked(deployment, "0" * 32)["code"]
    assert not deployment.lake.deleted


def test_what_is_left_is_answered(deployment: Scenario) -> None:
    """A branch that could not be deleted is left, and the same request completes the discard."""
    deployment.ended(FIRST)
    bad = deployment.ended(script=rejected)
    deployment.fail("catalog.delete_branch")
    assert asked(deployment, bad.id)["left"]
    assert not asked(deployment, bad.id)["left"]


def test_the_schedule_discards_nothing_recent(deployment: Scenario) -> None:
    """The schedule's event, which has no `do`, expires only by age."""
    deployment.ended(script=rejected)
    event = {"source": "aws.events", "detail-type": "Scheduled Event"}
    assert answer(deployment.adapters, event) == {
        "expired": 0,
        "left": 0,
        "dead_files": 0,
    }


def test_the_schedule_deletes_what_nobody_reaches(deployment: Scenario) -> None:
    """A data file that no commit names is deleted once it is old; others stay."""
    deployment.ended(FIRST)
    answer(deployment.adapters, {})
    metadata = deployment.catalog.metadata(deployment.catalog.head("main"), TABLE)
    paths = deployment.tables.files(metadata).paths
    (alive,) = (path for path in paths if "/metadata/" not in path)
    folder = alive.removeprefix("s3://lake/").rpartition("/")[0]
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    for name in (alive.rpartition("/")[2], "crashed.parquet"):
        key = f"{folder}/{name}"
        deployment.lake.data[key] = StoredObject(key, 5, long_ago)
    assert answer(deployment.adapters, {})["dead_files"] == 1
    assert list(deployment.lake.deleted) == [f"{folder}/crashed.parquet"]


def test_nothing_expires_from_a_catalog_that_is_not_recognised(deployment: Scenario) -> None:
    """While main lacks what it had, old failures keep their branches, and operators are told."""
    deployment.ended(FIRST)
    deployment.ended(script=rejected)
    answer(deployment.adapters, {})
    head = deployment.catalog.head("main")
    deployment.catalog.reset("main", list(deployment.catalog.log())[1].hash)
    deployment.clock.pass_(deployment.settings.keep_days * 24 * 60 * 60)
    with pytest.raises(InDoubt, match="MAIN_SET_BACK"):
        answer(deployment.adapters, {})
    assert len(deployment.catalog.branches("ingest/")) == 1
    assert deployment.alerts.posted[-1][1].cause == "UPKEEP MAIN_SET_BACK"
    deployment.catalog.reset("main", head)
    assert answer(deployment.adapters, {})["expired"] == 1


@pytest.mark.parametrize("event", [{"do": "publish", "ingestion": "a"}, {"do": "discard"}])
def test_nothing_else_is_done(deployment: Scenario, event: dict[str, Any]) -> None:
    """Any other request is refused."""
    with pytest.raises(Permanent, match="UNKNOWN_REQUEST"):
        answer(deployment.adapters, event)
