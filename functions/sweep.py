"""Lambda: the schedule. Finishes ingestions whose events were lost, and redelivers dead letters."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.all import Adapters
from functions.adapters.sqs import DeadLetter, DeadLetters, Queued
from functions.model.ingestion import NOT_STARTED, Ingestion
from functions.notifications.alert_text import unreadable_event
from functions.on_job_run import (
    job_run,
)
from functions.on_upload import (
    upload,
)
from functions.operations.rebuild_ledger import restore
from functions.pipeline.audit_history import batches, late_reports, record, strays, take_late
from functions.pipeline.complete import resume
from functions.pipeline.finish import warn_overdue
from functions.pipeline.intake import arrivals, take_in
from functions.sqs_handler import (
    Work,
)
from functions.telemetry import logger, metrics
from functions.wiring import adapters
from lakegate import times
from lakegate.errors import LakegateError, Transient
from lakegate.landing import LandedObject, ingestion_id

_CHUNK = 500
_MOST_FORGOTTEN = 10_000  # the next sweep finds the others
_T = TypeVar("_T")


def sweep(adapters: Adapters) -> dict[str, int]:
    """Do all that is overdue; returns how much was done, by kind, and how much failed.

    What happened within the last `grace_seconds` is left to its events. One failure holds up
    nothing else, whatever it is: it is logged, counted, and tried again by the next sweep.
    """
    now = datetime.fromisoformat(adapters.now())
    before = times.text(now - timedelta(seconds=adapters.settings.grace_seconds))
    uploads, job_runs = adapters.upload_dead_letters, adapters.job_run_dead_letters
    alerts = adapters.alert_dead_letters
    tasks = (
        # First, so that no letter is about an ingestion that the ledger lost.
        _each("forgotten", _forgotten(adapters, before), partial(take_in, adapters)),
        _each("dead_letters", uploads.read(), partial(_redeliver, adapters, uploads, upload)),
        _each("dead_letters", job_runs.read(), partial(_redeliver, adapters, job_runs, job_run)),
        _each("dead_letters", alerts.read(), partial(_redeliver, adapters, alerts, _tell_again)),
        _each("resumed", _due(adapters, before), partial(_resume, adapters)),
        _each("late", late_reports(adapters), partial(take_late, adapters)),
        _each("recorded", batches(adapters), partial(record, adapters)),
        _each("deleted", strays(adapters), adapters.catalog.delete_branch),
    )
    kinds = ("dead_letters", "forgotten", "resumed", "late", "recorded", "deleted", "failed")
    done = dict.fromkeys(kinds, 0)
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


def _forgotten(adapters: Adapters, before: str) -> Iterator[LandedObject]:
    """Landed objects, older than `before`, that the ledger never knew."""
    found = list(islice(_unknown(adapters, before), _MOST_FORGOTTEN))
    lost = _counted(restore(adapters, found))
    yield from (landed for landed in found if ingestion_id(landed) not in lost)


def _due(adapters: Adapters, before: str) -> Iterator[Ingestion]:
    """Ingestions with a step due since `before`; none that an event only began anew."""
    begun = []
    for listed in adapters.ledger.unfinished(before):
        if listed.state in NOT_STARTED:
            begun.append(listed)
        else:
            yield listed
    lost = _counted(restore(adapters, [each.landed for each in begun], begun))
    yield from (listed for listed in begun if listed.id not in lost)


def _counted(restored: Iterator[Ingestion]) -> set[str]:
    """The ids of what the ledger had lost: to be resumed later, and not taken in as new."""
    ids = {ingestion.id for ingestion in restored}
    if ids:
        logger.error("the ledger had lost ingestions", extra={"restored": len(ids)})
        metrics.add_metric("Restored", "Count", len(ids))
    return ids


def _unknown(adapters: Adapters, before: str) -> Iterator[LandedObject]:
    older = (landed for landed in arrivals(adapters) if landed.landed_at < before)
    while chunk := {ingestion_id(landed): landed for landed in islice(older, _CHUNK)}:
        known = adapters.ledger.known(list(chunk))
        yield from (landed for id_, landed in chunk.items() if id_ not in known)


def _resume(adapters: Adapters, listed: Ingestion) -> None:
    with logger.append_context_keys(ingestion=listed.id, key=listed.landed.key):
        try:
            now = resume(
                adapters, adapters.ledger.get(listed.id)
            )  # the index that listed it lags behind
        except Exception as error:
            warn_overdue(adapters, adapters.ledger.get(listed.id), str(error))
            raise
        warn_overdue(adapters, now, "another file of its table goes first")


def _tell_again(adapters: Adapters, body: str) -> None:
    """Have people told what nobody could be told for days."""
    queued = Queued.from_json(body)
    adapters.alerts.post(queued.channel, queued.alert)


def _redeliver(adapters: Adapters, queue: DeadLetters, work: Work, letter: DeadLetter) -> None:
    """Handle a dead letter once more; what cannot be handled at all is shown to people."""
    try:
        work(adapters, letter.body)
    except Transient:
        raise
    except LakegateError as error:
        adapters.alerts.post("", unreadable_event(queue.name, letter.body, error.message))
    queue.forget(letter)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """Answer how much was done, by kind, for whoever invokes it by hand."""
    return sweep(adapters())
