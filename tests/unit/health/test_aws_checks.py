"""What AWS keeps for a deployment is judged: each fault is named, with what to do about it."""

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
    """Return the one finding; a fault has a fix, and what is well has none."""
    (finding,) = found if isinstance(found, list) else [found]
    assert bool(finding.fix) is (finding.status is not Status.OK)
    return finding


def has(found: Finding | list[Finding], status: Status, message: str) -> bool:
    finding = only(found)
    return finding.status is status and message in finding.message


def without(index: str) -> dict[str, Keys]:
    return {name: keys for name, keys in LEDGER.indexes.items() if name != index}


def test_what_is_well_has_as_well() -> None:
    """A deployment without a fault has no finding but good ones."""
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
        ({"nessie_uri": "http://nessie/api"}, "none without a path"),
        ({"lake_bucket": "other"}, "not in the lake bucket other"),
        ({"landing_bucket": "lake"}, "are both lake"),
        ({"job_token_secret": "lakegate/prod/job"}, "not all of stage dev: lakegate/dev/pub"),
    ],
)
def test_settings_that_do_not_fit_together(wrong: dict[str, Any], message: str) -> None:
    """Each contradiction in the settings is told by itself."""
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
    """Whatever a bucket lacks is told by itself."""
    assert has(aws_checks.of_bucket("lake bucket", wrong, is_lake=True), Status.FAIL, message)


def test_all_that_a_bucket_lacks_has() -> None:
    """One fault does not hide another, and a landing bucket is not asked to keep what landed."""
    bare = Bucket("landing", "", "", "", is_private=False)
    assert len(aws_checks.of_bucket("landing bucket", bare, is_lake=False)) == 4


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ([], "told to nobody"),
        ([replace(NOTIFIED, queue_arn="arn:other")], "told to arn:other, and not to arn:uploads"),
        ([replace(NOTIFIED, is_filtered=True)], "only some"),
        ([replace(NOTIFIED, events=frozenset({"s3:ObjectCreated:Put"}))], "only some"),
    ],
)
def test_landed_files_that_nobody_hears_of(notifications: list[Notification], message: str) -> None:
    """A notification that is gone, leads elsewhere or leaves some out is told."""
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
    """A wrong key, and each index that is missing, other or being built, is told."""
    assert has(aws_checks.of_ledger(wrong), status, message)


def test_queues_that_are_behind_or_lose() -> None:
    """Too many messages, messages given up, and a queue without a dead-letter queue are told."""
    behind, loses = replace(QUEUE, waiting=1001), replace(QUEUE, dead_letters_arn="")
    assert has(aws_checks.of_queue(behind), Status.WARN, "1,001 waiting")
    assert has(aws_checks.of_queue(loses), Status.FAIL, "failed messages are lost")
    assert has(aws_checks.of_dead_letters(QUEUE), Status.WARN, "4 messages")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (replace(EMR, state="TERMINATED"), "00a is TERMINATED"),
        (replace(EMR, auto_start=False), "does not start by itself"),
        (replace(EMR, release_label="emr-7.0.0"), "runs emr-7.0.0; the job is made for emr-spark"),
    ],
)
def test_an_application_that_runs_no_job_of_ours(wrong: Application, message: str) -> None:
    """An application that is gone, does not start, or is of another release is told."""
    assert has(aws_checks.of_application(wrong, "emr-spark-8.1.0"), Status.FAIL, message)


def test_whoever_asks_without_a_label_takes_any() -> None:
    """Without an expected label the application's own is only told."""
    found = aws_checks.of_application(replace(EMR, release_label="emr-7.0.0"), "")
    assert has(found, Status.OK, "emr-7.0.0")


def test_job_code_that_is_gone() -> None:
    """Each file of the job that is missing is named."""
    there = {"s3://lake/jobs/1/main.py": True, "s3://lake/jobs/1/lakegate_job.zip": False}
    found = aws_checks.of_job_code(there)
    assert has(found, Status.FAIL, "missing: s3://lake/jobs/1/lakegate_job.zip")


@pytest.mark.parametrize("seconds", [-31, 31])
def test_a_clock_that_is_off(seconds: int) -> None:
    """Fast or slow, who differs is named, and by how much."""
    found = aws_checks.of_clocks(NOW, {"S3": NOW, "Nessie": NOW + timedelta(seconds=seconds)})
    assert has(found, Status.FAIL, f"Nessie's by {seconds:+d} s")
