"""Lambda: the queue of alerts. Posts them to Slack and to the SNS topic.

It runs outside the deployment's network, because Slack is on the internet.

The queue may deliver a message again. Each notification is recorded after it was posted, so a crash
in between repeats it and loses nothing. A delayed alert that comes after a later one of the same
ingestion is not posted.
"""

import html
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import boto3
from slack_sdk import WebClient

from functions.adapters.secrets import Secret
from functions.adapters.sqs import Deliveries, QueuedAlert
from functions.model.messages.alert import Alert, Block, Kind
from functions.notifications.alert_text import digest, member, without_buttons
from functions.notifications.blocks import context, cut, escaped, header
from functions.notifications.email import Topic
from functions.notifications.slack import (
    Place,
    SlackAlerts,
    ThreadGone,
    Throttled,
    bot_token,
)
from functions.notifications.slack_buttons import buttons, group_buttons
from functions.notifications.threads import Known, Thread, Threads
from functions.settings import AlertSettings, SlackSettings
from functions.sqs_handler import sqs_handler
from functions.telemetry import logger
from functions.wiring import CONFIG
from lakegate.errors import Permanent
from lakegate.job.landing import ID_PART

_LONGEST_OUTCOME = 300
_IN_THREADS = (Kind.FAILED, Kind.NOTICE, Kind.WARNING)


@dataclass(frozen=True)
class AlertChannels:
    """The channels for alerts: Slack, or the log where that is None; and a topic, if any.

    `has_buttons` says whether some users may press buttons. Alerts come from the `queue`.
    """

    threads: Threads
    log: Any
    slack: SlackAlerts | None = None
    topic: Topic | None = None
    has_buttons: bool = False
    queue: Deliveries | None = None


def notify(channels: AlertChannels, body: str) -> None:
    """Post the alert in a message's body, once.

    Raises what Slack or the topic raises; the queue then delivers the message again.
    """
    queued = QueuedAlert.from_json(body)
    original = queued.alert
    alert = replace(
        original, about=original.about or body, token=original.token if channels.has_buttons else ""
    )
    if queued.to_topic and channels.topic:
        _post_once(channels.threads, channels.topic, without_buttons(alert))
    elif not queued.to_topic and channels.slack:
        _show(channels.threads, channels.slack, queued.channel, alert)
    elif not queued.to_topic:
        told = without_buttons(alert)
        channels.log.error(told.text, extra={"channel": queued.channel, "blocks": told.blocks})


def put_off(channels: AlertChannels, receipt: str, error: Exception) -> None:
    """Have an alert delivered again once Slack's pause is over: later ones of its channel wait."""
    if channels.queue and isinstance(error, Throttled):
        channels.queue.put_off(receipt, error.seconds)


def shown(alert: Alert, note: tuple[Block, ...] = ()) -> Alert:
    """Return an alert with a note and its buttons after its lead, or else with commands there."""
    lead = alert.lead or len(alert.blocks)
    before, after = (*alert.blocks[:lead], *note), alert.blocks[lead:]
    if actions := buttons(alert):
        return replace(alert, blocks=(*before, *actions, *after))
    return without_buttons(replace(alert, blocks=(*before, *after), lead=len(before)))


def headline(thread: Thread) -> Alert:
    """Return a thread's first message with its current counts of alerts and resolved ones.

    Once its own ingestion is resolved it has neither advice nor buttons, and another title.
    """
    first, own = thread.alert, member(_subject(thread.alert))
    count, closed = len(thread.members), len(thread.closed)
    more = f" (and {count - 1} more)" if count > 1 else ""
    words = " · ".join(_counts(thread))
    note = (*([context(words)] if words else []), *group_buttons(first, _one_of_many(thread)))
    if own not in thread.closed:
        return replace(shown(first, note), text=first.text + more)
    title = f"{count - closed} of {count} still open: {first.table}"
    if closed == count:
        title = f"✓ {'Resolved' if count == 1 else f'All {count} resolved'}: {first.table}"
    # Of a message without a lead all but its title stays.
    details = first.blocks[first.lead or 1 :]
    blocks = (header(title), *note, context(f"Before: {first.text}"), *details)
    text = f"Resolved: {first.text}" if closed == count else first.text
    return replace(first, text=text + more, blocks=blocks)


def _counts(thread: Thread) -> Iterator[str]:
    """Yield how many alerts have the cause, how many of them are resolved, and how the last was."""
    count, closed = len(thread.members), len(thread.closed)
    if count > 1:
        yield f":repeat: *{count} with the same cause*, each in this thread"
    if (one := _one_of_many(thread)) and not thread.alert.token:
        yield f"for all: `lakegate replay --cause {one[:ID_PART]}`, or `discard`"
    if closed:
        resolved = "Resolved" if closed == count else f"{closed} of {count} resolved"
        yield f":white_check_mark: {resolved}"
    if thread.outcome:
        yield thread.outcome


def _one_of_many(thread: Thread) -> str:
    """Return a failed ingestion of several that is open, the first one if it is; else ""."""
    if len(thread.members) == 1 or thread.alert.kind is not Kind.FAILED:
        return ""
    open_, first = thread.members - thread.closed, thread.alert.ingestion
    return first if first in open_ else min(open_, default="")


def _post_once(threads: Threads, topic: Topic, alert: Alert) -> None:
    subject = f"topic {_subject(alert)}"
    if not _is_old(threads.known(subject), alert):
        topic.post(alert)
        threads.remember(subject, alert.about, revision=alert.revision)


def _show(threads: Threads, slack: SlackAlerts, channel: str, alert: Alert) -> None:
    known = threads.known(_subject(alert))
    if _is_old(known, alert):
        logger.info("already notified, or outdated", extra={"about": alert.about[:200]})
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
    """Return whether this alert, or a later one of the ingestion, was posted already."""
    return digest(alert.about) in known.posted or 0 < alert.revision < known.newest


def _group(threads: Threads, slack: SlackAlerts, channel: str, alert: Alert) -> None:
    """Post the alert in the thread of the same cause, or open one."""
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
    """Post the alert in a thread, and update the counts of its first message.

    Raises ThreadGone where Slack refuses it permanently for any reason: the queue keeps a channel's
    order, so a failure that repeats would block all later alerts.
    """
    outcome = escaped(cut(html.unescape(alert.text), _LONGEST_OUTCOME))
    thread = threads.join(place, _subject(alert), closed=_closes(alert), outcome=outcome)
    thread = threads.close(thread, alert.also)
    try:
        slack.update(place, headline(thread))
        if thread.alert.about != alert.about:  # else it is the first message, posted before a crash
            slack.post(place.channel, shown(alert), place, shout=shout)
    except Permanent as refused:
        logger.warning("Slack refused a thread", extra={"refusal": str(refused)})
        threads.drop(place)
        raise ThreadGone from refused
    threads.remember(_subject(alert), alert.about, place, alert.revision)


def _closes(alert: Alert) -> bool | None:
    """Return whether the alert resolves its ingestion; None where it changes nothing.

    An answer without a token says that the buttons' action was executed.
    """
    if alert.kind is Kind.ANSWER:
        return None if alert.token else True
    return {Kind.FAILED: False, Kind.RECOVERED: True}.get(alert.kind)


def _post(slack: SlackAlerts, channel: str, alert: Alert) -> Place:
    """Post it in its channel, else in the default one, else as bare text."""
    bare = replace(alert, blocks=())
    for where, what in ((channel, alert), ("", alert)):
        try:
            return slack.post(where, what)
        except Permanent as refused:
            logger.error("Slack refused an alert", extra={"in": where, "refusal": str(refused)})
    return slack.post("", bare)


def _subject(alert: Alert) -> str:
    return alert.ingestion or alert.about


_DAY, _WEEK = 86_400, 7


@cache
def channels() -> AlertChannels:
    """Return the alert channels of this Lambda's environment, created once."""
    settings = AlertSettings.of(os.environ)
    table = boto3.resource("dynamodb", config=CONFIG).Table(settings.threads_table)
    window, kept = settings.repeat_minutes * 60, (settings.keep_days + _WEEK) * _DAY
    topic, slack = settings.alert_topic, SlackSettings.of(os.environ)
    own = settings.alert_queue
    return AlertChannels(
        threads=Threads(table, window, kept, time.time),
        log=logger,
        slack=_slack(slack),
        topic=Topic(boto3.client("sns", config=CONFIG), topic) if topic else None,
        has_buttons=bool(slack.slack_users),
        queue=Deliveries(boto3.client("sqs", config=CONFIG), own) if own else None,
    )


def _slack(settings: SlackSettings) -> SlackAlerts | None:
    if not settings.slack_token_secret:
        return None
    vault = boto3.client("secretsmanager", config=CONFIG)
    token = Secret(vault, settings.slack_token_secret, part=bot_token)
    client = WebClient(token.text(), timeout=10)
    if settings.slack_url:
        client.base_url = settings.slack_url
    return SlackAlerts(client, settings.slack_channel, token.after)


handler = sqs_handler(notify, channels, failed=put_off)
