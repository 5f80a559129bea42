"""A rotated token is read again, and a refused one is reported with the remedy."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from botocore.exceptions import ClientError

from functions.adapters.nessie import Catalog
from functions.adapters.secrets import Bearer, Secret
from lakegate.errors import Transient
from lakegate.job.jobspec import JobSpec
from lakegate.tokens import TokenRefused, check_lasts
from spark_jobs.run.attempt import wait_for_token
from tests.unit.lakegate.test_jobspec import SPEC
from tests.unit.lakegate.test_nessie_tokens import made

_NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
_HASH = "ab" * 32


class Vault:
    """Secrets Manager with one secret and its own clock, which counts reads."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.reads = 0
        self.seconds = 0.0

    def get_secret_value(self, **_: str) -> dict[str, str]:
        self.reads += 1
        if not self.text:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetSecretValue")
        return {"SecretString": self.text}

    def secret(self) -> Secret:
        return Secret(self, "the/secret", lambda: self.seconds)


@contextmanager
def nessie(valid: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a server that accepts some tokens, and the accepted bodies."""
    accepted: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            main = {"type": "BRANCH", "name": "main", "hash": _HASH}
            found: dict[str, Any] = {"reference": main}
            if self.path.endswith("/history/merge"):
                found = {"wasApplied": True, "wasSuccessful": True, "resultantTargetHash": _HASH}
            if token in valid:
                accepted.append(body)
            answer = json.dumps(found).encode()
            self.send_response(200 if token in valid else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", accepted
        server.shutdown()


def spec(url: str) -> JobSpec:
    """Return the job spec of a run with that Nessie."""
    return replace(SPEC, nessie_uri=url)


def test_an_instance_goes_on_after_its_token_was_rotated() -> None:
    """After a rotation a long-lived catalog uses the new token at the first refusal."""
    vault, valid = Vault("old"), {"old"}
    with nessie(valid) as (url, accepted):
        catalog = Catalog(url, vault.secret())
        assert catalog.head("main") == _HASH
        vault.text = "new"
        valid ^= {"old", "new"}
        assert catalog.merge("ingest/x", _HASH, _HASH, "why", {}) == _HASH
        assert json.loads(accepted[-1])["fromRefName"] == "ingest/x"


def test_a_refusal_that_stays_says_what_to_do() -> None:
    """A permanent refusal is transient, and names the secret and the two commands."""
    with nessie(set()) as (url, _):
        catalog = Catalog(url, Vault("bad").secret())
        for call in (lambda: catalog.head("main"), lambda: list(catalog.log())):
            with pytest.raises(Transient) as refusal:
                call()
            assert refusal.value.code == "TOKEN_REFUSED"
            for part in ("the/secret", "`lakegate rotate`", "`lakegate doctor`"):
                assert part in refusal.value.message


def test_a_token_that_is_always_refused_is_not_always_read() -> None:
    """A refused token's secret is read once, and again after half a minute."""
    vault = Vault("bad")
    bearer = Bearer(vault.secret())
    assert {bearer.after(bearer.text()) for _ in range(100)} == {"bad"}
    assert vault.reads == 2
    vault.seconds = 31
    assert bearer.after("bad") == "bad"
    assert vault.reads == 3


def test_a_newer_token_is_taken_at_once() -> None:
    """A token that another thread read, or a second rotation, is used at once."""
    vault = Vault("1")
    secret = vault.secret()
    assert secret.text() == "1"
    vault.text = "2"
    assert secret.after("1") == "2"
    assert secret.after("1") == "2"
    vault.text = "3"
    assert secret.after("2") == "3"
    assert vault.reads == 3


def test_a_secret_that_is_not_there_is_named() -> None:
    """A missing secret is named, and a secret's repr shows no content."""
    with pytest.raises(Transient, match="the/secret"):
        Vault("").secret().text()
    secret = Vault("hidden").secret()
    assert secret.text() not in f"{secret!r} {vars(Bearer(secret))!r}"


def test_a_run_waits_until_a_new_key_has_reached_nessie() -> None:
    """A job that begins during a rotation reads its token again until Nessie accepts it."""
    waits: list[float] = []
    with nessie({"new"}) as (url, _):
        tokens = iter(["old", "old", "new"])
        assert (
            wait_for_token(spec(url), lambda: next(tokens), lambda: sum(waits), waits.append)
            == "new"
        )
    assert len(waits) == 2


def test_a_run_does_not_wait_for_ever() -> None:
    """A job whose token stays refused ends after ten minutes, with the remedy."""
    waits: list[float] = []
    with nessie(set()) as (url, _), pytest.raises(TokenRefused, match="`lakegate rotate`"):
        wait_for_token(spec(url), lambda: "bad", lambda: sum(waits), waits.append)
    assert 600 <= sum(waits) < 610


@pytest.mark.parametrize(("minutes", "lasts"), [(0, True), (60, True), (61, False)])
def test_a_run_begins_only_with_a_token_that_lasts(minutes: int, lasts: bool) -> None:
    """A job whose token would expire during the run ends at once."""
    token = made()["job"]  # ends 90 days after _NOW
    now = _NOW + timedelta(days=90, minutes=-60)
    if lasts:
        check_lasts(token, now, minutes)
        return
    with pytest.raises(Transient, match=r"TOKEN_ENDS.*2027-02-19 12:00 UTC.*`lakegate rotate`"):
        check_lasts(token, now, minutes)


@pytest.mark.parametrize("token", ["", "opaque", "a.b.c", "a.W10.c", "a.eyJleHAiOiJ4In0.c"])
def test_a_token_that_does_not_say_its_end_is_tried(token: str) -> None:
    """A token without an expiry is left to Nessie."""
    check_lasts(token, _NOW, 60)
