"""Answer pressed buttons of Slack within 3 seconds and queue the requested actions."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from aws_lambda_powertools.utilities.typing import LambdaContext
from slack_sdk.signature import Clock, SignatureVerifier

from functions.adapters.secrets import Secret
from functions.adapters.sqs import ActionQueue
from functions.model.messages.action import ActionRequest, Verb
from functions.notifications.blocks import code, escaped
from functions.notifications.slack import SlackReplies, SlackSecret
from functions.notifications.slack_buttons import REASON, modal
from functions.notifications.slack_presses import NotUnderstood, Press, Submission, parsed
from functions.telemetry import logger
from lakegate.errors import LakegateError, Permanent

_LARGEST = 1_000_000  # characters; a message of 50 blocks comes to a tenth of it
_MOST_FIELDS = 10


class Refused(Permanent):
    """A refused request; `status` is HTTP's."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(code, message)
        self.status = status


@dataclass(frozen=True)
class Request:
    """A request as it was signed, with the signature that it claims.

    Rules: Slack, "Verifying requests from Slack": the signature covers the raw body, and a request
    older than 5 minutes may be a replayed one. The event: AWS Lambda, "Invoking Lambda function
    URLs" (payload format 2.0).
    """

    body: str
    timestamp: str
    signature: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "Request":
        """Return the request in an event of a function URL, unverified. Raises Refused."""
        if event["requestContext"]["http"]["method"] != "POST":
            raise Refused(405, "NOT_POSTED", "Slack sends POST requests only")
        body = event.get("body") or ""
        if len(body) > _LARGEST:
            raise Refused(413, "TOO_LARGE", f"the request has {len(body):,} characters, too many")
        try:
            if event.get("isBase64Encoded"):
                body = base64.b64decode(body, validate=True).decode()
        except ValueError as error:
            raise Refused(400, "NO_TEXT", "the request's body is not text") from error
        headers = event["headers"]  # whose names come in lower case
        stamp = headers.get("x-slack-request-timestamp", "")
        return cls(body, stamp, headers.get("x-slack-signature", ""))

    def is_signed(self, signing_secret: str, now: Callable[[], float]) -> bool:
        """Return whether Slack signed it with that secret at most five minutes before `now`."""
        try:
            verifier = SignatureVerifier(signing_secret, _At(now))
            return verifier.is_valid(self.body, self.timestamp, self.signature)
        except (ValueError, TypeError):  # no secret, no number, no ASCII
            return False

    @property
    def payload(self) -> Any:
        """Return the JSON document in it. Raises Refused."""
        try:
            (document,) = parse_qs(self.body, max_num_fields=_MOST_FIELDS)["payload"]
            return json.loads(document)
        except (KeyError, ValueError, RecursionError) as error:
            raise Refused(400, "NO_PAYLOAD", "the request has no JSON payload") from error


class _At(Clock):
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def now(self) -> float:
        return self._now()


_NOT_ALLOWED = "You may not do this: ask your administrator to add you to `SlackUsers`."
_NO_REASON = "Give a reason: main's log records it."
_NO_FORM = "The form could not be opened. Press again."


Handler = Callable[[dict[str, Any], LambdaContext], dict[str, Any]]


@dataclass(frozen=True)
class Endpoint:
    """The permissions and adapters for answering requests.

    `users` are the ids of the permitted users. `team` is the workspace that requests must come
    from, "" for any. `now` returns the time in seconds.
    """

    users: frozenset[str]
    team: str
    secret: Secret
    actions: ActionQueue
    replies: SlackReplies
    now: Callable[[], float]


def url_handler(endpoint: Callable[[], Endpoint]) -> Handler:
    """Return a handler for a function URL; a refused request gets only an error code."""

    @logger.inject_lambda_context
    def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        try:
            document = answer(endpoint(), event)
        except Refused as refused:
            logger.warning("refused", extra={"refusal": refused.code, "why": refused.message})
            return _http(refused.status, {"error": refused.code})
        except LakegateError as error:
            logger.exception("a request failed")
            return _http(503, {"error": error.code})
        return _http(200, document)

    return handler


def answer(endpoint: Endpoint, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document that answers a request to the function URL, {} where Slack needs none.

    Raises Refused, and Transient where the action could not be queued: Slack then shows an error.
    """
    request = Request.of(event)
    _require_signature(endpoint, request)
    try:
        action = parsed(request.payload)
    except NotUnderstood as error:
        raise Refused(400, error.code, error.message) from error
    if endpoint.team and action.team != endpoint.team:
        message = f"the workspace {action.team[:20]!r} is not the one in SlackTeam"
        raise Refused(403, "OTHER_WORKSPACE", message)
    logger.info("asked for", extra={"who": str(action.person), "ingestion": action.seen.ingestion})
    if isinstance(action, Submission):
        return _submitted(endpoint, action)
    if not action.is_link:
        _pressed(endpoint, action)
    return {}


def _http(status: int, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function URL's response; Slack requires an empty body on success."""
    headers = {"content-type": "application/json"}
    body = json.dumps(document) if document else ""
    return {"statusCode": status, "headers": headers, "body": body}


def _require_signature(endpoint: Endpoint, request: Request) -> None:
    text = endpoint.secret.text()
    for _ in range(2):  # the secret may have changed
        signing = SlackSecret.of(text).signing_secret
        if signing and request.is_signed(signing, endpoint.now):
            return
        text = endpoint.secret.after(text)
    if not signing:
        raise Refused(503, "NO_SIGNING_SECRET", "Slack's secret has no signing secret: add it")
    raise Refused(401, "NOT_SLACK", "the request is not signed by Slack, or too old")


def _pressed(endpoint: Endpoint, press: Press) -> None:
    """Do what the button requests, and reply to the person who pressed it."""
    if press.person.id not in endpoint.users:
        logger.warning("not allowed", extra={"who": str(press.person), "what": press.verb})
        _reply(endpoint, press, _NOT_ALLOWED)
    elif press.verb is Verb.SHOW:
        _reply(endpoint, press, _shown(press))
    elif press.verb is Verb.PUBLISH and press.seen.token:
        _open(endpoint, press)
    else:
        endpoint.actions.send(ActionRequest(press.verb, press.seen, str(press.person)))
        _reply(endpoint, press, f"{press.verb.capitalize()} is queued: see this thread.")


def _submitted(endpoint: Endpoint, submission: Submission) -> dict[str, Any]:
    if submission.person.id not in endpoint.users:
        logger.warning("not allowed", extra={"who": str(submission.person), "what": "publish"})
        return _wrong(_NOT_ALLOWED)
    if not submission.reason:
        return _wrong(_NO_REASON)
    who = str(submission.person)
    endpoint.actions.send(ActionRequest(Verb.PUBLISH, submission.seen, who, submission.reason))
    return {}


def _wrong(words: str) -> dict[str, Any]:
    """Return an error for the form's input; the form stays open."""
    return {"response_action": "errors", "errors": {REASON: words}}


def _open(endpoint: Endpoint, press: Press) -> None:
    try:
        endpoint.replies.open(press.trigger, modal(press.seen, press.title, press.unreadable))
    except LakegateError as error:
        logger.warning("the form could not be opened", extra={"why": str(error)})
        _reply(endpoint, press, _NO_FORM)


def _reply(endpoint: Endpoint, press: Press, words: str) -> None:
    """Reply to the person who pressed the button; a failure is only logged."""
    try:
        endpoint.replies.reply(press.answers, words)
    except LakegateError as error:
        logger.warning("the reply failed", extra={"words": words, "why": str(error)})


def _shown(press: Press) -> str:
    commands = (f"lakegate {verb} {press.seen.ingestion}" for verb in ("show", "inspect"))
    return "\n".join([f"*{escaped(press.title)}*", escaped(press.summary), *map(code, commands)])
