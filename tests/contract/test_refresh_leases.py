"""The leases of refreshes are kept in DynamoDB."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.stub import Stubber

from functions.downstream.refresh_lease import RefreshLeases
from lakegate.errors import Permanent, Transient
from tests.contract.aws import ACCOUNT, table_of

TABLE = "shop.orders"
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def leases() -> Iterator[RefreshLeases]:
    """Yield leases without records."""
    with table_of("SnowflakeMarks") as table:
        yield RefreshLeases(table)


def seconds(number: int) -> timedelta:
    """Return a number of seconds."""
    return timedelta(seconds=number)


def test_a_mark_only_grows(leases: RefreshLeases) -> None:
    """No lease is given for a position that is done, or older than one begun."""
    for position in (3, 5):
        lease = leases.lease(TABLE, position, NOW, 10)
        assert lease
        leases.done(lease)
        assert [leases.lease(TABLE, older, NOW, 10) for older in (3, position)] == [None, None]
    assert leases.lease(TABLE, 9, NOW, 10)
    assert leases.lease(TABLE, 8, NOW + seconds(20), 10) is None
    assert leases.lease("shop.returns", 1, NOW, 10)


def test_a_lease_is_one_holders(leases: RefreshLeases) -> None:
    """Until it is freed or expires, a lease has one holder; other tables are independent."""
    lease = leases.lease(TABLE, 3, NOW, 10)
    for position, after in ((3, 0), (3, 9), (4, 9)):
        with pytest.raises(Transient, match=f"LEASED.*{TABLE}"):
            leases.lease(TABLE, position, NOW + seconds(after), 10)
    assert leases.lease("shop.returns", 3, NOW, 10)
    assert lease
    leases.free(lease)
    assert leases.lease(TABLE, 3, NOW, 10)


def test_a_lease_ends(leases: RefreshLeases) -> None:
    """A crashed holder's lease expires, and its later writes are refused."""
    dead = leases.lease(TABLE, 3, NOW, 10)
    assert dead
    alive = leases.lease(TABLE, 3, NOW + seconds(10), 10)
    with pytest.raises(Transient, match="LEASED"):
        leases.done(dead)
    leases.free(dead)
    with pytest.raises(Transient, match="LEASED"):
        leases.lease(TABLE, 3, NOW + seconds(19), 10)
    assert alive
    leases.done(alive)
    assert leases.lease(TABLE, 3, NOW + seconds(19), 10) is None


def test_a_name_is_one_tables(leases: RefreshLeases) -> None:
    """Of names that differ only in case the second is refused, and the error names both."""
    lease = leases.lease("shop.Orders", 3, NOW, 10)
    assert lease
    leases.done(lease)
    with pytest.raises(Permanent, match=r"NAME_TAKEN: shop\.orders and shop\.Orders are one"):
        leases.lease("shop.orders", 4, NOW, 10)
    assert leases.lease("shop.Orders", 4, NOW, 10)


def test_a_lease_whose_answer_was_lost_is_had() -> None:
    """boto3's own retry of a granted lease is not refused."""
    with table_of("SnowflakeMarks") as leases:
        lost = iter([0.0])
        leases.meta.client.meta.events.register_first(
            "needs-retry.dynamodb.UpdateItem", lambda **_: next(lost, None)
        )
        assert RefreshLeases(leases).lease(TABLE, 3, NOW, 10)
        assert next(lost, None) is None


def test_a_mark_that_cannot_be_read_is_tried_again() -> None:
    """A refused read after a lost race for a lease is transient."""
    table = boto3.resource("dynamodb", **ACCOUNT).Table("marks")
    with Stubber(table.meta.client) as stubber:
        stubber.add_client_error("update_item", "ConditionalCheckFailedException")
        stubber.add_client_error("get_item", "ThrottlingException")
        with pytest.raises(Transient, match="MARKS_UNAVAILABLE"):
            RefreshLeases(table).lease(TABLE, 1, NOW, 10)
