"""What the schedule does: finish whatever an event forgot, and lose no message in silence."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import TypeVar

from functions.events import ended_run, landed_objects
from functions.ingestion import Ingestion, State
from functions.jobs import UnknownRun
from functions.messages import unreadable_event
from functions.queues import DeadLetter, DeadLetters
from functions.story import conclude, end, finish, proceed, publish, submit, take_in
from functions.telemetry import logger, metrics
from functions.world import World
from lakegate.errors import LakegateError, Transient
from lakegate.landing import LandedObject, ingestion_id
from lakegate.report import Reason

_CHUNK = 500
_T = TypeVar("_T")


def sweep(world: World) -> dict[str, int]:
    """Do all that is overdue; returns how much was done, by kind, and how much failed.

    What happened within the last `grace_seconds` is left to its events. One failure holds up
    nothing else: it is logged, counted, and tried again by the next sweep.
    """
    now = datetime.fromisoformat(world.now())
    before = (now - timedelta(seconds=world.settings.grace_seconds)).isoformat(
        timespec="milliseconds"
    )
    kinds = {
        "dead_letters": _each(_dead_letters(world), lambda found: _redeliver(world, *found)),
        "forgotten": _each(_forgotten(world, before), lambda landed: take_in(world, landed)),
        "resumed": _each(list(world.ledger.unfinished(before)), lambda i: _resume(world, i)),
    }
    failed = sum(failures for _, failures in kinds.values())
    metrics.add_metric("SweepFailures", "Count", failed)
    return {kind: done for kind, (done, _) in kinds.items()} | {"failed": failed}


def _each(things: Iterable[_T], work: Callable[[_T], object]) -> tuple[int, int]:
    done = failed = 0
    for thing in things:
        try:
            work(thing)
            done += 1
        except LakegateError:
            logger.exception("the sweep could not finish one thing", extra={"thing": str(thing)})
            failed += 1
    return done, failed


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


def _resume(world: World, ingestion: Ingestion) -> Ingestion:
    """Carry on where an earlier try stopped."""
    with logger.append_context_keys(ingestion=ingestion.id, key=ingestion.landed.key):
        if ingestion.ended:
            return finish(world, ingestion)
        if ingestion.state is State.AUDITED:
            return publish(world, ingestion)
        if ingestion.state is not State.SUBMITTED:
            return submit(world, ingestion)
        try:
            run = world.jobs.get(ingestion.job_run)
        except UnknownRun as error:
            return end(world, ingestion, State.ERRORED, Reason("JOB_LOST", error.message))
        return proceed(world, ingestion, ingestion.attempt, run)


def _dead_letters(world: World) -> Iterator[tuple[DeadLetters, DeadLetter]]:
    for queue in (world.upload_dead_letters, world.job_run_dead_letters):
        yield from ((queue, letter) for letter in queue.read())


def _redeliver(world: World, queue: DeadLetters, letter: DeadLetter) -> None:
    """Handle a dead letter once more; what cannot be handled at all is shown to people."""
    try:
        if queue is world.upload_dead_letters:
            for landed in landed_objects(letter.body):
                take_in(world, landed)
        else:
            conclude(world, ended_run(letter.body))
    except Transient:
        raise
    except LakegateError as error:
        world.alerts.post("", unreadable_event(queue.name, letter.body, error.message))
    queue.forget(letter)
