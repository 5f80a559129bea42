"""Nessie's rules allow every role its own operations only, and refuse every bad token."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import jwt
import pytest
import requests

from lakegate import nessie_tokens
from lakegate.nessie_tokens import ROLES, Keys
from tests.contract.conftest import Servers

pytestmark = pytest.mark.stack

_READS = {"read main", "read a branch"}
_OWN = ("ingest", "publish", "upkeep")
_KINDS = (*_OWN, "write")
_DEEDS = ("create", "delete", "move", "commit on", "change a table on")
MAY = {
    "reader": _READS,
    "uploader": _READS | {"create ingest/", "delete ingest/", "move ingest/"},
    "job": _READS
    | {f"{deed} ingest/" for deed in ("create", "commit on", "change a table on", "move")}
    | {"change a table on upkeep/"},
    "publisher": _READS
    | {"commit on main", "merge into main"}
    | {f"{deed} {kind}/" for deed in _DEEDS for kind in _OWN},
    "writer": _READS | {f"{deed} write/" for deed in _DEEDS},
}


@dataclass(frozen=True)
class Bearer:
    """A client of Nessie's REST API v2 with one token."""

    nessie: str
    token: str

    def send(self, method: str, path: str, body: object = None) -> requests.Response:
        return requests.request(
            method,
            f"{self.nessie}/api/v2/trees{path}",
            headers={"Authorization": f"Bearer {self.token}"},
            json=body,
            timeout=600,
        )

    def at(self, branch: str) -> str:
        """Return a branch with the hash that it stands at."""
        found = self.send("GET", f"/{_quoted(branch)}").json()["reference"]
        return f"{_quoted(branch)}@{found['hash']}"

    def create(self, branch: str) -> requests.Response:
        name, _, hash_ = self.at("main").partition("@")
        body = {"type": "BRANCH", "name": name, "hash": hash_}
        return self.send("POST", f"?name={_quoted(branch)}&type=BRANCH", body)

    def delete(self, branch: str) -> requests.Response:
        return self.send("DELETE", f"/{self.at(branch)}?type=BRANCH")

    def move(self, branch: str) -> requests.Response:
        """Set the branch to main's head."""
        name, _, hash_ = self.at("main").partition("@")
        body = {"type": "BRANCH", "name": name, "hash": hash_}
        return self.send("PUT", f"/{self.at(branch)}?type=BRANCH", body)

    def commit(self, branch: str) -> requests.Response:
        """Create a namespace with a unique name."""
        name = {"elements": [f"t{uuid.uuid4().hex}"]}
        return self._put(branch, name, {"type": "NAMESPACE", **name})

    def change(self, branch: str) -> requests.Response:
        """Change something that is there; to Nessie's rules a table is like a namespace."""
        there = self.send("GET", f"/{_quoted(branch)}/entries?content=true").json()["entries"]
        mine = next(each for each in there if each["name"]["elements"][0] != "ops")
        return self._put(branch, mine["name"], {**mine["content"], "properties": {"a": "b"}})

    def _put(self, branch: str, name: object, content: object) -> requests.Response:
        put = {"type": "PUT", "key": name, "content": content}
        meta = {"message": "by a test", "authors": ["test"]}
        body = {"commitMeta": meta, "operations": [put]}
        return self.send("POST", f"/{self.at(branch)}/history/commit", body)

    def merge(self, branch: str) -> requests.Response:
        body = {"fromRefName": branch, "fromHash": self.at(branch).partition("@")[2]}
        return self.send("POST", f"/{self.at('main')}/history/merge", body)


def _quoted(branch: str) -> str:
    return branch.replace("/", "%2F")


# Operations on a branch of the publisher's; a trailing slash in the name adds a commit to it.
DEEDS: Mapping[str, Callable[[Bearer, str], requests.Response]] = {
    "read main": lambda who, _: who.send("GET", "/main/history"),
    "read a branch": lambda who, made: who.send("GET", f"/{_quoted(made)}/entries"),
    "commit on main": lambda who, _: who.commit("main"),
    "merge into main": lambda who, made: who.merge(made),
    "move main": lambda who, _: who.move("main"),
    "create any branch": lambda who, _: who.create(f"mine-{uuid.uuid4().hex}"),
    **{
        f"{deed} {kind}/": do
        for kind in _KINDS
        for deed, do in {
            "create": lambda who, made: who.create(f"{made}-too"),
            "delete": lambda who, made: who.delete(made),
            "move": lambda who, made: who.move(made),
            "commit on": lambda who, made: who.commit(made),
            "change a table on": lambda who, made: who.change(made),
        }.items()
    },
}


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("role", ROLES)
def test_each_role_may_do_its_own_work_and_nothing_else(
    servers: Servers, role: str, deed: str
) -> None:
    """Operations in MAY succeed; all others are answered 403 and leave main unchanged."""
    publisher = Bearer(servers.nessie, servers.tokens["publisher"])
    kind = next((kind for kind in _KINDS if f"{kind}/" in deed), "ingest")
    made = f"{kind}/test/{uuid.uuid4().hex}"
    maker = Bearer(servers.nessie, servers.tokens["writer" if kind == "write" else "publisher"])
    assert maker.create(made).ok
    assert maker.commit(made).ok
    before = publisher.at("main")

    answer = DEEDS[deed](Bearer(servers.nessie, servers.tokens[role]), made)

    assert answer.status_code == (200 if deed in MAY[role] else 403), answer.text
    changes = deed in MAY[role] & {"commit on main", "merge into main"}
    assert (publisher.at("main") != before) is changes


def _forged() -> dict[str, object]:
    now = datetime.now(UTC)
    fixed = {"iss": nessie_tokens.ISSUER, "sub": "publisher", "upn": "lakegate-publisher"}
    return {**fixed, "iat": now, "exp": now + timedelta(hours=1)}


# Each takes the server's keys and the claims of a publisher.
BAD_TOKENS: Mapping[str, Callable[[Keys, dict[str, object]], str | None]] = {
    "none": lambda *_: None,
    "an empty one": lambda *_: "",
    "no token at all": lambda *_: "publisher",
    "an expired one": lambda own, claims: jwt.encode(
        {**claims, "exp": datetime.now(UTC) - timedelta(hours=1)}, own.signing_key, "RS256"
    ),
    "one of another issuer": lambda own, claims: jwt.encode(
        {**claims, "iss": "somebody"}, own.signing_key, "RS256"
    ),
    "one signed with another key": lambda _, claims: jwt.encode(
        claims, nessie_tokens.due({}, datetime.now(UTC))[nessie_tokens.SIGNING_KEY], "RS256"
    ),
    "an unsigned one": lambda _, claims: jwt.encode(claims, "", "none"),
    "one signed with the public key": lambda own, claims: jwt.encode(
        claims, own.public_key, "HS256"
    ),
    "another's signature": lambda own, claims: ".".join(
        (
            jwt.encode(claims, own.signing_key, "RS256").rpartition(".")[0],
            own.tokens["reader"].rpartition(".")[2],
        )
    ),
}


@pytest.mark.parametrize("path", ["api/v2/trees/main", "api/v1/trees", "iceberg/main/v1/config"])
@pytest.mark.parametrize("bad", BAD_TOKENS)
def test_a_bad_token_opens_no_door(servers: Servers, bad: str, path: str) -> None:
    """A token that is not validly signed for now and here is answered 401 everywhere."""
    token = BAD_TOKENS[bad](servers.keys, _forged())
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    answer = requests.get(f"{servers.nessie}/{path}", headers=headers, timeout=600)
    assert answer.status_code == 401


def test_a_token_like_the_bad_ones_but_good_is_taken(servers: Servers) -> None:
    """The same claims with a valid signature are accepted."""
    token = jwt.encode(_forged(), servers.keys.signing_key, "RS256")
    assert Bearer(servers.nessie, token).send("GET", "/main").ok
