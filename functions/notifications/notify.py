"""Where people see an alert: a channel's new message, the thread of an older one, a topic, the log.

A message of the queue may come again after it was shown: who was told of what is remembered, after
the telling, so that a crash in between tells once more and loses nothing. One that was held up, and
comes after a later one of the same ingestion, is not shown: the last word is the newest.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from functions.adapters.sqs import Queued
from functions.model.alert import (
    Alert,
    Kind,
)
from functions.notifications.alert_text import (
    digest,
)
from functions.notifications.blocks import context
from functions.notifications.email import Topic
from functions.notifications.slack import LogAlerts, Place, SlackAlerts, ThreadGone
from functions.notifications.slack_buttons import buttons
from functions.notifications.threads import Known, Thread, Threads
from functions.telemetry import logger
from lakegate.errors import Permanent

_IN_THREADS = (Kind.FAILED, Kind.NOTICE, Kind.WARNING)


@dataclass(frozen=True)
class AlertChannels:
    """What on_alert tells people with: Slack, or the log where that is None; a topic, if any.

    `has_buttons` says that somebody may press buttons.
    """

    threads: Threads
    log: LogAlerts
    slack: SlackAlerts | None = None
    topic: Topic | None = None
    has_buttons: bool = False


def tell(alert_channels: AlertChannels, body: str) -> None:
    """Show people the alert in a message's body, once.

    Raises what Slack or the topic raises: nothing is lost, the message comes again.
    """
    queued = Queued.from_json(body)
    told = queued.alert
    alert = replace(
        told, about=told.about or body, token=told.token if alert_channels.has_buttons else ""
    )
    if queued.to_topic and alert_channels.topic:
        _once(alert_channels, alert, "topic", alert_channels.topic.post)
    elif not queued.to_topic and alert_channels.slack:
        _show(alert_channels.threads, alert_channels.slack, queued.channel, alert)
    elif not queued.to_topic:
        alert_channels.log.post(queued.channel, alert)


def shown(alert: Alert) -> Alert:
    """An alert with what can be done at it."""
    return replace(alert, blocks=(*alert.blocks, *buttons(alert)))


def headline(thread: Thread) -> Alert:
    """A thread's first message as it is to be now: how many there are, how many are taken care of.

    Its buttons go once there is nothing more to do about its own ingestion.
    """
    first, count, closed = thread.alert, len(thread.members), len(thread.closed)
    words = [f":repeat: *{count} times* the same, each in this thread"] if count > 1 else []
    if closed:
        words.append(f":white_check_mark: {closed} of {count} taken care of")
    is_open = first.ingestion not in thread.closed
    return replace(
        first,
        text=first.text + (f" (and {count - 1} more)" if count > 1 else ""),
        blocks=(
            *first.blocks,
            *([context(" · ".join(words))] if words else []),
            *(buttons(first) if is_open else ()),
        ),
    )


def _once(
    alert_channels: AlertChannels, alert: Alert, name: str, post: Callable[[Alert], None]
) -> None:
    subject, about = f"{name} {_subject(alert)}", alert.about
    if not _is_old(alert_channels.threads.known(subject), alert):
        post(alert)
        alert_channels.threads.remember(subject, about, revision=alert.revision)


def _show(threads: Threads, slack: SlackAlerts, channel: str, alert: Alert) -> None:
    known = threads.known(_subject(alert))
    if _is_old(known, alert):
        logger.info("told already, or overtaken", extra={"about": alert.about[:200]})
        return None
    if known.place:
        with suppress(ThreadGone):
            return _reply(threads, slack, known.place, alert, shout=alert.kind is Kind.FAILED)
    if alert.kind in _IN_THREADS and alert.cause:
        _group(threads, slack, channel, alert)
    else:
        place = _post(slack, channel, shown(alert))
        threads.remember(_subject(alert), alert.about, place, alert.revision)
    return None


def _is_old(known: Known, alert: Alert) -> bool:
    """Return whether people were told this already, or what became of the ingestion later."""
    return digest(alert.about) in known.told or 0 < alert.revision < known.newest


def _group(threads: Threads, slack: SlackAlerts, channel: str, alert: Alert) -> None:
    """Tell in the thread of what has the same cause, or open one."""
    cause = "\n".join([channel, alert.table, alert.cause])
    gone = None
    while place := threads.claim(cause, alert.about, gone):
        with suppress(ThreadGone):
            return _reply(threads, slack, place, alert)
        gone = place
    place = _post(slack, channel, shown(alert))
    threads.open(cause, alert, place, _subject(alert))
    return None


def _reply(
    threads: Threads, slack: SlackAlerts, place: Place, alert: Alert, *, shout: bool = False
) -> None:
    """Tell it in a thread, whose first message then counts it.

    Raises ThreadGone where Slack refuses it for good, whatever it says: the queue keeps a channel's
    order, so what failed again and again would hold up all that follows.
    """
    thread = threads.join(place, _subject(alert), closed=_closes(alert))
    try:
        slack.update(place, headline(thread))
        if thread.alert.about != alert.about:  # which is that first message, told before a crash
            slack.post(place.channel, shown(alert), place, shout=shout)
    except Permanent as refused:
        logger.warning("a thread takes no more", extra={"refusal": str(refused)})
        threads.drop(place)
        raise ThreadGone from refused
    threads.remember(_subject(alert), alert.about, place, alert.revision)


def _closes(alert: Alert) -> bool | None:
    """Whether people need do nothing more about it; None where that is as it was.

    An answer without a token says that what the buttons stood for has been done.
    """
    if alert.kind is Kind.ANSWER:
        return None if alert.token else True
    return {Kind.FAILED: False, Kind.RECOVERED: True}.get(alert.kind)


def _post(slack: SlackAlerts, channel: str, alert: Alert) -> Place:
    """Show it in its channel; where that refuses, in the default one; at last, as bare text."""
    bare = replace(alert, blocks=())
    for where, what in ((channel, alert), ("", alert)):
        try:
            return slack.post(where, what)
        except Permanent as refused:
            logger.error("Slack refused an alert", extra={"in": where, "refusal": str(refused)})
    return slack.post("", bare)


def _subject(alert: Alert) -> str:
    return alert.ingestion or alert.about
