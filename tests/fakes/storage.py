"""The two buckets in memory, with versions."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, lru_cache
from hashlib import md5
from pathlib import Path
from typing import BinaryIO, Self

from functions.adapters.landing import LostPosition, Source
from functions.adapters.s3 import (
    CONTRACTS,
    YAML,
    Missing,
    Overwritten,
    StoredContract,
    StoredObject,
    contract_key,
)
from functions.model.notes.checkpoint import KEY as CHECKPOINT
from functions.model.notes.checkpoint import Checkpoint
from lakegate import times
from lakegate.audit.drift import Baselines, baselines_key
from lakegate.audit.report import AuditReport, from_lines
from lakegate.contract.claims import could_claim
from lakegate.contract.model import Contract, ContractInvalid
from lakegate.errors import Permanent
from lakegate.job.change import CHANGES, Change
from lakegate.job.landing import LandedObject, is_group_reports_key
from lakegate.job.upkeep import Comparison
from lakegate.limits import DEFAULTS, Limits
from tests.fakes.clock import FakeClock

_FIRST_SEQUENCER = 14  # "E", "F", "10": as texts they are in another order

_FEW = 100  # folders of reports that are all looked at


class FakeLanding:
    """A landing bucket that keeps every version; `announce` is told of each copy.

    `listed` counts the keys that `newest` found.
    """

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._landed: list[LandedObject] = []
        self._bodies: dict[tuple[str, str], tuple[bytes, str]] = {}
        self._deleted: list[tuple[str, str]] = []
        self._elsewhere: dict[tuple[str, str], bytes] = {}
        self._marks: dict[tuple[str, str], str] = {}
        self.bucket = "landing"
        self.page_size = 1000
        self.listed = 0
        self.announce: Callable[[LandedObject], object] = lambda landed: None

    def landed(self) -> Iterator[LandedObject]:
        yield from sorted(self._landed, key=lambda landed: landed.key)

    def page(self, position: str, most: int = 1000) -> tuple[list[LandedObject], str]:
        """See Landing.page; S3's pages have `page_size` versions."""
        if position and position not in map(_position, self._landed):
            raise LostPosition("LOST_POSITION", f"S3 does not list from there: {position}")
        listed = list(self.landed())
        positions = ["", *map(_position, listed)]
        start = positions.index(position)
        end = start + min(most, self.page_size)
        return listed[start:end], positions[end] if end < len(listed) else ""

    def newest(self, prefix: str, at: str = "9999", bucket: str = "") -> dict[str, LandedObject]:
        there_in = bucket or self.bucket
        mine = (each for each in self._landed if each.bucket == there_in)
        then = [each for each in mine if _was(each.landed_at, at)]
        there = {each.key: each for each in then if each.key.startswith(prefix)}
        self.listed += len(there)
        gone = {key: time for key, time in self._deleted if _was(time, at)}
        return {k: each for k, each in there.items() if gone.get(k, "") < each.landed_at}

    def manifest(self, landed: LandedObject) -> tuple[bytes, str]:
        if (landed.key, landed.version) not in self._bodies:
            raise Missing("MISSING_OBJECT", f"there is no object {landed.uri}")
        body, at = self._bodies[landed.key, landed.version]
        _check_size(landed.key, body, 64 << 10)
        return body, at

    def download(self, landed: LandedObject, file: Path) -> None:
        body, _ = self._bodies.get((landed.key, landed.version), (b"", ""))
        if _etag(body) != landed.etag:
            raise Missing("MISSING_OBJECT", f"there is no object {landed.uri}")
        file.write_bytes(body)

    def put(self, key: str, body: bytes | BinaryIO) -> LandedObject:
        body = body if isinstance(body, bytes) else body.read()
        etag = _etag(body)
        version = f"v{1 + sum(landed.key == key for landed in self._landed)}"
        landed = LandedObject(self.bucket, key, version, etag, len(body))
        at = self._clock.now()
        self._landed.append(replace(landed, landed_at=at))
        self._bodies[key, version] = body, at
        return landed

    def land_in(self, bucket: str, key: str, body: bytes) -> LandedObject:
        """Put an object into a landing bucket of others, as an uploader does."""
        put = self.put(key, body)  # whose version no other of the key has, in either bucket
        self._landed[-1] = replace(self._landed[-1], bucket=bucket)
        return replace(put, bucket=bucket)

    def put_elsewhere(self, bucket: str, key: str, body: bytes | None) -> None:
        """Put an object into another bucket; None deletes it."""
        self._elsewhere.pop((bucket, key), None)
        if body is not None:
            self._elsewhere[bucket, key] = body

    def sources(self, bucket: str, prefix: str) -> Iterator[Source]:
        for (found, key), body in sorted(self._elsewhere.items()):
            if found == bucket and key.startswith(prefix) and not key.endswith("/"):
                yield Source(bucket, key, _etag(body), len(body))

    def bring(self, source: Source, key: str, over: LandedObject | None = None) -> LandedObject:
        found = self.newest(key).get(key)
        if (found.etag if found else "") != (over.etag if over else ""):
            raise Overwritten("OVERWRITTEN", f"{key} was overwritten meanwhile")
        body = self._elsewhere.get((source.bucket, source.key))
        if body is None:
            raise Missing("MISSING_OBJECT", f"there is no object {source.uri}")
        if _etag(body) != source.etag:
            raise Overwritten("OVERWRITTEN", f"{source.uri} was overwritten meanwhile")
        landed = self.put(key, body)
        self._marks[key, landed.version] = source.mark
        self.announce(landed)
        return landed

    def put_over(self, landed: LandedObject, file: Path, mark: str) -> LandedObject:
        if self.brought(landed.key, landed.bucket)[0].version != landed.version:
            raise Overwritten("OVERWRITTEN", f"{landed.key} was overwritten meanwhile")
        put = self.put(landed.key, file.read_bytes())
        self._marks[landed.key, put.version] = mark
        self.announce(put)
        return put

    def mark(self, landed: LandedObject) -> str:
        """Return the mark of a version, "" if it was put without."""
        return self._marks.get((landed.key, landed.version), "")

    def brought(self, key: str, bucket: str = "") -> tuple[LandedObject, str]:
        found = self.newest(key, bucket=bucket).get(key)
        if found is None:
            raise Missing("MISSING_OBJECT", f"there is no object {key}")
        return replace(found, landed_at=""), self.mark(found)

    def delete(self, key: str) -> None:
        """Delete a key as a user does: its versions stay, behind a delete marker."""
        self._deleted.append((key, self._clock.now()))

    def announced(self, landed: LandedObject) -> LandedObject:
        """Return a landed object as S3's event names it: with its time and its order."""
        for number, listed in enumerate(self._landed, _FIRST_SEQUENCER):
            if (listed.key, listed.version) == (landed.key, landed.version):
                return replace(listed, sequencer=f"{number:X}")
        return landed

    def forget(self, landed: LandedObject) -> None:
        """Delete one version of a key."""
        gone = landed.key, landed.version
        self._landed = [each for each in self._landed if (each.key, each.version) != gone]
        del self._bodies[gone]

    def lose(self, prefix: str = "") -> None:
        """Delete every version of every key with this prefix, as a lifecycle rule does."""
        self._landed = [each for each in self._landed if not each.key.startswith(prefix)]
        kept = ((at, body) for at, body in self._bodies.items() if not at[0].startswith(prefix))
        self._bodies = dict(kept)


def _etag(body: bytes) -> str:
    return md5(body, usedforsecurity=False).hexdigest()


class FakeLake:
    """The texts beside the tables: every version of the contracts and reports.

    `searched` are the ids of the ingestions whose reports were last listed.
    """

    def __init__(self, clock: FakeClock | None = None, limits: Limits = DEFAULTS) -> None:
        self._clock = clock or FakeClock()
        self.limits = limits
        self._changes: dict[str, tuple[bytes, str]] = {}
        self._texts: defaultdict[str, list[bytes]] = defaultdict(list)
        self.deleted: dict[str, None] = {}
        self.searched: frozenset[str] = frozenset()
        self.bucket = "lake"
        self.data: dict[str, StoredObject] = {}  # objects of tables, where a test has some

    def clock(self) -> datetime:
        return datetime.fromisoformat(self._clock.now()).replace(microsecond=0)

    def contracts(self, key: str | None = "") -> list[StoredContract]:
        found = []
        for source, texts in sorted(self._texts.items()):
            if source.startswith(CONTRACTS) and source.endswith(YAML):
                try:
                    found.append(self._contract(texts[-1], source, f"v{len(texts)}"))
                except ContractInvalid:
                    if key is not None and could_claim(texts[-1], key):
                        raise
        return found

    def listed_once(self) -> Self:
        """See Lake.listed_once; here each look lists them anew."""
        return self

    def contract_at(self, key: str, version: str) -> StoredContract:
        texts = {f"v{n}": text for n, text in enumerate(self._texts.get(key, ()), 1)}
        wanted = version or f"v{len(texts)}"
        if wanted not in texts:
            raise Missing("MISSING_OBJECT", f"there is no object {key} (version {version})")
        return self._contract(texts[wanted], key, wanted)

    def put_contract(self, contract: Contract, text: str) -> str:
        key = contract_key(contract.table)
        self.put_text(key, text.encode())
        return key

    def put_change(self, change: Change) -> LandedObject:
        self._changes.setdefault(change.key, (change.to_json().encode(), self._clock.now()))
        return change.landed(self.bucket)

    def change(self, key: str) -> Change:
        if key not in self._changes:
            raise Missing("MISSING_OBJECT", f"there is no object {key}")
        return Change.from_json(self._changes[key][0], key)

    def changes(self, table: str = "") -> Iterator[LandedObject]:
        wanted = f"{CHANGES}{table}/" if table else CHANGES
        found = ((key, *each) for key, each in sorted(self._changes.items()))
        for key, text, at in (each for each in found if each[0].startswith(wanted)):
            yield Change.from_json(text, key).landed(self.bucket, at)

    def report(self, key: str) -> AuditReport:
        if key not in self._texts:
            raise Missing("MISSING_OBJECT", f"there is no object {key}")
        _check_size(key, self._texts[key][-1], self.limits.largest_report)
        return _read_report(self._texts[key][-1], key)

    def comparison(self, key: str) -> Comparison:
        if key not in self._texts:
            raise Missing("MISSING_OBJECT", f"there is no object {key}")
        return Comparison.from_json(self._texts[key][-1], key)

    def group_reports(self, key: str) -> dict[str, AuditReport]:
        if key not in self._texts:
            raise Missing("MISSING_OBJECT", f"there is no object {key}")
        _check_size(key, self._texts[key][-1], self.limits.largest_report)
        return {each.key: each for each in from_lines(self._texts[key][-1], key)}

    def finished_report(self, key: str) -> AuditReport | None:
        return self.report(key) if key in self._texts else None

    def put_report(self, key: str, text: str) -> AuditReport:
        self._texts[key] = self._texts[key] or [text.encode()]
        return self.report(key)

    def size(self, key: str) -> int:
        """See spark_jobs.lake.storage.Storage.stored."""
        return len(self._texts[key][-1]) if key in self._texts else 0

    def baselines(self, table: str) -> tuple[Baselines, str]:
        texts = self._texts.get(baselines_key(table))
        return (
            (Baselines.from_json(texts[-1]), str(len(texts))) if texts else (Baselines(table), "")
        )

    def put_baselines(self, baselines: Baselines, etag: str) -> None:
        key = baselines_key(baselines.table)
        if etag != (str(len(self._texts[key])) if self._texts.get(key) else ""):
            raise Overwritten("OVERWRITTEN", f"{key} is another by now")
        self.put_text(key, baselines.to_json().encode())

    def checkpoint(self) -> tuple[Checkpoint | None, str]:
        texts = self._texts.get(CHECKPOINT)
        return (Checkpoint.from_json(texts[-1]), str(len(texts))) if texts else (None, "")

    def put_checkpoint(self, checkpoint: Checkpoint, etag: str) -> None:
        if etag != (str(len(self._texts[CHECKPOINT])) if self._texts.get(CHECKPOINT) else ""):
            raise Overwritten("OVERWRITTEN", f"{CHECKPOINT} is another by now")
        self.put_text(CHECKPOINT, checkpoint.to_json().encode())

    def is_gone(self, address: str) -> bool:
        """See Lake.is_gone; a fake table's data file exists until it is deleted."""
        return (address.partition("://lake/")[2] or address) in self.deleted

    def reports(self, wanted: Mapping[str, Collection[str]] | None = None) -> Iterator[str]:
        self.searched = frozenset(wanted or ())
        keys = sorted(key for key in self._texts if key.startswith("reports/"))
        reports = [(key, *key.split("/")[1:3]) for key in keys if not is_group_reports_key(key)]
        are_few = len({table for _, table, _ in reports}) * len(self.searched) <= _FEW
        for key, table, id_ in reports:
            if wanted is None or (id_ in wanted and (are_few or table in wanted[id_])):
                yield key

    def reports_of(self, table: str, id_part: str) -> Iterator[str]:
        yield from sorted(k for k in self._texts if k.startswith(f"reports/{table}/{id_part}"))

    def lose(self, prefix: str) -> None:
        """Delete every version of all texts under a prefix."""
        for key in [key for key in self._texts if key.startswith(prefix)]:
            del self._texts[key]

    def lose_change(self, key: str) -> None:
        """Delete a change's text."""
        del self._changes[key]

    def delete_objects(self, keys: Sequence[str]) -> None:
        self.deleted.update(dict.fromkeys(keys))
        for key in keys:
            self._texts.pop(key, None)
            self.data.pop(key, None)

    def store(self, addresses: Iterable[str]) -> None:
        """Put files of tables into the bucket."""
        for address in addresses:
            key = address.removeprefix("s3://lake/")
            self.deleted.pop(key, None)
            self.data[key] = StoredObject(key, 1, self._clock.moment)

    def stored(self, prefix: str) -> Iterator[StoredObject]:
        """See Lake.stored; of the tables' objects only."""
        yield from [each for key, each in sorted(self.data.items()) if key.startswith(prefix)]

    def put_text(self, key: str, text: bytes) -> None:
        """Put a text into the bucket, as a job does, or a user without any checks."""
        self._texts[key].append(text)

    def _contract(self, text: bytes, key: str, version: str) -> StoredContract:
        _check_size(key, text, self.limits.largest_contract)
        return _read(text, key, version, self.limits)


# Cached frozen values of texts that thousands of stories share.
_read = cache(StoredContract.read)
_read_report = lru_cache(maxsize=10_000)(AuditReport.from_json)


def _position(landed: LandedObject) -> str:
    return f"{landed.key}@{landed.version}"


def _was(time: str, at: str) -> bool:
    """Return whether a time is before another, or in the same whole second."""
    return times.second(time) <= times.second(at)


def _check_size(key: str, text: bytes, most: int) -> None:
    if len(text) > most:
        raise Permanent("TOO_LARGE", f"{key} has more than the {most:,} bytes that are read")
