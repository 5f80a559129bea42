"""Post alerts to an SNS topic, as plain text for e-mail and other tools."""

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.model.messages.alert import Alert
from lakegate.refusals import unavailable

# Limits: a subject has less than 100 characters of ASCII, begins with a letter, a digit or a
# punctuation mark, and has no control character; a message has 256 KB (Amazon SNS, "Publish").
_SUBJECT, _BODY = 99, 256 * 1024
# The parts of Slack's markup that our messages use ("Formatting text for app surfaces"). A star
# within a word, as in SQL, marks nothing.
MARKS = re.compile(
    r"```(?P<block>.*?)```|`(?P<code>[^`]+)`|(?<!\S)\*(?=\S)(?P<bold>[^*\n]+)(?<=\S)\*(?!\w)"
    r"|(?P<emoji>:(?:x|repeat|white_check_mark):)|<(?P<address>[^<>|]+)\|(?P<link>[^<>]+)>",
    re.DOTALL,
)
SIGNS = {":x:": "✗", ":repeat:": "↻", ":white_check_mark:": "✓"}


def subject(alert: Alert) -> str:
    """Return an alert's title as the subject of an e-mail."""
    words = html.unescape(alert.text).encode("ascii", "replace").decode()
    line = "".join(c if c.isprintable() else " " for c in words).strip()
    return line[:_SUBJECT].strip() or "Lakegate"


def body(alert: Alert) -> str:
    """Return an alert's full text."""
    text = "\n\n".join(filter(None, map(_read, _texts(alert.blocks)))) or _plain(alert.text)
    return text.encode()[:_BODY].decode(errors="ignore") or "(empty)"


def words(blocks: tuple[Mapping[str, Any], ...]) -> Iterator[str]:
    """Yield the readable texts of the blocks, with their markup."""
    return (part["text"] for part in _texts(blocks))


def _texts(blocks: tuple[Mapping[str, Any], ...]) -> Iterator[Mapping[str, Any]]:
    for block in blocks:
        for part in (block.get("text"), *block.get("elements", ())):
            if isinstance(part, Mapping) and isinstance(part.get("text"), str):
                yield part


def _read(part: Mapping[str, Any]) -> str:
    """Return a text as people read it; a title is plain already, whatever its names look like."""
    return part["text"].strip() if part.get("type") == "plain_text" else _plain(part["text"])


def _plain(text: str) -> str:
    return html.unescape(MARKS.sub(_unmarked, text)).strip()


def _unmarked(match: re.Match[str]) -> str:
    kind = str(match.lastgroup)
    if kind == "block":
        return f"\n{match[kind]}\n"
    if kind == "link":
        return f"{match[kind]}: {match['address']}"
    return SIGNS.get(match[0], match[kind])


class Topic:
    """One topic of Amazon SNS."""

    def __init__(self, client: Any, arn: str) -> None:
        """Use boto3's `sns` client."""
        self._client = client
        self._arn = arn

    def post(self, alert: Alert) -> None:
        """Publish an alert as plain text. Raises Transient, as a later try may succeed."""
        try:
            self._client.publish(TopicArn=self._arn, Subject=subject(alert), Message=body(alert))
        except (ClientError, BotoCoreError) as error:
            message = f"SNS did not accept an alert: {error}"
            raise unavailable(error, "TOPIC_UNAVAILABLE", message) from error
