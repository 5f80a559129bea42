"""The image's command serves a page that only its proxy reaches."""

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus

import pytest

from tests.page import Served
from tests.team_page import Team, instructions, team_served
from tests.unit.dashboard.test_page_door import UPGRADE, ask

_EVE = "eve@example.org"
_STREAM = "/_stcore/stream"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """Serve the page of a stack that is down."""
    with team_served(tmp_path_factory.mktemp("home")) as found:
        yield found


def status(port: int, path: str, headers: Mapping[str, str]) -> int:
    """Return the status of the answer to a request by any other program."""
    return ask(Served(port, ""), path, headers).status


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
            assert status(team.behind, path, named | proof) == HTTPStatus.FORBIDDEN, path
        assert status(team.behind, _STREAM, named | proof | UPGRADE) == HTTPStatus.FORBIDDEN
    right = {"Lakegate-Proxy-Secret": team.secret}
    assert status(team.behind, "/", right) == HTTPStatus.FORBIDDEN
    assert status(team.behind, "/", right | named) == HTTPStatus.OK
    assert status(team.behind, _STREAM, right | named | UPGRADE) == HTTPStatus.SWITCHING_PROTOCOLS
    other = {"Origin": "https://evil.example.org", **UPGRADE}
    assert status(team.behind, _STREAM, right | named | other) == HTTPStatus.FORBIDDEN
    assert status(team.port, "/", {}) == HTTPStatus.UNAUTHORIZED
