"""Create, read and reset the run's branch in Nessie."""

import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

from lakegate import trust
from lakegate.errors import LakegateError, Transient
from lakegate.refusals import forbidden
from lakegate.tokens import TokenRefused

MAIN = "main"


class BranchExists(LakegateError):
    """The branch exists already: an earlier try of the attempt made it."""

    def __init__(self, branch: str) -> None:
        super().__init__("BRANCH_EXISTS", f"the branch {branch} exists already")


class _Conflict(Transient):
    """Nessie answers 409: what the request expects of a reference does not hold."""


@dataclass(frozen=True)
class Branch:
    """A branch, accessed with the job's token (Nessie REST API v2)."""

    nessie_uri: str
    name: str
    token: str = field(repr=False)

    def head(self) -> str:
        """Return the hash of the branch's newest commit."""
        return str(self._send("GET", f"trees/{quote(self.name, safe='')}")["reference"]["hash"])

    def create(self) -> str:
        """Create the branch at main's head; return that hash. Raises BranchExists."""
        main = self._send("GET", f"trees/{MAIN}")["reference"]
        try:
            made = self._send("POST", f"trees?name={quote(self.name)}&type=BRANCH", main)
        except _Conflict as error:
            raise BranchExists(self.name) from error
        return str(made["reference"]["hash"])

    def reset_to_main(self) -> str:
        """Reset the branch to main's head; return that hash."""
        head = replace(self, name=MAIN).head()
        self.reset(head)
        return head

    def own_commit(self, before: str) -> str:
        """Return the branch's head: the one commit made since the hash `before`, or `before`.

        Raises Transient BRANCH_SHARED if there are more commits. Then another writer committed too:
        an earlier driver of the same run may still be active.
        """
        path = f"trees/{quote(self.name, safe='')}/history?max-records=1"
        newest = self._send("GET", path)["logEntries"][0]["commitMeta"]
        head, parents = str(newest["hash"]), newest.get("parentCommitHashes") or [""]
        if before not in (head, parents[0]):
            raise shared(self.name)
        return head

    def made_commit(self, before: str) -> str:
        """Return the one commit made since the hash `before`, which surely was made.

        Raises Transient as `own_commit`, and BRANCH_SET_BACK if the branch has lost it, as one does
        whose catalog is restored meanwhile.
        """
        made = self.own_commit(before)
        if made == before:
            message = (
                f"the branch {self.name} has lost the commit: the job is retried on a fresh one"
            )
            raise Transient("BRANCH_SET_BACK", message)
        return made

    def reset(self, to: str) -> None:
        """Reset the branch to the hash `to`, to undo the commits of an earlier try of this run."""
        head = self.head()
        if head == to:
            return
        path = f"trees/{quote(self.name, safe='')}@{head}?type=BRANCH"
        self._send("PUT", path, {"type": "BRANCH", "name": self.name, "hash": to})

    def _send(self, method: str, path: str, body: dict[str, str] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the address is the deployment's
            f"{self.nessie_uri}/api/v2/{path}",
            method=method,
            data=json.dumps(body).encode() if body else None,
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            known = trust.context(trust.authority())
            with urllib.request.urlopen(request, timeout=30, context=known) as answer:  # noqa: S310
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            if error.code == 401:
                raise TokenRefused("the job's token") from error
            if error.code == 403:
                raise forbidden("the job's token", f"{method} {path}") from error
            if error.code == 409:
                raise _Conflict("CATALOG_CONFLICT", f"{self.name}: {error}") from error
            raise self._unavailable(error) from error
        except (OSError, ValueError, HTTPException) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> Transient:
        message = f"Nessie did not respond for branch {self.name}: {error}"
        refusal = trust.refusal(self.nessie_uri, error)
        return Transient("CATALOG_UNAVAILABLE", refusal or message)


def shared(branch: str) -> Transient:
    """Return the error for a branch on which another writer committed."""
    message = f"another writer committed on the branch {branch}: the job is retried on a fresh one"
    return Transient("BRANCH_SHARED", message)
