"""Each fault of the AWS resources is reported with its remedy."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.health import aws_checks
from functions.health.model import (
    Application,
    Bucket,
    Finding,
    Keys,
    Notification,
    Queue,
    Status,
    Table,
)
from tests.fakes.deployment import SETTINGS

TLS = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "s3:*",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}
KEEP = {
    "Effect": "Deny",
    "Principal": {"AWS": "*"},
    "Action": ["s3:DeleteObject", "s3:DeleteObjectVersion"],
    "Condition": {"ArnNotEquals": {"aws:PrincipalArn": "arn:aws:iam::1:role/clean-up"}},
}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Statement": list(statements)})


SETTINGS_ = replace(
    SETTINGS, job_token_secret="lakegate/dev/job", nessie_token_secret="lakegate/dev/publisher"
)
LAKE = Bucket("lake", "Enabled", "AES256", policy(TLS, KEEP), is_private=True)
QUEUE = Queue("uploads", "arn:uploads", 3, 1, "arn:uploads-dead")
NOTIFIED = Notification("arn:uploads", frozenset({"s3:ObjectCreated:*"}), is_filtered=False)
LEDGER = Table(Keys(("id",)), {name: Keys(keys) for name, keys in aws_checks.INDEXES.items()})
EMR = Application("00a", "STOPPED", "emr-spark-8.1.0", auto_start=True)
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def only(found: Finding | list[Finding]) -> Finding:
    """Return the one finding; only a fault has a remedy."""
    (finding,) = found if isinstance(found, list) else [found]
    assert bool(finding.fix) is (finding.status is not Status.OK)
    return finding


def has(found: Finding | list[Finding], status: Status, message: str) -> bool:
    finding = only(found)
    return finding.status is status and message in finding.message


def without(index: str) -> dict[str, Keys]:
    return {name: keys for name, keys in LEDGER.indexes.items() if name != index}


def test_a_deployment_without_faults_has_good_findings() -> None:
    """A deployment without faults has only good findings."""
    for found in (
        aws_checks.of_settings(SETTINGS_, "dev"),
        aws_checks.of_bucket("lake", LAKE, is_lake=True),
        aws_checks.of_notifications([NOTIFIED], "arn:uploads"),
        aws_checks.of_ledger(LEDGER),
        aws_checks.of_queue(QUEUE),
        aws_checks.of_dead_letters(Queue("dead", "arn:dead", 0, 0, "")),
        aws_checks.of_application(EMR, "emr-spark-8.1.0"),
        aws_checks.of_job_code({"s3://lake/jobs/1/main.py": True}),
        aws_checks.of_clocks(NOW, {"S3": NOW + timedelta(seconds=30)}),
    ):
        assert only(found).status is Status.OK


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nessie_uri": "nessie:19120"}, "Nessie's address nessie:19120"),
        ({"nessie_uri": "http://nessie/api"}, "not an address without a path"),
        ({"lake_bucket": "other"}, "not in the lake bucket other"),
        ({"landing_bucket": "lake"}, "are both lake"),
        ({"job_token_secret": "lakegate/prod/job"}, "not all of stage dev: lakegate/dev/pub"),
    ],
)
def test_settings_that_do_not_fit_together(wrong: dict[str, Any], message: str) -> None:
    """Each contradiction in the settings is a finding."""
    found = aws_checks.of_settings(replace(SETTINGS_, **wrong), "dev")
    assert has(found, Status.FAIL, message)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (replace(LAKE, versioning="Suspended"), "keeps no versions"),
        (replace(LAKE, encryption=""), "not encrypted"),
        (replace(LAKE, is_private=False), "public access"),
        (replace(LAKE, policy=policy(KEEP)), "without TLS"),
        (replace(LAKE, policy=policy(TLS)), "lets others than the clean-up role delete"),
        (replace(LAKE, policy=policy(TLS | {"Effect": "Allow"}, KEEP)), "without TLS"),
        (replace(LAKE, policy=policy(TLS | {"Action": "s3:GetObject"}, KEEP)), "without TLS"),
        (replace(LAKE, policy=policy(TLS, KEEP | {"Principal": {"AWS": "arn:x"}})), "delete"),
    ],
)
def test_a_bucket_that_is_set_up_wrongly(wrong: Bucket, message: str) -> None:
    """Each fault of a bucket is a finding."""
    assert has(aws_checks.of_bucket("lake bucket", wrong, is_lake=True), Status.FAIL, message)


def test_each_fault_of_a_bucket_is_reported() -> None:
    """One fault does not hide another, and only the lake must refuse deletes."""
    bare = Bucket("landing", "", "", "", is_private=False)
    assert len(aws_checks.of_bucket("landing bucket", bare, is_lake=False)) == 4


@pytest.mark.parametrize(
    ("notifications", "message"),
    [
        ([], "notifies no queue"),
        ([replace(NOTIFIED, queue_arn="arn:other")], "notifies arn:other, but not arn:uploads"),
        ([replace(NOTIFIED, is_filtered=True)], "only some"),
        ([replace(NOTIFIED, events=frozenset({"s3:ObjectCreated:Put"}))], "only some"),
    ],
)
def test_landed_files_that_nobody_is_notified_of(
    notifications: list[Notification], message: str
) -> None:
    """A missing, foreign or partial notification is a finding."""
    assert has(aws_checks.of_notifications(notifications, "arn:uploads"), Status.FAIL, message)


@pytest.mark.parametrize(
    ("wrong", "status", "message"),
    [
        (replace(LEDGER, keys=Keys(("key",))), Status.FAIL, "its key is key, not id"),
        (replace(LEDGER, indexes=without("by_etag")), Status.FAIL, "by_etag is missing"),
        (
            replace(LEDGER, indexes={**LEDGER.indexes, "by_key": Keys(("key",))}),
            Status.FAIL,
            "by_key is key, not key, landed_at",
        ),
        (
            replace(
                LEDGER, indexes={**LEDGER.indexes, "by_key": Keys(("key", "landed_at"), False)}
            ),
            Status.WARN,
            "not active yet",
        ),
    ],
)
def test_a_ledger_that_the_functions_cannot_ask(wrong: Table, status: Status, message: str) -> None:
    """A wrong key, and each missing, wrong or unfinished index, is a finding."""
    assert has(aws_checks.of_ledger(wrong), status, message)


def test_queues_that_are_behind_or_lose() -> None:
    """Too many messages, dead letters, and a missing dead-letter queue are findings."""
    behind, loses = replace(QUEUE, waiting=1001), replace(QUEUE, dead_letters_arn="")
    assert has(aws_checks.of_queue(behind), Status.WARN, "1,001 waiting")
    assert has(aws_checks.of_queue(loses), Status.FAIL, "failed messages are lost")
    assert has(aws_checks.of_dead_letters(QUEUE), Status.WARN, "4 messages")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (replace(EMR, state="TERMINATED"), "00a is TERMINATED"),
        (replace(EMR, auto_start=False), "does not start automatically"),
        (replace(EMR, release_label="emr-7.0.0"), "runs emr-7.0.0; the job requires emr-spark"),
    ],
)
def test_an_application_that_runs_no_job_of_ours(wrong: Application, message: str) -> None:
    """An application that is deleted, cannot start, or has another release is a finding."""
    assert has(aws_checks.of_application(wrong, "emr-spark-8.1.0"), Status.FAIL, message)


def test_a_request_without_a_label_takes_any() -> None:
    """Without an expected label the application's own is only reported."""
    found = aws_checks.of_application(replace(EMR, release_label="emr-7.0.0"), "")
    assert has(found, Status.OK, "emr-7.0.0")


def test_job_code_that_is_gone() -> None:
    """Each missing file of the job is named."""
    there = {"s3://lake/jobs/1/main.py": True, "s3://lake/jobs/1/lakegate_job.zip": False}
    found = aws_checks.of_job_code(there)
    assert has(found, Status.FAIL, "missing: s3://lake/jobs/1/lakegate_job.zip")


@pytest.mark.parametrize("seconds", [-31, 31])
def test_a_clock_that_is_off(seconds: int) -> None:
    """A wrong clock is named, with its difference."""
    found = aws_checks.of_clocks(NOW, {"S3": NOW, "Nessie": NOW + timedelta(seconds=seconds)})
    assert has(found, Status.FAIL, f"Nessie's by {seconds:+d} s")
