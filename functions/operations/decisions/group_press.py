"""Carry out a pressed button that decides about a group: ask first, then decide part by part.

A function may run a minute, and a group may have thousands of files. So each message of the queue
decides about a few of them and queues the next one. All that it needs to know is in the message and
in the ledger: delivered again, it skips what is decided.
"""

from collections.abc import Callable
from dataclasses import replace

from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion
from functions.model.ingestion_summary import status_text
from functions.model.messages.action import ActionRequest, Seen, Verb
from functions.model.messages.alert import Alert
from functions.notifications.alert_text import answer, state_token
from functions.notifications.slack_buttons import agreement
from functions.operations.decisions.cause import (
    MOST_REFUSALS,
    each_alone,
    failures,
    named,
    refusal,
    told,
    waiting_with,
)
from functions.operations.decisions.failed import Outcome
from lakegate.errors import LakegateError, Transient

_AT_ONCE = 10
_MOST = 5_000  # whose ids fit into a message
DONE = {Verb.REPLAY: "replayed", Verb.PUBLISH: "approved", Verb.DISCARD: "discarded"}

Decide = Callable[[Ingestion], Outcome]


def advance(adapters: Adapters, request: ActionRequest, decide: Decide) -> Alert | None:
    """Carry out the next part of a request; return its answer, None while it goes on.

    `decide` decides about one ingestion. Raises Transient, and what `Ledger.get` raises.
    """
    first = adapters.ledger.get(request.seen.ingestion)
    if request.ids:
        request = _part(adapters, request, decide)
    elif not first.is_open:
        words = f"{first.name} waits no more ({status_text(first)}): press at a file that waits"
        return _answer(first, request, words)
    else:
        group = waiting_with(adapters.ledger, first)[:_MOST]
        if failures(group) != request.seen.token:
            return _question(first, group, request)
        request = replace(request, ids=tuple(each.id for each in group), since=adapters.now())
    if request.tried < len(request.ids):
        adapters.actions.send(request)
        return None
    return _result(adapters, request)


def _part(adapters: Adapters, request: ActionRequest, decide: Decide) -> ActionRequest:
    """Decide about the next ones; return the request for those after them."""
    tried = request.tried + _AT_ONCE
    refusals: list[str] = []

    def once(now: Ingestion) -> Outcome:
        return Outcome(now) if _is_done(now, request) else decide(_unchanged(now, request))

    some = adapters.ledger.together(request.ids[request.tried : tried])
    for each, result in each_alone(some, once):
        if isinstance(result, Transient):
            raise result
        refusals += filter(None, [refusal(each, result)])
    return replace(
        request,
        tried=tried,
        refused=request.refused + len(refusals),
        refusals=(*request.refusals, *refusals)[:MOST_REFUSALS],
    )


def _result(adapters: Adapters, request: ActionRequest) -> Alert:
    group = adapters.ledger.read(request.ids)
    first = adapters.ledger.get(request.seen.ingestion)  # a large group's first ones may lack it
    done = f"{request.by} {DONE[request.what]}"
    words = told(done, len(request.ids), request.refusals, request.refused)
    settled = tuple(each.id for each in group if each.is_settled)
    return replace(_answer(first, request, words), also=settled)


def _is_done(now: Ingestion, request: ActionRequest) -> bool:
    return any(
        (done.what, done.by) == (request.what, request.by) and done.at >= request.since
        for done in now.decisions.actions
    )


def _unchanged(now: Ingestion, request: ActionRequest) -> Ingestion:
    """Return an ingestion that waits as it did when the group was agreed on. Raises MOVED_ON."""
    if now.is_open and now.ended_at <= request.since:
        return now
    raise LakegateError("MOVED_ON", f"it changed meanwhile: {status_text(now)}")


def _question(first: Ingestion, group: list[Ingestion], request: ActionRequest) -> Alert:
    """Return the question about a group as it is now."""
    before = request.seen.token.partition(":")[0]
    changed = f"These are not the {before} failures asked about before. " if before else ""
    loss = {
        Verb.REPLAY: "Each runs again on a new branch.",
        Verb.PUBLISH: "Rows that could not be read are left out.",
        Verb.DISCARD: "Deletes branches with their rows; keeps the originals.",
    }[request.what]
    words = f"{changed}{request.what.capitalize()} {named(group)}? {loss}"
    question = _answer(first, request, words, f"asks {failures(group)}")
    button = agreement(
        request.what, Seen(first.id, failures(group), is_group=True), words, len(group)
    )
    return replace(question, blocks=(*question.blocks, button), token=state_token(first))


def _answer(first: Ingestion, request: ActionRequest, words: str, ending: str = "") -> Alert:
    since = ending or request.since or status_text(first)
    return answer(first, words, f"group {request.seen.token} {request.what} {request.by} {since}")
