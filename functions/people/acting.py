"""What people wished for in Slack, carried out: once, whoever presses how often.

Each wish names what its person saw. Where that is not how things stand any more, nothing is done;
what was done before for the same person is not done again. Either is told in the alert's thread.
"""

from collections.abc import Callable, Mapping

from functions.failed import Outcome, give_up, publish_anyway, replay, standing
from functions.ingestion import UNNEEDED, Ingestion, State
from functions.people.blocks import code, escaped, section
from functions.people.buttons import Seen, Verb
from functions.people.messages import Alert, Kind, seen
from functions.people.wishes import Wish
from functions.telemetry import logger
from functions.world import World
from lakegate.errors import LakegateError, Transient


def act(world: World, body: str) -> None:
    """Carry out the wish in a message's body, and tell people what the alert's thread lacks.

    Raises Permanent BAD_WISH and UnknownIngestion, for which there is no thread, and Transient.
    """
    wish = Wish.of(body)
    with logger.append_context_keys(ingestion=wish.seen.ingestion):
        now = world.ledger.get(wish.seen.ingestion)
        try:
            outcome = Outcome(now) if _is_done(now, wish) else _carried_out(world, now, wish)
            now, words = outcome.ingestion, _words(outcome, wish)
        except Transient:
            raise
        except LakegateError as refusal:
            logger.info("not done", extra={"wish": wish.text(), "why": str(refusal)})
            now = world.ledger.get(wish.seen.ingestion)
            asked = f"{wish.by} asked to {wish.what} {now.name}"
            words = f"{asked}, and it was not done: {refusal.message}"
        if words:
            world.alerts.post(now.channel, _answer(now, wish, words))


def _is_done(now: Ingestion, wish: Wish) -> bool:
    """Whether it was done before: the message came twice, or the person pressed twice."""
    attempt = wish.seen.token.partition(":")[0]
    return (wish.what, wish.by, attempt) in {(a.what, a.by, str(a.attempt)) for a in now.actions}


def _carried_out(world: World, now: Ingestion, wish: Wish) -> Outcome:
    if Seen(now.id, seen(now)) != wish.seen:
        message = f"it is not any more what the alert shows: {standing(now)}"
        raise LakegateError("MOVED_ON", message)
    return _HOW[wish.what](world, now, wish)


def _given_up(world: World, now: Ingestion, wish: Wish) -> Outcome:
    # Who acts for people on the internet may not delete: the daily clean-up does.
    return Outcome(give_up(world, now, by=wish.by))


_HOW: Mapping[Verb, Callable[[World, Ingestion, Wish], Outcome]] = {
    Verb.REPLAY: lambda world, now, wish: replay(world, now, by=wish.by),
    Verb.PUBLISH: lambda world, now, wish: publish_anyway(world, now, wish.by, wish.reason),
    Verb.DISCARD: _given_up,
}


def _words(outcome: Outcome, wish: Wish) -> str:
    """What the thread is to say of what was done; "" where it tells the end anyway."""
    now = outcome.ingestion
    if now.state is State.PUBLISHED:
        return ""
    if now.discarded:
        gone = (
            "its branch and files go with the next daily clean-up" if now.doomed else "it is gone"
        )
        return f"{wish.by} discarded {now.name}: {gone}"
    done = "replayed" if wish.what is Verb.REPLAY else "published anyway"
    words = f"{wish.by} has {now.name} {done}: {standing(now)}"
    return f"{words}; {outcome.left}" if outcome.left else words


def _answer(now: Ingestion, wish: Wish, words: str) -> Alert:
    """An answer in the thread; its token is "" once there is nothing more to be done."""
    is_settled = now.discarded or now.state in UNNEEDED
    return Alert(
        text=escaped(words),
        blocks=(section(f"{escaped(words)}\n*Ingestion* {code(now.id)}"),),
        about=f"{now.id} {wish.seen.token} {wish.what} {wish.by}",
        kind=Kind.ANSWER,
        ingestion=now.id,
        table=now.table,
        token="" if is_settled else seen(now),
    )
