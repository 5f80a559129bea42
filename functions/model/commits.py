"""Commits of Nessie's logs, as values (Nessie documentation, "REST API", `LogEntry`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakegate.errors import LakegateError


class NotOnMain(LakegateError):
    """Main's log has no such commit."""


@dataclass(frozen=True)
class Commit:
    """One commit of main's log."""

    hash: str
    parent: str
    message: str
    properties: Mapping[str, str]
    author: str
    time: str

    @classmethod
    def of(cls, entry: dict[str, Any]) -> "Commit":
        """Return the commit that an entry of a log describes."""
        meta = entry["commitMeta"]
        return cls(
            hash=meta["hash"],
            parent=(meta.get("parentCommitHashes") or [""])[0],
            message=meta["message"],
            properties={k: values[0] for k, values in meta.get("allProperties", {}).items()},
            author=", ".join(meta.get("authors", [])),
            time=meta["commitTime"],
        )


@dataclass(frozen=True)
class Tip:
    """The newest commit of main, and how many commits led to it.

    Main is never put back, so of two tips the one with more commits is the newer one.
    """

    hash: str
    position: int


@dataclass(frozen=True)
class Change:
    """One commit of a log, and its effect on one table.

    `metadata` is the address of the metadata file that it gave the table, "" if it left the table
    alone or dropped it. `is_merge` says that it merged a branch.
    """

    hash: str
    moment: datetime
    metadata: str = ""
    is_merge: bool = False

    @classmethod
    def of(cls, entry: dict[str, Any], table: str) -> "Change":
        """Return the effect of an entry of a log, with its operations, on a table."""
        meta = entry["commitMeta"]
        written = [
            operation["content"].get("metadataLocation", "")
            for operation in entry.get("operations") or []
            if operation["type"] == "PUT" and operation["key"]["elements"] == table.split(".")
        ]
        return cls(
            hash=meta["hash"],
            moment=datetime.fromisoformat(meta["commitTime"]),
            metadata=written[-1] if written else "",
            is_merge=len(meta.get("parentCommitHashes", [])) > 1,
        )


def changed(entry: dict[str, Any]) -> frozenset[str]:
    """Return the names of the tables and namespaces that an entry of a log changed."""
    return frozenset(".".join(each["key"]["elements"]) for each in entry.get("operations") or ())
