"""Which contract a landed key belongs to, and which contracts cannot stand side by side."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakegate.contract.claims import claiming, claims, could_claim, refuse_clashes
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from tests.unit.contract.contract_texts import parsed

ORDERS = parsed()


def landing_at(prefix: str, table: str = "shop.orders") -> Contract:
    return replace(ORDERS, landing_prefix=prefix, table=table)


@settings(deadline=None)
@given(prefixes=st.sets(st.text("ab/", min_size=1), min_size=1), key=st.text("ab/"))
def test_the_longest_prefix_claims_a_key(prefixes: set[str], key: str) -> None:
    """A key belongs to the contract with the longest prefix that it begins with, or to none."""
    contracts = [landing_at(prefix) for prefix in prefixes]
    fitting = {prefix for prefix in prefixes if key.startswith(prefix)}
    if fitting:
        assert claiming(contracts, key).landing_prefix == max(fitting, key=len)
    else:
        with pytest.raises(Permanent) as refusal:
            claiming(contracts, key)
        assert refusal.value.code == "NO_CONTRACT"
    assert {c.landing_prefix for c in contracts if claims(c, key)} == fitting


def test_an_unclaimed_key_is_told_with_the_prefixes_that_there_are() -> None:
    """People see at once whether the key or the contract's prefix is mistyped."""
    with pytest.raises(Permanent, match=r"shop/ordres/1\.csv.* nyc/flights/, shop/orders/"):
        claiming([ORDERS, landing_at("nyc/flights/")], "shop/ordres/1.csv")
    with pytest.raises(Permanent, match="prefixes are none"):
        claiming([], "a")


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        (landing_at("shop/orders/", "shop.other"), "landing prefix, shop/orders/"),
        (landing_at("else/", "shop.orders"), "table, shop.orders$"),
        (
            landing_at("else/", "Shop.Orders"),
            r"table, shop.orders: shop.orders and Shop.Orders differ in capitals alone",
        ),
    ],
)
def test_contracts_that_share_a_prefix_or_a_table_clash(other: Contract, shared: str) -> None:
    """No key may belong to two contracts, and no table may have two."""
    with pytest.raises(Permanent, match=f"a.yaml and b.yaml have the same {shared}") as refusal:
        refuse_clashes({"b.yaml": other, "a.yaml": ORDERS})
    assert refusal.value.code == "CONTRACTS_CLASH"


def test_a_prefix_within_a_prefix_is_no_clash() -> None:
    """The longer prefix takes its keys from the shorter one, so both may stand."""
    refuse_clashes({"a.yaml": ORDERS, "b.yaml": landing_at("shop/orders/new/", "shop.new")})


ELSEWHERE = "customProperties: [{property: landingPrefix, value: in/orders/}]"


@pytest.mark.parametrize(
    ("text", "could"),
    [
        ("schema: [{name: shop.orders, logicalType: obj}]", True),
        ("schema: [{name: shop.items, logicalType: obj}]", False),
        ("schema: [{name: x, physicalName: shop.orders}]", True),
        (f"schema: [{{name: shop.items}}]\n{ELSEWHERE}", False),
        (f"schema: [{{name: shop.items}}]\n{ELSEWHERE.replace('in/', 'shop/')}", True),
        ("schema: &a [{name: shop.items, again: *a}]", False),
        ("schema: [{name: shop.items}", True),
        ("schema: [{date: 2026-13-45, name: shop.items}]", True),
        ("kind: DataContract", True),
        ("", True),
        ("name: Ä", True),
    ],
)
def test_a_refused_text_concerns_its_own_files_alone(text: str, could: bool) -> None:
    """A text stands in the way of the keys under its prefixes; of all where it names none."""
    assert could_claim(text.encode("latin-1"), "shop/orders/1.csv") == could
    assert could_claim(text.encode("latin-1"), "")
