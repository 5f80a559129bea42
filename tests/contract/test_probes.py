"""Probes read the same in memory, on AWS and on Nessie."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber
from moto import mock_aws

from functions.adapters.nessie import Catalog
from functions.health.aws_probe import AwsProbe
from functions.health.model import (
    Application,
    Notification,
    Queue,
    TokenStatus,
)
from functions.health.nessie_checks import NessieProbe
from lakegate.errors import Transient
from lakegate.nessie_tokens import ROLES
from tests.contract.aws import ACCOUNT
from tests.contract.conftest import Servers
from tests.fakes import wire
from tests.fakes.probes import FakeAws, FakeNessie


@dataclass(frozen=True)
class Seen:
    """A probe of a deployment, and the names of what is there."""

    probe: AwsProbe | FakeAws
    name: str
    bare: str
    queue: str
    queue_arn: str
    application: str


@pytest.fixture(scope="module")
def aws() -> Iterator[Callable[[str], Any]]:
    """Yield AWS in this process, by the names of its services."""
    with mock_aws():
        yield lambda name: boto3.client(name, **ACCOUNT)


@pytest.fixture(params=["in memory", "AWS"])
def seen(request: pytest.FixtureRequest, aws: Callable[[str], Any]) -> Seen:
    """Return two buckets (one notifies the queue), a table, a queue and an EMR application."""
    name = f"t{uuid.uuid4().hex[:12]}"
    if request.param == "in memory":
        return _in_memory(name)
    s3, sqs, emr = aws("s3"), aws("sqs"), aws("emr-serverless")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    asked = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    arn = str(asked["Attributes"]["QueueArn"])
    _make_buckets(s3, name, arn)
    sqs.purge_queue(QueueUrl=url)  # S3 tested the notification
    for _ in range(3):
        sqs.send_message(QueueUrl=url, MessageBody="a")
    sqs.receive_message(QueueUrl=url)
    _make_table(aws("dynamodb"), name)
    most = {"cpu": "16 vCPU", "memory": "64 GB"}
    made = emr.create_application(
        name=name, releaseLabel="emr-6.15.0", type="SPARK", maximumCapacity=most
    )
    probe = AwsProbe(s3, sqs, aws("dynamodb"), emr)
    return Seen(probe, name, f"{name}-bare", url, arn, made["applicationId"])


def _in_memory(name: str) -> Seen:
    notification = Notification("arn:q", frozenset({"s3:ObjectCreated:*"}), is_filtered=True)
    fake = FakeAws(
        datetime.now(UTC),
        notified={name: [notification], f"{name}-bare": []},
        objects={(name, "jobs/1/main.py")},
        tables={name: "ACTIVE"},
        queues={"http://sqs/q": Queue("q", "arn:q", 2, 1)},
        applications={
            "00a": Application("00a", "STARTED", "emr-6.15.0", auto_start=True, most_cpus=16)
        },
    )
    return Seen(fake, name, f"{name}-bare", "http://sqs/q", "arn:q", "00a")


def _make_buckets(s3: Any, name: str, queue_arn: str) -> None:
    for bucket in (name, f"{name}-bare"):
        s3.create_bucket(Bucket=bucket)
    filter_ = {"Key": {"FilterRules": [{"Name": "prefix", "Value": "in/"}]}}
    notification = {"QueueArn": queue_arn, "Events": ["s3:ObjectCreated:*"], "Filter": filter_}
    s3.put_bucket_notification_configuration(
        Bucket=name, NotificationConfiguration={"QueueConfigurations": [notification]}
    )
    s3.put_object(Bucket=name, Key="jobs/1/main.py", Body=b"")


def _make_table(dynamodb: Any, name: str) -> None:
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )


@pytest.mark.parametrize(
    ("answer", "told"), [({"EventBridgeConfiguration": {}}, True), ({}, False)]
)
def test_who_tells_event_bridge_is_seen(answer: dict[str, Any], *, told: bool) -> None:
    """S3 answers with an empty configuration where EventBridge is told; moto leaves it out."""
    client = boto3.client("s3", **ACCOUNT)
    with Stubber(client) as stubber:
        stubber.add_response("get_bucket_notification_configuration", answer)
        assert AwsProbe(client, None, None, None).tells_event_bridge("shop") is told


def test_a_deployment_is_seen_as_it_is(seen: Seen) -> None:
    """Notifications with filters, objects, table, messages and application are read."""
    probe = seen.probe
    expected = Notification(seen.queue_arn, frozenset({"s3:ObjectCreated:*"}), is_filtered=True)
    assert probe.notifications(seen.name) == [expected]
    assert probe.notifications(seen.bare) == []
    assert probe.has_object(seen.name, "jobs/1/main.py")
    assert not probe.has_object(seen.name, "jobs/1/other.py")
    assert probe.table(seen.name) == "ACTIVE"
    assert probe.queue(seen.queue) == Queue(seen.queue.rsplit("/", 1)[-1], seen.queue_arn, 2, 1)
    found = probe.application(seen.application)
    assert (found.state, found.release_label) == ("STARTED", "emr-6.15.0")
    assert found.most_cpus == 16


def test_the_time_is_seen() -> None:
    """S3's clock is read from any answer."""
    answer = b"HTTP/1.1 200 OK\r\nDate: Sun, 01 Mar 2026 12:00:00 GMT\r\nContent-Length: 0\r\n\r\n"
    with wire.answering(answer) as url:
        s3 = boto3.client("s3", endpoint_url=url, **ACCOUNT)
        assert AwsProbe(s3, None, None, None).date("lake") == datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("probe", ["date", "notifications", "table", "application", "queue"])
def test_a_missing_resource_is_reported(seen: Seen, probe: str) -> None:
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
    for run in (probe.date, probe.table, probe.application, probe.notifications):
        with pytest.raises(Transient, match="AWS_REFUSED"):
            run("name")


@pytest.fixture(params=["in memory", pytest.param("Nessie", marks=pytest.mark.stack)])
def nessie(request: pytest.FixtureRequest) -> tuple[NessieProbe | FakeNessie, dict[str, str]]:
    """Return a probe of Nessie, and each role's token."""
    if request.param == "in memory":
        standings = {role: TokenStatus(200, 200 if role == "publisher" else 403) for role in ROLES}
        return FakeNessie(standings), {role: role for role in ROLES}
    servers: Servers = request.getfixturevalue("servers")
    return NessieProbe(servers.nessie), dict(servers.tokens)


def test_nessies_rights_are_seen(nessie: tuple[NessieProbe | FakeNessie, dict[str, str]]) -> None:
    """The version is public, other requests need a token, and only the publisher may merge."""
    probe, tokens = nessie
    standings = {role: probe.token_status(token) for role, token in tokens.items()}
    assert {each.reading for each in standings.values()} == {200}
    assert standings.pop("publisher").merging == 200
    assert {each.merging for each in standings.values()} == {403}
    assert probe.token_status("wrong") == TokenStatus(401)
    assert probe.anonymous_answer().status == 401
    assert probe.version() == "0.99.0"


@pytest.mark.stack
def test_looking_changes_nothing(servers: Servers) -> None:
    """Probing any role's permissions leaves main unchanged."""
    catalog = Catalog(servers.nessie, servers.tokens["reader"])
    before = catalog.head("main")
    for token in servers.tokens.values():
        NessieProbe(servers.nessie).token_status(token)
    assert catalog.head("main") == before


@pytest.mark.parametrize("answer", ["nothing", "no HTTP", "half a body", "half a JSON"])
def test_another_server_than_nessie_is_reported(answer: str) -> None:
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
