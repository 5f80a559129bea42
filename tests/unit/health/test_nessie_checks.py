"""Each fault of Nessie, its tokens and its rules is reported with its remedy."""

from datetime import UTC, datetime, timedelta

import jwt
import pytest

from functions.health import nessie_checks as judging
from functions.health.model import AnonymousAnswer, Claims, Finding, Status, TokenStatus

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONG = Claims("lakegate-job", NOW + timedelta(days=8))
GOOD = TokenStatus(200, 403)


def has(finding: Finding, status: Status, message: str) -> bool:
    assert bool(finding.fix) is (status is not Status.OK)
    return finding.status is status and message in finding.message


@pytest.mark.parametrize(
    ("anonymous_answer", "statuses", "messages"),
    [
        (AnonymousAnswer(401, 0.0121), [Status.OK, Status.OK], ["in 12 ms at http://n", "closed"]),
        (AnonymousAnswer(401, 2.5), [Status.WARN, Status.OK], ["2,500 ms", "closed"]),
        (AnonymousAnswer(200, 0.1), [Status.OK, Status.FAIL], ["100 ms", "are open"]),
        (
            AnonymousAnswer(503, 0.1),
            [Status.OK, Status.FAIL],
            ["100 ms", "answered 503 and not 401"],
        ),
    ],
)
def test_how_nessie_greets(
    anonymous_answer: AnonymousAnswer, statuses: list[Status], messages: list[str]
) -> None:
    """Nessie must answer soon and refuse anonymous requests."""
    found = judging.of_anonymous_answer("http://n", anonymous_answer)
    for finding, status, message in zip(found, statuses, messages, strict=True):
        assert has(finding, status, message)


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("0.99.0", Status.OK),
        ("0.108.4", Status.OK),
        ("1.0.0", Status.OK),
        ("0.98.9", Status.FAIL),
        ("0.9.0", Status.FAIL),
        ("", Status.WARN),
    ],
)
def test_nessie_must_not_be_older(version: str, status: Status) -> None:
    """The tested version or a newer one is required; versions compare as numbers."""
    assert has(judging.of_version(version, "0.99.0"), status, version)


@pytest.mark.parametrize(
    ("claims", "token_status", "status", "message"),
    [
        (LONG, GOOD, Status.OK, "expires 2026-03-09 12:00 UTC"),
        (Claims(), GOOD, Status.OK, "does not tell when"),
        (Claims("", NOW + timedelta(days=6)), GOOD, Status.WARN, "expires 2026-03-07"),
        (Claims("", NOW), TokenStatus(401), Status.FAIL, "expired 2026-03-01 12:00"),
        (Claims("lakegate-publisher"), GOOD, Status.FAIL, "the token of lakegate-publisher"),
        (LONG, TokenStatus(401), Status.FAIL, "does not accept"),
        (LONG, TokenStatus(403), Status.FAIL, "answered 403"),
        (LONG, TokenStatus(500), Status.FAIL, "answered 500"),
    ],
)
def test_a_role_has_its_own_good_token(
    claims: Claims, token_status: TokenStatus, status: Status, message: str
) -> None:
    """A foreign, expired, expiring or refused token is a finding."""
    assert has(judging.of_token("job", claims, token_status, NOW), status, message)


@pytest.mark.parametrize(
    ("role", "merging", "status", "message"),
    [
        ("job", 403, Status.OK, "may not commit"),
        ("job", 200, Status.FAIL, "unaudited data could reach main"),
        ("uploader", 409, Status.FAIL, "may commit"),
        ("reader", 404, Status.FAIL, "may commit"),
        ("job", 503, Status.FAIL, "could not be tried (503)"),
        ("publisher", 200, Status.OK, "may commit"),
        ("publisher", 404, Status.OK, "may commit"),
        ("publisher", 403, Status.FAIL, "nothing can be published"),
        ("publisher", 503, Status.FAIL, "could not be tried (503)"),
    ],
)
def test_only_the_publisher_changes_main(
    role: str, merging: int, status: Status, message: str
) -> None:
    """Only the publisher may change main."""
    assert has(judging.of_rules(role, TokenStatus(200, merging)), status, message)


def test_a_token_that_is_refused_says_nothing_of_the_rules() -> None:
    """Rules that could not be tried are a fault."""
    assert has(judging.of_rules("job", TokenStatus(401)), Status.FAIL, "not be tried (401)")


@pytest.mark.parametrize(
    ("begun", "lacking", "status", "message"),
    [
        (True, [], Status.OK, "seeded"),
        (False, [], Status.FAIL, "no commit"),
        (True, ["ops.audit_results", "ops.quarantine"], Status.FAIL, "results and ops.quar"),
    ],
)
def test_main_must_be_seeded(begun: bool, lacking: list[str], status: Status, message: str) -> None:
    """A main without a commit, or without a table, is a finding."""
    assert has(judging.of_main(begun=begun, lacking=lacking), status, message)


def test_a_token_reports_its_claims() -> None:
    """User and expiry are read from a token, for any signer."""
    token = jwt.encode({"upn": "lakegate-job", "exp": NOW}, "k" * 32, algorithm="HS256")
    assert Claims.of(token) == Claims("lakegate-job", NOW)


@pytest.mark.parametrize(
    "token", ["", "opaque", "a.b.c", "a.!.c", "a.W10.c", "a.eyJleHAiOiJ4In0.c"]
)
def test_any_other_token_reports_nothing(token: str) -> None:
    """A token that is not a JWT has no claims and raises no error."""
    assert Claims.of(token) == Claims()
