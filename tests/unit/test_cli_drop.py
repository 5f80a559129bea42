from pathlib import Path

import pytest

from cli.drop import chosen, exit_code, put
from cli.follow import Sight
from functions.ingestion import Ingestion
from lakegate.contract import Contract, parse
from lakegate.errors import LakegateError
from lakegate.landing import ingestion_id
from tests.fakes.deployment import ORDERS, Deployment
from tests.unit.cli_examples import ERRORED, IGNORED, PUBLISHED, REJECTED

_ORDERS = parse(ORDERS, "orders")
_BASKETS = parse(ORDERS.replace("shop.orders", "shop.baskets"), "baskets")


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        ([PUBLISHED], 0),
        ([REJECTED], 3),
        ([ERRORED], 4),
        ([IGNORED], 5),
        ([PUBLISHED, REJECTED, PUBLISHED], 3),
        ([ERRORED, REJECTED], 4),
    ],
)
def test_the_exit_code_tells_the_end(ended: list[Ingestion], code: int) -> None:
    """A script sees published, rejected, errored and ignored apart; of several files the worst."""
    assert exit_code([Sight(ingestion) for ingestion in ended]) == code


def test_what_was_put_is_what_the_pipeline_will_find(tmp_path: Path) -> None:
    """The id that is told on upload is the one that the event will lead to."""
    deployment = Deployment()
    (tmp_path / "a.csv").write_bytes(b"id\n1\n")

    sight = put(deployment.world, tmp_path / "a.csv", "shop/orders/ü +.csv")

    (landed,) = deployment.landing.landed()
    assert (landed.key, landed.size) == ("shop/orders/ü +.csv", 5)
    assert sight.ingestion.id == ingestion_id(landed)


def test_the_only_contract_need_not_be_named() -> None:
    """With one contract in force it is clear which one is meant."""
    assert chosen([_ORDERS], "") is _ORDERS


def test_a_table_says_which_contract() -> None:
    """Of several contracts that of the named table is taken."""
    assert chosen([_ORDERS, _BASKETS], "shop.baskets") is _BASKETS


@pytest.mark.parametrize(
    ("contracts", "table", "said"),
    [
        ([], "", "none"),
        ([_ORDERS, _BASKETS], "", "shop.baskets, shop.orders"),
        ([_ORDERS], "shop.baskets", "there are contracts for: shop.orders"),
    ],
)
def test_where_to_is_never_guessed(contracts: list[Contract], table: str, said: str) -> None:
    """Where it is not clear, the tables that there are, are named."""
    with pytest.raises(LakegateError, match="WHICH_KEY") as caught:
        chosen(contracts, table)

    assert said in caught.value.message
