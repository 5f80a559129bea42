"""What Slack is answered when somebody presses a button: within 3 seconds, the work is queued."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.secrets import Secret
from functions.adapters.sqs import translated
from functions.notifications.blocks import code, escaped
from functions.notifications.slack import SlackSecret
from functions.notifications.slack_buttons import (
    REASON,
    NotUnderstood,
    Press,
    Seen,
    Submission,
    Verb,
    modal,
    parsed,
)
from functions.notifications.slack_signature import Refused, Request
from functions.telemetry import logger
from lakegate.errors import LakegateError, Permanent

# What somebody wants done with an ingestion, on its way to be carried out.


@dataclass(frozen=True)
class ActionRequest:
    """One thing that somebody wants done with what they saw; `reason` is why it is published."""

    what: Verb
    seen: Seen
    by: str
    reason: str = ""

    def text(self) -> str:
        """The wish as a message's body."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def of(cls, body: str) -> "ActionRequest":
        """The wish in a message's body. Raises Permanent BAD_WISH."""
        try:
            told = json.loads(body)
            seen = Seen(str(told["seen"]["ingestion"]), str(told["seen"]["token"]))
            return cls(Verb(told["what"]), seen, str(told["by"]), str(told["reason"]))
        except (ValueError, TypeError, KeyError) as error:
            raise Permanent("BAD_WISH", f"this is no wish ({error!r}): {body[:300]}") from error


class ActionQueue:
    """Wishes that wait to be carried out.

    A queue of SQS's kind "FIFO": those about one ingestion are carried out one after the other, and
    what one person wants of what they saw is in it once, however often they press within five
    minutes (Amazon SQS, "Exactly-once processing").
    """

    def __init__(self, client: Any, url: str) -> None:
        """`client` is boto3's `sqs` client."""
        self._client = client
        self._url = url

    def send(self, wish: ActionRequest) -> None:
        """Put a wish there. Raises Transient QUEUE_UNAVAILABLE."""
        same = json.dumps([wish.what, wish.by, *asdict(wish.seen).values()])
        with translated("actions"):
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=wish.text(),
                MessageGroupId=_digest(wish.seen.ingestion),
                MessageDeduplicationId=_digest(same),
            )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_NOT_ALLOWED = "You may not do this here: whoever runs Lakegate can add you to `SlackUsers`."
_NO_REASON = "Say why: main's log keeps it."
_NO_FORM = "The form could not be opened. Press again."


Handler = Callable[[dict[str, Any], LambdaContext], dict[str, Any]]


class Actions(Protocol):
    """Where wishes wait to be carried out."""

    def send(self, wish: ActionRequest) -> None:
        """Put a wish there; the same one is there once. Raises Transient."""


class Replies(Protocol):
    """What is shown to one person."""

    def open(self, trigger: str, view: Mapping[str, Any]) -> None:
        """Open a form, for the 3 seconds that a trigger lives. Raises LakegateError."""

    def tell(self, address: str, words: str) -> None:
        """Say something to whom the address is for, and only to them. Raises LakegateError."""


@dataclass(frozen=True)
class Reception:
    """Who may act, and what a request is answered with.

    `users` are the ids of those who may. `team` is the workspace that requests must come from, ""
    where any may. `now` is the time in seconds.
    """

    users: frozenset[str]
    team: str
    secret: Secret
    actions: Actions
    replies: Replies
    now: Callable[[], float]


def url_handler(reception: Callable[[], Reception]) -> Handler:
    """A handler for a function URL; a request that is refused is told no more than that it is."""

    @logger.inject_lambda_context
    def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        try:
            document = answer(reception(), event)
        except Refused as refused:
            logger.warning("refused", extra={"refusal": refused.code, "why": refused.message})
            return _http(refused.status, {"error": refused.code})
        except LakegateError as error:
            logger.exception("not taken")
            return _http(503, {"error": error.code})
        return _http(200, document)

    return handler


def answer(reception: Reception, event: Mapping[str, Any]) -> dict[str, Any]:
    """The document to answer a request to the function URL with, {} where Slack needs none.

    Raises Refused, and Transient where the wish could not be taken: Slack shows that.
    """
    request = Request.of(event)
    _require_signature(reception, request)
    try:
        asked = parsed(request.payload)
    except NotUnderstood as error:
        raise Refused(400, error.code, error.message) from error
    if reception.team and asked.team != reception.team:
        raise Refused(403, "OTHER_WORKSPACE", f"the workspace {asked.team[:20]!r} is not ours")
    logger.info("asked for", extra={"who": str(asked.person), "ingestion": asked.seen.ingestion})
    if isinstance(asked, Submission):
        return _submitted(reception, asked)
    if not asked.is_link:
        _pressed(reception, asked)
    return {}


def _http(status: int, document: Mapping[str, Any]) -> dict[str, Any]:
    """The answer as a function URL takes it; Slack asks for an empty body where all is well."""
    headers = {"content-type": "application/json"}
    body = json.dumps(document) if document else ""
    return {"statusCode": status, "headers": headers, "body": body}


def _require_signature(reception: Reception, request: Request) -> None:
    text = reception.secret.text()
    if not SlackSecret.of(text).signing_secret:
        text = reception.secret.after(text)
    if not SlackSecret.of(text).signing_secret:
        raise Refused(503, "NO_SIGNING_SECRET", "Slack's secret holds no signing secret")
    if not _is_signed(reception, request, text) and not _is_signed(
        reception, request, reception.secret.after(text)
    ):
        raise Refused(401, "NOT_SLACK", "it is not signed by Slack, or too old")


def _is_signed(reception: Reception, request: Request, text: str) -> bool:
    return request.is_signed(SlackSecret.of(text).signing_secret, reception.now)


def _pressed(reception: Reception, press: Press) -> None:
    """Do what the button stands for, and tell who pressed it what they cannot see otherwise."""
    if press.person.id not in reception.users:
        logger.warning("not allowed", extra={"who": str(press.person), "what": press.verb})
        _tell(reception, press, _NOT_ALLOWED)
    elif press.verb is Verb.SHOW:
        _tell(reception, press, _shown(press))
    elif press.verb is Verb.PUBLISH:
        _open(reception, press)
    else:
        reception.actions.send(ActionRequest(press.verb, press.seen, str(press.person)))
        _tell(reception, press, f"{press.verb.capitalize()} is under way: this thread will tell.")


def _submitted(reception: Reception, submission: Submission) -> dict[str, Any]:
    if submission.person.id not in reception.users:
        logger.warning("not allowed", extra={"who": str(submission.person), "what": "publish"})
        return _wrong(_NOT_ALLOWED)
    if not submission.reason:
        return _wrong(_NO_REASON)
    who = str(submission.person)
    reception.actions.send(ActionRequest(Verb.PUBLISH, submission.seen, who, submission.reason))
    return {}


def _wrong(words: str) -> dict[str, Any]:
    """Words below the form's input, which stays open."""
    return {"response_action": "errors", "errors": {REASON: words}}


def _open(reception: Reception, press: Press) -> None:
    try:
        reception.replies.open(press.trigger, modal(press.seen, press.title, press.unreadable))
    except LakegateError as error:
        logger.warning("the form could not be opened", extra={"why": str(error)})
        _tell(reception, press, _NO_FORM)


def _tell(reception: Reception, press: Press, words: str) -> None:
    """Tell only who pressed; where that fails nothing is lost."""
    try:
        reception.replies.tell(press.answers, words)
    except LakegateError as error:
        logger.warning("could not be told", extra={"words": words, "why": str(error)})


def _shown(press: Press) -> str:
    commands = (f"lakegate {verb} {press.seen.ingestion}" for verb in ("show", "inspect"))
    return "\n".join([f"*{escaped(press.title)}*", escaped(press.summary), *map(code, commands)])
