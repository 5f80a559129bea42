"""Each rule of the checkup reports its fault with a remedy, and only that fault."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest

from functions.health import aws_checks as aws
from functions.health import nessie_checks as nessie
from functions.health.model import (
    AnonymousAnswer,
    Application,
    Claims,
    Finding,
    Notification,
    Queue,
    Status,
    TokenStatus,
)

OK, WARN, FAIL = Status.OK, Status.WARN, Status.FAIL
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LABEL = "emr-spark-8.1.0"
EMR = Application("00a", "STOPPED", LABEL, auto_start=True)
QUEUE = Queue("uploads", "arn:uploads", 3, 1)
NOTIFIED = Notification("arn:uploads", frozenset({"s3:ObjectCreated:*"}), is_filtered=False)
SOME = frozenset({"s3:ObjectCreated:Put"})
LONG = Claims("lakegate-job", NOW + timedelta(days=8))
GOOD = TokenStatus(200, 403)
MAIN_PY, ZIP = "s3://lake/jobs/1/main.py", "s3://lake/jobs/1/lakegate_job.zip"


def application(label: str = LABEL, **known: Any) -> list[Finding]:
    return aws.check_application(replace(EMR, **known), label, 8)


def answered(status: int, seconds: float) -> list[Finding]:
    return list(nessie.check_anonymous_answer("http://n", AnonymousAnswer(status, seconds)))


def notified(*notifications: Notification) -> Finding:
    return aws.check_notifications(notifications, "arn:uploads")


def skewed(seconds: int) -> Finding:
    return aws.check_clocks(NOW, {"S3": NOW, "Nessie": NOW + timedelta(seconds=seconds)})


def token(claims: Claims, status: TokenStatus) -> Finding:
    return nessie.check_token("job", claims, status, NOW)


def may(role: str, merging: int, reading: int = 200) -> Finding:
    return nessie.check_rules(role, TokenStatus(reading, merging))


@pytest.mark.parametrize(
    ("found", "status", "message"),
    [
        (nessie.check_connection("https://nessie.example:19120"), OK, ""),
        (nessie.check_connection("http://127.0.0.1:19120"), OK, ""),
        (nessie.check_connection("http://nessie.internal:19120"), WARN, "HTTP"),
        (notified(NOTIFIED), OK, "to the upload queue"),
        (notified(), FAIL, "notifies no queue"),
        (notified(replace(NOTIFIED, queue_arn="arn:x")), FAIL, "arn:x, but not arn:uploads"),
        (notified(replace(NOTIFIED, is_filtered=True)), FAIL, "only some"),
        (notified(replace(NOTIFIED, events=SOME)), FAIL, "only some"),
        (aws.check_ledger("ACTIVE"), OK, "ACTIVE"),
        (aws.check_ledger("UPDATING"), OK, "UPDATING"),
        (aws.check_ledger("DELETING"), FAIL, "DELETING"),
        (aws.check_queue(QUEUE), OK, "3 waiting, 1 in flight"),
        (aws.check_queue(replace(QUEUE, waiting=1000)), OK, "1,000 waiting"),
        (aws.check_queue(replace(QUEUE, waiting=1001)), WARN, "1,001 waiting"),
        (aws.check_dead_letters(Queue("dead", "arn:dead", 0, 0)), OK, "empty"),
        (aws.check_dead_letters(QUEUE), WARN, "4 messages"),
        (application(), OK, "00a is STOPPED"),
        (application(state="TERMINATED"), FAIL, "00a is TERMINATED"),
        (application(auto_start=False), FAIL, "not start automat"),
        (application("emr-7.0.0"), FAIL, f"{LABEL}; the job requires emr-7.0.0"),
        (application(""), OK, LABEL),
        (application(most_cpus=8), OK, LABEL),
        (application(most_cpus=7), FAIL, "has 7 vCPUs at most; a job takes 8, for a driver and"),
        (aws.check_job_code({MAIN_PY: True}), OK, "s3://lake/jobs/1"),
        (aws.check_job_code({MAIN_PY: True, ZIP: False}), FAIL, f"missing: {ZIP}"),
        (skewed(30), OK, "S3 and Nessie"),
        (skewed(31), FAIL, "Nessie's by +31 s"),
        (skewed(-31), FAIL, "Nessie's by -31 s"),
        (answered(401, 0.0121)[0], OK, "in 12 ms at http://n"),
        (answered(401, 2.5)[0], WARN, "2,500 ms"),
        (answered(401, 2.5)[1], OK, "closed"),
        (answered(200, 0.1)[1], FAIL, "are open"),
        (answered(503, 0.1)[1], FAIL, "answered 503 and not 401"),
        (nessie.check_version("0.99.0", "0.99.0"), OK, "0.99.0"),
        (nessie.check_version("0.108.4", "0.99.0"), OK, "0.108.4"),
        (nessie.check_version("1.0.0", "0.99.0"), OK, "1.0.0"),
        (nessie.check_version("0.98.9", "0.99.0"), FAIL, "0.98.9, older than 0.99.0"),
        (nessie.check_version("0.9.0", "0.99.0"), FAIL, "0.9.0"),
        (nessie.check_version("", "0.99.0"), WARN, "does not report"),
        (token(LONG, GOOD), OK, "expires 2026-03-09 12:00 UTC"),
        (token(Claims(), GOOD), OK, "does not tell when"),
        (token(Claims("", NOW + timedelta(days=6)), GOOD), WARN, "expires 2026-03-07"),
        (token(Claims("", NOW), TokenStatus(401)), FAIL, "expired 2026-03-01 12:00"),
        (token(Claims("lakegate-publisher"), GOOD), FAIL, "the token of lakegate-publisher"),
        (token(LONG, TokenStatus(401)), FAIL, "does not accept"),
        (token(LONG, TokenStatus(403)), FAIL, "answered 403"),
        (token(LONG, TokenStatus(500)), FAIL, "answered 500"),
        (may("job", 403), OK, "may not commit"),
        (may("job", 200), FAIL, "unaudited data could reach main"),
        (may("uploader", 409), FAIL, "may commit"),
        (may("reader", 404), FAIL, "may commit"),
        (may("job", 503), FAIL, "could not be tried (503)"),
        (may("job", 0, 401), FAIL, "could not be tried (401)"),
        (may("publisher", 200), OK, "may commit"),
        (may("publisher", 404), OK, "may commit"),
        (may("publisher", 403), FAIL, "nothing can be published"),
        (may("publisher", 503), FAIL, "could not be tried (503)"),
        (nessie.check_main(begun=True, lacking=[]), OK, "seeded"),
        (nessie.check_main(begun=False, lacking=[]), FAIL, "no commit"),
        (nessie.check_main(begun=True, lacking=["a.b", "c.d"]), FAIL, "lacks a.b and c.d"),
    ],
)
def test_a_rule_reports_its_fault_and_a_remedy(
    found: Finding | Iterable[Finding], status: Status, message: str
) -> None:
    """What was seen is judged by its status; every fault, and only a fault, has a remedy."""
    (finding,) = [found] if isinstance(found, Finding) else found
    assert finding.status is status
    assert message in finding.message
    assert bool(finding.fix) is (status is not OK)


def test_a_token_reports_its_claims() -> None:
    """User and expiry are read from a token, for any signer."""
    signed = jwt.encode({"upn": "lakegate-job", "exp": NOW}, "k" * 32, algorithm="HS256")
    assert Claims.of(signed) == Claims("lakegate-job", NOW)


@pytest.mark.parametrize("text", ["", "opaque", "a.b.c", "a.!.c", "a.W10.c", "a.eyJleHAiOiJ4In0.c"])
def test_any_other_token_reports_nothing(text: str) -> None:
    """A token that is not a JWT has no claims and raises no error."""
    assert Claims.of(text) == Claims()
