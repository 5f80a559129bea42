"""The endpoint accepts permitted users' requests and refuses all others."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from functions.adapters.secrets import Secret
from functions.model.messages.action import ActionRequest, Seen, Verb
from functions.notifications.interactions import (
    Endpoint,
    Refused,
    answer,
    url_handler,
)
from lakegate.errors import Transient
from tests.fakes.lambda_context import Context
from tests.fakes.slack import NOW, SIGNING_SECRET, FakeActions, FakeReplies, example, posted

SEEN = Seen("a" * 32, "1:ffff")
ADA = "ada (U0MADEUP1)"
SUBMISSION = example("slack_view_submission")


class Vault:
    """Secrets Manager with one secret, whose texts it returns one after the other."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = list(texts)
        self.asked = 0

    def get_secret_value(self, SecretId: str) -> dict[str, str]:  # noqa: N803  boto3's name
        """See boto3."""
        self.asked += 1
        return {"SecretString": self._texts.pop(0) if len(self._texts) > 1 else self._texts[0]}


def secret(signing: str = SIGNING_SECRET) -> str:
    """Return the content of Slack's secret."""
    return json.dumps({"token": "xoxb-1", "signing_secret": signing})


@dataclass
class Harness:
    """The endpoint with its fake adapters."""

    texts: Sequence[str] = (secret(),)
    users: frozenset[str] = frozenset({"U0MADEUP1", "U0MADEUP2"})
    team: str = "T0MADEUP"
    actions: FakeActions = field(default_factory=FakeActions)
    replies: FakeReplies = field(default_factory=FakeReplies)

    def __post_init__(self) -> None:
        self.vault = Vault(self.texts)
        kept = Secret(self.vault, "slack", lambda: NOW)
        doubles: dict[str, Any] = {"actions": self.actions, "replies": self.replies}
        self.endpoint = Endpoint(self.users, self.team, kept, now=lambda: NOW, **doubles)

    def answer(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request."""
        return answer(self.endpoint, event)

    def refusal(self, event: dict[str, Any]) -> Refused:
        """Return the code of a refusal, which must have no effect."""
        with pytest.raises(Refused) as refused:
            self.answer(event)
        assert (self.actions.sent, self.replies.sent, self.replies.forms) == ([], [], [])
        return refused.value


def press(verb: str = "replay", user: str = "U0MADEUP1", **value: str) -> dict[str, Any]:
    """Return the request for a pressed button."""
    document = example("slack_block_actions")
    document["user"]["id"] = user
    (action,) = document["actions"]
    action["action_id"] = f"lakegate.{verb}"
    action["value"] = json.dumps(json.loads(action["value"]) | value)
    return document


@pytest.mark.parametrize("verb", [Verb.REPLAY, Verb.DISCARD])
def test_a_press_is_queued(verb: Verb) -> None:
    """A press is queued with its person, who gets a reply."""
    harness = Harness()
    assert harness.answer(posted(press(verb))) == {}
    assert harness.actions.sent == [ActionRequest(verb, SEEN, ADA)]
    ((address, words),) = harness.replies.sent
    assert address.startswith("https://hooks.slack.com/")
    assert "is queued" in words


def test_publishing_asks_for_the_reason_first() -> None:
    """Publishing opens a form and queues nothing yet."""
    harness = Harness()
    assert harness.answer(posted(press("publish"))) == {}
    ((trigger, view),) = harness.replies.forms
    assert trigger == example("slack_block_actions")["trigger_id"]
    assert json.loads(view["private_metadata"])["token"] == "1:ffff"
    assert view["blocks"][0]["text"]["text"] == (
        f"Rejected: tuesday.csv (CHECKS_FAILED)\nIngestion {SEEN.ingestion}"
    )
    assert harness.actions.sent == []


def test_a_submitted_reason_is_queued() -> None:
    """A submitted form is queued with its reason; an empty answer closes it."""
    harness = Harness()
    assert harness.answer(posted(SUBMISSION)) == {}
    reason = "a refund, and a lost parcel"
    assert harness.actions.sent == [ActionRequest(Verb.PUBLISH, SEEN, ADA, reason)]


def test_without_a_reason_the_form_stays() -> None:
    """A blank reason is refused below the input."""
    harness = Harness()
    document = json.loads(json.dumps(SUBMISSION))
    document["view"]["state"]["values"]["reason"]["reason"]["value"] = "  "
    answered = harness.answer(posted(document))
    assert answered["response_action"] == "errors"
    assert "reason" in answered["errors"]["reason"]
    assert harness.actions.sent == []


@pytest.mark.parametrize("verb", Verb)
def test_other_users_read_that_they_may_not(verb: Verb) -> None:
    """A user without permission gets a private reply, and nothing is queued."""
    harness = Harness()
    assert harness.answer(posted(press(verb, user="U0EVE"))) == {}
    assert (harness.actions.sent, harness.replies.forms) == ([], [])
    ((_, words),) = harness.replies.sent
    assert "may not" in words


def test_others_submit_nothing() -> None:
    """A submission of another user, or a forged one, publishes nothing."""
    harness = Harness(users=frozenset())
    assert "may not" in harness.answer(posted(SUBMISSION))["errors"]["reason"]
    assert harness.actions.sent == []


def test_show_reports_why_it_failed() -> None:
    """Without a quality page Show replies privately with cause and commands."""
    harness = Harness()
    harness.answer(posted(press("show", summary="CHECKS_FAILED <!channel>")))
    ((_, words),) = harness.replies.sent
    assert "Rejected: tuesday.csv" in words
    assert "CHECKS_FAILED &lt;!channel&gt;" in words
    assert f"lakegate show {'a' * 32}" in words


def test_a_link_is_only_acknowledged() -> None:
    """A link button needs no permission and no answer."""
    harness = Harness()
    document = press("show", user="U0EVE")
    document["actions"][0]["url"] = "https://lake.example/ingestion?id=a"
    assert harness.answer(posted(document)) == {}
    assert harness.replies.sent == []


def test_a_form_that_cannot_open_is_reported() -> None:
    """An expired trigger is answered with the advice to press again."""
    harness = Harness()
    harness.replies.failure = Transient("SLACK_UNAVAILABLE", "away")
    assert harness.answer(posted(press("publish"))) == {}


def test_a_wish_that_cannot_wait_is_an_error() -> None:
    """If the queue is unavailable Slack shows an error."""
    harness = Harness()
    harness.actions.failure = Transient("QUEUE_UNAVAILABLE", "away")
    with pytest.raises(Transient):
        harness.answer(posted(press()))
    assert harness.replies.sent == []


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (posted(press(), "another secret"), 401),
        (posted(press(), at=NOW - 301), 401),
        (posted(press() | {"team": {"id": "T0OTHER"}}), 403),
        (posted(press("drop")), 400),
        (posted(press() | {"type": "shortcut"}), 400),
        (posted("no press"), 400),
    ],
)
def test_a_request_not_from_our_slack_is_refused(event: dict[str, Any], status: int) -> None:
    """Each forged, old, foreign or invalid request is refused by its status, without effect."""
    assert Harness().refusal(event).status == status


def test_any_workspace_will_do_where_none_is_named() -> None:
    """Without a workspace in the settings the signature and the users decide."""
    harness = Harness(team="")
    harness.answer(posted(press() | {"team": {"id": "T0OTHER"}}))
    assert len(harness.actions.sent) == 1


@pytest.mark.parametrize("text", ["xoxb-1", secret(""), secret("  ")])
def test_without_a_signing_secret_nobody_is_notified(text: str) -> None:
    """Without a signing secret every request is refused, even one signed with an empty key."""
    assert Harness((text,)).refusal(posted(press(), "x")).status == 503


def test_a_new_signing_secret_is_read() -> None:
    """After a rotation the first refused request reads the secret again."""
    harness = Harness((secret("old"), secret("new")))
    harness.answer(posted(press(), "new"))
    assert len(harness.actions.sent) == 1


def test_forgers_do_not_have_the_secret_read() -> None:
    """Wrong signatures read the secret at most once in half a minute."""
    harness = Harness()
    for _ in range(50):
        harness.refusal(posted(press(), "guessed"))
    assert harness.vault.asked == 2


def test_the_answer_is_one_of_http() -> None:
    """Each request gets an HTTP status, and a body only if needed."""
    harness = Harness()

    def handled(event: dict[str, Any]) -> tuple[int, str]:
        handler: Any = url_handler(lambda: harness.endpoint)
        answered = handler(event, Context())
        return answered["statusCode"], answered["body"]

    assert handled(posted(press())) == (200, "")
    assert handled(posted(press(), "guessed")) == (401, '{"error": "NOT_SLACK"}')
    harness.actions.failure = Transient("QUEUE_UNAVAILABLE", "away")
    assert handled(posted(press())) == (503, '{"error": "QUEUE_UNAVAILABLE"}')


def test_no_secret_is_logged(log: io.StringIO) -> None:
    """The log has the person and the ingestion, but no token, secret, trigger or address."""
    harness = Harness()
    document = press()
    harness.answer(posted(document))
    harness.replies.failure = Transient("SLACK_UNAVAILABLE", "away")
    harness.answer(posted(press("publish")))
    text = log.getvalue()
    assert ADA in text
    for hidden in (SIGNING_SECRET, "xoxb-1", document["trigger_id"], document["response_url"]):
        assert hidden not in text
