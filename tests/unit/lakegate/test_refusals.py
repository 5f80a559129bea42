"""A refused right is told in one sentence, and nothing else counts as one."""

import pytest

from lakegate.errors import Transient
from lakegate.refusals import RightMissing, key_refused, unavailable

BEGIN = "User: arn:aws:sts::1:assumed-role/loader/i-1 is not authorized to perform: s3:GetObject"


class Refused(Exception):
    """An exception as AWS's client raises it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code, "Message": message}}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f'{BEGIN} on resource: "arn:x" because …', "arn:x"),
        (f"{BEGIN} on resource: arn:x with an explicit deny", "arn:x"),
        (f"{BEGIN} because no identity-based policy", "what it asked for (cannot read x)"),
    ],
)
def test_the_sentence_names_role_right_and_resource(said: str, told: str) -> None:
    """Role and action are named without the session, and the resource, or else what failed."""
    error = unavailable(Refused("AccessDenied", said), "CODE", "cannot read x: it said no")
    assert isinstance(error, RightMissing)
    sentence = f"the role loader lacks the right s3:GetObject on {told}"
    assert error.message.splitlines()[0] == sentence


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


KMS = "User: arn:aws:sts::1:assumed-role/job/i-1 is not authorized to perform: kms:Decrypt"


@pytest.mark.parametrize(
    "because",
    [
        "because no identity-based policy allows the kms:Decrypt action",
        "because no resource-based policy allows the kms:Decrypt action",
        "because no session policy allows the kms:Decrypt action",
    ],
)
def test_a_refused_key_is_told_with_role_and_key(because: str) -> None:
    """The reason names file, role, key and setting, whichever policy refuses."""
    said = f"{KMS} on resource: arn:aws:kms:us-east-1:2:key/k {because}"
    found = key_refused(Refused("AccessDenied", said), "s3://a/b")
    assert found
    assert found.code == "KEY_REFUSED"
    assert found.message.split("\n") == [
        (
            "s3://a/b cannot be decrypted: the role job lacks the right kms:Decrypt on its key "
            "arn:aws:kms:us-east-1:2:key/k"
        ),
        (
            "name the key in ProducerKeyArns, deploy, let the key's own policy allow the role as"
            " well, and replay the file"
        ),
    ]


def test_a_disabled_key_is_told_in_s3s_words() -> None:
    """S3's own codes for keys that nobody can use end the file as well."""
    error = Refused("KMS.DisabledException", "arn:aws:kms:us-east-1:2:key/k is disabled.")
    found = key_refused(error, "s3://a/b")
    assert found
    assert "arn:aws:kms:us-east-1:2:key/k is disabled." in found.message


@pytest.mark.parametrize(
    "error", [Refused("AccessDenied", BEGIN), Refused("AccessDenied", "Access Denied"), Odd()]
)
def test_other_refusals_are_no_refused_key(error: Exception) -> None:
    """A missing right of S3, or one told in other words, is not taken for a key's."""
    assert key_refused(error, "s3://a/b") is None
