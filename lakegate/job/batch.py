"""A batch: files of several tables that a manifest makes one ingestion.

The manifest is the landed object; the files that it names lie in its folder of the landing bucket.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lakegate.errors import Permanent
from lakegate.job.landing import MANIFEST, LandedObject
from lakegate.limits import DEFAULTS, Limits
from lakegate.text import load_json, one_line

_EXAMPLE = '{"files": [{"key": "flights.parquet", "table": "nyc.flights"}]}'
_MOST_NAMED = 5


@dataclass(frozen=True)
class Listed:
    """A manifest's entry for one file: its key below the manifest's folder, and its table."""

    key: str
    table: str


@dataclass(frozen=True)
class BatchFile:
    """One file of a batch as its job reads it: the version found at the start, and the contract.

    `key` is below the manifest's folder, `size` in bytes, `contract_version` S3's version of the
    contract's text. `rows` are those that its audit counted; `hash` is the commit on the intent's
    branch whose newest snapshot of the table adds this file's rows.
    """

    key: str
    version: str
    etag: str
    size: int
    table: str
    contract_key: str
    contract_version: str
    rows: int = 0
    hash: str = ""

    def landed(self, manifest: LandedObject) -> LandedObject:
        """Return the file as a landed object of its own."""
        return LandedObject(
            bucket=manifest.bucket,
            key=folder(manifest.key) + self.key,
            version=self.version,
            etag=self.etag,
            size=self.size,
            landed_at=manifest.landed_at,
        )


def folder(manifest: str) -> str:
    """Return the folder of a manifest's key, with its slash."""
    return manifest.removesuffix(MANIFEST)


def tables_of(parts: Iterable[BatchFile]) -> tuple[str, ...]:
    """Return the tables of some files, each once, in the order in which they are named."""
    return tuple(dict.fromkeys(part.table for part in parts))


def read_manifest(text: str | bytes, limits: Limits = DEFAULTS) -> tuple[Listed, ...]:
    """Return the files that a manifest names, in its order.

    Raises Permanent BAD_MANIFEST, with what to do, for an invalid manifest.
    """
    try:
        document = load_json(text)
    except ValueError as error:
        raise _bad(f"is not JSON ({error})", f"it must be as {_EXAMPLE}") from error
    if not isinstance(document, dict) or not isinstance(document.get("files"), list):
        raise _bad("has no list of files", f"it must be as {_EXAMPLE}")
    if unknown := sorted(set(document) - {"files"}):
        raise _bad(f"has more than files in it: {_names(unknown)}", "take that out")
    files = tuple(_listed(each, number) for number, each in enumerate(document["files"], 1))
    if not files:
        raise _bad("names no file", "name at least one")
    if len(files) > limits.most_batch_files:
        most = f"{limits.most_batch_files:,} are taken: make several batches of it"
        raise _bad(f"names {len(files):,} files", f"at most {most}, or raise MostBatchFiles")
    if twice := [key for key, n in Counter(each.key for each in files).items() if n > 1]:
        raise _bad(f"names {_names(twice)} more than once", "name each file once")
    return files


def _listed(entry: Any, number: int) -> Listed:
    which = f"file {number} of it"
    if not isinstance(entry, dict) or entry.keys() != {"key", "table"}:
        raise _bad(f"has a wrong entry, {which}", "each has a key and a table, and nothing more")
    if not all(isinstance(value, str) and value for value in entry.values()):
        raise _bad(f"has a wrong entry, {which}", "its key and its table are texts, not empty")
    listed = Listed(**entry)
    if why := next(_faults(listed.key), ""):
        named = f"names {_names([listed.key])}, {why}"
        raise _bad(named, "keys begin at the manifest's folder, as in flights.parquet")
    return listed


def _faults(key: str) -> Iterator[str]:
    """Return the faults of a key below a manifest's folder."""
    if key.startswith("/") or "://" in key:
        yield "which is not a key in its folder"
    if {"", ".", ".."} & set(key.split("/")):
        yield "which leads out of its folder or to none of its files"
    if key.rsplit("/", 1)[-1] == MANIFEST:
        yield "which is a manifest and no data"


def _names(names: Iterable[str]) -> str:
    shown = [one_line(name)[:200] for name in names]
    more = ", …" if len(shown) > _MOST_NAMED else ""
    return ", ".join(shown[:_MOST_NAMED]) + more


def _bad(what: str, todo: str) -> Permanent:
    return Permanent("BAD_MANIFEST", f"the manifest {what}: {todo}; then upload it once more")
