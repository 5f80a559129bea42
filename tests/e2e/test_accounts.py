"""A stage whose data is under keys, with a bucket of others: the real functions and jobs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest

from functions.model.ingestion import Ingestion
from functions.pipeline.start.events import landed_objects
from infra import checkup, package
from infra.local import settings
from infra.local.stack import deploy_stage
from lakegate.job.landing import LandedObject, ingestion_id
from tests.compiled import Compiled
from tests.deploy import bare
from tests.deploy.account import Account, running
from tests.e2e.conftest import Gate, contract, unexpected
from tests.e2e.killing import sweep_grace, sweeping
from tests.e2e.test_rights import TEMPLATE, assert_told_as_allowed, parameters

pytestmark = pytest.mark.stack

CSV = b"id,amount\n1,10.5\n2,20\n"


@dataclass(frozen=True)
class Keyed:
    """The stage, its parameters, the ARN of a key that it may not use, and another's queue."""

    gate: Gate
    chosen: dict[str, str]
    foreign: str
    consumer: str

    def put(self, bucket: str, key: str, under: str, body: bytes = CSV) -> LandedObject:
        told = boto3.client("s3").put_object(
            Bucket=bucket, Key=key, Body=body, ServerSideEncryption="aws:kms", SSEKMSKeyId=under
        )
        return LandedObject(bucket, key, told["VersionId"], told["ETag"].strip('"'), len(body))

    def end(self, *put: Any) -> Ingestion:
        return self.gate.end(self.put(*put))


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    with (
        running(tmp_path_factory.mktemp("keyed")) as account,
        bare.cloud(account) as cloud,
        cloud.entered(),
    ):
        kms = account.client("kms")
        keys = [kms.create_key()["KeyMetadata"]["Arn"] for _ in range(3)]
        consumer, arn = queue_of_others(account)
        told = {"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}
        bucket(account, "their-files", QueueConfigurations=[told])
        bucket(account, "unnamed-files")
        chosen = settings.parameters(cloud.at) | {
            "KmsKeyArn": keys[0],
            "ProducerKeyArns": keys[1],
            "LandingBucketArns": "arn:aws:s3:::their-files",
        }
        deploy_stage(
            account.endpoint,
            settings.STAGE,
            TEMPLATE,
            package.build_here(bare.ROOT, print),
            settings.facts(cloud.at),
            chosen,
        )
        gate = cloud.gate()
        checkup.seed(account.client("lambda"), gate.stack.functions["sweep"])
        gate.put_contract(contract("keyed.orders", "csv"))
        yield Keyed(gate, chosen, keys[2], consumer)


def queue_of_others(account: Account) -> tuple[str, str]:
    """Make the queue of a bucket's owner, to which S3 may send; return its address and ARN."""
    sqs, s3 = account.client("sqs"), {"Service": "s3.amazonaws.com"}
    lets = {"Effect": "Allow", "Principal": s3, "Action": "sqs:SendMessage", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [lets]})
    url = sqs.create_queue(QueueName="consumer", Attributes={"Policy": policy})["QueueUrl"]
    asked = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return url, asked["Attributes"]["QueueArn"]


def bucket(account: Account, name: str, **notifications: Any) -> None:
    """Make a bucket of others, which tells EventBridge and their own consumers of objects."""
    s3 = account.client("s3")
    s3.create_bucket(Bucket=name)
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    told = {"EventBridgeConfiguration": {}, **notifications}
    s3.put_bucket_notification_configuration(Bucket=name, NotificationConfiguration=told)


def test_files_under_their_producers_key_are_published(keyed: Keyed) -> None:
    """A file in the stage's bucket and one in a bucket of others reach main.

    The others' own consumer still gets S3's notification, which names the same ingestion.
    """
    own = keyed.gate.stack.landing_bucket
    for where, body in ((own, CSV), ("their-files", CSV + b"3,1\n")):
        end = keyed.end(where, "keyed/orders/a+b%20c ü.csv", keyed.chosen["ProducerKeyArns"], body)
        assert (end.state.value, end.landed.bucket) == ("published", where), end.reason
    assert len(keyed.gate.rows("keyed.orders")) == 5
    assert end.landed.landed_at
    sqs = boto3.client("sqs")
    got = sqs.receive_message(QueueUrl=keyed.consumer, MaxNumberOfMessages=10)["Messages"]
    found = [each for message in got for each in landed_objects(message["Body"])]
    assert [(ingestion_id(each), each.sequencer) for each in found] == [
        (end.id, end.landed.sequencer)
    ]


def test_a_bucket_that_is_not_named_brings_nothing(keyed: Keyed) -> None:
    """Other buckets' events do not reach the queue, unlike the later one of the stage's own."""
    key = keyed.chosen["ProducerKeyArns"]
    unnamed = keyed.put("unnamed-files", "keyed/orders/unnamed.csv", key)
    keyed.end(keyed.gate.stack.landing_bucket, "keyed/orders/named.csv", key, CSV + b"4,1\n")
    assert not keyed.gate.adapters.ledger.known([ingestion_id(unnamed)])


def test_what_the_stage_stores_is_under_the_key(keyed: Keyed) -> None:
    """Its bucket, ledger and queues use the key."""
    stack, key = keyed.gate.stack, keyed.chosen["KmsKeyArn"]
    put = boto3.client("s3").put_object(Bucket=stack.landing_bucket, Key="_any", Body=b"a")
    assert put["SSEKMSKeyId"] == key
    queues = [url for name, url in stack.queues.items() if name.endswith(("_queue", "_letters"))]
    assert queues
    for url in queues:
        told = boto3.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        assert told["Attributes"]["KmsMasterKeyId"] == key, url
    table = boto3.client("dynamodb").describe_table(TableName=stack.ledger_table)["Table"]
    assert table["SSEDescription"]["KMSMasterKeyArn"] == key


def test_a_file_whose_key_refuses_ends_errored(keyed: Keyed) -> None:
    """Its reason names the key, the job's role and the setting, and its alert shows them."""
    with keyed.gate.refusing("JobRole"):
        end = keyed.end("their-files", "keyed/orders/refused.csv", keyed.foreign)
    assert end.reason
    assert (end.state.value, end.reason.code) == ("errored", "KEY_REFUSED")
    assert keyed.foreign in end.reason.message
    assert "JobRole" in end.reason.message
    assert "ProducerKeyArns" in end.reason.message


def test_a_lost_event_of_a_bucket_of_others_is_made_up(keyed: Keyed) -> None:
    """The sweep lists that bucket as well: a file whose event was lost is published."""
    s3, quiet = boto3.client("s3"), dict[str, Any]()
    told = {"Bucket": "their-files"}
    s3.put_bucket_notification_configuration(**told, NotificationConfiguration=quiet)
    try:
        key = keyed.chosen["ProducerKeyArns"]
        with sweep_grace(keyed.gate, 1), sweeping(keyed.gate, 1):
            end = keyed.end("their-files", "keyed/orders/lost.csv", key, CSV + b"9,9\n")
    finally:
        loud: dict[str, Any] = {"EventBridgeConfiguration": {}}
        s3.put_bucket_notification_configuration(**told, NotificationConfiguration=loud)
    assert end.state.value == "published", end.reason


def test_what_keys_are_asked_is_what_the_policies_allow(keyed: Keyed) -> None:
    """The templates allow each use of a key that was asked for, and the stack refused no other."""
    for name, request in (("expire", {}), ("rotate", {}), ("checkup", {"do": "examine"})):
        checkup.ask(boto3.client("lambda"), keyed.gate.stack.functions[name], request)
    told = {**keyed.chosen, **parameters(keyed.gate)}
    asked = assert_told_as_allowed(keyed.gate, Compiled.of(TEMPLATE, **told).roles())
    assert unexpected(keyed.gate) == []
    using = {name for name, each in asked if each["action"] == "kms:Decrypt"}
    assert using >= {"JobRole", "OnUploadRole", "OnJobRunRole", "SweepRole", "ExpireRole"}
