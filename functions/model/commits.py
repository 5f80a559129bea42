"""Commits of Nessie's logs, as values (Nessie documentation, "REST API", `LogEntry`)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from lakegate import times
from lakegate.errors import LakegateError

MAIN = "main"  # the branch that consumers read
# Types of contents, and of operations without content. The metadata of those alone names no file.
_TABLE, _ALONE = "ICEBERG_TABLE", ("ICEBERG_VIEW", "UDF")
_WITHOUT_FILES = ("NAMESPACE", "DELETE", "UNCHANGED")


class UnknownContent(LakegateError):
    """A commit names something whose files are unknown."""


class NotOnMain(LakegateError):
    """Main's log has no such commit."""


@dataclass(frozen=True)
class Commit:
    """One commit of a log; `is_merge` says that it merged a branch."""

    hash: str
    parent: str
    message: str
    properties: Mapping[str, str]
    author: str
    time: str
    is_merge: bool = False

    @classmethod
    def of(cls, entry: dict[str, Any]) -> "Commit":
        """Return the commit that an entry of a log describes."""
        meta = entry["commitMeta"]
        parents = meta.get("parentCommitHashes") or [""]
        return cls(
            hash=meta["hash"],
            parent=parents[0],
            message=meta["message"],
            properties={k: values[0] for k, values in meta.get("allProperties", {}).items()},
            author=", ".join(meta.get("authors", [])),
            time=meta["commitTime"],
            is_merge=len(parents) > 1,
        )

    @property
    def moment(self) -> datetime:
        """Return when it was made."""
        return datetime.fromisoformat(self.time)

    @property
    def at(self) -> str:
        """Return when it was made, as the ledger's times are written."""
        return times.text(self.moment)


@dataclass(frozen=True)
class Content:
    """A metadata file that a commit names: a table's, which reaches other files, or another's.

    A view's metadata, or a function's, is all that there is of it.
    """

    metadata: str
    is_table: bool = True


@dataclass(frozen=True)
class Tip:
    """The newest commit of main, and how many commits led to it.

    Main is never put back, so of two tips the one with more commits is the newer one.
    """

    hash: str
    position: int


def line_and_base(newer: Iterable[Commit], older: Iterable[Commit]) -> tuple[list[Commit], str]:
    """Return the commits of a log, newest first, that another log lacks, and where they begin.

    That is the newest commit that both have, "" if they have none. Both are read side by side: so
    neither is read much farther back than that commit.
    """
    line: list[Commit] = []
    places: dict[str, int] = {}
    seen = set[str]()
    for own, other in zip_longest(newer, older):
        if own:
            places[own.hash] = len(line)
            line.append(own)
        if other:
            seen.add(other.hash)
        for both in (own.hash if own else "", other.hash if other else ""):
            if both in places and both in seen:
                return line[: places[both]], both
    return line, ""


def changed(entry: dict[str, Any]) -> frozenset[str]:
    """Return the names of the tables and namespaces that an entry of a log changed."""
    return frozenset(".".join(each["key"]["elements"]) for each in entry.get("operations") or ())


def differing_tables(differences: Iterable[dict[str, Any]]) -> frozenset[str]:
    """Return the names of the tables and views among differences of two hashes."""
    return frozenset(
        ".".join(each["key"]["elements"])
        for each in differences
        if "NAMESPACE" not in {(each[side] or {}).get("type") for side in ("from", "to")}
    )


def contents_in(entries: Iterable[dict[str, Any]]) -> Iterator[Content]:
    """Yield the metadata files among contents, or among a commit's operations.

    Raises UnknownContent for every type of which it is not known where its files are.
    """
    for each in entries:
        content = each.get("content") or {}
        kind = content.get("type", each["type"])
        if kind not in (_TABLE, *_ALONE, *_WITHOUT_FILES):
            raise unknown_content(".".join((each.get("name") or each["key"])["elements"]), kind)
        if metadata := content.get("metadataLocation"):
            yield Content(str(metadata), kind == _TABLE)


def unknown_content(name: str, kind: str) -> UnknownContent:
    """Return the error for content of a type whose files are unknown."""
    message = f"Nessie's {name} is of the type {kind}, and Lakegate does not know its files"
    return UnknownContent("UNKNOWN_CONTENT", message)
