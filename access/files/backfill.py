"""Bring many existing files through the gate: copy them from another bucket into the landing one.

A copy lands as any file does, and is ingested, audited and published alone. The ledger knows each
source's last copy, so a repeated backfill copies only what is missing or has changed, whatever the
prefix, and whether the copies are still in the landing bucket:

    the ledger has no copy → the source lands under the key that its prefix gives, if that is free
    it has one of this state → nothing, unless it failed and the landing bucket has it no more
    it has one of another state → the source lands again, under the same key
    it has one that was only begun → the mark of what landed tells if the copy ended; where that
                                     has expired, the bytes of what was published

Few of its files are in flight at a time: files that land meanwhile need not wait behind all of
them. A table has one backfill at a time: two would copy the same files. One that hung for longer
than its claim can do no harm when it goes on: the ledger takes of two copies of a source only one,
and S3 copies a file only over what its key had.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from itertools import islice

from functions.adapters.all import Adapters
from functions.adapters.landing import Source
from functions.adapters.ledger.notes import Claimed, Moved
from functions.adapters.s3 import Missing, Overwritten
from functions.model.ingestion import Ingestion, State
from functions.model.notes.brought import Brought
from lakegate import times
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject, hidden_rule, ignore_rule, ingestion_id

_PARALLEL = 8  # copies at a time
_LEASE = timedelta(minutes=15)  # more than copying one round of files takes
_NO_COPY = Brought("", "")
_PAUSE = 1.0  # seconds between two looks at the ledger


class Step(StrEnum):
    """The step that a backfill took for a file of the source."""

    COPIED = "copied"
    BROUGHT = "copied before"
    PUBLISHED = "published before"
    IGNORED = "ignored by name"
    TAKEN = "key taken by another file"
    FOREIGN = "key of another table"
    CHANGED = "changed or deleted meanwhile"


@dataclass(frozen=True)
class Backfill:
    """A request: the files of `bucket` whose keys begin with `prefix`, to land under `target`.

    A file's key below the last slash of `prefix` is its key below `target`, a folder for files of
    `table`. At most `at_once` files of the request are in flight at a time. They land `in_order` of
    their keys if that matters. `others` are landing prefixes of other tables within the table's.
    """

    table: str
    bucket: str
    prefix: str
    target: str
    at_once: int = 200
    in_order: bool = False
    others: tuple[str, ...] = ()

    def key(self, source: Source) -> str:
        """Return the key under which a file lands."""
        return self.target + source.key[self.prefix.rfind("/") + 1 :]

    def unfit(self, source: Source) -> Step | None:
        """Return why a file is not to land: by its name, or as another table's; None if it is."""
        key = self.key(source)
        if ignore_rule(key) or hidden_rule(key, self.target):
            return Step.IGNORED
        return Step.FOREIGN if key.startswith(self.others) else None


@dataclass(frozen=True)
class Handled:
    """A file of the source: what was done, and the landed object if it has one."""

    source: Source
    key: str
    step: Step
    landed: LandedObject | None = None

    @property
    def is_left(self) -> bool:
        """Return whether it did not land though it should."""
        return self.step in (Step.TAKEN, Step.FOREIGN, Step.CHANGED)


@dataclass(frozen=True)
class Progress:
    """The progress of a backfill.

    `skipped` are the files that were not copied, `ended` counts final states, `failed` are the
    ingestions among them that were not published, `in_flight` the ids of all others.
    """

    steps: Counter[Step] = field(default_factory=Counter)
    skipped: tuple[Handled, ...] = ()
    in_flight: frozenset[str] = frozenset()
    ended: Counter[State] = field(default_factory=Counter)
    failed: tuple[Ingestion, ...] = ()

    @property
    def left(self) -> tuple[Handled, ...]:
        """Return the files that did not land though they should."""
        return tuple(file for file in self.skipped if file.is_left)

    def with_files(self, files: Sequence[Handled]) -> "Progress":
        """Return the progress after so many more files were handled."""
        landed = {ingestion_id(each.landed) for each in files if each.landed}
        return replace(
            self,
            steps=self.steps + Counter(each.step for each in files),
            skipped=(*self.skipped, *(each for each in files if each.step is not Step.COPIED)),
            in_flight=self.in_flight | landed,
        )

    def looked(self, ingestions: Sequence[Ingestion]) -> "Progress":
        """Return the progress after a look at the ledger."""
        ended = [each for each in ingestions if each.ended]
        return replace(
            self,
            in_flight=self.in_flight - {each.id for each in ended},
            ended=self.ended + Counter(each.state for each in ended),
            failed=(*self.failed, *(each for each in ended if each.state is not State.PUBLISHED)),
        )


def source_of(address: str, landing_buckets: Collection[str]) -> tuple[str, str]:
    """Return bucket and prefix of `s3://bucket/prefix`. Raises LakegateError BAD_SOURCE."""
    scheme, _, rest = address.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme != "s3" or not bucket:
        message = f"cannot read {address}: it is no place in S3\nGive it as s3://bucket/prefix"
        raise LakegateError("BAD_SOURCE", message)
    if bucket in landing_buckets:
        message = (
            f"{address} is in a landing bucket: what is there comes in by itself\n"
            "`lakegate runs` lists it; give a prefix of another bucket"
        )
        raise LakegateError("BAD_SOURCE", message)
    return bucket, prefix


def _rest() -> None:
    time.sleep(_PAUSE)


def backfill(
    adapters: Adapters, request: Backfill, pause: Callable[[], None] = _rest
) -> Iterator[Progress]:
    """Bring every file of the source; yield the progress until all have their final states.

    Raises LakegateError if S3 refuses, or if the table has another backfill; repeated, it goes on
    with the files that are missing.
    """
    holder = adapters.token()
    try:
        yield from _brought(adapters, request, partial(_claim, adapters, request, holder), pause)
    finally:
        adapters.ledger.release(_lease(request), holder)


def _lease(request: Backfill) -> str:
    return f"backfill-{request.table}"


def _claim(adapters: Adapters, request: Backfill, holder: str) -> None:
    """Claim the table for a while. Raises LakegateError BACKFILL_RUNS if it has another one."""
    now = adapters.now()
    until = times.text(datetime.fromisoformat(now) + _LEASE)
    try:
        adapters.ledger.claim(_lease(request), holder, now, until)
    except Claimed as taken:
        raise _busy(request, taken.until) from taken


def _busy(request: Backfill, until: str = "") -> LakegateError:
    after = f" after {times.moment(until)}, when its claim of the table ends" if until else ""
    message = (
        f"another backfill of {request.table} is under way, and two would copy files twice\n"
        f"Wait for its end; if it was killed, repeat the command{after}"
    )
    return LakegateError("BACKFILL_RUNS", message)


def _brought(
    adapters: Adapters, request: Backfill, claim: Callable[[], None], pause: Callable[[], None]
) -> Iterator[Progress]:
    sources = adapters.landing.sources(request.bucket, request.prefix)
    progress = Progress()
    with ThreadPoolExecutor(_PARALLEL) as pool:
        each_of = map if request.in_order else pool.map
        while True:
            claim()
            room = request.at_once - len(progress.in_flight)
            some = list(islice(sources, room))
            handled = list(each_of(partial(_handle, adapters, request), some))
            progress = progress.with_files(handled)
            progress = progress.looked(adapters.ledger.together(sorted(progress.in_flight)))
            yield progress
            if room and not some and not progress.in_flight:
                return
            if progress.in_flight:
                pause()


def _handle(adapters: Adapters, request: Backfill, source: Source) -> Handled:
    """Copy a file unless its key needs none; a file that comes twice is copied once."""
    if unfit := request.unfit(source):
        return Handled(source, request.key(source), unfit)
    known = adapters.ledger.brought(request.table, source.uri)
    key = known.key if known else request.key(source)
    if known and known.mark == source.mark and (ingestion := _ingested(adapters, known)):
        step = Step.PUBLISHED if ingestion.state is State.PUBLISHED else Step.BROUGHT
        return Handled(source, key, step, ingestion.landed)
    begun = replace(known or _NO_COPY, mark=source.mark, key=key)
    try:
        landed, mark = adapters.landing.brought(key)
    except Missing:
        has_ended = bool(known and known.version)  # the ledger would know what became of it
        expired = None if has_ended else _published(adapters, source, key)
        return expired or _copied(adapters, request, source, begun, None)
    if mark == source.mark:
        _remember(adapters, request, source, begun, landed)
        return Handled(source, key, Step.BROUGHT, landed)
    if not (known and mark):
        return Handled(source, key, Step.TAKEN)
    return _copied(adapters, request, source, begun, landed)


def _ingested(adapters: Adapters, copy: Brought) -> Ingestion | None:
    """Return the ingestion of a copy, unless it failed: then it may have to land once more."""
    id_ = ingestion_id(copy.as_landed(adapters.landing.bucket))
    ingestions = adapters.ledger.together([id_] if copy.version else [])
    return next((i for i in ingestions if i.state is State.PUBLISHED or not i.ended), None)


def _published(adapters: Adapters, source: Source, key: str) -> Handled | None:
    """Return what to do where a file under the key was published, and expired since.

    The ledger has no copy that ended, so only its content may tell that it is the same file.
    """
    sought = LandedObject(adapters.landing.bucket, key, "", "", source.size)
    versions = [i for i in adapters.ledger.versions(sought) if i.state is State.PUBLISHED]
    content = (source.etag, source.size)
    same = next((i for i in versions if (i.landed.etag, i.landed.size) == content), None)
    if same:
        return Handled(source, key, Step.PUBLISHED, same.landed)
    return Handled(source, key, Step.TAKEN) if versions else None


def _copied(
    adapters: Adapters,
    request: Backfill,
    source: Source,
    begun: Brought,
    over: LandedObject | None,
) -> Handled:
    """Copy a file over what its key has; the ledger knows of it before.

    So no other key gets it after a crash, nor by a backfill that hung for longer than its claim.
    One that hangs here until another one's copy was published and has expired lands it once more.
    """
    begun = _saved(adapters, request, source, replace(begun, version="", etag="", size=0))
    try:
        landed = adapters.landing.bring(source, begun.key, over)
    except (Missing, Overwritten):
        return _refused(adapters, source, begun.key)
    _remember(adapters, request, source, begun, landed)
    return Handled(source, begun.key, Step.COPIED, landed)


def _refused(adapters: Adapters, source: Source, key: str) -> Handled:
    """Return what became of a file that S3 did not copy: another backfill may have brought it."""
    try:
        landed, mark = adapters.landing.brought(key)
    except Missing:
        return Handled(source, key, Step.CHANGED)
    if mark != source.mark:
        return Handled(source, key, Step.CHANGED)
    return Handled(source, key, Step.BROUGHT, landed)


def _remember(
    adapters: Adapters, request: Backfill, source: Source, begun: Brought, landed: LandedObject
) -> None:
    version, etag, size = landed.version, landed.etag, landed.size
    _saved(adapters, request, source, replace(begun, version=version, etag=etag, size=size))


def _saved(adapters: Adapters, request: Backfill, source: Source, copy: Brought) -> Brought:
    """Save the copy. Raises LakegateError BACKFILL_RUNS if another backfill was faster."""
    try:
        return adapters.ledger.save_brought(request.table, source.uri, copy)
    except Moved as moved:
        raise _busy(request) from moved
