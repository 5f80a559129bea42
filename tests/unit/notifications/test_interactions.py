"""What Slack is answered: only those who may act are heard, everything else is refused."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from functions.adapters.secrets import Secret
from functions.notifications.interactions import ActionRequest, Endpoint, answer, url_handler
from functions.notifications.slack_buttons import Seen, Verb
from functions.notifications.slack_signature import Refused
from lakegate.errors import Transient
from tests.fakes.lambda_context import Context
from tests.fakes.slack import NOW, SIGNING_SECRET, FakeActions, FakeReplies, example, posted

SEEN = Seen("a" * 32, "1:ffff")
ADA = "ada (U0MADEUP1)"
SUBMISSION = example("slack_view_submission")


class Vault:
    """Secrets Manager with one secret, whose texts it gives one after the other."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = list(texts)
        self.asked = 0

    def get_secret_value(self, SecretId: str) -> dict[str, str]:  # noqa: N803  boto3's name
        """See boto3."""
        self.asked += 1
        return {"SecretString": self._texts.pop(0) if len(self._texts) > 1 else self._texts[0]}


def secret(signing: str = SIGNING_SECRET) -> str:
    """What Slack's secret holds."""
    return json.dumps({"token": "xoxb-1", "signing_secret": signing})


@dataclass
class Office:
    """The reception, and what went over it."""

    texts: Sequence[str] = (secret(),)
    users: frozenset[str] = frozenset({"U0MADEUP1", "U0MADEUP2"})
    team: str = "T0MADEUP"
    actions: FakeActions = field(default_factory=FakeActions)
    replies: FakeReplies = field(default_factory=FakeReplies)

    def __post_init__(self) -> None:
        self.vault = Vault(self.texts)
        kept = Secret(self.vault, "slack", lambda: NOW)
        self.endpoint = Endpoint(
            self.users, self.team, kept, self.actions, self.replies, lambda: NOW
        )

    def answer(self, event: dict[str, Any]) -> dict[str, Any]:
        """What Slack is answered."""
        return answer(self.endpoint, event)

    def refusal(self, event: dict[str, Any]) -> Refused:
        """Why a request is refused; nothing came of it."""
        with pytest.raises(Refused) as refused:
            self.answer(event)
        assert (self.actions.sent, self.replies.told, self.replies.forms) == ([], [], [])
        return refused.value


def press(verb: str = "replay", user: str = "U0MADEUP1", **value: str) -> dict[str, Any]:
    """Return a button is pressed."""
    document = example("slack_block_actions")
    document["user"]["id"] = user
    (action,) = document["actions"]
    action["action_id"] = f"lakegate.{verb}"
    action["value"] = json.dumps(json.loads(action["value"]) | value)
    return document


@pytest.mark.parametrize("verb", [Verb.REPLAY, Verb.DISCARD])
def test_a_press_is_queued(verb: Verb) -> None:
    """What somebody wants waits to be carried out, with who they are; they are told so."""
    office = Office()
    assert office.answer(posted(press(verb))) == {}
    assert office.actions.sent == [ActionRequest(verb, SEEN, ADA)]
    ((address, words),) = office.replies.told
    assert address.startswith("https://hooks.slack.com/")
    assert "under way" in words


def test_fifty_presses_are_one() -> None:
    """However often one person presses, and Slack sends it, one wish waits."""
    office = Office()
    for _ in range(50):
        event = posted(press())
        event["headers"] |= {"x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout"}
        assert office.answer(event) == {}
    assert len(office.actions.sent) == 1


def test_publishing_asks_for_the_reason_first() -> None:
    """Nothing is queued yet: a form opens, and keeps what was seen."""
    office = Office()
    assert office.answer(posted(press("publish"))) == {}
    ((trigger, view),) = office.replies.forms
    assert trigger == example("slack_block_actions")["trigger_id"]
    assert json.loads(view["private_metadata"])["token"] == "1:ffff"
    assert view["blocks"][0]["text"]["text"] == (
        f"Rejected: tuesday.csv (CHECKS_FAILED)\nIngestion {SEEN.ingestion}"
    )
    assert office.actions.sent == []


def test_a_submitted_reason_is_queued() -> None:
    """The submitted form is the wish, with the reason; Slack closes it on an empty answer."""
    office = Office()
    assert office.answer(posted(SUBMISSION)) == {}
    reason = "a refund, and a lost parcel"
    assert office.actions.sent == [ActionRequest(Verb.PUBLISH, SEEN, ADA, reason)]


def test_without_a_reason_the_form_stays() -> None:
    """Blanks are refused below the input, in Slack's own way."""
    office = Office()
    document = json.loads(json.dumps(SUBMISSION))
    document["view"]["state"]["values"]["reason"]["reason"]["value"] = "  "
    answered = office.answer(posted(document))
    assert answered["response_action"] == "errors"
    assert "why" in answered["errors"]["reason"]
    assert office.actions.sent == []


@pytest.mark.parametrize("verb", Verb)
def test_others_are_told_that_they_may_not(verb: Verb) -> None:
    """Who is not among the users hears so, alone, and nothing comes of it."""
    office = Office()
    assert office.answer(posted(press(verb, user="U0EVE"))) == {}
    assert (office.actions.sent, office.replies.forms) == ([], [])
    ((_, words),) = office.replies.told
    assert "may not" in words


def test_others_submit_nothing() -> None:
    """A form that was opened for somebody else, or forged, publishes nothing."""
    office = Office(users=frozenset())
    assert "may not" in office.answer(posted(SUBMISSION))["errors"]["reason"]
    assert office.actions.sent == []


def test_show_tells_why_it_failed() -> None:
    """Without a quality page Show says the cause and the commands, to who asked alone."""
    office = Office()
    office.answer(posted(press("show", summary="CHECKS_FAILED <!channel>")))
    ((_, words),) = office.replies.told
    assert "Rejected: tuesday.csv" in words
    assert "CHECKS_FAILED &lt;!channel&gt;" in words
    assert f"lakegate show {'a' * 32}" in words


def test_a_link_is_only_acknowledged() -> None:
    """Slack tells also of a button that is a link; whoever follows it needs no right here."""
    office = Office()
    document = press("show", user="U0EVE")
    document["actions"][0]["url"] = "https://lake.example/ingestion?id=a"
    assert office.answer(posted(document)) == {}
    assert office.replies.told == []


def test_a_form_that_cannot_open_is_told() -> None:
    """A trigger that ended is no error of the request: press again."""
    office = Office()
    office.replies.failure = Transient("SLACK_UNAVAILABLE", "away")
    assert office.answer(posted(press("publish"))) == {}


def test_a_wish_that_cannot_wait_is_an_error() -> None:
    """Where the queue is away nothing is promised: Slack shows that it did not work."""
    office = Office()
    office.actions.failure = Transient("QUEUE_UNAVAILABLE", "away")
    with pytest.raises(Transient):
        office.answer(posted(press()))
    assert office.replies.told == []


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
def test_what_is_not_from_our_slack_is_refused(event: dict[str, Any], status: int) -> None:
    """Each forged, old, foreign or mad request is refused by its status, and nothing is done."""
    assert Office().refusal(event).status == status


def test_any_workspace_will_do_where_none_is_named() -> None:
    """Without a workspace in the settings, the signature and the users decide alone."""
    office = Office(team="")
    office.answer(posted(press() | {"team": {"id": "T0OTHER"}}))
    assert len(office.actions.sent) == 1


@pytest.mark.parametrize("text", ["xoxb-1", secret(""), secret("  ")])
def test_without_a_signing_secret_nobody_is_heard(text: str) -> None:
    """A secret with the token alone verifies nothing: not even an empty key's signature."""
    assert Office((text,)).refusal(posted(press(), "x")).status == 503


def test_a_new_signing_secret_is_read() -> None:
    """After a rotation the first request that the old one refuses has it read again."""
    office = Office((secret("old"), secret("new")))
    office.answer(posted(press(), "new"))
    assert len(office.actions.sent) == 1


def test_forgers_do_not_have_the_secret_read() -> None:
    """However many wrong signatures come, the secret is read again once in half a minute."""
    office = Office()
    for _ in range(50):
        office.refusal(posted(press(), "guessed"))
    assert office.vault.asked == 2


def test_the_answer_is_one_of_http() -> None:
    """Well, refused or not taken: Slack gets a status, and a body only where it says something."""
    office = Office()

    def handled(event: dict[str, Any]) -> tuple[int, str]:
        handler: Any = url_handler(lambda: office.endpoint)
        answered = handler(event, Context())
        return answered["statusCode"], answered["body"]

    assert handled(posted(press())) == (200, "")
    assert handled(posted(press(), "guessed")) == (401, '{"error": "NOT_SLACK"}')
    office.actions.failure = Transient("QUEUE_UNAVAILABLE", "away")
    assert handled(posted(press())) == (503, '{"error": "QUEUE_UNAVAILABLE"}')


def test_no_secret_is_logged(log: io.StringIO) -> None:
    """The log tells who asked for what, and neither token, secret, trigger nor address."""
    office = Office()
    document = press()
    office.answer(posted(document))
    office.replies.failure = Transient("SLACK_UNAVAILABLE", "away")
    office.answer(posted(press("publish")))
    text = log.getvalue()
    assert ADA in text
    for hidden in (SIGNING_SECRET, "xoxb-1", document["trigger_id"], document["response_url"]):
        assert hidden not in text
