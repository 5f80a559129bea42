"""Lambda: the schedule. Completes ingestions whose events were lost; redelivers dead letters."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.all import Adapters
from functions.adapters.sqs import DeadLetter, DeadLetters, QueuedAlert
from functions.model.ingestion import NOT_STARTED, Ingestion
from functions.notifications.alert_text import unreadable_event
from functions.on_job_run import job_run
from functions.on_upload import upload
from functions.operations.rebuild_ledger import restore
from functions.pipeline.audit_history import batches, late_reports, record, strays, take_late
from functions.pipeline.complete import resume
from functions.pipeline.finish import warn_overdue
from functions.pipeline.intake import arrivals, take_in
from functions.sqs_handler import Work
from functions.telemetry import logger, metrics
from functions.wiring import adapters
from lakegate import times
from lakegate.errors import LakegateError, Transient
from lakegate.landing import LandedObject, ingestion_id

_CHUNK = 500
_MOST_UNKNOWN = 10_000  # the next sweep processes the others
_T = TypeVar("_T")


def sweep(adapters: Adapters) -> dict[str, int]:
    """Do all overdue work; return how much was done, by kind, and how much failed.

    The last `grace_seconds` are left to events. A failure does not stop the rest: it is logged,
    counted, and retried by the next sweep.
    """
    now = datetime.fromisoformat(adapters.now())
    before = times.text(now - timedelta(seconds=adapters.settings.grace_seconds))
    uploads, job_runs = adapters.upload_dead_letters, adapters.job_run_dead_letters
    alerts = adapters.alert_dead_letters
    tasks = (
        # First, so that every dead letter's ingestion is in the ledger.
        _each("forgotten", _missed(adapters, before), partial(take_in, adapters)),
        _each("dead_letters", uploads.read(), partial(_redeliver, adapters, uploads, upload)),
        _each("dead_letters", job_runs.read(), partial(_redeliver, adapters, job_runs, job_run)),
        _each("dead_letters", alerts.read(), partial(_redeliver, adapters, alerts, _post_again)),
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


def _each(kind: str, items: Iterable[_T], work: Callable[[_T], object]) -> Iterator[str]:
    """Do the work for each item; yield `kind` for a success, "failed" for a failure."""
    try:
        for item in items:
            try:
                work(item)
                yield kind
            except Exception:  # noqa: BLE001 - the next item must not suffer
                logger.exception("the sweep failed for one item", extra={"item": str(item)})
                yield "failed"
    except Exception:  # noqa: BLE001 - nor must the next kind
        logger.exception("the sweep could not list more items", extra={"kind": kind})
        yield "failed"


def _missed(adapters: Adapters, before: str) -> Iterator[LandedObject]:
    """Yield landed objects, older than `before`, that the ledger lacks."""
    found = list(islice(_unknown(adapters, before), _MOST_UNKNOWN))
    lost = _counted(restore(adapters, found))
    yield from (landed for landed in found if ingestion_id(landed) not in lost)


def _due(adapters: Adapters, before: str) -> Iterator[Ingestion]:
    """Yield ingestions with a step due since `before`, except those that it restored."""
    begun = []
    for listed in adapters.ledger.unfinished(before):
        if listed.state in NOT_STARTED:
            begun.append(listed)
        else:
            yield listed
    lost = _counted(restore(adapters, [each.landed for each in begun], begun))
    yield from (listed for listed in begun if listed.id not in lost)


def _counted(restored: Iterator[Ingestion]) -> set[str]:
    """Return the ids of restored ingestions, which are resumed later and not ingested again."""
    ids = {ingestion.id for ingestion in restored}
    if ids:
        logger.error("restored ingestions that the ledger lost", extra={"restored": len(ids)})
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
            # Read again: the index that listed it lags behind.
            now = resume(adapters, adapters.ledger.get(listed.id))
        except Exception as error:
            warn_overdue(adapters, adapters.ledger.get(listed.id), str(error))
            raise
        warn_overdue(adapters, now, "another ingestion of its table has priority")


def _post_again(adapters: Adapters, body: str) -> None:
    """Queue an alert again that could not be posted for days."""
    queued = QueuedAlert.from_json(body)
    adapters.alerts.post(queued.channel, queued.alert)


def _redeliver(adapters: Adapters, queue: DeadLetters, work: Work, message: DeadLetter) -> None:
    """Process a dead letter again; alert on a message that cannot be processed at all."""
    try:
        work(adapters, message.body)
    except Transient:
        raise
    except LakegateError as error:
        adapters.alerts.post("", unreadable_event(queue.name, message.body, error.message))
    queue.delete(message)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """Return how much was done, by kind, for a manual invocation."""
    return sweep(adapters())
