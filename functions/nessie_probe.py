"""Nessie, asked what it lets whom do; nothing is changed."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import requests

from functions.catalog import MAIN
from functions.facts import Greeting, Standing
from lakegate.errors import Transient

_TIMEOUT = 5
_VERSION = re.compile(r"^  version: ['\"]?([0-9][\w.\-]*)", re.MULTILINE)


class NessieProbe:
    """The server at an address without a path."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def greeting(self) -> Greeting:
        """How it answers one without a token."""
        began = time.monotonic()
        answer = self._ask("GET", "/api/v2/trees/main")
        seconds, told = time.monotonic() - began, answer.headers.get("Date")
        return Greeting(answer.status_code, seconds, parsedate_to_datetime(told) if told else None)

    def version(self) -> str:
        """Its version, "" where it does not tell.

        Only its description of the API has it (Nessie documentation, "Rest API").
        """
        answer = self._ask("GET", "/nessie-openapi/openapi.yaml", {"Range": "bytes=0-2000"})
        found = _VERSION.search(answer.text[:2000]) if answer.ok else None
        return found[1] if found else ""

    def standing(self, token: str) -> Standing:
        """What it answers to the holder of a token who reads main, and tries to merge into it.

        Main is merged into itself and only as a dry run, so that nothing can come of it.
        """
        known = {"Authorization": f"Bearer {token}"}
        answer = self._ask("GET", "/api/v2/trees/main", known)
        if not answer.ok:
            return Standing(answer.status_code)
        with _translated():
            head = answer.json()["reference"]["hash"]
        onto = quote(f"{MAIN}@{head}", safe="@")
        body = {"fromRefName": MAIN, "fromHash": head, "isDryRun": True}
        tried = self._ask("POST", f"/api/v2/trees/{onto}/history/merge", known, body)
        return Standing(answer.status_code, tried.status_code)

    def _ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: Any = None
    ) -> requests.Response:
        with _translated():
            return requests.request(
                method, self._uri + path, headers=headers, json=body, timeout=_TIMEOUT
            )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except requests.RequestException as error:
        raise Transient("CATALOG_UNAVAILABLE", f"Nessie did not answer: {error}") from error
    except (KeyError, TypeError) as error:
        raise Transient("NOT_NESSIE", "what answers there is not Nessie's API") from error
