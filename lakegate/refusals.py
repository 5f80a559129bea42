"""Rights that a role lacks, told in one sentence, whichever service refused."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakegate.errors import Permanent, Transient

RIGHT_MISSING = "RIGHT_MISSING"
# S3 answers a HEAD without a body, so that its error has only the status. SQS and SNS say by a code
# of their own that the caller may not use the key of a queue or a topic.
_DENIED = (
    *("AccessDenied", "AccessDeniedException", "AuthorizationError", "403"),
    *("KMS.AccessDeniedException", "KMSAccessDenied"),
)
_SAID = re.compile(
    r"(?:assumed-role|role|user)/([^/\s]+)\S* is not authorized to perform: ([\w:-]+)"
    r"(?: on resource: \"?([^\s\"]+))?"
)
_MEND = "Grant it: functions and job runs try again by themselves; give a command again"
_DECRYPT = "kms:Decrypt"
_OF_KMS = "KMS."  # how S3's codes begin for keys that are disabled, deleted or unknown


_TOLD = re.compile(rf"{RIGHT_MISSING}: (.*?)(?:\s+{_MEND[:8]}.*)?$", re.DOTALL)


class RightMissing(Transient):
    """A role lacks a right. People must grant it, and then a retry succeeds."""

    def __init__(self, lacking: str) -> None:
        """Take a sentence with the role and the right before ` on `, and then what they are for.

        People are told of what comes before it once a day, so it has no name of a file.
        """
        super().__init__(RIGHT_MISSING, f"{lacking}\n{_MEND}")


def unavailable(error: Exception, code: str, message: str) -> Transient:
    """Return the error to raise for an exception of AWS's client with this code and message.

    It is RightMissing where IAM refused the request.
    """
    response = getattr(error, "response", None)  # of another client's exception it may be anything
    said = response.get("Error", {}) if isinstance(response, dict) else {}
    if said.get("Code") not in _DENIED:
        return Transient(code, message)
    matched = _SAID.search(said.get("Message", ""))
    if not matched:
        called = getattr(error, "operation_name", "this")
        return RightMissing(f"a role lacks the right for {called} on what it asked for: {message}")
    role, action, resource = matched.groups()
    where = resource or f"what it asked for ({message.partition(': ')[0]})"
    return RightMissing(f"the role {role} lacks the right {action} on {where}")


@contextmanager
def decrypted(uri: str) -> Iterator[None]:
    """Raise Permanent KEY_REFUSED where the key of a landed object refuses to decrypt it."""
    try:
        yield
    except Exception as error:
        if refused := key_refused(error, uri):
            raise refused from error
        raise


def key_refused(error: Exception, uri: str) -> Permanent | None:
    """Return the error for a landed object whose key S3 cannot use for this role, None for others.

    Its producer chose that key; so people decide about it, and no retry waits for it.
    """
    response = getattr(error, "response", None)
    said = response.get("Error", {}) if isinstance(response, dict) else {}
    code, told = said.get("Code", ""), said.get("Message", "")
    if code.startswith(_OF_KMS):
        message = f"{uri} cannot be decrypted: {told}\nrestore its key, then replay the file"
        return Permanent("KEY_REFUSED", message)
    matched = _SAID.search(told)
    if code not in _DENIED or not matched or matched[2] != _DECRYPT:
        return None
    message = (
        f"{uri} cannot be decrypted: the role {matched[1]} lacks the right {_DECRYPT} on its key"
        f" {matched[3]}\nname the key in ProducerKeyArns, deploy, let the key's own policy allow"
        " the role as well, and replay the file"
    )
    return Permanent("KEY_REFUSED", message)


def named_in(text: str) -> str:
    """Return the sentence of RightMissing in a text with its error, "" where there is none."""
    matched = _TOLD.search(text)
    return matched[1] if matched else ""


def forbidden(whose: str, detail: str) -> RightMissing:
    """Return the error for Nessie's 403 to the holder of a token; `whose` names the token."""
    return RightMissing(f"Nessie's rules do not allow this with {whose}: {detail}")
