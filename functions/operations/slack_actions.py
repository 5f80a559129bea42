"""What people wished for in Slack, carried out: once, whoever presses how often.

Each wish names what its person saw. Where that is not how things stand any more, nothing is done;
what was done before for the same person is not done again. Either is told in the alert's thread.
"""

from collections.abc import Callable, Mapping

from functions.adapters.all import Adapters
from functions.model.alert import (
    Alert,
    Kind,
)
from functions.model.ingestion import ALERTED, UNNEEDED, Ingestion, standing
from functions.notifications.alert_text import (
    seen,
)
from functions.notifications.blocks import code, escaped, section
from functions.notifications.interactions import ActionRequest
from functions.notifications.slack_buttons import Seen, Verb
from functions.operations.failed import Outcome, give_up, publish_anyway, replay
from functions.operations.preconditions import require_newest
from functions.telemetry import logger
from lakegate.errors import LakegateError, Transient


def act(adapters: Adapters, body: str) -> None:
    """Carry out the wish in a message's body, and tell people what the alert's thread lacks.

    Raises Permanent BAD_WISH and UnknownIngestion, for which there is no thread, and Transient.
    """
    wish = ActionRequest.of(body)
    with logger.append_context_keys(ingestion=wish.seen.ingestion):
        now, ending = adapters.ledger.get(wish.seen.ingestion), "DONE"
        try:
            outcome = Outcome(now) if _is_done(now, wish) else _carried_out(adapters, now, wish)
            now, words = outcome.ingestion, _words(outcome, wish)
        except Transient:
            raise
        except LakegateError as refusal:
            logger.info("not done", extra={"wish": wish.text(), "why": str(refusal)})
            now, ending = adapters.ledger.get(wish.seen.ingestion), refusal.code
            words = _in_vain(now, wish, refusal.message)
        if words:
            adapters.alerts.post(now.channel, _answer(now, wish, words, ending))


def _is_done(now: Ingestion, wish: ActionRequest) -> bool:
    """Whether it was done before: the message came twice, or the person pressed twice."""
    attempt, _, since = wish.seen.parts
    later = {(a.what, a.by, str(a.attempt)) for a in now.actions if a.at > since}
    return (wish.what, wish.by, attempt) in later


def _is_as_seen(now: Ingestion, shown: Seen) -> bool:
    """Whether it stands as it was shown; buttons of an older release do not say since when."""
    stands = Seen(now.id, seen(now))
    is_older = shown.parts == (*stands.parts[:2], "")
    return shown == stands or (is_older and not now.discarded)


def _carried_out(adapters: Adapters, now: Ingestion, wish: ActionRequest) -> Outcome:
    if now.superseded_by and wish.what is not Verb.DISCARD:
        require_newest(adapters, now, "", f"{wish.what} {now.id}")
    if not _is_as_seen(now, wish.seen):
        anew = f"; `lakegate replay {now.id}` reads it anew" if now.discarded else ""
        message = f"it is not any more what the alert shows: {standing(now)}{anew}"
        raise LakegateError("MOVED_ON", message)
    return _HOW[wish.what](adapters, now, wish)


def _given_up(adapters: Adapters, now: Ingestion, wish: ActionRequest) -> Outcome:
    # Who acts for people on the internet may not delete: the daily clean-up does.
    return Outcome(give_up(adapters, now, by=wish.by))


_HOW: Mapping[Verb, Callable[[Adapters, Ingestion, ActionRequest], Outcome]] = {
    Verb.REPLAY: lambda adapters, now, wish: replay(adapters, now, by=wish.by),
    Verb.PUBLISH: lambda adapters, now, wish: publish_anyway(adapters, now, wish.by, wish.reason),
    Verb.DISCARD: _given_up,
}


_DONE: Mapping[Verb, str] = {
    Verb.REPLAY: "replayed",
    Verb.PUBLISH: "published anyway",
    Verb.DISCARD: "discarded",
}


def _words(outcome: Outcome, wish: ActionRequest) -> str:
    """What the thread is to say of what was done; "" where it tells the end anyway."""
    now = outcome.ingestion
    if now.state in UNNEEDED:
        return ""
    if wish.what is Verb.DISCARD and now.discarded:
        gone = (
            "its branch and files go with the next daily clean-up"
            if now.branches_to_delete
            else "it is gone"
        )
        return f"{wish.by} discarded {now.name}: {gone}"
    if wish.what is Verb.PUBLISH and now.state in ALERTED:
        return _in_vain(now, wish, now.reason.message if now.reason else standing(now))
    words = f"{wish.by} has {now.name} {_DONE[wish.what]}: {standing(now)}"
    return f"{words}; {outcome.left}" if outcome.left else words


def _in_vain(now: Ingestion, wish: ActionRequest, why: str) -> str:
    return f"{wish.by} asked to {wish.what} {now.name}, and it was not done: {why}"


def _answer(now: Ingestion, wish: ActionRequest, words: str, ending: str) -> Alert:
    """An answer in the thread; its token is "" once there is nothing more to be done.

    `ending` tells a wish that was refused from the same one carried out later.
    """
    return Alert(
        text=escaped(words),
        blocks=(section(f"{escaped(words)}\n*Ingestion* {code(now.id)}"),),
        about=f"{now.id} {wish.seen.token} {wish.what} {wish.by} {ending}",
        kind=Kind.ANSWER,
        ingestion=now.id,
        token="" if now.is_settled else seen(now),
    )
