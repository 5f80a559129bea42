import json
from pathlib import Path

import pytest

from cli.drop import chosen, exit_code, put, put_batch
from cli.follow import Sight
from functions.model.ingestion import Ingestion
from lakegate.contract.model import Contract, parse
from lakegate.errors import LakegateError
from lakegate.landing import ingestion_id
from tests.fakes.deployment import ORDERS, Deployment
from tests.unit.cli.cli_examples import ERRORED, IGNORED, PUBLISHED, REJECTED

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

    sight = put(deployment.adapters, tmp_path / "a.csv", "shop/orders/ü +.csv")

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


def test_a_manifests_files_are_uploaded_before_it(tmp_path: Path) -> None:
    """The files lie in the folder when the manifest lands, so that it is published at once."""
    deployment = Deployment()
    folder = tmp_path / "monday"
    folder.mkdir()
    for name in ("orders.parquet", "more.parquet"):
        (folder / name).write_bytes(name.encode())
    listed = [{"key": f"{name}.parquet", "table": "shop.orders"} for name in ("orders", "more")]
    (folder / "_manifest.json").write_text(json.dumps({"files": listed}))

    sight = put_batch(deployment.adapters, folder / "_manifest.json")

    times = {landed.key: landed.landed_at for landed in deployment.landing.landed()}
    manifest = times.pop("batches/monday/_manifest.json")
    assert set(times) == {"batches/monday/orders.parquet", "batches/monday/more.parquet"}
    assert all(time <= manifest for time in times.values())
    deployment.send_upload(sight.ingestion.landed)
    deployment.deliver()
    assert [part.key for part in deployment.ledger.get(sight.ingestion.id).parts] == [
        "orders.parquet",
        "more.parquet",
    ]


def test_a_manifest_whose_file_is_not_here_uploads_nothing(tmp_path: Path) -> None:
    """What would end errored is told before anything is in the bucket."""
    deployment = Deployment()
    manifest = tmp_path / "_manifest.json"
    manifest.write_text('{"files": [{"key": "gone.csv", "table": "shop.orders"}]}')

    with pytest.raises(LakegateError, match=r"gone\.csv cannot be read, and nothing was uploaded"):
        put_batch(deployment.adapters, manifest)

    assert list(deployment.landing.landed()) == []
