"""A batch: files of several tables that a manifest makes one ingestion.

The manifest is the landed object; the files that it names lie in its folder of the landing bucket.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakegate.errors import Permanent
from lakegate.landing import BATCH, MANIFEST, LandedObject
from lakegate.limits import DEFAULTS, Limits
from lakegate.report import AuditReport, Reason, Verdict, checks_of
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
    found = tuple(_listed(each, number) for number, each in enumerate(document["files"], 1))
    if not found:
        raise _bad("names no file", "name at least one")
    if len(found) > limits.most_batch_files:
        most = f"{limits.most_batch_files:,} are taken: make several batches of it"
        raise _bad(f"names {len(found):,} files", f"at most {most}, or raise MostBatchFiles")
    if twice := [key for key, n in Counter(each.key for each in found).items() if n > 1]:
        raise _bad(f"names {_names(twice)} more than once", "name each file once")
    return found


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


# The one report of a batch, from the reports of its files.

_WORST = (Verdict.ERRORED, Verdict.REJECTED)


def together(manifest: LandedObject, parts: Sequence[AuditReport]) -> AuditReport:
    """Return the report of a batch from those of its files, at least one, in order.

    It passes if all of them pass. If a file has no rows on the branch, the report has no audited
    hash: then nothing can be published, even on request.
    """
    first, last = parts[0], parts[-1]
    verdict, reason = _verdict(manifest, parts)
    return replace(
        first,
        verdict=verdict,
        reason=reason,
        table=BATCH,
        audited_hash=last.audited_hash if all(part.audited_hash for part in parts) else "",
        source=manifest,
        format="",
        contract_id="",
        contract_version="",
        contract_sha256="",
        transform="",
        finished_at=last.finished_at,
        checks=checks_of(parts, manifest.key),
        steps=tuple(
            replace(step, name=f"{_file(manifest, part)}: {step.name}")
            for part in parts
            for step in part.steps
        ),
        files=(),
        records=(),
        rows_written=sum(part.rows_written for part in parts),
        rows_read=sum(part.rows_read for part in parts),
        rows_rejected=sum(part.rows_rejected for part in parts),
        rows_unreadable=sum(part.rows_unreadable for part in parts),
        rows_nulled=sum(part.rows_nulled for part in parts),
        source_rows=sum(part.source_rows for part in parts),
        schema_changes=tuple(f"{p.table}: {each}" for p in parts for each in p.schema_changes),
        parts=tuple(parts),
        wrong_columns=None,
    )


def _verdict(manifest: LandedObject, parts: Sequence[AuditReport]) -> tuple[Verdict, Reason | None]:
    """Return the worst of the files' verdicts, and the file that it comes from."""
    for worst in _WORST:
        if failed := [part for part in parts if part.verdict is worst]:
            why = failed[0].reason or Reason("UNKNOWN", "its report does not say why")
            more = f" ({len(failed)} of {len(parts)} files were {worst})" if failed[1:] else ""
            named = f"{_file(manifest, failed[0])} for {failed[0].table}"
            return worst, Reason(why.code, f"{named}: {why.message}{more}")
    return Verdict.PASSED, None


def _file(manifest: LandedObject, part: AuditReport) -> str:
    return part.source.key.removeprefix(manifest.key.rpartition("/")[0] + "/")
