"""OpenLineage events reach a collector over HTTP, or wait in their queue."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import boto3
import pytest
from moto import mock_aws

from functions.adapters.s3 import Lake
from functions.adapters.secrets import Bearer, Secret
from functions.downstream.announce import Consumers, EventBus, announce
from functions.downstream.queues import BodyQueue
from functions.on_lineage import Collector, Target, send_lineage
from lakegate.errors import Transient
from tests.contract.aws import ACCOUNT
from tests.fakes.deployment import ORDERS
from tests.fakes.examples import REPORT
from tests.unit.downstream.test_lineage import PUBLISHED


@dataclass
class Server:
    """A collector that answers with these statuses in turn, then with 201."""

    address: str = ""
    answers: list[int] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    """Yield a running collector."""
    made = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = made.answers.pop(0) if made.answers else 201
            made.keys.append(self.headers.get("Authorization", ""))
            if status == 201:
                made.events.append(json.loads(body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=http.serve_forever, daemon=True).start()
    made.address = f"http://127.0.0.1:{http.server_port}/api/v1/lineage"
    yield made
    http.shutdown()
    http.server_close()


@dataclass(frozen=True)
class Aws:
    """SQS, S3 and Secrets Manager in this process, with a queue and a lake."""

    sqs: Any
    vault: Any
    queue: str
    lake: Lake

    def target(self, server: Server, secret: str = "") -> Target:
        """Return a target; `secret` names the one with the API key."""
        bearer = Bearer(Secret(self.vault, secret)) if secret else None
        dead = BodyQueue(self.sqs, self.queue)
        return Target(Collector(server.address, bearer), self.lake, dead)

    def bodies(self) -> list[str]:
        """Return the bodies in the queue."""
        found = self.sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10)
        return [each["Body"] for each in found.get("Messages", [])]


@pytest.fixture
def aws() -> Iterator[Aws]:
    """Yield AWS with an empty queue and an empty lake bucket."""
    with mock_aws():
        sqs, s3, vault = (boto3.client(n, **ACCOUNT) for n in ("sqs", "s3", "secretsmanager"))
        s3.create_bucket(Bucket="lake")
        queue = sqs.create_queue(QueueName="lineage")["QueueUrl"]
        yield Aws(sqs, vault, queue, Lake(s3, "lake"))


def with_documents(aws: Aws) -> str:
    """Put report and contract into the lake; return the announcement's body."""
    client = boto3.client("s3", **ACCOUNT)
    client.put_bucket_versioning(Bucket="lake", VersioningConfiguration={"Status": "Enabled"})
    client.put_object(Bucket="lake", Key=REPORT.key, Body=REPORT.to_json().encode())
    key = "contracts/shop.orders.yaml"
    version = client.put_object(Bucket="lake", Key=key, Body=ORDERS.encode())["VersionId"]
    document = {
        **json.loads(PUBLISHED.text()),
        "report": REPORT.key,
        "contract": f"{key}@{version}",
    }
    return json.dumps(document)


def test_a_collector_gets_what_became_of_a_file(aws: Aws, server: Server) -> None:
    """Start and end are sent, with the checks of the report and the columns of the contract."""
    send_lineage(aws.target(server), with_documents(aws))
    assert [each["eventType"] for each in server.events] == ["START", "COMPLETE"]
    done = server.events[-1]
    assert done["outputs"][0]["facets"]["schema"]["fields"]
    assert done["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert aws.bodies() == []


@pytest.mark.parametrize("status", [500, 503, 429, 401, 404, 302])
def test_what_can_be_mended_is_tried_again(aws: Aws, server: Server, status: int) -> None:
    """A collector that is down, or misconfigured, gets all events of the run later."""
    server.answers = [201, status]
    with pytest.raises(Transient, match="LINEAGE_UNAVAILABLE"):
        send_lineage(aws.target(server), PUBLISHED.text())
    send_lineage(aws.target(server), PUBLISHED.text())
    assert [each["eventType"] for each in server.events] == ["START", "START", "COMPLETE"]
    assert len({each["run"]["runId"] for each in server.events}) == 1
    assert aws.bodies() == []


def test_a_collector_that_is_gone_is_tried_again(aws: Aws) -> None:
    """Nothing is lost while nobody answers."""
    nowhere = Server("http://127.0.0.1:9/api/v1/lineage")
    with pytest.raises(Transient, match="did not answer"):
        send_lineage(aws.target(nowhere), PUBLISHED.text())


@pytest.mark.parametrize("body", [PUBLISHED.text(), "nonsense"])
def test_what_is_refused_goes_to_the_dead_letters(aws: Aws, server: Server, body: str) -> None:
    """An event that no retry changes blocks no other one."""
    server.answers = [400]
    send_lineage(aws.target(server), body)
    assert aws.bodies() == [body]


def test_the_key_is_sent_and_renewed(aws: Aws, server: Server) -> None:
    """The API key is the secret's text; if it is refused, a newer one is read at once."""
    aws.vault.create_secret(Name="key", SecretString="old")
    target = aws.target(server, "key")
    send_lineage(target, PUBLISHED.text())
    aws.vault.put_secret_value(SecretId="key", SecretString="new")
    server.answers = [401]
    send_lineage(target, PUBLISHED.text())
    assert server.keys == ["Bearer old"] * 3 + ["Bearer new"] * 2


def test_announcements_are_queued_before_the_bus(aws: Aws) -> None:
    """A bus that is down delays no lineage; without a queue nothing is sent."""

    class Down(EventBus):
        def put(self, announcement: Any) -> None:
            raise Transient("BUS_UNAVAILABLE", "down")

    for lineage, bodies in ((BodyQueue(aws.sqs, aws.queue), [PUBLISHED.text()]), (None, [])):
        with pytest.raises(Transient, match="down"):
            announce(Consumers(Down(None, "", ""), (), lineage), PUBLISHED.text())
        assert aws.bodies() == bodies
