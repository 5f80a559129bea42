"""What the schedule does: finish whatever an event forgot, and lose no message in silence."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from functions.conclusion import resume
from functions.deliveries import Work, job_run, upload
from functions.ingestion import Ingestion
from functions.intake import take_in
from functions.messages import unreadable_event
from functions.queues import DeadLetter, DeadLetters
from functions.telemetry import logger, metrics
from functions.world import World
from lakegate import times
from lakegate.errors import LakegateError, Transient
from lakegate.landing import LandedObject, ingestion_id

_CHUNK = 500
_T = TypeVar("_T")


def sweep(world: World) -> dict[str, int]:
    """Do all that is overdue; returns how much was done, by kind, and how much failed.

    What happened within the last `grace_seconds` is left to its events. One failure holds up
    nothing else, whatever it is: it is logged, counted, and tried again by the next sweep.
    """
    now = datetime.fromisoformat(world.now())
    before = times.text(now - timedelta(seconds=world.settings.grace_seconds))
    uploads, job_runs = world.upload_dead_letters, world.job_run_dead_letters
    tasks = (
        _each("dead_letters", uploads.read(), partial(_redeliver, world, uploads, upload)),
        _each("dead_letters", job_runs.read(), partial(_redeliver, world, job_runs, job_run)),
        _each("forgotten", _forgotten(world, before), partial(take_in, world)),
        _each("resumed", world.ledger.unfinished(before), partial(_resume, world)),
    )
    done = dict.fromkeys(("dead_letters", "forgotten", "resumed", "failed"), 0)
    for outcome in (outcome for task in tasks for outcome in task):
        done[outcome] += 1
    metrics.add_metric("SweepFailures", "Count", done["failed"])
    return done


def _each(kind: str, things: Iterable[_T], work: Callable[[_T], object]) -> Iterator[str]:
    """Do the work for each thing; yields `kind` for what was done, "failed" for what was not."""
    try:
        for thing in things:
            try:
                work(thing)
                yield kind
            except Exception:  # noqa: BLE001 - whatever it is, the next thing can do without it
                logger.exception("the sweep could not finish one", extra={"thing": str(thing)})
                yield "failed"
    except Exception:  # noqa: BLE001 - and so can the next kind
        logger.exception("the sweep could not look for more", extra={"kind": kind})
        yield "failed"


def _forgotten(world: World, before: str) -> Iterator[LandedObject]:
    """Landed objects, older than `before`, that the ledger does not know."""
    chunk: list[LandedObject] = []
    for landed in world.landing.landed():
        if landed.landed_at < before:
            chunk.append(landed)
        if len(chunk) == _CHUNK:
            yield from _unknown(world, chunk)
            chunk = []
    yield from _unknown(world, chunk)


def _unknown(world: World, chunk: list[LandedObject]) -> list[LandedObject]:
    known = world.ledger.known([ingestion_id(landed) for landed in chunk])
    return [landed for landed in chunk if ingestion_id(landed) not in known]


def _resume(world: World, listed: Ingestion) -> None:
    with logger.append_context_keys(ingestion=listed.id, key=listed.landed.key):
        resume(world, world.ledger.get(listed.id))  # the index that listed it lags behind


def _redeliver(world: World, queue: DeadLetters, work: Work, letter: DeadLetter) -> None:
    """Handle a dead letter once more; what cannot be handled at all is shown to people."""
    try:
        work(world, letter.body)
    except Transient:
        raise
    except LakegateError as error:
        world.alerts.post("", unreadable_event(queue.name, letter.body, error.message))
    queue.forget(letter)
