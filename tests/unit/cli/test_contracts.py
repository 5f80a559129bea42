from pathlib import Path
from typing import Any

import pytest

from cli.contracts import push, withdraw
from functions.adapters.s3 import Missing, StoredContract
from lakegate.errors import LakegateError
from lakegate.limits import Limits
from tests.fakes.deployment import ORDERS
from tests.fakes.storage import FakeLake


def nothing(text: str) -> None:
    """Ignore progress messages."""


def write(directory: Path, name: str, text: str) -> None:
    (directory / name).write_text(text)


def in_force(lake: Any) -> dict[str, StoredContract]:
    return {stored.key: stored for stored in lake.contracts()}


def test_a_pushed_contract_is_in_force(tmp_path: Path) -> None:
    """A contract is stored unchanged under its table's name, for any name of its file."""
    write(tmp_path, "any.yaml", ORDERS)
    lake: Any = FakeLake()

    push(lake, [tmp_path], nothing)

    assert in_force(lake).keys() == {"contracts/shop.orders.yaml"}


def test_pushing_the_same_again_makes_no_new_version(tmp_path: Path) -> None:
    """A push replaces changed contracts and leaves the others alone."""
    write(tmp_path, "orders.yaml", ORDERS)
    lake: Any = FakeLake()
    push(lake, [tmp_path], nothing)
    push(lake, [tmp_path], nothing)
    (same,) = in_force(lake).values()
    write(tmp_path, "orders.yaml", ORDERS + "status: active\n")
    push(lake, [tmp_path], nothing)
    (changed,) = in_force(lake).values()

    assert (same.version, changed.version) == ("v1", "v2")


@pytest.mark.parametrize("text", [ORDERS.encode(), b"kind: nothing of the kind"])
@pytest.mark.parametrize("name", ["shop.orders", "contracts/shop.orders.yaml"])
def test_a_withdrawn_contract_is_out_of_force(text: bytes, name: str) -> None:
    """A contract, valid or not, is withdrawn by its table or its key; the others stay."""
    lake: Any = FakeLake()
    lake.put_text("contracts/shop.orders.yaml", text)
    lake.put_text("contracts/shop.items.yaml", ORDERS.replace("orders", "items").encode())

    assert "contracts/shop.orders.yaml is out of force" in withdraw(lake, name)

    assert in_force(lake).keys() == {"contracts/shop.items.yaml"}


@pytest.mark.parametrize("name", ["shop.ordres", "reports/a.json"])
def test_what_is_not_in_force_cannot_be_withdrawn(name: str) -> None:
    """An unknown table or another key raises an error, and nothing is deleted."""
    lake: Any = FakeLake()
    lake.put_text("reports/a.json", b"{}")

    with pytest.raises(Missing, match="there is no object contracts/"):
        withdraw(lake, name)

    assert not lake.deleted


def test_one_wrong_contract_keeps_all_from_being_pushed(tmp_path: Path) -> None:
    """An invalid contract stops the push of its whole directory, and is named."""
    write(tmp_path, "a.yaml", ORDERS)
    write(tmp_path, "b.yaml", ORDERS.replace("integer", "intger"))
    lake: Any = FakeLake()

    with pytest.raises(LakegateError, match=r"b\.yaml"):
        push(lake, [tmp_path], nothing)

    assert not in_force(lake)


def test_a_contract_cannot_take_what_another_one_in_force_has(tmp_path: Path) -> None:
    """A pushed contract must not share a landing prefix with a contract in force."""
    lake: Any = FakeLake()
    lake.put_text("contracts/shop.orders.yaml", ORDERS.encode())
    prefix = "customProperties: [{property: landingPrefix, value: shop/orders/}]\n"
    write(tmp_path, "b.yaml", ORDERS.replace("shop.orders", "shop.baskets") + prefix)

    with pytest.raises(LakegateError, match="landing prefix"):
        push(lake, [tmp_path], nothing)


def test_a_broken_contract_in_force_can_be_replaced(tmp_path: Path) -> None:
    """A push can replace an unreadable contract in force."""
    lake: Any = FakeLake()
    lake.put_text("contracts/shop.orders.yaml", b"kind: Nonsense\n")
    write(tmp_path, "orders.yaml", ORDERS)

    push(lake, [tmp_path], nothing)

    assert in_force(lake)["contracts/shop.orders.yaml"].contract.table == "shop.orders"


def test_an_empty_directory_is_a_mistake(tmp_path: Path) -> None:
    """Pushing a directory without contracts raises an error."""
    lake: Any = FakeLake()

    with pytest.raises(LakegateError, match="NO_CONTRACTS"):
        push(lake, [tmp_path], nothing)


def test_a_push_takes_what_the_deployment_takes(tmp_path: Path) -> None:
    """The deployment's limits bound a contract's size, not this release's defaults."""
    write(tmp_path, "orders.yaml", f"{ORDERS}description: {{purpose: '{'x' * (1 << 20)}'}}\n")
    lake: Any = FakeLake(limits=Limits(largest_contract=2 << 20))
    push(lake, [tmp_path], nothing)
    assert in_force(lake).keys() == {"contracts/shop.orders.yaml"}

    with pytest.raises(LakegateError, match="longer than 1,048,576 characters"):
        push(FakeLake(), [tmp_path], nothing)  # type: ignore[arg-type]
