import json
import os
from pathlib import Path

import pytest

from access.files.uploads import BadTarget, Target, chosen, drop, put, put_batch
from lakegate.contract.model import Contract, parse
from lakegate.errors import LakegateError
from lakegate.job.landing import ingestion_id
from tests.fakes.deployment import ORDERS, Deployment
from tests.fakes.faults import Fault

_ORDERS = parse(ORDERS, "orders")
_BASKETS = parse(ORDERS.replace("shop.orders", "shop.baskets"), "baskets")


def test_what_was_put_is_what_the_pipeline_will_find(tmp_path: Path) -> None:
    """The id printed on upload is the id of the ingestion."""
    deployment = Deployment()
    (tmp_path / "a.csv").write_bytes(b"id\n1\n")

    item = put(deployment.adapters, tmp_path / "a.csv", "shop/orders/ü +.csv")

    (landed,) = deployment.landing.landed()
    assert (landed.key, landed.size) == ("shop/orders/ü +.csv", 5)
    assert item.ingestion.id == ingestion_id(landed)


def test_the_contract_is_the_only_one_or_that_of_the_table() -> None:
    """With one contract in force no table has to be named; of several the table selects one."""
    assert chosen([_ORDERS], "") is _ORDERS
    assert chosen([_ORDERS, _BASKETS], "shop.baskets") is _BASKETS


@pytest.mark.parametrize(
    ("contracts", "table", "said"),
    [
        ([], "", "none"),
        ([_ORDERS, _BASKETS], "", "shop.baskets, shop.orders"),
        ([_ORDERS], "shop.baskets", "Tables with a contract: shop.orders"),
    ],
)
def test_an_ambiguous_target_is_refused(contracts: list[Contract], table: str, said: str) -> None:
    """An ambiguous target raises an error that lists the tables."""
    with pytest.raises(LakegateError, match="WHICH_KEY") as caught:
        chosen(contracts, table)

    assert said in caught.value.message


def monday(home: Path) -> Path:
    """Return the manifest of a batch of two files."""
    folder = home / "monday"
    folder.mkdir()
    for name in ("orders.parquet", "more.parquet"):
        (folder / name).write_bytes(name.encode())
    listed = [{"key": f"{name}.parquet", "table": "shop.orders"} for name in ("orders", "more")]
    manifest = folder / "_manifest.json"
    manifest.write_text(json.dumps({"files": listed}))
    return manifest


def test_a_manifests_files_are_uploaded_before_it(tmp_path: Path) -> None:
    """The files of a batch land before its manifest, so that it is published at once."""
    deployment = Deployment()

    item = put_batch(deployment.adapters, monday(tmp_path))

    times = {landed.key: landed.landed_at for landed in deployment.landing.landed()}
    manifest = times.pop("batches/monday/_manifest.json")
    assert set(times) == {"batches/monday/orders.parquet", "batches/monday/more.parquet"}
    assert all(time <= manifest for time in times.values())
    deployment.send_upload(item.ingestion.landed)
    deployment.deliver()
    assert [part.key for part in deployment.ledger.get(item.ingestion.id).parts] == [
        "orders.parquet",
        "more.parquet",
    ]


@pytest.mark.parametrize(
    ("uploaded", "said"),
    [
        (0, ""),
        (1, "1 of 2 files of the batch were uploaded, but not its manifest, so none is ingested: "),
        (2, "2 of 2 files of the batch were uploaded, but not its manifest, so none is ingested: "),
    ],
)
def test_an_interrupted_batch_says_what_was_uploaded(
    tmp_path: Path, uploaded: int, said: str
) -> None:
    """After Ctrl-C it is told how many files lie there, and that the manifest brings all."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    deployment, manifest = Deployment(), monday(tmp_path)
    deployment.journal.strike_later("landing.put", Fault(interrupt), uploaded)
    with pytest.raises(KeyboardInterrupt) as stop:
        put_batch(deployment.adapters, manifest)
    words = f"{said}drop {manifest} again." if said else ""
    assert str(stop.value) == words
    assert len(list(deployment.landing.landed())) == uploaded


def test_a_manifest_whose_file_is_not_here_uploads_nothing(tmp_path: Path) -> None:
    """A manifest with a missing file raises an error before any upload."""
    deployment = Deployment()
    manifest = tmp_path / "_manifest.json"
    manifest.write_text('{"files": [{"key": "gone.csv", "table": "shop.orders"}]}')

    with pytest.raises(LakegateError, match=r"cannot read .*gone\.csv: .*\nNothing was uploaded"):
        put_batch(deployment.adapters, manifest)

    assert list(deployment.landing.landed()) == []


def test_a_file_lands_under_the_only_contract(tmp_path: Path) -> None:
    """Without table and key, a file lands in the landing prefix of the only contract."""
    deployment = Deployment()
    (tmp_path / "a.csv").write_bytes(b"id\n1\n")

    (item,) = drop(deployment.adapters, [tmp_path / "a.csv"], Target())

    assert item.ingestion.landed.key == "shop/orders/a.csv"


@pytest.mark.parametrize(
    ("names", "target", "said"),
    [
        (["a.csv"], Target("shop.orders", "a/"), "not both"),
        (["a.csv", "b.csv"], Target(key="a"), "must end in /"),
        (["_manifest.json", "b.csv"], Target(), "alone"),
        (["_manifest.json"], Target("shop.orders"), "names the tables"),
        (["_manifest.json"], Target(key="a/"), "batches/NAME/"),
        ([], Target(), "name a file"),
        (["a/part.csv", "b/part.csv"], Target(), "2 files are named part.csv"),
        (["a/part.csv", "b/part.csv"], Target(key="a/"), "2 files are named part.csv"),
        (["M\udcfcller.csv"], Target(), "is no UTF-8"),
        (["a.csv"], Target(key="M\udcfcller.csv"), "is no UTF-8"),
        (["M\udcfcller/_manifest.json"], Target(), "is no UTF-8"),
    ],
)
def test_an_unfit_target_uploads_nothing(names: list[str], target: Target, said: str) -> None:
    """Files that cannot land at a target are refused before anything is read."""
    deployment = Deployment()
    with pytest.raises(BadTarget, match=said):
        list(drop(deployment.adapters, [Path(name) for name in names], target))
    assert list(deployment.landing.landed()) == []


def test_a_key_takes_the_place_of_a_files_name(tmp_path: Path) -> None:
    """A file whose name S3 cannot have lands under the key that is given."""
    deployment = Deployment()
    file = tmp_path / "M\udcfcller.csv"
    file.write_bytes(b"id\n1\n")

    (item,) = drop(deployment.adapters, [file], Target(key="shop/orders/a.csv"))

    assert item.ingestion.landed.key == "shop/orders/a.csv"


def test_a_file_that_s3_does_not_take_at_once_is_not_read(tmp_path: Path) -> None:
    """A file beyond 5 GiB is refused before it fills the memory, with the tool that takes it."""
    deployment = Deployment()
    with (tmp_path / "a.csv").open("wb") as file:
        file.truncate((5 << 30) + 1)

    with pytest.raises(LakegateError, match=r"TOO_LARGE.*\nUpload it by `aws s3 cp`"):
        list(drop(deployment.adapters, [tmp_path / "a.csv"], Target()))

    assert list(deployment.landing.landed()) == []


def test_a_pipe_is_no_file_to_drop(tmp_path: Path) -> None:
    """What is there but no plain file, such as `<(gunzip -c a.gz)`, is not called missing."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        LakegateError, match=r"pipe is a folder, a pipe or .*\nNothing was uploaded"
    ):
        list(drop(Deployment().adapters, [tmp_path / "pipe"], Target("shop.orders")))


def test_a_missing_file_uploads_no_other(tmp_path: Path) -> None:
    """Of several files none lands if one is missing, so that all can be dropped again."""
    deployment = Deployment()
    (tmp_path / "a.csv").write_bytes(b"id\n1\n")

    with pytest.raises(LakegateError, match=r"there is no file .*b\.csv\nNothing was uploaded"):
        list(drop(deployment.adapters, [tmp_path / "a.csv", tmp_path / "b.csv"], Target()))

    assert list(deployment.landing.landed()) == []
