"""Lambda: the queue of actions. Executes the actions of pressed buttons.

Each request names the state that its alert showed. If the ingestion changed since, nothing is done;
if the same person's request was executed before, it is not repeated. The alert's thread gets an
answer either way.
"""

from collections.abc import Callable, Mapping

from functions.adapters.all import Adapters
from functions.model.ingestion import ALERTED, UNNEEDED, Ingestion
from functions.model.ingestion_summary import status_text
from functions.model.messages.action import ActionRequest, Seen, Verb
from functions.model.messages.alert import Alert
from functions.notifications.alert_text import answer, digest, state_token
from functions.notifications.blocks import code
from functions.notifications.missing_rights import telling
from functions.operations.decisions.failed import Outcome, mark_discarded, publish_anyway, replay
from functions.operations.decisions.group_press import DONE, advance
from functions.operations.decisions.preconditions import require_newest
from functions.sqs_handler import sqs_handler
from functions.telemetry import logger
from functions.wiring import adapters
from lakegate.errors import LakegateError, Transient


def act(adapters: Adapters, body: str) -> None:
    """Execute the request in a message's body and answer in the alert's thread.

    Raises Transient, and Permanent BAD_REQUEST or UnknownIngestion, for which there is no thread.
    """
    request = ActionRequest.of(body)
    with logger.append_context_keys(ingestion=request.seen.ingestion), telling(adapters):
        now, ending = adapters.ledger.get(request.seen.ingestion), "DONE"
        if request.seen.is_group:
            _advance_group(adapters, request)
            return
        try:
            outcome = (
                Outcome(now) if _is_done(now, request) else _carried_out(adapters, now, request)
            )
            now, words = outcome.ingestion, _words(outcome, request)
        except Transient:
            raise
        except LakegateError as refusal:
            logger.info("not done", extra={"request": request.text(), "why": str(refusal)})
            now, ending = adapters.ledger.get(request.seen.ingestion), digest(str(refusal))
            words = _refusal(now, request, refusal.message)
        if words:
            adapters.alerts.post(now.terms.channel, _answer(now, request, words, ending))


def _advance_group(adapters: Adapters, request: ActionRequest) -> None:
    """Ask about a group, or decide about its next files. Raises Transient."""
    how = _HOW[request.what]
    if done := advance(adapters, request, lambda each: how(adapters, each, request)):
        channel = adapters.ledger.get(done.ingestion).terms.channel
        adapters.alerts.post(channel, done)


def _is_done(now: Ingestion, request: ActionRequest) -> bool:
    """Return whether the request was executed before: a repeated message or a second press."""
    attempt, _, since = request.seen.parts
    later = {(a.what, a.by, str(a.attempt)) for a in now.decisions.actions if a.at > since}
    return (request.what, request.by, attempt) in later


def _carried_out(adapters: Adapters, now: Ingestion, request: ActionRequest) -> Outcome:
    if now.superseded_by and request.what is not Verb.DISCARD:
        require_newest(adapters, now, "", request.what)
    if request.seen != Seen(now.id, state_token(now)):
        replay_it = (
            f"; `lakegate replay {now.id}` reads the file again" if now.decisions.discarded else ""
        )
        message = f"the ingestion changed since this alert: {status_text(now)}{replay_it}"
        raise LakegateError("MOVED_ON", message)
    return _HOW[request.what](adapters, now, request)


_HOW: Mapping[Verb, Callable[[Adapters, Ingestion, ActionRequest], Outcome]] = {
    Verb.REPLAY: lambda adapters, now, request: replay(adapters, now, by=request.by),
    Verb.PUBLISH: lambda adapters, now, request: publish_anyway(
        adapters, now, request.by, request.reason
    ),
    # This Lambda acts on requests from the internet, so it may not delete; the clean-up does.
    Verb.DISCARD: lambda adapters, now, request: Outcome(
        mark_discarded(adapters, now, by=request.by)
    ),
}


def _words(outcome: Outcome, request: ActionRequest) -> str:
    """Return the answer for the thread; "" where the final state is notified anyway."""
    now = outcome.ingestion
    if now.state in UNNEEDED:
        return ""
    if request.what is Verb.DISCARD and now.decisions.discarded:
        rest = (
            "the next daily clean-up deletes its branch"
            if now.decisions.branches_to_delete
            else "its branch is deleted"
        )
        return f"{request.by} discarded {now.name}: {rest}"
    if request.what is Verb.PUBLISH and now.state in ALERTED:
        return _refusal(now, request, now.reason.message if now.reason else status_text(now))
    words = f"{request.by} {DONE[request.what]} {now.name}: {status_text(now)}"
    return f"{words}; {outcome.left}" if outcome.left else words


def _refusal(now: Ingestion, request: ActionRequest, why: str) -> str:
    return f"{request.by} could not {request.what} {now.name}: {why}"


def _answer(now: Ingestion, request: ActionRequest, words: str, ending: str) -> Alert:
    """Return the answer as an alert.

    `ending` distinguishes a refused request from the same one that is executed later, or refused
    for what became of the ingestion meanwhile.
    """
    about = f"{request.seen.token} {request.what} {request.by} {ending}"
    return answer(now, words, about, f"\n*Ingestion* {code(now.id)}")


handler = sqs_handler(act, adapters)
