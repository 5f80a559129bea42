"""Work on Nessie's references: branches, their merge into main, and main's log.

Nessie documentation, "REST API" (v2).
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any
from urllib.parse import quote

import requests

from functions.adapters.secrets import Bearer, Secret
from functions.model import commits
from functions.model.commits import (
    Commit,
    Content,
    Tip,
    changed,
    contents_in,
    differing_tables,
)
from lakegate import trust
from lakegate.errors import LakegateError, Transient
from lakegate.job.landing import is_fresh
from lakegate.refusals import forbidden
from lakegate.tokens import TokenRefused

MAIN = commits.MAIN
_TIMEOUT = 30
_PAGE = 100


class MergeConflict(LakegateError):
    """Main changed the table since the branch was created: this branch can never be merged."""


class UnknownBranch(LakegateError):
    """There is no branch with this name."""


class SetBack(LakegateError):
    """Main lost the commit that the branch was created at: a merge would restore what it lost."""


class Catalog:
    """Nessie, accessed with one token."""

    def __init__(self, uri: str, token: str | Secret, main: str = MAIN, page: int = _PAGE) -> None:
        """Connect to `uri`, without a slash, with a bearer token or the secret that holds it.

        In a trial another branch plays `main`, and pages of the log and of chosen branches have
        fewer entries.
        """
        self._main, self._page = main, page
        self._quoted = quote(main, safe="")
        self._path = _path(main)
        self._v2 = f"{uri}/api/v2"
        self._session = requests.Session()
        self._session.auth = self._bearer = Bearer(token)

    def begin(self, namespace: str) -> bool:
        """Give main its first commit, without which nothing can be merged into it.

        The commit creates a namespace. Returns False where main has a commit already.
        """
        if self.begun():
            return False
        path = f"{self._path}@{self.head(self._main)}/history/commit"
        try:
            self._send("POST", path, json=_put(namespace))
        except Transient:
            if not self.begun():
                raise
            return False
        return True

    def begun(self) -> bool:
        """Return whether main has a commit."""
        return self.head(self._main) != self._send("GET", "/config")["noAncestorHash"]

    def identity(self) -> str:
        """Return what tells Nessie's repository from another: when it was created."""
        return str(self._send("GET", "/config").get("repositoryCreationTimestamp", ""))

    def create_branch(self, name: str) -> str:
        """Create a branch at main's head; return its hash.

        An existing branch stays unchanged. A fresh branch must be new: if it exists, raises
        Transient BRANCH_TAKEN, and the next try uses another name.
        """
        main = {"type": "BRANCH", "name": self._main, "hash": self.head(self._main)}
        wanted = {"type": "BRANCH", "name": name}
        try:
            made = self._send("POST", "/trees", params=wanted, json=main)
        except _Exists:
            if is_fresh(name):
                raise branch_taken(name) from None
            return self.head(name)
        return str(made["reference"]["hash"])

    def head(self, branch: str) -> str:
        """Return a branch's current hash. Raises UnknownBranch."""
        return str(self._send("GET", _path(branch))["reference"]["hash"])

    def tip(self) -> Tip:
        """Return main's current head."""
        reference = self._send("GET", self._path, params={"fetch": "ALL"})["reference"]
        return Tip(str(reference["hash"]), int(reference["metadata"]["numTotalCommits"]))

    def branches(self, *prefixes: str) -> list[str]:
        """Return the names of all branches that begin with one of `prefixes`, sorted."""
        begins = " || ".join(f"ref.name.startsWith('{prefix}')" for prefix in prefixes)
        wanted = f"refType == 'BRANCH' && ({begins})"
        query = {"filter": wanted, "max-records": str(self._page)}
        return sorted(str(each["name"]) for each in self._pages("/trees", "references", query))

    def references(self) -> dict[str, str]:
        """Return every branch and every tag with its hash."""
        entries = self._pages("/trees", "references", {"max-records": str(_PAGE)})
        return {str(each["name"]): str(each["hash"]) for each in entries}

    def delete_branch(self, branch: str) -> None:
        """Delete a branch with all its commits; ignore a missing one."""
        with suppress(UnknownBranch):
            at = f"{_path(branch)}@{self.head(branch)}"
            self._send("DELETE", at, params={"type": "BRANCH"})

    def merge(
        self, branch: str, at: str, base: str, message: str, properties: Mapping[str, str]
    ) -> str:
        """Merge what `branch` gained between the hashes `base` and `at` into main, as one commit.

        Returns that commit's hash, or "" where main has all of it already: merging the same hash
        again is safe and changes nothing. Raises MergeConflict when main changed the same table
        since, SetBack when main no longer has `base`, UnknownBranch when the branch is gone.
        """
        body = {
            "fromRefName": branch,
            "fromHash": at,
            "commitMeta": {"message": message, "authors": ["lakegate"], "properties": properties},
            # Then only an overloaded server answers 409, so a conflict is recognizable.
            "isReturnConflictAsResult": True,
        }
        head = self.head(self._main)
        path = f"{self._path}@{head}/history/merge"
        if head != base:
            _require_base(self._send("POST", path, json={**body, "isDryRun": True}), base, at)
        # If main was set back meanwhile it lacks `head`, and Nessie answers 404.
        merged = self._send("POST", path, json=body)
        if not merged["wasSuccessful"]:
            raise MergeConflict("MERGE_CONFLICT", _conflicts(merged))
        return str(merged["resultantTargetHash"]) if merged["wasApplied"] else ""

    def changed_tables(self, base: str, at: str) -> frozenset[str]:
        """Return the names of the tables (and views) that differ between two hashes."""
        diffs = self._pages(f"{self._path}@{base}/diff/{self._quoted}@{at}", "diffs", {})
        return differing_tables(diffs)

    def log(self) -> Iterator[Commit]:
        """Yield main's commits, newest first, reading pages on demand."""
        yield from map(Commit.of, self._history(self._quoted))

    def history(self) -> Iterator[tuple[Commit, frozenset[str]]]:
        """Yield main's commits, newest first, each with the names of what it put or dropped.

        These are tables and namespaces. Pages are read on demand.
        """
        for entry in self._history(self._quoted, fetch="ALL"):
            yield Commit.of(entry), changed(entry)

    def log_of(self, at: str) -> Iterator[Commit]:
        """Yield the commits that lead to the hash `at`, newest first, reading pages on demand.

        The hash may be one that no branch reaches any more. Raises UnknownBranch for an unknown
        hash.
        """
        yield from map(Commit.of, self._history(f"@{at}"))

    def states(self, at: str, since: datetime, known: set[str]) -> Iterator[Content]:
        """Yield the metadata files of all contents at `at`, and of its commits since then.

        What they were at the time `since` is included, or at the oldest commit of a log that was
        cut since. `known` are hashes of commits whose states were yielded before: the log is read
        back to one of them, and others are added. Raises UnknownBranch for an unknown hash, and
        UnknownContent for what may have files that are not found so.
        """
        yield from self._contents(at)
        hash_ = at
        for entry in self._history(f"@{at}", fetch="ALL"):
            hash_ = str(entry["commitMeta"]["hash"])
            if hash_ in known:
                return
            known.add(hash_)
            if datetime.fromisoformat(entry["commitMeta"]["commitTime"]) < since:
                break
            yield from contents_in(entry.get("operations") or ())
        yield from self._contents(hash_)

    def _contents(self, at: str) -> Iterator[Content]:
        entries = self._pages(f"/trees/@{at}/entries", "entries", {"content": "true"})
        return contents_in(entries)

    def metadata(self, at: str, table: str) -> str:
        """Return the address of the table's metadata file at the hash `at`; "" for a missing table.

        Raises UnknownBranch for an unknown hash.
        """
        try:
            answer = self._send("GET", f"/trees/@{at}/contents/{table}")
        except _NoContent:
            return ""
        return str(answer["content"].get("metadataLocation", ""))

    def _history(self, reference: str, **query: str) -> Iterator[dict[str, Any]]:
        """Yield the entries of a log, newest first; with `fetch="ALL"` what each changed, too."""
        pages = {**query, "max-records": str(self._page)}
        return self._pages(f"/trees/{reference}/history", "logEntries", pages)

    def _pages(self, path: str, name: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the entries under `name` in an answer's pages, each read on demand."""
        page: dict[str, str] = {}
        while True:
            answer = self._send("GET", path, params={**query, **page})
            yield from answer[name]
            if not answer.get("hasMore"):
                return
            page = {"page-token": answer["token"]}

    def _send(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        """Return the document that Nessie answers.

        Raises UnknownBranch, _Exists, _NoContent, and Transient for all else, such as TokenRefused.
        """
        try:
            answer = self._answer(method, self._v2 + path, **arguments)
            if answer.ok:
                return dict(answer.json())
        except requests.ConnectionError as error:
            message = f"Nessie did not answer at {self._v2}: it is down, or cannot be reached"
            refusal = trust.refusal(self._v2, error)
            raise Transient("CATALOG_UNAVAILABLE", refusal or message) from error
        except requests.RequestException as error:
            raise Transient("CATALOG_UNAVAILABLE", f"Nessie did not answer: {error}") from error
        if answer.status_code == 401:
            raise TokenRefused(self._bearer.name)
        if answer.status_code == 403:
            raise forbidden(self._bearer.name, _field(answer, "message"))
        raise _refusal(answer)

    def _answer(self, method: str, url: str, **arguments: Any) -> requests.Response:
        """Return the answer; read once more where the kept connection was closed meanwhile.

        A load balancer closes it after a minute, which a frozen function does not notice. What
        changes something is sent after a read, so on an open connection.
        """
        more = {"timeout": _TIMEOUT, "verify": trust.bundle(), **arguments}
        try:
            return self._session.request(method, url, **more)
        except requests.ConnectionError:
            if method != "GET":
                raise
            return self._session.request(method, url, **more)


class _NoContent(LakegateError):
    """A reference has nothing under a key."""


class _Exists(LakegateError):
    """There is a reference with this name already."""


def branch_taken(name: str) -> Transient:
    """Return the error for a fresh branch that exists already."""
    message = f"another process created the branch {name}: the next try uses another name"
    return Transient("BRANCH_TAKEN", message)


def _path(branch: str) -> str:
    return f"/trees/{quote(branch, safe='')}"


def _refusal(answer: requests.Response) -> LakegateError:
    detail, code = _field(answer, "message") or answer.text[:200], _field(answer, "errorCode")
    if code == "CONTENT_NOT_FOUND":
        return _NoContent("NO_CONTENT", detail)
    if code == "REFERENCE_ALREADY_EXISTS":
        return _Exists("BRANCH_EXISTS", detail)
    if code == "REFERENCE_NOT_FOUND":  # unlike a proxy's 404
        return UnknownBranch("UNKNOWN_BRANCH", detail)
    code = "CATALOG_UNAVAILABLE" if answer.status_code >= 500 else "CATALOG_REFUSED"
    return Transient(code, f"Nessie answered {answer.status_code}: {detail}")


def _put(namespace: str) -> dict[str, Any]:
    name = {"elements": [namespace]}
    content = {"type": "NAMESPACE", **name}
    return {
        "commitMeta": {"message": "Begin", "authors": ["lakegate"]},
        "operations": [{"type": "PUT", "key": name, "content": content}],
    }


def _require_base(tried: dict[str, Any], base: str, at: str) -> None:
    """Raise SetBack unless a merge would bring exactly what came after `base`, or nothing.

    Nessie merges all since the nearest commit that both sides have ("REST API", `MergeResponse`).
    """
    if tried["commonAncestor"] not in (base, at):
        message = f"main lost the commit {base} that the branch was created at: was main set back?"
        raise SetBack("MAIN_SET_BACK", message)


def _conflicts(merged: dict[str, Any]) -> str:
    messages = [each["conflict"]["message"] for each in merged["details"] if each.get("conflict")]
    return f"main changed the same table: {', '.join(messages)}"


def _field(answer: requests.Response, name: str) -> str:
    """Return a field of Nessie's error document, "" where the answer has none."""
    try:
        return str(answer.json()[name])
    except (ValueError, KeyError, TypeError):
        return ""
