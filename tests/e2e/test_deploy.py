"""lakegate, osls and SAM each deploy onto an empty cloud, and take turns on one stack."""

from collections.abc import Iterator

import pytest

from functions.ingestion import State
from functions.reconciling import reconciled
from infra.aws.losses import HOLDS
from tests.e2e import bare
from tests.e2e.bare import STAGE, Cloud
from tests.e2e.conftest import Gate, contract
from tests.e2e.tools import Checkout

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]  # on a busy machine

_TABLE = "shop.orders"
_TOOLS = ("lakegate", "osls", "sam")


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with bare.cloud(tmp_path_factory.mktemp("cloud")) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def checkout(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout.of(cloud, tmp_path_factory.mktemp("checkout"))


def deploy(checkout: Checkout, tool: str) -> None:
    """Deploy with a tool; around osls and SAM lakegate does what they do not."""
    if tool == "lakegate":
        checkout.lakegate()
        return
    checkout.lakegate("--no-stack")
    checkout.osls() if tool == "osls" else checkout.sam()
    checkout.lakegate("--no-stack")


def see_through(gate: Gate, name: str) -> None:
    """A good file is published; a bad one is rejected, and people are told."""
    good = gate.drop(f"shop/orders/{name}-good.csv", b"id,amount\n1,5.0\n2,6.0\n")
    bad = gate.drop(f"shop/orders/{name}-bad.csv", b"id,amount\n3,500.0\n")

    assert gate.end(good).state is State.PUBLISHED
    rejected = gate.end(bad)
    assert rejected.state is State.REJECTED
    assert gate.alerts(rejected)


@pytest.mark.parametrize("tool", _TOOLS)
def test_a_tool_deploys_onto_an_empty_cloud(cloud: Cloud, checkout: Checkout, tool: str) -> None:
    """What it deploys publishes a good file, and rejects a bad one and says so."""
    cloud.empty()

    deploy(checkout, tool)

    gate = cloud.gate()
    gate.put_contract(contract(_TABLE, "csv"))
    see_through(gate, tool)
    assert gate.rows(_TABLE) == [(1, 5.0), (2, 6.0)]


def test_the_tools_take_turns(cloud: Cloud, checkout: Checkout) -> None:
    """Each redeploys what another deployed: all that holds data is what it was, and files pass."""
    before = holding(cloud)

    for tool in _TOOLS:
        deploy(checkout, tool)
        assert holding(cloud) == before
        see_through(cloud.gate(), f"turn-{tool}")

    found = reconciled(cloud.gate().world)
    assert not found.problems


def test_a_stage_that_was_taken_down_comes_back(cloud: Cloud, checkout: Checkout) -> None:
    """destroy leaves the data, alone; deploy brings the rest back onto it, and files pass."""
    rows, ledger = cloud.gate().rows(_TABLE), cloud.gate().world.ledger.all()
    known = {each.id for each in ledger}

    checkout.destroy("--yes", "--wait")

    assert {each.type for each in cloud.stacks.resources(STAGE.stack)} <= set(HOLDS)
    deploy(checkout, "lakegate")
    gate = cloud.gate()
    assert {each.id for each in gate.world.ledger.all()} >= known
    assert gate.rows(_TABLE) == rows
    see_through(gate, "back")


def holding(cloud: Cloud) -> dict[str, str]:
    """What the app's stack has that holds data, and what its service knows it by."""
    every = cloud.stacks.resources(STAGE.stack)
    return {each.name: each.id for each in every if each.type in HOLDS}
