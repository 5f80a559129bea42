"""Lambda: the schedule. Completes ingestions whose events were lost; redelivers dead letters."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.all import Adapters
from functions.adapters.secrets import Secret
from functions.adapters.sqs import DeadLetter, DeadLetters, QueuedAlert
from functions.health.conformance.trial import tried
from functions.health.model import Finding, carry_out
from functions.health.nessie_checks import PUBLISHER, NessieProbe, role_check
from functions.model import queueing
from functions.model.ingestion import IN_FLIGHT, NOT_STARTED, Ingestion
from functions.notifications.alert_text import unreadable_event
from functions.notifications.budget_alert import tell_budget
from functions.notifications.missing_rights import telling
from functions.on_job_run import job_run
from functions.on_upload import upload
from functions.operations.compaction.compact import settle, under_way
from functions.operations.missing_files import missing_files
from functions.operations.recovery.forgotten import PAGES, counted, forgotten
from functions.operations.recovery.rebuild_ledger import restore
from functions.pipeline.outcome.audit_history import (
    batches,
    late_reports,
    record,
    strays,
    take_late,
)
from functions.pipeline.outcome.finish import warn_overdue
from functions.pipeline.outcome.seed import seed
from functions.pipeline.start.intake import take_in
from functions.pipeline.start.landing_order import place
from functions.pipeline.start.shared_runs import Queued, keep_up, slots_needed
from functions.pipeline.start.spending import has_room, look, spending, unmeasured
from functions.pipeline.verdict.complete import resume
from functions.pipeline.verdict.judged import resume_waiting
from functions.settings import Settings
from functions.sqs_handler import Work
from functions.telemetry import count_files, logger, measured, metrics
from functions.wiring import CONFIG, adapters
from lakegate import times
from lakegate.errors import LakegateError, Transient
from lakegate.job.landing import LandedObject, ingestion_id

_T = TypeVar("_T")
_FEW = 100  # events in the queue that are no backlog
_LONGEST_WAIT = timedelta(hours=1)  # after which an event counts as lost, whatever else waits
_KINDS = (
    *("measured", "runs", "forgotten", "dead_letters", "resumed"),
    *("late", "recorded", "deleted", "compactions", "overdue", "failed"),
)


def sweep(adapters: Adapters, pages: int = PAGES, *, everything: bool = False) -> dict[str, int]:
    """Do all overdue work; return how much was done, by kind, and how much failed.

    The last `grace_seconds` are left to events. A failure does not stop the rest: it is logged,
    counted, and retried by a later sweep. `pages` of the landing bucket are searched for objects
    without an ingestion, all of it with `everything`.
    """
    grace = timedelta(seconds=adapters.settings.grace_seconds)
    before = times.earlier(adapters.now(), grace)
    uploads, job_runs = adapters.upload_dead_letters, adapters.job_run_dead_letters
    alerts = adapters.alert_dead_letters
    missed = _missed(adapters, before, pages, everything=everything)
    each = partial(_each, adapters)
    tasks = (
        each("measured", unmeasured(adapters), partial(look, adapters)),
        # Early, as the others may take all of the time; what they queue starts a run by itself.
        each("runs", slots_needed(adapters), partial(keep_up, adapters)),
        # Before dead letters, so that the ingestion of each is in the ledger.
        each("forgotten", missed, partial(_take_in, adapters)),
        each("dead_letters", uploads.read(), partial(_redeliver, adapters, uploads, upload)),
        each("dead_letters", job_runs.read(), partial(_redeliver, adapters, job_runs, job_run)),
        each("dead_letters", alerts.read(), partial(_redeliver, adapters, alerts, _post_again)),
        each("resumed", _due(adapters, before), partial(_resume, adapters)),
        each("late", late_reports(adapters), lambda one: take_late(adapters, one, one.attempt)),
        each("recorded", batches(adapters), partial(record, adapters)),
        each("deleted", strays(adapters), adapters.catalog.delete_branch),
        each("compactions", under_way(adapters), partial(settle, adapters)),
        each("overdue", missing_files(adapters), lambda table: None),
    )
    done = dict.fromkeys(_KINDS, 0)
    for outcome in (outcome for task in tasks for outcome in task):
        done[outcome] += 1
    metrics.add_metric("SweepFailures", "Count", done["failed"])
    return done


def _each(
    adapters: Adapters, kind: str, items: Iterable[_T], work: Callable[[_T], object]
) -> Iterator[str]:
    """Do the work for each item; yield `kind` for a success, "failed" for a failure."""
    try:
        for item in _told(adapters, items):
            try:
                with telling(adapters):
                    work(item)
                yield kind
            except Exception:  # noqa: BLE001 - the next item must not suffer
                logger.exception("the sweep failed for one item", extra={"item": str(item)})
                yield "failed"
    except Exception:  # noqa: BLE001 - nor must the next kind
        logger.exception("the sweep could not list more items", extra={"kind": kind})
        yield "failed"


def _told(adapters: Adapters, items: Iterable[_T]) -> Iterator[_T]:
    """Yield the items; tell people if listing them takes a right that is missing."""
    with telling(adapters):
        yield from items


def _missed(
    adapters: Adapters, before: str, pages: int, *, everything: bool
) -> Iterator[LandedObject]:
    """Yield landed objects without an ingestion whose events are lost.

    In a burst, events wait longer than the grace time: to take in their objects here as well would
    only compete with on_upload.
    """
    if not everything and adapters.uploads.size() > _FEW:
        before = min(before, times.earlier(adapters.now(), _LONGEST_WAIT))
    yield from forgotten(adapters, before, pages, everything=everything)


def _due(adapters: Adapters, before: str) -> Iterator[Ingestion]:
    """Yield ingestions with a step due since `before`, except those that it restored.

    Traces of earlier lives are looked for only of what is started now: a listing of all job runs
    and reports takes long where many files wait.
    """
    startable = _Startable(room=has_room(adapters))
    queued = Queued(adapters, before)
    waiting, not_run = [], _WithoutRun()
    for listed in adapters.ledger.unfinished(queued.at):
        if listed.state in IN_FLIGHT:
            waiting.append(listed.tables)
            not_run.add(listed)
        if listed.awaits_shared_run:
            queued.add(listed)
        elif listed.saved_at >= before:
            continue
        elif listed.state in NOT_STARTED:
            startable.add(listed)
        else:
            yield listed
    count_files("Waiting", waiting)
    tell_budget(adapters, spending(adapters), not_run.since)
    yield from queued.lost
    due = list(startable)
    begun = {each.id: each.landed for each in due}
    lost = counted(restore(adapters, begun.values(), begun))
    for each in due:
        if each.id not in lost and (has_room(adapters) or not queueing.awaits_run(each)):
            yield each


class _WithoutRun:
    """Those that wait for a job run; of a table's held files the first, if it is next in turn."""

    def __init__(self) -> None:
        self._since: list[str] = []
        self._next: dict[str, Ingestion] = {}  # by table: those in flight that take turns

    def add(self, begun: Ingestion) -> None:
        if begun.takes_turns:
            self._next[begun.table] = min(begun, self._next.get(begun.table, begun), key=place)
        if queueing.awaits_run(begun) and not queueing.is_held(begun):
            self._since.append(begun.saved_at)

    @property
    def since(self) -> list[str]:
        """Return since when each waits."""
        return [*self._since, *(i.saved_at for i in self._next.values() if queueing.is_held(i))]


class _Startable:
    """Those to start: of held files only the first of each table, which starts the others.

    Without `room` in the day's budget none is kept that waits for a run: there may be many.
    """

    def __init__(self, *, room: bool) -> None:
        self._room = room
        self._held: dict[str, Ingestion] = {}
        self._others: list[Ingestion] = []

    def add(self, begun: Ingestion) -> None:
        if not self._room and queueing.awaits_run(begun):
            return
        if queueing.is_held(begun):
            first = self._held.setdefault(begun.table, begun)
            self._held[begun.table] = min(begun, first, key=place)
        else:
            self._others.append(begun)

    def __iter__(self) -> Iterator[Ingestion]:
        yield from self._others
        yield from self._held.values()


def _take_in(adapters: Adapters, landed: LandedObject) -> None:
    """Take in an object, unless its event came since it was listed: a burst takes its time."""
    if not adapters.ledger.known([ingestion_id(landed)], consistent=True):
        take_in(adapters, landed)


def _resume(adapters: Adapters, listed: Ingestion) -> None:
    with logger.append_context_keys(ingestion=listed.id, key=listed.landed.key):
        try:
            # Read again: the index that listed it lags behind.
            now = adapters.ledger.get(listed.id)
            now = (resume_waiting if now.awaits_shared_run else resume)(adapters, now)
        except Exception as error:
            warn_overdue(adapters, adapters.ledger.get(listed.id), str(error))
            raise
        warn_overdue(adapters, now, "another ingestion of its table has priority")


def _post_again(adapters: Adapters, body: str) -> None:
    """Queue an alert again that could not be posted for days."""
    queued = QueuedAlert.from_json(body)
    adapters.alerts.post(queued.channel, queued.alert)


def _redeliver(adapters: Adapters, queue: DeadLetters, work: Work, message: DeadLetter) -> None:
    """Process a dead letter again; alert on a message that cannot be processed at all.

    Without the message, the sweep itself finds what it was about, and tries again.
    """
    try:
        work(adapters, message.body)
    except Transient:
        raise
    except Exception as error:  # noqa: BLE001 - people are told what it is
        logger.exception("a dead letter fails again", extra={"queue": queue.name})
        adapters.alerts.post("", unreadable_event(queue.name, message.body, _reason(error)))
    queue.delete(message)


def _reason(error: Exception) -> str:
    if isinstance(error, LakegateError):
        return error.message
    return (
        f"{type(error).__name__} ({error}), which Lakegate does not foresee; the log has the "
        "details, and the sweep goes on trying"
    )


@logger.inject_lambda_context
@measured
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Sweep; return how much was done, by kind, for a manual invocation.

    The event `{"everything": true}` makes it search the whole landing bucket at once. Commands ask
    it for what needs the publisher's token: `{"do": "seed"}` seeds main and returns what it added,
    `{"do": "examine"}` returns findings about the token, `{"do": "conformance"}` those about what
    is relied on in Nessie.
    """
    match event:
        case {"do": "seed"}:
            return asdict(seed(adapters()))
        case {"do": "examine" | "conformance" as what}:
            return [asdict(finding) for finding in _findings(adapters().settings, what)]
        case {"everything": True}:
            return sweep(adapters(), everything=True)
    return sweep(adapters())  # for the schedule's event, and any other


def _findings(settings: Settings, what: str) -> list[Finding]:
    """Return what is found by the publisher's token: about Nessie, or about the token itself."""
    vault, uri = boto3.client("secretsmanager", config=CONFIG), settings.nessie_uri
    token = Secret(vault, settings.nessie_token_secret)
    if what == "conformance":
        return tried(uri, token)
    return carry_out(
        [role_check(PUBLISHER, token.text, NessieProbe(uri), lambda: datetime.now(UTC))]
    )
