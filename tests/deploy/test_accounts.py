"""A stage in an account that has keys and buckets: deployed on ministack, with a stub function."""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from functions.pipeline.start.events import landed_objects
from infra import package
from infra.local.settings import facts, parameters
from infra.local.stack import deploy_stage
from lakegate.job.landing import LandedObject, ingestion_id
from tests.asked import asked
from tests.deploy.account import Account, running
from tests.waiting import eventually

pytestmark = pytest.mark.stack

_ROOT = Path(__file__).parents[2]
_NOWHERE = dict.fromkeys(("nessie", "emr", "slack"), "http://127.0.0.1:1")
# Records each message in the ledger.
_STUB = """
import os, boto3

def handler(event, context):
    table = boto3.resource("dynamodb").Table(os.environ["LAKEGATE_LEDGER_TABLE"])
    for record in event["Records"]:
        item = {"id": record["messageId"], "state": "noted", "landed_at": "now"}
        table.put_item(Item=item | {"body": record["body"]})
    return {"batchItemFailures": []}
"""


@dataclass(frozen=True)
class Shared:
    """The account, the stage's outputs, and the ARNs of the account's key and the producer's."""

    account: Account
    outputs: dict[str, str]
    key: str
    theirs: str

    def client(self, service: str) -> Any:
        return self.account.client(service)

    def put(self, bucket: str, key: str, **how: str) -> LandedObject:
        told = self.client("s3").put_object(Bucket=bucket, Key=key, Body=b"a\n1\n", **how)
        return LandedObject(bucket, key, told["VersionId"], told["ETag"].strip('"'), 4)

    def landed(self) -> list[LandedObject]:
        """Return what the messages name that reached the function."""
        items = self.client("dynamodb").scan(TableName=self.outputs["LedgerTableName"])["Items"]
        bodies = (item["body"]["S"] for item in items)
        return [landed for body in bodies for landed in landed_objects(body)]

    def asked(self) -> list[Mapping[str, Any]]:
        """Return what roles asked of keys."""
        every = asked(self.account.home)
        return [each for each in every if each["action"].startswith("kms:")]


def bucket(account: Account, name: str, **notifications: Any) -> None:
    """Make a bucket of others, which tells EventBridge and their own consumers of objects."""
    s3 = account.client("s3")
    s3.create_bucket(Bucket=name)
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    told = {"EventBridgeConfiguration": {}, **notifications}
    s3.put_bucket_notification_configuration(Bucket=name, NotificationConfiguration=told)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(Path(__file__).parent / "stubs", root, dirs_exist_ok=True)
    (root / "functions" / "on_upload.py").write_text(_STUB)
    (root / "requirements").mkdir()
    for name in ("requirements.txt", "requirements/job.txt"):
        (root / name).write_text("")
    for name in ("lakegate", "spark_jobs"):
        shutil.copytree(_ROOT / name, root / name)
    with running(tmp_path_factory.mktemp("shared")) as account:
        sqs = account.client("sqs")
        lets_s3 = {
            "Effect": "Allow",
            "Principal": {"Service": "s3.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": "*",
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [lets_s3]})
        queue = sqs.create_queue(QueueName="consumer", Attributes={"Policy": policy})["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]
        theirs = {"QueueArn": arn["QueueArn"], "Events": ["s3:ObjectCreated:*"]}
        bucket(account, "their-files", QueueConfigurations=[theirs])
        bucket(account, "unnamed-files")
        bucket(account, "their-lake")
        kms = account.client("kms")
        keys = [kms.create_key()["KeyMetadata"]["Arn"] for _ in range(2)]
        chosen = {
            "LandingBucketArns": "arn:aws:s3:::their-files",
            "LakeBucketName": "their-lake",
            "KmsKeyArn": keys[0],
            "ProducerKeyArns": keys[1],
        }
        outputs = deploy_stage(
            account.endpoint,
            "shared",
            _ROOT / "template.yaml",
            package.build_here(root, lambda _: None),
            facts(_NOWHERE),
            parameters(_NOWHERE) | chosen,
        )
        yield Shared(account, outputs, *keys)


@pytest.mark.parametrize("key", ["a.csv", "a+b%20c ü.csv"])
def test_a_file_in_a_bucket_of_others_arrives(shared: Shared, key: str) -> None:
    """EventBridge brings it whole, and its owner's consumer still gets S3's own notification.

    Both name one ingestion.
    """
    put = shared.put("their-files", key)
    eventually(lambda: [each for each in shared.landed() if each.key == key])
    (landed,) = [each for each in shared.landed() if each.key == key]
    assert (landed.bucket, landed.version, landed.etag, landed.size) == (
        ("their-files", put.version, put.etag, put.size)
    )
    assert landed.sequencer
    assert landed.landed_at
    sqs = shared.client("sqs")
    queue = sqs.get_queue_url(QueueName="consumer")["QueueUrl"]
    taken = partial(sqs.receive_message, QueueUrl=queue, MaxNumberOfMessages=10)
    bodies = [each["Body"] for each in taken().get("Messages", [])]
    found = [other for body in bodies for other in landed_objects(body) if other.key == key]
    assert [ingestion_id(other) for other in found] == [ingestion_id(landed)]
    assert [other.sequencer for other in found] == [landed.sequencer]


def test_a_bucket_that_is_not_named_brings_nothing(shared: Shared) -> None:
    """Other buckets' events do not reach the queue; those of the stage's own bucket do."""
    shared.put("unnamed-files", "unnamed.csv")
    own = shared.put(shared.outputs["LandingBucketName"], "own.csv")
    eventually(lambda: own.key in [each.key for each in shared.landed()])
    assert "unnamed.csv" not in [each.key for each in shared.landed()]


def test_an_existing_lake_is_used_as_it_is(shared: Shared) -> None:
    """The stack makes no lake bucket; the named one gets the job's code, and keeps its settings."""
    s3 = shared.client("s3")
    assert shared.outputs["LakeBucketName"] == "their-lake"
    made = [each["Name"] for each in s3.list_buckets()["Buckets"] if "lake" in each["Name"]]
    assert [name for name in made if name.startswith("lakegate-shared-lake")] == []
    found = s3.list_objects_v2(Bucket="their-lake", Prefix="jobs/")
    assert any(each["Key"].endswith("/main.py") for each in found["Contents"])
    with pytest.raises(ClientError, match="NoSuchBucketPolicy"):
        s3.get_bucket_policy(Bucket="their-lake")


def test_what_the_stage_stores_is_under_the_key(shared: Shared) -> None:
    """Buckets, ledger and queues use the key, and functions reach them with their roles."""
    where = shared.outputs
    put = shared.client("s3").put_object(Bucket=where["LandingBucketName"], Key="_any", Body=b"a")
    assert put["SSEKMSKeyId"] == shared.key
    queues = [url for name, url in where.items() if name.endswith(("QueueUrl", "LettersUrl"))]
    for url in queues:
        told = shared.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        assert told["Attributes"]["KmsMasterKeyId"] == shared.key, url
    table = shared.client("dynamodb").describe_table(TableName=where["LedgerTableName"])["Table"]
    assert table["SSEDescription"]["KMSMasterKeyArn"] == shared.key
    eventually(shared.landed)
    asked = {(each["action"], each["resource"], each["allowed"]) for each in shared.asked()}
    assert ("kms:Decrypt", shared.key, True) in asked
    assert not [each for each in asked if not each[2]]
