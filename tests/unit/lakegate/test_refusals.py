"""A refused right is told in one sentence, and nothing else counts as one."""

import pytest

from lakegate.errors import Transient
from lakegate.refusals import RightMissing, unavailable

BEGIN = "User: arn:aws:sts::1:assumed-role/loader/i-1 is not authorized to perform: s3:GetObject"


class Refused(Exception):
    """An exception as AWS's client raises it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code, "Message": message}}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f'{BEGIN} on resource: "arn:x" because …', "on arn:x"),
        (f"{BEGIN} on resource: arn:x with an explicit deny", "on arn:x"),
        (f"{BEGIN} because no identity-based policy", "(cannot read x)"),
    ],
)
def test_the_sentence_names_role_right_and_resource(said: str, told: str) -> None:
    """Role and action are named without the session, and the resource, or else what failed."""
    error = unavailable(Refused("AccessDenied", said), "CODE", "cannot read x: it said no")
    assert isinstance(error, RightMissing)
    assert error.message.splitlines()[0] == f"the role loader lacks the right s3:GetObject {told}"


def test_a_refusal_in_other_words_says_what_failed() -> None:
    """S3 tells a HEAD nothing but the status: then our own message has to do."""
    error = unavailable(Refused("403", "Forbidden"), "CODE", "cannot look at s3://a/b")
    assert isinstance(error, RightMissing)
    assert "cannot look at s3://a/b" in error.message


class Odd(Exception):
    """An exception of another client."""

    response = None


@pytest.mark.parametrize("error", [Refused("SlowDown", BEGIN), OSError("no network"), Odd()])
def test_other_failures_are_no_missing_right(error: Exception) -> None:
    """What IAM did not refuse keeps its own code."""
    found = unavailable(error, "CODE", "message")
    assert (type(found), found.code, found.message) == (Transient, "CODE", "message")
