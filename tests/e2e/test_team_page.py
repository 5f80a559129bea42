"""The page of a team, started as its image does, behind a proxy that logs people in."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from functions.model.ingestion import Ingestion, State
from tests.browser import chromium
from tests.e2e.conftest import Gate, contract
from tests.team_page import Team, team_served
from tests.waiting import PATIENCE

pytestmark = pytest.mark.stack

_TABLE = "team.orders"
_BAD = b"id,amount\n3,5\n4,-7\n"
_ANN, _BOB, _EVE = "ann@example.org", "bob@example.org", "eve@example.org"


@contextmanager
def logged_in(team: Team, person: str, path: str, **headers: str) -> Iterator[Page]:
    """Open a path as a person who is logged in, whose browser sends headers of its own."""
    with chromium() as browser:
        context = browser.new_context(extra_http_headers=headers)
        context.set_default_timeout(PATIENCE * 1000)
        context.add_cookies([{"name": "login", "value": person, "url": team.address}])
        page = context.new_page()
        page.goto(team.address + path)
        yield page


@pytest.fixture(scope="module")
def rejected(gate: Gate) -> list[Ingestion]:
    """Return three rejected files with one cause."""
    gate.put_contract(contract(_TABLE, "csv"))
    landed = [gate.drop(f"team/orders/{name}.csv", _BAD) for name in ("a", "b", "c")]
    return [gate.end(each) for each in landed]


@pytest.fixture(scope="module")
def team(gate: Gate) -> Iterator[Team]:
    """Serve the page of the stack as the image does, behind a proxy."""
    with team_served(gate.home) as found:
        yield found


def test_decisions_have_the_names_of_two_people(
    team: Team, gate: Gate, rejected: list[Ingestion]
) -> None:
    """Ann publishes one file and Bob discards the others at once: the ledger has both names.

    Ann's browser claims to be Eve, whom nobody believes. No dialog asks for a name. The first
    address of the page is one of an alert.
    """
    assert {each.state for each in rejected} == {State.REJECTED}
    first, *others = rejected
    smuggled = {"X-Forwarded-Email": _EVE, "lakegate-person": _EVE}
    with logged_in(team, _ANN, f"/ingestion?id={first.id}", **smuggled) as page:
        expect(page.get_by_text(re.compile(f"the local stack · {_ANN}"))).to_be_visible()
        page.get_by_role("button", name="Publish anyway …").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_text(f"The ledger keeps your name: {_ANN}")).to_be_visible()
        expect(dialog.get_by_label("Your name")).to_have_count(0)
        dialog.get_by_label("Why, although").fill("a known return")
        dialog.get_by_role("button", name="Yes, publish anyway").click()
        expect(page.get_by_text("Published anyway by").first).to_be_visible()
    assert gate.end(first.landed).state is State.PUBLISHED
    with logged_in(team, _BOB, "/") as page:
        page.get_by_label("Search file").fill("team/orders")
        page.get_by_role("button", name="Discard all …").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_text(f"The ledger keeps your name: {_BOB}")).to_be_visible()
        dialog.get_by_role("button", name="Yes, discard").click()
        expect(page.get_by_text("Discarded 2 of 2 files")).to_be_visible()
    approval = gate.adapters.ledger.get(first.id).decisions.approval
    assert approval
    assert approval.by == _ANN
    for each in others:
        acts = gate.adapters.ledger.get(each.id).decisions.actions
        assert [(act.what, act.by) for act in acts] == [("discard", _BOB)]
