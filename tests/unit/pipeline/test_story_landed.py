"""Landed objects that are not ordinary files, which are alerted or ignored."""

import pytest

from functions.model.ingestion import State
from tests.fakes.deployment import ORDERS, Deployment
from tests.fakes.promises import check_promises

KEY = "shop/orders/a.parquet"


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment where nothing has landed."""
    return Deployment()


def alerts(deployment: Deployment) -> list[tuple[str, str]]:
    """Return the channel and the text of each alert."""
    return [(channel, str(alert.blocks)) for channel, alert in deployment.alerts.posted]


def test_an_unclaimed_key_is_alerted(deployment: Deployment) -> None:
    """A key that no contract claims ends errored at once, with one alert and no branch or run."""
    landed = deployment.land("elsewhere/a.parquet")
    deployment.deliver()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.reason is not None
    assert ingestion.reason.code == "NO_CONTRACT"
    assert deployment.jobs.runs() == []
    assert [channel for channel, _ in alerts(deployment)] == [""]


def test_an_empty_object_is_alerted(deployment: Deployment) -> None:
    """An object without bytes ends errored at once, before any branch or run."""
    landed = deployment.land(KEY, body=b"")
    deployment.deliver()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.reason is not None
    assert ingestion.reason.code == "EMPTY_OBJECT"
    assert deployment.jobs.runs() == []


@pytest.mark.parametrize("key", ["shop/orders/_SUCCESS", "shop/orders/", "shop/.a.parquet.crc"])
def test_a_marker_is_ignored_by_a_written_rule(deployment: Deployment, key: str) -> None:
    """A key that is not data ends ignored, with the rule and without an alert, even if empty."""
    landed = deployment.land(key, body=b"")
    deployment.deliver()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.state is State.IGNORED
    assert ingestion.reason is not None
    assert "not data" in ingestion.reason.message
    assert deployment.alerts.posted == []


def test_a_file_that_spark_has_not_committed_is_ignored(deployment: Deployment) -> None:
    """A file in a folder of work in progress is ignored, and ingested once renamed out of it."""
    landed = [
        deployment.land(f"{folder}a.parquet")
        for folder in ("shop/orders/_temporary/0/task_1/", "shop/orders/")
    ]
    deployment.settle()
    check_promises(deployment)
    assert [deployment.ingestion(each).state for each in landed] == [
        State.IGNORED,
        State.PUBLISHED,
    ]
    assert deployment.alerts.posted == []


def test_a_broken_contract_is_alerted(deployment: Deployment) -> None:
    """A file of an invalid contract ends errored, with the contract's problem."""
    deployment.lake.put_text(
        "contracts/shop.orders.yaml", ORDERS.replace("integer", "intger").encode()
    )
    landed = deployment.land(KEY)
    deployment.deliver()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.reason is not None
    assert ingestion.reason.code == "CONTRACT_INVALID"
    assert "intger" in ingestion.reason.message


def test_a_broken_contract_blocks_no_other_table(deployment: Deployment) -> None:
    """An invalid contract does not prevent publication of files of other contracts."""
    broken = ORDERS.replace("integer", "intger").replace("shop.orders", "shop.other")
    deployment.lake.put_text("contracts/shop.other.yaml", broken.encode())
    deployment.lake.put_text("contracts/README.md", b"# Contracts")
    landed = deployment.land(KEY)
    deployment.settle()
    check_promises(deployment)
    assert deployment.ingestion(landed).state is State.PUBLISHED


def test_a_replaced_file_is_another_ingestion(deployment: Deployment) -> None:
    """Two versions of one key are two ingestions, each of exactly its own version."""
    deployment.land(KEY, body=b"old")
    deployment.land(KEY, body=b"new")
    deployment.settle()
    check_promises(deployment)
    assert deployment.published_files() == [f"s3://landing/{KEY}@v1", f"s3://landing/{KEY}@v2"]


def test_a_key_with_any_characters_works(deployment: Deployment) -> None:
    """A key with spaces, plus signs, percent signs and umlauts is published under its own name."""
    key = "shop/orders/Flüge 2013+01 (100%25).parquet"
    landed = deployment.land(key)
    deployment.settle()
    check_promises(deployment)
    assert deployment.ingestion(landed).landed.key == key
    assert deployment.published_files() == [f"s3://landing/{key}@v1"]
