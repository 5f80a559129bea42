"""Nessie as Iceberg's clients, the job and whoever sets main back use it (REST API v2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import requests

from functions.adapters.nessie import Catalog
from functions.adapters.secrets import Bearer, Secret
from lakegate import trust

ONE, TWO, THREE = "one", "two", "three"  # the states that a table is given
_TIMEOUT = 30


@dataclass(frozen=True)
class Pointer:
    """What a state of a table is to Nessie: the address of its metadata, and its snapshot."""

    metadata: str
    snapshot: int


class RestWriter:
    """A writer of tables; what it does with references returns the server's answer as it is."""

    def __init__(
        self, catalog: Catalog, uri: str, token: str | Secret, states: Mapping[str, Pointer]
    ) -> None:
        """Connect to `uri`; `states` are those that a table can be given, by their names."""
        self._catalog = catalog
        self._trees = f"{uri}/api/v2/trees"
        self._states = states
        self._session = requests.Session()
        self._session.auth = Bearer(token)

    def write(self, branch: str, table: str, state: str) -> str:
        """Commit a state of a table; return the branch's new head."""
        namespace, to = table.partition(".")[0], self._states[state]
        if self._content(branch, namespace) is None:
            self._put(branch, namespace, {"type": "NAMESPACE", "elements": [namespace]})
        there = self._content(branch, table) or {"type": "ICEBERG_TABLE"}
        numbers = {"snapshotId": to.snapshot, "schemaId": 1, "specId": 1, "sortOrderId": 1}
        return self._put(branch, table, {**there, **numbers, "metadataLocation": to.metadata})

    def read(self, branch: str, table: str) -> str:
        """Return the state of a table on a branch, "" without the table."""
        content = self._content(branch, table)
        if content is None:
            return ""
        current = Pointer(content["metadataLocation"], content["snapshotId"])
        return next(state for state, pointer in self._states.items() if pointer == current)

    def set_back(self, branch: str, to: str) -> None:
        """Set a branch back to an earlier hash."""
        self.assign(branch, self._catalog.head(branch), to).raise_for_status()

    def create(self, name: str, source: str, at: str, kind: str = "BRANCH") -> requests.Response:
        """Create a branch, or a tag as `kind`, at a hash of the branch `source`."""
        body = {"type": "BRANCH", "name": source, "hash": at}
        return self._send("POST", f"?name={_quoted(name)}&type={kind}", body)

    def assign(self, branch: str, expected: str, to: str) -> requests.Response:
        """Set a branch that is expected at one hash to another one."""
        body = {"type": "BRANCH", "name": branch, "hash": to}
        return self._send("PUT", f"/{_quoted(branch)}@{expected}?type=BRANCH", body)

    def delete(self, name: str, expected: str, kind: str = "BRANCH") -> requests.Response:
        """Delete a branch, or a tag as `kind`, that is expected at a hash."""
        return self._send("DELETE", f"/{_quoted(name)}@{expected}?type={kind}")

    def merge(self, branch: str, at: str, main: str, onto: str) -> requests.Response:
        """Merge a branch's hash into the branch `main`, which is expected at the hash `onto`."""
        body = {"fromRefName": branch, "fromHash": at}
        return self._send("POST", f"/{_quoted(main)}@{onto}/history/merge", body)

    def _put(self, branch: str, key: str, content: dict[str, Any]) -> str:
        operation = {"type": "PUT", "key": {"elements": key.split(".")}, "content": content}
        body = {"commitMeta": {"message": f"Write {key}"}, "operations": [operation]}
        path = f"/{_quoted(branch)}@{self._catalog.head(branch)}/history/commit"
        answer = self._send("POST", path, body)
        answer.raise_for_status()
        return str(answer.json()["targetBranch"]["hash"])

    def _content(self, branch: str, key: str) -> dict[str, Any] | None:
        answer = self._send("GET", f"/{_quoted(branch)}/contents/{key}")
        return dict(answer.json()["content"]) if answer.ok else None

    def _send(self, method: str, path: str, body: object = None) -> requests.Response:
        return self._session.request(
            method, self._trees + path, json=body, timeout=_TIMEOUT, verify=trust.bundle()
        )


def _quoted(name: str) -> str:
    """Return a reference's name as one segment of a path."""
    return quote(name, safe="")
