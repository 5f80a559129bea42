"""Probes read the same in memory, on AWS and on Nessie."""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws

from functions.adapters.nessie import Catalog
from functions.health.aws_probe import AwsProbe
from functions.health.model import (
    Application,
    Bucket,
    Keys,
    Notification,
    Queue,
    Table,
    TokenStatus,
)
from functions.health.nessie_checks import NessieProbe
from lakegate.errors import Transient
from tests.contract.conftest import Servers
from tests.contract.test_queues import ACCOUNT
from tests.fakes import wire
from tests.fakes.probes import FakeAws, FakeNessie

_POLICY = json.dumps({"Version": "2012-10-17", "Statement": []})


@dataclass(frozen=True)
class Seen:
    """A probe of a deployment, and the names of what is there."""

    probe: AwsProbe | FakeAws
    bucket: str
    bare: str
    queue: str
    queue_arn: str
    dead_letters_arn: str
    application: str


@pytest.fixture(scope="module")
def aws() -> Iterator[Callable[[str], Any]]:
    """Yield AWS in this process, by the names of its services."""
    with mock_aws():
        yield lambda name: boto3.client(name, **ACCOUNT)


@pytest.fixture(params=["in memory", "AWS"])
def seen(request: pytest.FixtureRequest, aws: Callable[[str], Any]) -> Seen:
    """Return two buckets (all settings, and none), a table, a queue with dead letters, and EMR."""
    name = f"t{uuid.uuid4().hex[:12]}"
    if request.param == "in memory":
        return _in_memory(name)
    s3, sqs, emr = aws("s3"), aws("sqs"), aws("emr-serverless")
    dead, queue = (sqs.create_queue(QueueName=f"{name}{end}")["QueueUrl"] for end in ("-dead", ""))
    arns = [_arn(sqs, url) for url in (queue, dead)]
    redrive = json.dumps({"deadLetterTargetArn": arns[1], "maxReceiveCount": 5})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": redrive})
    for _ in range(3):
        sqs.send_message(QueueUrl=queue, MessageBody="a")
    sqs.receive_message(QueueUrl=queue)
    _make_buckets(s3, name, _arn(sqs, sqs.create_queue(QueueName=f"{name}-told")["QueueUrl"]))
    _make_table(aws("dynamodb"), name)
    made = emr.create_application(name=name, releaseLabel="emr-6.15.0", type="SPARK")
    probe = AwsProbe(s3, sqs, aws("dynamodb"), emr)
    return Seen(probe, name, f"{name}-bare", queue, arns[0], arns[1], made["applicationId"])


def _in_memory(name: str) -> Seen:
    keys = {"by_state": Keys(("state", "landed_at")), "by_etag": Keys(("etag",))}
    fake = FakeAws(
        datetime.now(UTC),
        buckets={
            name: Bucket(name, "Enabled", "AES256", _POLICY, is_private=True),
            f"{name}-bare": Bucket(f"{name}-bare", "", "AES256", "", is_private=False),
        },
        notified={
            name: [Notification("arn:q-told", frozenset({"s3:ObjectCreated:*"}), is_filtered=True)]
        },
        objects={(name, "jobs/1/main.py")},
        tables={name: Table(Keys(("id",)), keys)},
        queues={"http://sqs/q": Queue(name, "arn:q", 2, 1, "arn:dead")},
        applications={"00a": Application("00a", "STARTED", "emr-6.15.0", auto_start=True)},
    )
    return Seen(fake, name, f"{name}-bare", "http://sqs/q", "arn:q", "arn:dead", "00a")


def _arn(sqs: Any, url: str) -> str:
    asked = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return str(asked["Attributes"]["QueueArn"])


def _make_buckets(s3: Any, name: str, queue_arn: str) -> None:
    for bucket in (name, f"{name}-bare"):
        s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    s3.put_bucket_policy(Bucket=name, Policy=_POLICY)
    blocks = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
    s3.put_public_access_block(
        Bucket=name, PublicAccessBlockConfiguration=dict.fromkeys(blocks, True)
    )
    filter_ = {"Key": {"FilterRules": [{"Name": "prefix", "Value": "in/"}]}}
    notification = {"QueueArn": queue_arn, "Events": ["s3:ObjectCreated:*"], "Filter": filter_}
    s3.put_bucket_notification_configuration(
        Bucket=name, NotificationConfiguration={"QueueConfigurations": [notification]}
    )
    s3.put_object(Bucket=name, Key="jobs/1/main.py", Body=b"")


def _make_table(dynamodb: Any, name: str) -> None:
    indexes = {"by_state": ("state", "landed_at"), "by_etag": ("etag",)}
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": each, "AttributeType": "S"}
            for each in ("id", "state", "landed_at", "etag")
        ],
        KeySchema=_schema("id"),
        GlobalSecondaryIndexes=[
            {
                "IndexName": index,
                "KeySchema": _schema(*keys),
                "Projection": {"ProjectionType": "ALL"},
            }
            for index, keys in indexes.items()
        ],
    )


def _schema(*names: str) -> list[dict[str, str]]:
    kinds = zip(names, ("HASH", "RANGE"), strict=False)
    return [{"AttributeName": name, "KeyType": kind} for name, kind in kinds]


def test_a_bucket_is_seen_as_it_is_set_up(seen: Seen) -> None:
    """Each setting of a bucket is read, and missing ones are empty."""
    found = seen.probe.bucket(seen.bucket)
    assert (found.versioning, found.is_private) == ("Enabled", True)
    assert json.loads(found.policy) == json.loads(_POLICY)
    bare = seen.probe.bucket(seen.bare)
    assert (bare.versioning, bare.policy, bare.is_private) == ("", "", False)


def test_notifications_are_seen(seen: Seen) -> None:
    """A bucket's notifications are read with their filters; another bucket has none."""
    (notification,) = seen.probe.notifications(seen.bucket)
    assert (notification.events, notification.is_filtered) == (
        frozenset({"s3:ObjectCreated:*"}),
        True,
    )
    assert notification.queue_arn == f"{seen.queue_arn}-told"
    assert seen.probe.notifications(seen.bare) == []


def test_objects_are_seen(seen: Seen) -> None:
    """It is known whether an object exists."""
    assert seen.probe.has_object(seen.bucket, "jobs/1/main.py")
    assert not seen.probe.has_object(seen.bucket, "jobs/1/other.py")


def test_a_tables_keys_are_seen(seen: Seen) -> None:
    """The keys of a table and of its indexes are read, partition key first."""
    found = seen.probe.table(seen.bucket)
    assert found.keys.attributes == ("id",)
    assert {name: keys.attributes for name, keys in found.indexes.items()} == {
        "by_state": ("state", "landed_at"),
        "by_etag": ("etag",),
    }


def test_a_queues_messages_are_counted(seen: Seen) -> None:
    """Waiting and in-flight messages and the dead-letter queue are read."""
    found = seen.probe.queue(seen.queue)
    assert (found.waiting, found.in_flight) == (2, 1)
    assert (found.arn, found.dead_letters_arn) == (seen.queue_arn, seen.dead_letters_arn)


def test_an_application_is_seen(seen: Seen) -> None:
    """An application's state and release label are read."""
    found = seen.probe.application(seen.application)
    assert (found.state, found.release_label) == ("STARTED", "emr-6.15.0")


def test_the_time_is_seen() -> None:
    """S3's clock is read from any answer."""
    answer = b"HTTP/1.1 200 OK\r\nDate: Sun, 01 Mar 2026 12:00:00 GMT\r\nContent-Length: 0\r\n\r\n"
    with wire.answering(answer) as url:
        s3 = boto3.client("s3", endpoint_url=url, **ACCOUNT)
        assert AwsProbe(s3, None, None, None).date("lake") == datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "probe", ["date", "bucket", "notifications", "table", "application", "queue"]
)
def test_what_is_not_there_is_reported(seen: Seen, probe: str) -> None:
    """A resource that is deleted or invisible is an error that names it."""
    name = "http://sqs/000000000000/nothing" if probe == "queue" else "nothing-of-ours"
    with pytest.raises(Transient, match=r"AWS_REFUSED.*nothing"):
        getattr(seen.probe, probe)(name)


def test_an_aws_that_is_away_is_reported() -> None:
    """If AWS is unreachable each probe reports it."""
    config = Config(
        retries={"total_max_attempts": 1}, connect_timeout=1, s3={"addressing_style": "path"}
    )
    clients = [
        boto3.client(name, endpoint_url=wire.nobody(), config=config, **ACCOUNT)
        for name in ("s3", "sqs", "dynamodb", "emr-serverless")
    ]
    probe = AwsProbe(*clients)
    for run in (probe.date, probe.bucket, probe.table, probe.application, probe.notifications):
        with pytest.raises(Transient, match="AWS_REFUSED"):
            run("name")


@pytest.fixture(params=["in memory", pytest.param("Nessie", marks=pytest.mark.stack)])
def nessie(request: pytest.FixtureRequest) -> tuple[NessieProbe | FakeNessie, dict[str, str]]:
    """Return a probe of Nessie, and each role's token."""
    if request.param == "in memory":
        roles = ("reader", "uploader", "job", "publisher")
        standings = {role: TokenStatus(200, 200 if role == "publisher" else 403) for role in roles}
        return FakeNessie(standings), {role: role for role in roles}
    servers: Servers = request.getfixturevalue("servers")
    return NessieProbe(servers.nessie), dict(servers.tokens)


def test_nessies_rights_are_seen(nessie: tuple[NessieProbe | FakeNessie, dict[str, str]]) -> None:
    """Anonymous requests are refused, readers read, and only the publisher may merge."""
    probe, tokens = nessie
    standings = {role: probe.token_status(token) for role, token in tokens.items()}
    assert {each.reading for each in standings.values()} == {200}
    assert standings.pop("publisher").merging == 200
    assert {each.merging for each in standings.values()} == {403}
    assert probe.token_status("wrong") == TokenStatus(401)
    assert probe.anonymous_answer().status == 401


def test_nessie_reports_its_version(
    nessie: tuple[NessieProbe | FakeNessie, dict[str, str]],
) -> None:
    """The running server's version is read without a token."""
    assert nessie[0].version() == "0.99.0"


@pytest.mark.stack
def test_looking_changes_nothing(servers: Servers) -> None:
    """Probing any role's permissions leaves main unchanged."""
    catalog = Catalog(servers.nessie, servers.tokens["reader"])
    before = catalog.head("main")
    for token in servers.tokens.values():
        NessieProbe(servers.nessie).token_status(token)
    assert catalog.head("main") == before


@pytest.mark.parametrize("answer", ["nothing", "no HTTP", "half a body", "half a JSON"])
def test_what_is_not_nessie_is_reported(answer: str) -> None:
    """Another server at the address is an error, and not a finding about Nessie."""
    with (
        wire.answering(wire.BROKEN_ANSWERS[answer]) as url,
        pytest.raises(Transient, match=r"CATALOG_UNAVAILABLE|NOT_NESSIE"),
    ):
        NessieProbe(url).token_status("token")


def test_a_nessie_that_is_away_is_reported() -> None:
    """If Nessie is unreachable each probe reports it."""
    probe = NessieProbe(wire.nobody())
    for run in (probe.anonymous_answer, probe.version, lambda: probe.token_status("token")):
        with pytest.raises(Transient, match="CATALOG_UNAVAILABLE"):
            run()
