"""What other programs wait for is found in the ledger and in main's log."""

import pytest

from access.sensors.arrivals import NotPublished, gained, is_published, known, landed
from functions.model.ingestion import Ingestion
from functions.operations.decisions.failed import discard, publish_anyway
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject, ingestion_id
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.job import rejected

KEY = "shop/orders/a.parquet"


@pytest.fixture
def deployment() -> Deployment:
    return Deployment()


def test_the_newest_version_of_a_key_counts(deployment: Deployment) -> None:
    """A key is waited for until it lands; then its newest version decides."""
    ledger = deployment.adapters.ledger
    assert landed(ledger, "landing", KEY) is None
    assert not is_published(None, patient=False)
    deployment.land(KEY, script=rejected)
    deployment.settle()
    deployment.land(KEY, b"newer")
    deployment.settle()
    found = landed(ledger, "landing", KEY)
    assert found
    assert is_published(found, patient=False)
    assert known(ledger, found.id) == found
    assert known(ledger, "0" * 32) is None


def test_a_file_in_a_bucket_of_others_is_found_by_its_address(deployment: Deployment) -> None:
    """A landing bucket beside the stage's own one has keys of its own."""
    ledger, at = deployment.adapters.ledger, "2026-03-01T12:00:00.000+00:00"
    theirs = LandedObject("others", KEY, "v1", "e", 1, "", at)
    ledger.begin(Ingestion(id=ingestion_id(theirs), landed=theirs).step("landed", at))
    assert landed(ledger, "landing", KEY) is None
    found = landed(ledger, "landing", f"s3://others/{KEY}")
    assert found
    assert found.landed == theirs


@pytest.mark.parametrize("order", ["2F 30", "30 2F"])
def test_of_two_versions_within_a_second_s3_knows_the_newer(
    deployment: Deployment, order: str
) -> None:
    """Times of events may be whole seconds: S3's sequencers decide then, as everywhere else."""
    ledger, at = deployment.adapters.ledger, "2026-03-01T12:00:00.000+00:00"
    for sequencer in order.split():
        version = LandedObject("landing", KEY, f"v{sequencer}", sequencer, 1, sequencer, at)
        ledger.begin(Ingestion(id=ingestion_id(version), landed=version).step("landed", at))
    found = landed(ledger, "landing", KEY)
    assert found
    assert found.landed.sequencer == "30"


def test_a_rejected_file_fails_the_wait_or_is_waited_for(deployment: Deployment) -> None:
    """It fails with its reason, or is waited for while somebody can still decide."""
    deployment.land(KEY, script=rejected)
    deployment.settle()
    found = landed(deployment.adapters.ledger, "landing", KEY)
    assert found
    with pytest.raises(NotPublished, match=rf"(?s){KEY} is not published: .*CHECKS_FAILED.*show"):
        is_published(found, patient=False)
    assert not is_published(found, patient=True)
    discard(deployment.adapters, found, by="Ada")
    settled = known(deployment.adapters.ledger, found.id)
    with pytest.raises(NotPublished, match="discarded"):
        is_published(settled, patient=True)


def test_an_approved_file_ends_the_wait(deployment: Deployment) -> None:
    """What somebody publishes anyway is published."""
    deployment.land(KEY, script=rejected)
    deployment.settle()
    found = landed(deployment.adapters.ledger, "landing", KEY)
    assert found
    publish_anyway(deployment.adapters, found, by="Ada", reason="a refund")
    deployment.settle()
    assert is_published(known(deployment.adapters.ledger, found.id), patient=True)


def test_main_is_read_from_where_the_last_look_ended(deployment: Deployment) -> None:
    """Each published file is found once, in main's order; nothing of the time before the first."""
    catalog = deployment.adapters.catalog
    deployment.land(KEY)
    deployment.settle()
    assert gained(catalog, TABLE, "")[0] == []
    _, began = gained(catalog, TABLE, "")
    for name in ("b", "c"):
        deployment.land(f"shop/orders/{name}.parquet", name.encode())
        deployment.settle()
    catalog.append("main", TABLE, "s3://lake/other.parquet")  # type: ignore[attr-defined]
    found, newest = gained(catalog, TABLE, began)
    assert [each.object[-9:] for each in found] == ["b.parquet", "c.parquet"]
    assert all(each.rows > 0 for each in found)
    assert gained(catalog, "shop.returns", began) == ([], newest)
    assert gained(catalog, TABLE, newest) == ([], newest)


def test_a_main_that_was_put_back_starts_nothing_of_before(deployment: Deployment) -> None:
    """The look goes on from the newest commit that main still has."""
    catalog = deployment.adapters.catalog
    deployment.land(KEY)
    deployment.settle()
    _, kept = gained(catalog, TABLE, "")
    deployment.land("shop/orders/lost.parquet", b"lost")
    deployment.settle()
    _, lost = gained(catalog, TABLE, kept)
    catalog.reset("main", kept)  # type: ignore[attr-defined]
    assert gained(catalog, TABLE, lost) == ([], kept)
    deployment.land("shop/orders/new.parquet", b"new")
    deployment.settle()
    found, _ = gained(catalog, TABLE, lost)
    assert [each.object[-11:] for each in found] == ["new.parquet"]


def test_a_commit_that_nessie_never_had_is_an_error(deployment: Deployment) -> None:
    """Nobody can say what came after it, so a person chooses where to go on."""
    deployment.land(KEY)
    deployment.settle()
    with pytest.raises(LakegateError, match=r"(?s)no commit f+, .*lakegate log") as error:
        gained(deployment.adapters.catalog, TABLE, "f" * 64)
    assert error.value.code == "CURSOR_UNKNOWN"


def test_a_batch_counts_for_its_tables(deployment: Deployment) -> None:
    """A batch is found by each of its tables, with the rows for it."""
    began = gained(deployment.adapters.catalog, TABLE, "")[1]
    deployment.batch("day", {"a.parquet": TABLE})
    deployment.settle()
    (found,) = gained(deployment.adapters.catalog, TABLE, began)[0]
    assert found.object.endswith("_manifest.json")
    assert found.rows > 0
