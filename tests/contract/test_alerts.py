"""Alerts are posted to Slack (the local stand-in) or to the log."""

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
import requests
from slack_sdk import WebClient

from functions.adapters.sqs import AlertQueue, Deliveries, QueuedAlert
from functions.model.audit_outcome import AuditOutcome
from functions.model.ingestion import Ingestion, State
from functions.model.messages.alert import Alert, Kind
from functions.notifications.alert_text import alert, recovered, unreadable_event, without_buttons
from functions.notifications.email import Topic
from functions.notifications.slack import SlackAlerts
from functions.notifications.threads import Threads
from functions.on_alert import AlertChannels, notify, put_off
from functions.sqs_handler import sqs_handler
from functions.telemetry import logger
from infra.local.slack.faults import Faults
from infra.local.slack.people import TOKEN
from infra.local.slack.server import Slack, web_app
from lakegate.audit.report import Reason
from lakegate.errors import Permanent, Transient
from lakegate.job.batch import BatchFile
from lakegate.job.landing import BATCH
from tests.contract.aws import table_of
from tests.contract.test_replies import served
from tests.fakes.examples import FAILED, INGESTION, REPORT
from tests.fakes.faults import Fault, Journal, ProcessDied, die
from tests.fakes.lambda_context import Context

DEFAULT = "#lakegate"
ALERT = alert(INGESTION, REPORT)
IN_WORDS = without_buttons(ALERT)


@dataclass
class LocalSlack:
    """The local Slack at its address; `threads` records the notifications."""

    slack: Slack
    url: str
    table: Any
    seconds: float = 1_800_000_000.0

    def __post_init__(self) -> None:
        """Start without records; a thread accepts alerts for an hour."""
        self.journal = Journal()
        threads = Threads(self.table, 3600, 86_400, lambda: self.seconds)
        self.threads: Threads = self.journal.watched("threads", threads)

    def alerts(self, token: str = TOKEN) -> SlackAlerts:
        """Return the adapter, connected."""
        return SlackAlerts(WebClient(token, base_url=f"{self.url}/api/"), DEFAULT)

    def notify(self, alert: Alert, channel: str = "#orders", *, has_buttons: bool = False) -> None:
        """Post an alert as on_alert does with the queue's message."""
        channels = AlertChannels(self.threads, logger, self.alerts(), has_buttons=has_buttons)
        notify(channels, QueuedAlert(channel, alert).to_json())

    def posted(self) -> list[tuple[str, Alert]]:
        """Return each message's channel and content."""
        return [
            (
                message["channel"],
                replace(ALERT, text=message["text"], blocks=tuple(message["blocks"])),
            )
            for message in self.slack.messages.all()
        ]

    def threaded(self) -> dict[str, list[str]]:
        """Return the text of each first message, with those of the replies to it."""
        every = self.slack.messages.all()
        return {
            first["text"]: [m["text"] for m in every if m.get("thread_ts") == first["ts"]]
            for first in every
            if "thread_ts" not in first
        }

    def delete_first(self) -> None:
        """Delete the oldest message."""
        ts = self.slack.messages.all()[0]["ts"]
        assert requests.delete(f"{self.url}/messages/{ts}", timeout=5).ok

    def suffer(self, **faults: Any) -> None:
        """Have this go wrong from now on."""
        self.slack.faults = Faults(**faults)


@pytest.fixture
def local_slack(tmp_path: Path) -> Iterator[LocalSlack]:
    """Yield Slack, empty and without faults."""
    slack = Slack(tmp_path)
    with served(web_app(slack)) as url, table_of("ThreadsTable") as table:
        yield LocalSlack(slack, url, table)


def failed(name: str, attempt: int = 1, **changes: Any) -> Alert:
    """Return the alert of a rejected file of that name."""
    return alert(ingestion(name, attempt, **changes), REPORT)


def ingestion(
    name: str, attempt: int = 1, table: str = INGESTION.table, **changes: Any
) -> Ingestion:
    """Return the ingestion of a rejected file of that name, for a table."""
    landed = replace(INGESTION.landed, key=f"shop/orders/{name}")
    terms = replace(INGESTION.terms, table=table)
    known = {"id": name * 8, "landed": landed, "attempt": attempt, "revision": attempt * 10}
    return replace(INGESTION, terms=terms, **{**known, **changes})


def title(name: str) -> str:
    """Return the title of that alert."""
    return f"shop.orders: {name} rejected, 1 of 2 checks failed: carrier; main unchanged"


def settled(name: str, attempt: int = 2) -> Alert:
    """Return the notice of a file that was replayed and then published."""
    one = ingestion(name, attempt, state=State.PUBLISHED, audit=AuditOutcome(rows=842))
    return recovered(one.step("replayed", "2026"))


@pytest.mark.parametrize(("channel", "seen"), [("#orders", "#orders"), ("", DEFAULT)])
def test_an_alert_is_seen_in_its_channel(local_slack: LocalSlack, channel: str, seen: str) -> None:
    """An alert is posted with text and blocks in its channel or in the default one."""
    local_slack.notify(ALERT, channel)
    assert local_slack.posted() == [(seen, replace(ALERT, blocks=IN_WORDS.blocks))]


def test_a_message_that_comes_again_is_shown_once(local_slack: LocalSlack) -> None:
    """A message that is delivered again, even days later, is not posted again."""
    for notice in (ALERT, settled("a"), unreadable_event("q", "x", "y")):
        local_slack.notify(notice)
        local_slack.seconds += 86_400
        local_slack.notify(notice)
    assert len(local_slack.posted()) == 3


def test_a_repeat_is_counted_and_named_in_the_thread(local_slack: LocalSlack) -> None:
    """Files with one cause share one message in the channel, which counts them."""
    for name in ("a", "b", "c"):
        local_slack.notify(failed(name))
    assert local_slack.threaded() == {
        f"{title('a')} (and 2 more)": [
            title("b"),
            title("c"),
        ]
    }
    first = local_slack.posted()[0][1]
    assert "*3 with the same cause*" in str(first.blocks)
    assert f"`lakegate replay --cause {ingestion('a').id[:12]}`" in str(first.blocks)
    lead = failed("a").lead
    assert first.blocks[:lead] == failed("a").blocks[:lead]
    assert first.blocks[lead]["type"] == "context"


def test_another_cause_table_or_channel_is_another_thread(local_slack: LocalSlack) -> None:
    """Only the same failed checks of the same table and channel share a thread."""
    local_slack.notify(failed("a"))
    local_slack.notify(failed("b", table="shop.returns"))
    local_slack.notify(alert(ingestion("c"), replace(REPORT, checks=(replace(FAILED, id="x"),))))
    local_slack.notify(failed("d", reason=Reason("BAD_ROWS", "x")))
    local_slack.notify(failed("e"), "#another")
    assert list(map(len, local_slack.threaded().values())) == [0] * 5


def test_batches_of_other_tables_are_another_thread(local_slack: LocalSlack) -> None:
    """Batches share a cause if their tables are the same, in any order."""
    for name, tables in (("a", "xy"), ("b", "yx"), ("c", "xz")):
        parts = tuple(BatchFile(table, "1", "", 1, f"shop.{table}", "", "") for table in tables)
        local_slack.notify(failed(name, table=BATCH, parts=parts))
    assert list(map(len, local_slack.threaded().values())) == [1, 0]


def test_a_window_ends(local_slack: LocalSlack) -> None:
    """After an hour the same cause opens a new message with a new count."""
    local_slack.notify(failed("a"))
    local_slack.seconds += 3601
    local_slack.notify(failed("b"))
    local_slack.notify(failed("c"))
    assert local_slack.threaded() == {
        title("a"): [],
        f"{title('b')} (and 1 more)": [title("c")],
    }


def test_recovery_answers_in_the_thread(local_slack: LocalSlack) -> None:
    """A recovery is posted in the thread that counts its file, or, without one, in the channel."""
    for name in ("a", "b"):
        local_slack.notify(failed(name))
    local_slack.seconds += 20 * 86_400
    local_slack.notify(settled("b"))
    local_slack.notify(settled("unknown"))
    (first, replies), unknown = local_slack.threaded().items()
    assert unknown == ("Published after replay: unknown", [])
    assert first == f"{title('a')} (and 1 more)"
    assert replies[1:] == ["Published after replay: b"]
    assert "1 of 2 resolved" in str(local_slack.posted()[0][1].blocks)


@pytest.mark.parametrize("has_buttons", [False, True])
def test_buttons_are_where_somebody_may_press_them(
    local_slack: LocalSlack, has_buttons: bool
) -> None:
    """Alerts have buttons only where some users may press them, also in threads."""
    for name in ("a", "b"):
        local_slack.notify(failed(name), has_buttons=has_buttons)
    shown = ["actions" in str(notice.blocks) for _, notice in local_slack.posted()]
    assert shown == [has_buttons, has_buttons]


def for_all(local_slack: LocalSlack) -> list[str]:
    """Return the labels and values of the first message's buttons for all files of its cause."""
    blocks = local_slack.posted()[0][1].blocks
    group = (block for block in blocks if block.get("block_id") == "lakegate.group")
    return [f"{b['text']['text']} {b['value']}" for block in group for b in block["elements"]]


def test_a_thread_of_several_has_buttons_for_all(local_slack: LocalSlack) -> None:
    """They name a file that still waits, also once the first one is resolved; the last has none.

    Where nobody may press, the command is named.
    """
    local_slack.notify(failed("a"), has_buttons=True)
    assert not for_all(local_slack)
    local_slack.notify(failed("b"), has_buttons=True)
    replay, publish, discard = for_all(local_slack)
    assert replay.startswith("Replay all …")
    assert publish.startswith("Publish all …")
    assert discard.startswith("Discard all …")
    assert ingestion("a").id in replay
    assert "--cause" not in str(local_slack.posted()[0][1].blocks)
    local_slack.notify(settled("a"), has_buttons=True)
    assert ingestion("b").id in for_all(local_slack)[0]
    local_slack.notify(settled("b"), has_buttons=True)
    assert not for_all(local_slack)


def test_an_answer_about_several_resolves_all_of_them(local_slack: LocalSlack) -> None:
    """The first message counts them, and has no buttons once none waits."""
    for name in ("a", "b"):
        local_slack.notify(failed(name), has_buttons=True)
    both = tuple(ingestion(name).id for name in ("a", "b"))
    answer = Alert("done", ALERT.blocks, "1", Kind.ANSWER, ingestion=both[0], also=both)
    local_slack.notify(answer, has_buttons=True)
    blocks = str(local_slack.posted()[0][1].blocks)
    assert "All 2 resolved" in blocks
    assert "'actions'" not in blocks


def test_failing_again_is_reported_in_the_thread_and_in_the_channel(
    local_slack: LocalSlack,
) -> None:
    """A replayed file that failed again is posted in thread and channel, and not counted twice."""
    local_slack.notify(failed("a"))
    local_slack.notify(settled("a"))
    local_slack.notify(failed("a", attempt=3))
    ((first, replies),) = local_slack.threaded().items()
    assert (first, len(replies)) == (title("a"), 2)
    assert [m.get("broadcast") for m in local_slack.slack.messages.all()] == [None, False, True]
    assert "resolved" not in str(local_slack.posted()[0][1].blocks)


def test_the_buttons_go_when_there_is_nothing_more_to_do(local_slack: LocalSlack) -> None:
    """Recovered files have no buttons, failed ones have; an answer decides by its token."""
    answer = Alert("done", ALERT.blocks, "1", Kind.ANSWER, ingestion("a").id, token="1:x")
    done = replace(answer, about="2", token="")
    notice = [failed("a"), answer, done, failed("a", 3), settled("a", 4)]
    has_buttons = []
    for alert_ in notice:
        local_slack.notify(alert_, has_buttons=True)
        has_buttons.append("'actions'" in str(local_slack.posted()[0][1].blocks))
    assert has_buttons == [True, True, False, True, False]


@pytest.mark.parametrize("notice", [failed("b"), failed("a", attempt=2), settled("a")])
def test_an_alert_of_a_deleted_thread_is_posted_again(
    local_slack: LocalSlack, notice: Alert
) -> None:
    """After the first message was deleted, the next alert opens a new one."""
    local_slack.notify(failed("a"))
    local_slack.delete_first()
    local_slack.notify(notice)
    local_slack.notify(failed("c"))
    again = [] if notice.kind is Kind.RECOVERED else [title("c")]
    assert next(iter(local_slack.threaded().values())) == again


def test_an_archived_channel_gives_way_to_the_default_one(local_slack: LocalSlack) -> None:
    """After a channel was archived, later alerts go to the default channel."""
    local_slack.notify(failed("a"))
    local_slack.suffer(archived_channels=("#orders",))
    local_slack.notify(settled("a"))
    local_slack.notify(failed("b"))
    local_slack.notify(failed("c"))
    channels = [channel for channel, _ in local_slack.posted()]
    assert channels == ["#orders", DEFAULT, DEFAULT, DEFAULT]
    assert list(map(len, local_slack.threaded().values())) == [0, 0, 1]


@pytest.mark.parametrize("bad", [0, 1])
def test_a_thread_that_refuses_a_reply_blocks_nothing(local_slack: LocalSlack, bad: int) -> None:
    """If Slack refuses any change of a thread, the alert is posted once as a new message."""
    notice = [failed("a"), failed("b")]
    notice[bad] = replace(notice[bad], blocks=({"type": "nonsense"},))
    for _ in range(2):
        for each in notice:
            local_slack.notify(each)
    assert list(local_slack.threaded().values())[-1] == []
    assert [alert_.text.partition(" (and")[0] for _, alert_ in local_slack.posted()] == [
        title("a"),
        title("b"),
    ]


def test_a_crash_before_it_is_remembered_reports_once_more(local_slack: LocalSlack) -> None:
    """A crash between posting and recording posts again, and leaves one thread."""
    local_slack.journal.strike("threads.open", Fault(die))
    with pytest.raises(ProcessDied):
        local_slack.notify(failed("a"))
    for _ in range(3):
        local_slack.notify(failed("a"))
    local_slack.notify(failed("b"))
    assert list(local_slack.threaded().values()) == [[], [title("b")]]


def test_a_crash_in_a_thread_counts_once(local_slack: LocalSlack) -> None:
    """A crash after a reply replies again, and the count stays right."""
    local_slack.notify(failed("a"))
    local_slack.journal.strike("threads.remember", Fault(die))
    with pytest.raises(ProcessDied):
        local_slack.notify(failed("b"))
    for _ in range(3):
        local_slack.notify(failed("b"))
    ((first, replies),) = local_slack.threaded().items()
    assert (first, len(replies)) == (f"{title('a')} (and 1 more)", 2)


def test_an_alert_of_an_older_release_is_shown(local_slack: LocalSlack) -> None:
    """An alert queued before alerts had a kind is posted once, as its own message."""
    for about in ("", "", "x"):
        local_slack.notify(Alert("t", ALERT.blocks, about=about))
    assert local_slack.threaded() == {"t": []}
    assert len(local_slack.posted()) == 2


def test_an_alert_that_its_channel_refuses_goes_to_the_default_one(local_slack: LocalSlack) -> None:
    """An alert for a missing channel goes to the default channel, in a thread."""
    local_slack.suffer(missing_channels=("#orders",))
    local_slack.notify(failed("a"))
    local_slack.notify(failed("b"))
    assert [channel for channel, _ in local_slack.posted()] == [DEFAULT, DEFAULT]
    assert list(map(len, local_slack.threaded().values())) == [1]


def test_an_alert_that_every_channel_refuses_stays(local_slack: LocalSlack) -> None:
    """If the default channel refuses too, the error is permanent and nothing is posted."""
    local_slack.suffer(missing_channels=("#orders", DEFAULT))
    with pytest.raises(Permanent, match=r"SLACK_REFUSED.*channel_not_found"):
        local_slack.notify(ALERT)
    assert local_slack.posted() == []


def test_an_alert_with_refused_blocks_is_posted_as_text(local_slack: LocalSlack) -> None:
    """An alert whose blocks Slack refuses is posted as text and blocks no other."""
    local_slack.notify(replace(ALERT, blocks=({"type": "nonsense"},)))
    assert local_slack.posted() == [(DEFAULT, replace(ALERT, blocks=()))]


def test_a_short_limit_is_waited_for(local_slack: LocalSlack) -> None:
    """If Slack asks for a second's pause, the alert is posted a second later."""
    local_slack.suffer(ratelimit_next=1)
    local_slack.notify(ALERT)
    assert len(local_slack.posted()) == 1


def test_an_outage_in_a_thread_delays_it(local_slack: LocalSlack) -> None:
    """If any call of Slack fails, the message comes again; nothing is lost or doubled."""
    local_slack.notify(failed("a"))
    for name in ("b", "c"):
        local_slack.suffer(fail_next=1)
        with pytest.raises(Transient, match="SLACK_UNAVAILABLE"):
            local_slack.notify(failed(name))
        local_slack.notify(failed(name))
    assert [len(replies) for replies in local_slack.threaded().values()] == [2]


@pytest.mark.parametrize("faults", [{"fail_next": 1}, {"away_seconds": 0.5}, {"ratelimit_next": 5}])
def test_a_busy_slack_is_tried_again(local_slack: LocalSlack, faults: dict[str, Any]) -> None:
    """An outage or a rate limit is transient, and the next try succeeds."""
    local_slack.suffer(**faults)
    alerts = local_slack.alerts()
    with pytest.raises(Transient, match="SLACK_UNAVAILABLE"):
        alerts.post("", ALERT)
    local_slack.suffer()
    alerts.post("", ALERT)
    assert len(local_slack.posted()) == 1


def test_a_wrong_token_is_refused(local_slack: LocalSlack) -> None:
    """An unknown token is an error that names the secret and not the token."""
    with pytest.raises(Transient, match=r"invalid_auth.*secret") as refusal:
        local_slack.alerts("xoxb-wrong").post("", ALERT)
    assert "xoxb-wrong" not in str(refusal.value)


def test_a_token_that_was_replaced_is_read_again(local_slack: LocalSlack) -> None:
    """After Slack refuses a token, the secret's newer one is used."""
    client = WebClient("xoxb-old", base_url=f"{local_slack.url}/api/")
    SlackAlerts(client, DEFAULT, {"xoxb-old": TOKEN}.__getitem__).post("", ALERT)
    assert local_slack.posted() == [(DEFAULT, ALERT)]


class Mailbox:
    """A topic that keeps its alerts, or fails."""

    def __init__(self, *, away: bool = False) -> None:
        self.got: list[Alert] = []
        self.away = away

    def post(self, alert: Alert) -> None:
        """See Topic.post."""
        if self.away:
            raise Transient("TOPIC_UNAVAILABLE", "away")
        self.got.append(alert)


def test_the_last_word_is_the_newest(local_slack: LocalSlack) -> None:
    """An alert that was delayed until a later one of the same ingestion is not posted."""
    topic, slack = Mailbox(), local_slack.alerts()
    channels = AlertChannels(local_slack.threads, logger, slack, cast(Topic, topic))
    first, late, last = failed("a"), failed("a", revision=11), settled("a")
    answer = replace(last, kind=Kind.ANSWER, about="answer", text="answer", revision=0)
    for notice in (first, last, late, answer):
        for to_topic in (False, True):
            notify(
                channels,
                QueuedAlert("#orders", replace(notice, token=""), to_topic=to_topic).to_json(),
            )
    assert local_slack.threaded() == {f"Resolved: {first.text}": [last.text, answer.text]}
    assert [notice.text for notice in topic.got] == [first.text, last.text, answer.text]


class Queues:
    """SQS, and how long each message is hidden at a function's request."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.seconds: list[int] = []

    def change_message_visibility(self, **asked: Any) -> None:
        """Do as SQS does, which refuses what it does not know."""
        self.client.change_message_visibility(**asked)
        self.seconds.append(asked["VisibilityTimeout"])


@pytest.mark.parametrize(
    ("faults", "hidden"),
    [
        ({"ratelimit_next": 1, "retry_after": 30}, [30]),
        ({"ratelimit_next": 1, "retry_after": 90_000}, [3600]),
        ({"fail_next": 1}, []),
    ],
)
def test_an_alert_comes_again_when_slack_takes_it(
    local_slack: LocalSlack, sqs: Any, faults: dict[str, int], hidden: list[int]
) -> None:
    """A pause that Slack asks for ends a channel's wait, which an outage leaves to the queue."""
    fifo = {"FifoQueue": "true", "VisibilityTimeout": "360"}
    url = sqs.create_queue(QueueName=f"{uuid.uuid4().hex}.fifo", Attributes=fifo)["QueueUrl"]
    AlertQueue(sqs, url).post("#orders", ALERT)
    (got,) = sqs.receive_message(QueueUrl=url)["Messages"]
    record = {"messageId": "m", "receiptHandle": got["ReceiptHandle"], "body": got["Body"]}
    event, queues = {"Records": [{**record, "attributes": {}}]}, Queues(sqs)
    channels = AlertChannels(
        local_slack.threads,
        logger,
        local_slack.alerts(),
        has_buttons=True,
        queue=Deliveries(queues, url),
    )
    handler: Any = sqs_handler(notify, lambda: channels, failed=put_off)
    local_slack.suffer(**faults)
    assert handler(event, Context()) == {"batchItemFailures": [{"itemIdentifier": "m"}]}
    assert queues.seconds == hidden
    assert handler(event, Context()) == {"batchItemFailures": []}
    assert len(local_slack.posted()) == 1


def test_slack_and_topic_fail_alone(local_slack: LocalSlack) -> None:
    """An outage of Slack or of the topic neither delays nor doubles the other."""
    topic = Mailbox(away=True)
    threads = local_slack.threads
    channels = AlertChannels(
        threads, logger, local_slack.alerts(), cast(Topic, topic), has_buttons=True
    )
    to_slack, to_topic = QueuedAlert("#orders", ALERT), QueuedAlert("#orders", ALERT, to_topic=True)
    for _ in range(3):
        notify(channels, to_slack.to_json())
        with pytest.raises(Transient, match="TOPIC_UNAVAILABLE"):
            notify(channels, to_topic.to_json())
    topic.away = False
    for _ in range(3):
        notify(channels, to_topic.to_json())
    assert (len(local_slack.posted()), topic.got) == (1, [IN_WORDS])


def test_without_slack_log_and_topic_tell(
    local_slack: LocalSlack, caplog: pytest.LogCaptureFixture
) -> None:
    """Without Slack each alert is in the log with its channel and, where set, in the topic."""
    topic = Mailbox()
    channels = AlertChannels(
        local_slack.threads, logging.getLogger("test"), None, cast(Topic, topic), has_buttons=True
    )
    notify(channels, QueuedAlert("#orders", ALERT).to_json())
    notify(channels, QueuedAlert("#orders", ALERT, to_topic=True).to_json())
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", ALERT.text)
    assert (vars(record)["channel"], vars(record)["blocks"]) == ("#orders", IN_WORDS.blocks)
    assert topic.got == [IN_WORDS]
