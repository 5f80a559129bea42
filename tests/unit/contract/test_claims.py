"""The contract that claims a landed key, and contracts that clash."""

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
    """The contract with the longest matching prefix claims a key, if there is one."""
    contracts = [landing_at(prefix) for prefix in prefixes]
    fitting = {prefix for prefix in prefixes if key.startswith(prefix)}
    if fitting:
        assert claiming(contracts, key).landing_prefix == max(fitting, key=len)
    else:
        with pytest.raises(Permanent) as refusal:
            claiming(contracts, key)
        assert refusal.value.code == "NO_CONTRACT"
    assert {c.landing_prefix for c in contracts if claims(c, key)} == fitting


def test_an_unclaimed_key_is_reported_with_the_prefixes_that_there_are() -> None:
    """The message for an unclaimed key lists the existing prefixes."""
    with pytest.raises(Permanent, match=r"shop/ordres/1\.csv.* nyc/flights/, shop/orders/"):
        claiming([ORDERS, landing_at("nyc/flights/")], "shop/ordres/1.csv")
    with pytest.raises(Permanent, match="prefixes are none"):
        claiming([], "a")


def test_a_key_in_another_form_of_unicode_is_told_so() -> None:
    """A key that looks as if a prefix claimed it, as a Mac may upload it, says why none does."""
    composed, apart = "shop/ums\u00e4tze/", "shop/umsa\u0308tze/"
    for prefix, key in ((composed, apart), (apart, composed)):
        with pytest.raises(Permanent, match="in another form of Unicode, NFC or NFD"):
            claiming([ORDERS, landing_at(prefix)], f"{key}1.csv")


def test_of_thousands_of_prefixes_the_first_are_told() -> None:
    """What a person reads names some prefixes, and says how many more there are."""
    contracts = [landing_at(f"p{number:04}/") for number in range(5_000)]
    with pytest.raises(Permanent, match=r"p0018/, p0019/ and 4,980 more$"):
        claiming(contracts, "x")


def test_two_contracts_of_one_prefix_claim_nothing() -> None:
    """Which table a file is for cannot be told, if two were pushed at the same time."""
    both = [ORDERS, landing_at("shop/orders/", "shop.baskets")]
    with pytest.raises(Permanent, match=r"shop\.baskets and shop\.orders have the same") as refusal:
        claiming(both, "shop/orders/1.csv")
    assert refusal.value.code == "CONTRACTS_CLASH"
    deeper = landing_at("shop/orders/old/", "shop.old")
    assert claiming([*both, deeper], "shop/orders/old/1.csv") == deeper


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
    """Two contracts with the same prefix or the same table clash."""
    with pytest.raises(Permanent, match=f"a.yaml and b.yaml have the same {shared}") as refusal:
        refuse_clashes({"b.yaml": other, "a.yaml": ORDERS})
    assert refusal.value.code == "CONTRACTS_CLASH"


def test_a_prefix_within_a_prefix_is_no_clash() -> None:
    """A prefix within another prefix is valid: the longer prefix claims its own keys."""
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
        ("schema: [{date: 2026-13-45, name: shop.items}]", False),
        ("schema: [{name: shop.orders, name: shop.items}]", True),
        ("schema: [{name: [shop.items]}]", True),
        (f"schema: [{{name: shop.items}}]\n{ELSEWHERE.replace('in/orders/', '[]')}", False),
        ("a: &a {name: shop.items}\nschema: [{<<: *a, value: shop/orders/}]", True),
        ("kind: DataContract", True),
        ("", True),
        ("name: Ä", True),
    ],
)
def test_a_refused_text_concerns_its_own_files_alone(text: str, could: bool) -> None:
    """A refused contract affects the keys under its prefixes, or all keys if it names no prefix."""
    assert could_claim(text.encode("latin-1"), "shop/orders/1.csv") == could
    assert could_claim(text.encode("latin-1"), "")


def nested(each: str) -> str:
    """Return a text whose last value would have 10^9 parts if its aliases were unfolded."""
    levels = (f"a{n}: &a{n} " + each.format(f"*a{n - 1}, " * 10) for n in range(1, 10))
    return "\n".join(["a0: &a0 {k: 1}", *levels, "name: *a9", "schema: [{name: shop.items}]"])


@pytest.mark.parametrize(
    ("text", "could"),
    [
        (nested("[{}]"), False),
        (nested("{{<<: [{}]}}"), True),
        ("n: 1" + ":0" * 100_000 + "\nname: shop.items", False),
    ],
)
def test_a_refused_text_is_never_unfolded(text: str, could: bool) -> None:
    """Aliases, merge keys and numbers without end stop no other table's files."""
    assert could_claim(text.encode(), "shop/orders/1.csv") == could
