"""How people see alerts in Slack, which is the local stand-in, or in the log."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from slack_sdk import WebClient
from werkzeug.serving import make_server

from functions.alerts import LogAlerts, SlackAlerts, tell
from functions.messages import Alert, alert
from functions.queues import queued
from infra.local.slack import Messages, Slack, web_app
from infra.local.slack_faults import Faults, Weather
from lakegate.errors import Permanent, Transient
from tests.fakes import wire
from tests.fakes.examples import FAILED, INGESTION, REPORT

TOKEN = "xoxb-test"
DEFAULT = "#lakegate"
ALERT = alert(INGESTION, REPORT)


@dataclass
class LocalSlack:
    """The stand-in, and where it answers."""

    slack: Slack
    url: str

    def alerts(self, token: str = TOKEN) -> SlackAlerts:
        """The adapter, connected."""
        return SlackAlerts(WebClient(token, base_url=f"{self.url}/api/"), DEFAULT)

    def posted(self) -> list[tuple[str, Alert]]:
        """Each message's channel and what it shows."""
        return [
            (
                message["channel"],
                replace(ALERT, text=message["text"], blocks=tuple(message["blocks"])),
            )
            for message in self.slack.messages.all()
        ]

    def suffer(self, faults: Faults) -> None:
        """Have this go wrong from now on."""
        self.slack.weather = Weather(faults)


@pytest.fixture
def local_slack(tmp_path: Path) -> Iterator[LocalSlack]:
    """Slack, empty and well."""
    slack = Slack(Messages(tmp_path / "messages.jsonl"), TOKEN)
    server = make_server("127.0.0.1", 0, web_app(slack), threaded=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield LocalSlack(slack, f"http://127.0.0.1:{server.port}")
    server.shutdown()
    server.server_close()


def test_an_alert_is_seen_in_its_channel(local_slack: LocalSlack) -> None:
    """What is told is seen, text and blocks, in the channel that was named."""
    tell(local_slack.alerts(), queued("#orders", ALERT))
    assert local_slack.posted() == [("#orders", ALERT)]


def test_without_a_channel_it_is_the_default_one(local_slack: LocalSlack) -> None:
    """An alert whose contract names no channel goes to the deployment's."""
    tell(local_slack.alerts(), queued("", ALERT))
    assert local_slack.posted() == [(DEFAULT, ALERT)]


def test_a_channel_that_is_not_there_refuses(local_slack: LocalSlack) -> None:
    """A channel that does not exist, or not for us, is an error that no retry mends."""
    local_slack.suffer(Faults(missing_channels=("#orders",)))
    with pytest.raises(Permanent, match=r"SLACK_REFUSED.*channel_not_found"):
        local_slack.alerts().post("#orders", ALERT)
    assert local_slack.posted() == []


def test_what_its_channel_refuses_goes_to_the_default_one(local_slack: LocalSlack) -> None:
    """A contract that names a channel that is not there still gets its people told."""
    local_slack.suffer(Faults(missing_channels=("#orders",)))
    tell(local_slack.alerts(), queued("#orders", ALERT))
    assert local_slack.posted() == [(DEFAULT, ALERT)]


def test_what_every_channel_refuses_stays(local_slack: LocalSlack) -> None:
    """Where the default channel refuses too, the message is not done: it comes again."""
    local_slack.suffer(Faults(missing_channels=("#orders", DEFAULT)))
    with pytest.raises(Permanent, match="SLACK_REFUSED"):
        tell(local_slack.alerts(), queued("#orders", ALERT))


@pytest.mark.parametrize("faults", [Faults(fail_next=1), Faults(ratelimit_next=1)])
def test_a_busy_slack_is_tried_again(local_slack: LocalSlack, faults: Faults) -> None:
    """An outage or a limit is transient: the next try is taken."""
    local_slack.suffer(faults)
    alerts = local_slack.alerts()
    with pytest.raises(Transient, match="SLACK_UNAVAILABLE"):
        alerts.post("", ALERT)
    alerts.post("", ALERT)
    assert len(local_slack.posted()) == 1


def test_a_wrong_token_is_refused(local_slack: LocalSlack) -> None:
    """A token that Slack does not know is an error that names the secret and not the token."""
    with pytest.raises(Transient, match=r"invalid_auth.*secret") as refusal:
        local_slack.alerts("xoxb-wrong").post("", ALERT)
    assert "xoxb-wrong" not in str(refusal.value)


def test_a_token_that_was_replaced_is_read_again(local_slack: LocalSlack) -> None:
    """An alert goes out with the secret's newer token where Slack refuses the one at hand."""
    client = WebClient("xoxb-old", base_url=f"{local_slack.url}/api/")
    SlackAlerts(client, DEFAULT, {"xoxb-old": TOKEN}.__getitem__).post("", ALERT)
    assert local_slack.posted() == [(DEFAULT, ALERT)]


def test_a_message_that_slack_cannot_show_is_refused(local_slack: LocalSlack) -> None:
    """Blocks beyond Slack's limits are an error that no retry mends."""
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}
    with pytest.raises(Permanent, match="invalid_blocks"):
        local_slack.alerts().post("", Alert("x", (section,)))


def test_the_largest_alert_is_taken(local_slack: LocalSlack) -> None:
    """An alert at its longest, of a file that broke everything, is one that Slack takes."""
    wordy = replace(FAILED, expected="<" * 9000, samples=({"id": "x" * 9000},) * 9)
    report = replace(REPORT, checks=(wordy,) * 60)
    local_slack.alerts().post("", alert(INGESTION, report))
    assert len(local_slack.posted()) == 1


@pytest.mark.parametrize("answer", wire.BROKEN_ANSWERS)
def test_nonsense_is_tried_again(answer: str) -> None:
    """Whatever a proxy or a dying server answers in Slack's place is transient."""
    with wire.answering(wire.BROKEN_ANSWERS[answer]) as url:
        alerts = SlackAlerts(WebClient(TOKEN, base_url=f"{url}/api/"), DEFAULT)
        with pytest.raises(Transient, match="SLACK_UNAVAILABLE"):
            alerts.post("", ALERT)


def test_silence_is_tried_again() -> None:
    """A Slack that takes the call and never answers, or is not there, is transient."""
    with wire.silent() as url:
        for address in (url, wire.nobody()):
            client = WebClient(TOKEN, base_url=f"{address}/api/", timeout=1)
            with pytest.raises(Transient, match="SLACK_UNAVAILABLE"):
                SlackAlerts(client, DEFAULT).post("", ALERT)


def test_without_slack_the_log_tells(caplog: pytest.LogCaptureFixture) -> None:
    """A deployment without Slack finds each alert in its log, with the channel it was meant for."""
    LogAlerts(logging.getLogger("test")).post("#orders", ALERT)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", ALERT.text)
    assert vars(record)["channel"] == "#orders"
    assert vars(record)["blocks"] == ALERT.blocks
