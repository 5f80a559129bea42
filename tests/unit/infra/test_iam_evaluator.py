"""The tests' own evaluation of IAM policies, by the rules of the IAM User Guide."""

from typing import Any

import pytest

from tests.policies import Identity, Policy, matches

ME = "arn:aws:iam::000000000000:role/me"
BUCKET = "arn:aws:s3:::lake"


def statement(effect: str, action: str, resource: str, **more: Any) -> dict[str, Any]:
    return {"Effect": effect, "Action": action, "Resource": resource, **more}


def policy(*given: dict[str, Any]) -> Policy:
    return {"Version": "2012-10-17", "Statement": list(given)}


ALL = policy(statement("Allow", "s3:*", f"{BUCKET}/*"))


@pytest.mark.parametrize(
    ("pattern", "text", "same"),
    [
        ("a*c", "abbc", True),
        ("a?c", "abc", True),
        ("a?c", "abbc", False),
        ("a${*}c", "a*c", True),
        ("a${*}c", "abc", False),
        ("${?}", "?", True),
        ("${$}{x}", "${x}", True),
        ("a.c", "abc", False),
        ("A", "a", False),
        ("*", "a\nb", True),
    ],
)
def test_a_pattern_stands_for_texts(pattern: str, text: str, same: bool) -> None:
    """`*` and `?` are wildcards; escaped ones and all other characters stand for themselves."""
    assert matches(pattern, text) is same


def test_what_is_not_allowed_is_denied() -> None:
    """Without a matching statement nothing is allowed; actions ignore case."""
    reader = Identity(ME, [policy(statement("Allow", "s3:getobject", f"{BUCKET}/a/*"))])
    assert reader.may("s3:GetObject", f"{BUCKET}/a/b")
    assert not reader.may("s3:PutObject", f"{BUCKET}/a/b")
    assert not reader.may("s3:GetObject", f"{BUCKET}/b")
    assert not Identity(ME, []).may("s3:GetObject", f"{BUCKET}/a/b")


def test_a_deny_wins() -> None:
    """An explicit deny wins in a role's policy, a session's and a bucket's."""
    deny = statement("Deny", "s3:DeleteObject", "*")
    for barred in (
        Identity(ME, [ALL, policy(deny)]),
        Identity(ME, [ALL], policy(statement("Allow", "s3:*", "*"), deny)),
    ):
        assert barred.may("s3:GetObject", f"{BUCKET}/a")
        assert not barred.may("s3:DeleteObject", f"{BUCKET}/a")
    resource = policy({**deny, "Principal": "*"})
    assert not Identity(ME, [ALL]).may("s3:DeleteObject", f"{BUCKET}/a", resource)


def test_a_session_narrows() -> None:
    """A session may do what its role and its own policy both allow."""
    session = policy(statement("Allow", "*", f"{BUCKET}/mine/*"))
    narrowed = Identity(ME, [ALL], session)
    assert narrowed.may("s3:GetObject", f"{BUCKET}/mine/a")
    assert not narrowed.may("s3:GetObject", f"{BUCKET}/yours/a")
    assert not narrowed.may("sqs:SendMessage", f"{BUCKET}/mine/a")


@pytest.mark.parametrize(
    ("condition", "context", "met"),
    [
        ({"Bool": {"aws:SecureTransport": "false"}}, {"aws__SecureTransport": "false"}, True),
        ({"Bool": {"aws:SecureTransport": False}}, {"aws__SecureTransport": "true"}, False),
        ({"StringEquals": {"k": ["a", "b"]}}, {"k": "b"}, True),
        ({"StringEquals": {"k": "a*"}}, {"k": "ab"}, False),
        ({"StringEquals": {"k": "a"}}, {}, False),
        ({"StringNotEquals": {"k": "a"}}, {}, True),
        ({"ArnNotLike": {"aws:PrincipalArn": [ME]}}, {}, False),
        ({"ArnNotEquals": {"aws:PrincipalArn": "arn:aws:iam::1:role/other"}}, {}, True),
        ({"StringLike": {"k": "a*"}, "StringEquals": {"l": "x"}}, {"k": "ab", "l": "y"}, False),
    ],
)
def test_conditions_have_to_be_met(
    condition: dict[str, Any], context: dict[str, str], met: bool
) -> None:
    """All of a statement's conditions must hold; one value of several is enough."""
    asked = Identity(ME, [policy(statement("Allow", "s3:*", "*", Condition=condition))])
    assert asked.may("s3:GetObject", f"{BUCKET}/a", **context) is met


def test_all_but_some() -> None:
    """NotAction and NotResource apply to everything else."""
    others = {"Effect": "Deny", "Principal": "*", "NotAction": "s3:Get*", "NotResource": "a"}
    asker = Identity(ME, [policy(statement("Allow", "s3:*", "*"))])
    assert asker.may("s3:GetObject", "b", policy(others))
    assert not asker.may("s3:PutObject", "b", policy(others))
    assert asker.may("s3:PutObject", "a", policy(others))


def test_an_unknown_operator_is_no_pass() -> None:
    """An unknown condition is an error and is not ignored."""
    odd = {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}
    asked = Identity(ME, [policy(statement("Allow", "s3:*", "*", Condition=odd))])
    with pytest.raises(NotImplementedError):
        asked.may("s3:GetObject", "a", aws__SourceIp="10.1.1.1")
