"""The page of a team, started as its image does, behind a proxy that logs people in."""

import http.client
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from secrets import token_urlsafe

import pytest
from playwright.sync_api import Browser, Page, expect

from access.deployment.checkout import ROOT
from functions.model.ingestion import Ingestion, State
from infra.local.parts import free_port
from tests.browser import chromium
from tests.e2e.conftest import Gate, contract
from tests.login_proxy import login_proxy
from tests.page import bare_environment, serving
from tests.unit.dashboard.test_page_door import UPGRADE
from tests.waiting import PATIENCE

pytestmark = pytest.mark.stack

_TABLE = "team.orders"
_BAD = b"id,amount\n3,5\n4,-7\n"
_ANN, _BOB, _EVE = "ann@example.org", "bob@example.org", "eve@example.org"
_STREAM = "/_stcore/stream"


def instructions() -> dict[str, str]:
    """Return the last instruction of each kind in the Dockerfile, on one line."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {name: rest for name, _, rest in (line.partition(" ") for line in lines)}


def image_command(port: int) -> list[str]:
    """Return the command that the image starts, served on this machine, at a port."""
    found = instructions()
    words: list[str] = json.loads(found["ENTRYPOINT"]) + json.loads(found["CMD"])
    program, *arguments = words
    assert arguments[-2:] == ["--host", "0.0.0.0"]  # noqa: S104 - the proxy's container reaches it
    own = [*arguments[:-1], "127.0.0.1", "--port", str(port)]
    return [str(Path(sys.executable).with_name(program)), *own]


def image_environment() -> dict[str, str]:
    """Return the image's own variables, but for its home."""
    pairs = (pair.partition("=") for pair in instructions()["ENV"].split())
    return {name: value for name, _, value in pairs if name != "HOME"}


@dataclass(frozen=True)
class Team:
    """The page behind its proxy; `secret` is what the proxy proves itself by."""

    browser: Browser
    port: int
    behind: int
    secret: str

    @contextmanager
    def page(self, person: str, path: str = "/", **headers: str) -> Iterator[Page]:
        """Open a path as a person who is logged in, whose browser sends headers of its own."""
        address = f"http://127.0.0.1:{self.port}"
        context = self.browser.new_context(extra_http_headers=headers)
        context.set_default_timeout(PATIENCE * 1000)
        context.add_cookies([{"name": "login", "value": person, "url": address}])
        try:
            page = context.new_page()
            page.goto(address + path)
            yield page
        finally:
            context.close()


@pytest.fixture(scope="module")
def team(gate: Gate) -> Iterator[Team]:
    """Serve the page of the stack as the image does, behind a proxy."""
    port, secret = free_port(set()), token_urlsafe(32)
    behind = free_port({port})
    environment = bare_environment() | image_environment()
    environment |= {"LAKEGATE_HOME": str(gate.home), "LAKEGATE_PAGE_PROXY_SECRET": secret}
    with (
        serving(image_command(behind), environment, behind),
        login_proxy(port, behind, {"Lakegate-Proxy-Secret": secret}),
        chromium() as browser,
    ):
        yield Team(browser, port, behind, secret)


@pytest.fixture(scope="module")
def rejected(gate: Gate) -> list[Ingestion]:
    """Return three rejected files with one cause."""
    gate.put_contract(contract(_TABLE, "csv"))
    landed = [gate.drop(f"team/orders/{name}.csv", _BAD) for name in ("a", "b", "c")]
    return [gate.end(each) for each in landed]


def ask(port: int, path: str, headers: Mapping[str, str]) -> int:
    """Return the status of the answer to a request by any other program."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers=dict(headers))
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_image_has_no_secret_and_runs_as_a_plain_user() -> None:
    """The Dockerfile names a version, installs by hashes, and no root user; no secret is in it."""
    found = instructions()
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+", found["FROM"])
    assert "--require-hashes" in found["RUN"]
    assert found["USER"] not in ("root", "0")
    assert not {"ADD", "ARG"} & found.keys()
    assert not re.search(r"SECRET|TOKEN|PASSWORD|AWS_", found["ENV"])


def test_who_bypasses_the_proxy_is_refused(team: Team) -> None:
    """At the page's own port a name without the right secret opens no view, file or channel."""
    named = {"X-Forwarded-Email": _EVE, "lakegate-person": _EVE}
    for proof in ({}, {"Lakegate-Proxy-Secret": "x" * 43}):
        for path in ("/", "/inbox", "/_stcore/health", "/_stcore/host-config", "/media/a.png"):
            assert ask(team.behind, path, named | proof) == HTTPStatus.FORBIDDEN, path
        assert ask(team.behind, _STREAM, named | proof | UPGRADE) == HTTPStatus.FORBIDDEN
    right = {"Lakegate-Proxy-Secret": team.secret}
    assert ask(team.behind, "/", right) == HTTPStatus.FORBIDDEN
    assert ask(team.behind, "/", right | named) == HTTPStatus.OK
    assert ask(team.behind, _STREAM, right | named | UPGRADE) == HTTPStatus.SWITCHING_PROTOCOLS
    other = {"Origin": "https://evil.example.org", **UPGRADE}
    assert ask(team.behind, _STREAM, right | named | other) == HTTPStatus.FORBIDDEN
    assert ask(team.port, "/", {}) == HTTPStatus.UNAUTHORIZED


def test_decisions_have_the_names_of_two_people(
    team: Team, gate: Gate, rejected: list[Ingestion]
) -> None:
    """Ann publishes one file and Bob discards the others at once: the ledger has both names.

    Ann's browser claims to be Eve, whom nobody believes. No dialog asks for a name.
    """
    assert {each.state for each in rejected} == {State.REJECTED}
    first, *others = rejected
    smuggled = {"X-Forwarded-Email": _EVE, "lakegate-person": _EVE}
    with team.page(_ANN, f"/ingestion?id={first.id}", **smuggled) as page:
        expect(page.get_by_text(re.compile(f"the local stack · {_ANN}"))).to_be_visible()
        page.get_by_role("button", name="Publish anyway …").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_text(f"The ledger keeps your name: {_ANN}")).to_be_visible()
        expect(dialog.get_by_label("Your name")).to_have_count(0)
        dialog.get_by_label("Why, although").fill("a known return")
        dialog.get_by_role("button", name="Yes, publish anyway").click()
        expect(page.get_by_text("Published anyway by").first).to_be_visible()
    assert gate.end(first.landed).state is State.PUBLISHED
    with team.page(_BOB, "/") as page:
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
