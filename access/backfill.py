"""Bring many existing files through the gate: copy them from another bucket into the landing one.

A copy lands as any file does, and is ingested, audited and published alone. It carries its source's
mark, so a repeated backfill copies only what is missing. Few of its files are in flight at a time:
files that land meanwhile need not wait behind all of them.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import islice
from urllib.parse import urlsplit

from access.ingestions import read
from functions.adapters.all import Adapters
from functions.adapters.landing import Landing, Source
from functions.adapters.s3 import Missing, Overwritten
from functions.model.ingestion import Ingestion, State
from lakegate.errors import LakegateError
from lakegate.landing import LandedObject, ignore_rule, ingestion_id

_PARALLEL = 8  # copies at a time
_PAUSE = 1.0  # seconds between two looks at the ledger


class Step(StrEnum):
    """The step that a backfill took for a file of the source."""

    COPIED = "copied"
    BROUGHT = "copied before"
    IGNORED = "ignored by name"
    TAKEN = "key taken by another file"
    CHANGED = "changed or deleted meanwhile"


@dataclass(frozen=True)
class Backfill:
    """A request: the files of `bucket` whose keys begin with `prefix`, to land under `target`.

    A file's key below the last slash of `prefix` is its key below `target`. At most `at_once` files
    of the request are in flight at a time. They land `in_order` of their keys if that matters.
    """

    bucket: str
    prefix: str
    target: str
    at_once: int = 200
    in_order: bool = False

    def key(self, source: Source) -> str:
        """Return the key under which a file lands."""
        return self.target + source.key[self.prefix.rfind("/") + 1 :]


@dataclass(frozen=True)
class Handled:
    """A file of the source: what was done, and the landed object if it has one."""

    source: Source
    key: str
    step: Step
    landed: LandedObject | None = None


@dataclass(frozen=True)
class Progress:
    """The progress of a backfill.

    `left` are files that did not land though they should, `ended` counts final states, `failed` are
    the ingestions among them that were not published, `in_flight` the ids of all others.
    """

    steps: Counter[Step] = field(default_factory=Counter)
    left: tuple[Handled, ...] = ()
    in_flight: frozenset[str] = frozenset()
    ended: Counter[State] = field(default_factory=Counter)
    failed: tuple[Ingestion, ...] = ()

    def with_files(self, files: Sequence[Handled]) -> "Progress":
        """Return the progress after so many more files were handled."""
        landed = {ingestion_id(each.landed) for each in files if each.landed}
        return replace(
            self,
            steps=self.steps + Counter(each.step for each in files),
            left=(*self.left, *(f for f in files if f.step in (Step.TAKEN, Step.CHANGED))),
            in_flight=self.in_flight | landed,
        )

    def looked(self, found: Sequence[Ingestion]) -> "Progress":
        """Return the progress after a look at the ledger."""
        ended = [each for each in found if each.ended]
        return replace(
            self,
            in_flight=self.in_flight - {each.id for each in ended},
            ended=self.ended + Counter(each.state for each in ended),
            failed=(*self.failed, *(each for each in ended if each.state is not State.PUBLISHED)),
        )


def source_of(address: str, landing_bucket: str) -> tuple[str, str]:
    """Return bucket and prefix of `s3://bucket/prefix`. Raises LakegateError BAD_SOURCE."""
    url = urlsplit(address, allow_fragments=False)
    if url.scheme != "s3" or not url.netloc or url.query:
        message = f"cannot read {address}: it is no place in S3\nGive it as s3://bucket/prefix"
        raise LakegateError("BAD_SOURCE", message)
    if url.netloc == landing_bucket:
        message = (
            f"{address} is in the landing bucket: what is there comes in by itself\n"
            "`lakegate runs` lists it; give a prefix of another bucket"
        )
        raise LakegateError("BAD_SOURCE", message)
    return url.netloc, url.path.removeprefix("/")


def _rest() -> None:
    time.sleep(_PAUSE)


def backfill(
    adapters: Adapters, request: Backfill, pause: Callable[[], None] = _rest
) -> Iterator[Progress]:
    """Bring every file of the source; yield the progress until all have their final states.

    Raises LakegateError if S3 refuses; repeated, it goes on with the files that are missing.
    """
    sources = adapters.landing.sources(request.bucket, request.prefix)
    progress = Progress()
    with ThreadPoolExecutor(1 if request.in_order else _PARALLEL) as pool:
        while True:
            room = request.at_once - len(progress.in_flight)
            some = list(islice(sources, room))
            handled = list(pool.map(partial(_handle, adapters.landing, request), some))
            progress = progress.with_files(handled)
            progress = progress.looked(read(adapters.ledger, sorted(progress.in_flight)))
            yield progress
            if room and not some and not progress.in_flight:
                return
            if progress.in_flight:
                pause()


def _handle(landing: Landing, request: Backfill, source: Source) -> Handled:
    """Copy a file unless its key needs none; a file that comes twice is copied once."""
    key = request.key(source)
    if ignore_rule(key):
        return Handled(source, key, Step.IGNORED)
    try:
        landed, mark = landing.brought(key)
    except Missing:
        return _copied(landing, source, key)
    if mark == source.mark:
        return Handled(source, key, Step.BROUGHT, landed)
    if not mark:
        return Handled(source, key, Step.TAKEN)
    return _copied(landing, source, key)


def _copied(landing: Landing, source: Source, key: str) -> Handled:
    try:
        return Handled(source, key, Step.COPIED, landing.bring(source, key))
    except (Missing, Overwritten):
        return Handled(source, key, Step.CHANGED)
