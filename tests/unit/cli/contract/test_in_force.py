from pathlib import Path
from typing import Any

import pytest

from cli.contract.in_force import in_force as in_force_of
from cli.contract.in_force import pending, push, withdraw
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


def test_pushing_the_same_again_makes_no_new_version(tmp_path: Path) -> None:
    """A contract is stored under its table's name, and replaced only by a changed one."""
    write(tmp_path, "orders.yaml", ORDERS)
    lake: Any = FakeLake()
    push(lake, [tmp_path], nothing)
    push(lake, [tmp_path], nothing)
    (same,) = in_force(lake).values()
    assert in_force(lake).keys() == {"contracts/shop.orders.yaml"}
    write(tmp_path, "orders.yaml", ORDERS + "status: active\n")
    push(lake, [tmp_path], nothing)
    (changed,) = in_force(lake).values()

    assert (same.version, changed.version) == ("v1", "v2")


def test_each_table_of_a_contract_is_in_force(tmp_path: Path) -> None:
    """One file of two tables puts both in force; a longer last one makes no version of both."""
    items = ORDERS[ORDERS.index("  - name:") :].replace("orders", "items")
    lake: Any = FakeLake()
    for text in (ORDERS + items, ORDERS + items + "    description: new\n"):
        write(tmp_path, "shop.yaml", text)
        push(lake, [tmp_path], nothing)
    versions = {key: stored.version for key, stored in in_force(lake).items()}
    assert versions == {"contracts/shop.orders.yaml": "v1", "contracts/shop.items.yaml": "v2"}


def test_a_dry_run_puts_nothing_in_force(tmp_path: Path) -> None:
    """Only contracts that are not in force are returned, and those that are told."""
    lake: Any = FakeLake()
    lake.put_text("contracts/shop.orders.yaml", ORDERS.encode())
    write(tmp_path, "orders.yaml", ORDERS)
    write(tmp_path, "items.yaml", ORDERS.replace("orders", "items"))
    told: list[str] = []

    assert [each.valid().table for each in pending(lake, [tmp_path], told.append)] == ["shop.items"]

    assert told == ["contract shop.orders is in force already"]
    assert in_force(lake).keys() == {"contracts/shop.orders.yaml"}


@pytest.mark.parametrize("text", [ORDERS.encode(), b"kind: no contract", b"#" * (2 << 20)])
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


PREFIX = "customProperties: [{property: landingPrefix, value: shop/orders/}]\n"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "NO_CONTRACTS"),
        ({"a": ORDERS, "b": ORDERS.replace("integer", "intger")}, r"b\.yaml"),
        ({"b": ORDERS.replace("shop.orders", "shop.baskets") + PREFIX}, "landing prefix"),
    ],
)
def test_a_directory_is_pushed_whole_or_not_at_all(
    tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    """An empty directory, an invalid contract, or a prefix that is taken stops the whole push."""
    for name, text in files.items():
        write(tmp_path, f"{name}.yaml", text)
    lake: Any = FakeLake()
    lake.put_text("contracts/shop.orders.yaml", ORDERS.encode())

    with pytest.raises(LakegateError, match=reason):
        push(lake, [tmp_path], nothing)

    assert {key: found.version for key, found in in_force(lake).items()} == {
        "contracts/shop.orders.yaml": "v1"
    }


def test_a_broken_contract_in_force_can_be_replaced(tmp_path: Path) -> None:
    """A push can replace an unreadable contract in force."""
    lake: Any = FakeLake()
    lake.put_text("contracts/shop.orders.yaml", b"kind: Nonsense\n")
    write(tmp_path, "orders.yaml", ORDERS)

    push(lake, [tmp_path], nothing)

    assert in_force(lake)["contracts/shop.orders.yaml"].contract.table == "shop.orders"


def test_a_broken_contract_in_force_lets_no_clash_through(tmp_path: Path) -> None:
    """Beside an unreadable contract in force, a push is compared with the readable ones."""
    lake: Any = FakeLake()
    lake.put_text("contracts/shop.broken.yaml", b"kind: Nonsense\n")
    lake.put_text("contracts/shop.orders.yaml", ORDERS.encode())
    write(tmp_path, "orders.yaml", ORDERS)
    assert pending(lake, [tmp_path], nothing) == []

    write(tmp_path, "orders.yaml", ORDERS.replace("shop.orders", "shop.baskets") + PREFIX)
    with pytest.raises(LakegateError, match="same landing prefix"):
        push(lake, [tmp_path], nothing)


def test_a_push_takes_what_the_deployment_takes(tmp_path: Path) -> None:
    """The deployment's limits bound a contract's size, not this release's defaults."""
    write(tmp_path, "orders.yaml", f"{ORDERS}description: {{purpose: '{'x' * (1 << 20)}'}}\n")
    lake: Any = FakeLake(limits=Limits(largest_contract=2 << 20))
    push(lake, [tmp_path], nothing)
    assert in_force(lake).keys() == {"contracts/shop.orders.yaml"}

    with pytest.raises(LakegateError, match="longer than 1,048,576 bytes"):
        push(FakeLake(), [tmp_path], nothing)  # type: ignore[arg-type]


def test_a_push_counts_the_bytes_that_the_deployment_counts(tmp_path: Path) -> None:
    """A text that nobody could read or withdraw any more is not put in force."""
    lake: Any = FakeLake(limits=Limits(largest_contract=10_000))
    write(tmp_path, "orders.yaml", f"{ORDERS}description: {{purpose: '{'ü' * 7_000}'}}\n")
    with pytest.raises(LakegateError, match="longer than 10,000 bytes"):
        push(lake, [tmp_path], nothing)
    assert lake.contracts("shop/orders/a.csv") == []


def test_the_contracts_in_force_are_listed_by_table() -> None:
    """Every valid contract in force is listed, by its table; what is none is left out."""
    lake: Any = FakeLake()
    for name in ("orders", "items"):
        text = ORDERS.replace("orders", name).encode()
        lake.put_text(f"contracts/shop.{name}.yaml", text)
    lake.put_text("contracts/shop.broken.yaml", b"kind: nothing of the kind")
    assert [each.contract.table for each in in_force_of(lake)] == [
        "shop.items",
        "shop.orders",
    ]
