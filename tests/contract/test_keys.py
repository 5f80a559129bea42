"""The local AWS refuses what a KMS key encrypts, as AWS does, and Lakegate tells people of it."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from functions.adapters.landing import Landing
from infra.local.ministack import ACCOUNT, REGION
from lakegate.errors import Permanent
from lakegate.job.landing import LandedObject
from spark_jobs.lake.storage import Storage
from tests.asked import asked
from tests.contract.callers import Rights, allow, client, refusal
from tests.deploy.account import Account
from tests.unit.lakegate.test_jobspec import SPEC

pytestmark = pytest.mark.stack

KEY, OTHER = (f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{n}" for n in ("ours", "theirs"))
BODY = b"id\n1\n"
# Makes a role with statements, and returns its client of a service.
As = Callable[..., Any]


@pytest.fixture(scope="module")
def aws(account: Account) -> Account:
    """Return the local AWS with a landing bucket."""
    s3 = account.client("s3")
    s3.create_bucket(Bucket="landing")
    s3.put_bucket_versioning(Bucket="landing", VersioningConfiguration={"Status": "Enabled"})
    return account


@pytest.fixture
def caller(aws: Account, rights: Rights) -> As:
    """Return a function that makes a role with statements, and returns its client of a service."""
    return lambda service, *given: client(service, aws.endpoint, rights(*given))


def using(action: str, key: str, service: str) -> dict[str, Any]:
    """Return a statement that allows the use of a KMS key through a service."""
    via = {"StringEquals": {"kms:ViaService": f"{service}.{REGION}.amazonaws.com"}}
    return allow(action, key, Condition=via)


def put(aws: Account, key: str, under: str = OTHER) -> LandedObject:
    """Land a file under a KMS key, as its producer does."""
    told = aws.client("s3").put_object(
        Bucket="landing", Key=key, Body=BODY, ServerSideEncryption="aws:kms", SSEKMSKeyId=under
    )
    return LandedObject("landing", key, told["VersionId"], told["ETag"].strip('"'), len(BODY))


def test_s3_uses_the_key_with_the_callers_rights(aws: Account, caller: As) -> None:
    """Without kms:Decrypt on an object's key its bytes are refused, in S3's words; HEAD is not."""
    landed = put(aws, "a.csv")
    s3 = caller("s3", allow("s3:*"), using("kms:Decrypt", KEY, "s3"))
    told = refusal(s3.get_object, Bucket="landing", Key=landed.key)
    assert told.startswith(f"AccessDenied: User: arn:aws:sts::{ACCOUNT}:assumed-role/role-")
    assert told.endswith(
        f"/ann is not authorized to perform: kms:Decrypt on resource: {OTHER} because no "
        "identity-based policy allows the kms:Decrypt action"
    )
    source = {"Bucket": "landing", "Key": landed.key}
    assert "kms:Decrypt" in refusal(s3.copy_object, Bucket="landing", Key="b", CopySource=source)
    assert s3.head_object(Bucket="landing", Key=landed.key)["SSEKMSKeyId"] == OTHER


def test_a_key_is_used_through_the_service_that_the_policy_names(aws: Account, caller: As) -> None:
    """A right through another service does not count; with the right one the bytes come."""
    s3 = caller("s3", allow("s3:*"), using("kms:Decrypt", OTHER, "s3"), using("kms:*", KEY, "sqs"))
    theirs, ours = put(aws, "theirs.csv"), put(aws, "ours.csv", KEY)
    assert s3.get_object(Bucket="landing", Key=theirs.key)["Body"].read() == BODY
    told = refusal(s3.get_object, Bucket="landing", Key=ours.key)
    assert f"kms:Decrypt on resource: {KEY}" in told


def test_writing_under_a_key_needs_a_data_key(caller: As) -> None:
    """Without kms:GenerateDataKey an object cannot be put under a key."""
    s3 = caller("s3", allow("s3:*"), using("kms:Decrypt", OTHER, "s3"))
    under = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": OTHER}
    told = refusal(s3.put_object, Bucket="landing", Key="new", Body=b"", **under)
    assert f"kms:GenerateDataKey on resource: {OTHER}" in told


def test_the_etag_under_a_key_is_no_digest(aws: Account) -> None:
    """The same bytes under a key have another etag each time, as in S3."""
    assert put(aws, "same.csv").etag != put(aws, "same.csv").etag


def test_messages_items_and_secrets_need_the_key_too(aws: Account, rights: Rights) -> None:
    """A queue, a table and a secret under a key are refused to a role without rights on it."""
    queue = aws.client("sqs").create_queue(QueueName="keyed", Attributes={"KmsMasterKeyId": KEY})[
        "QueueUrl"
    ]
    aws.client("secretsmanager").create_secret(Name="keyed", SecretString="x", KmsKeyId=KEY)
    aws.client("dynamodb").create_table(
        TableName="keyed",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        SSESpecification={"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": KEY},
    )
    services = ("sqs", "secretsmanager", "dynamodb")
    held = rights(*(allow(f"{each}:*") for each in services), using("kms:Decrypt", KEY, "sqs"))
    sqs, vault, dynamodb = (client(each, aws.endpoint, held) for each in services)
    item = {"TableName": "keyed", "Key": {"id": {"S": "a"}}}
    refusal(sqs.send_message, QueueUrl=queue, MessageBody="m")
    refusal(vault.get_secret_value, SecretId="keyed")
    refusal(dynamodb.get_item, **item)
    assert sqs.receive_message(QueueUrl=queue).get("Messages", []) == []
    about = [each for each in asked(aws.home) if each["resource"] == KEY][-4:]
    via = [each["keys"]["kms:ViaService"].split(".")[0] for each in about]
    assert [(a["action"], of, a["allowed"]) for a, of in zip(about, via, strict=True)] == [
        ("kms:GenerateDataKey", "sqs", False),
        ("kms:Decrypt", "secretsmanager", False),
        ("kms:Decrypt", "dynamodb", False),
        ("kms:Decrypt", "sqs", True),
    ]


@pytest.mark.parametrize("read", ["range", "open", "pinned"])
def test_the_job_ends_a_file_whose_key_refuses_it(aws: Account, caller: As, read: str) -> None:
    """The reason names the file, the role, the key and the setting; no retry can mend it."""
    landed = put(aws, f"{read}.csv")
    s3 = caller("s3", allow("s3:*"), using("kms:Decrypt", KEY, "s3"))
    storage = Storage(replace(SPEC, landed=landed), s3, None)
    reads = {"range": lambda: nullcontext(storage.range(0, 2))}
    opened = reads.get(read) or getattr(storage, read)
    with pytest.raises(Permanent, match="KEY_REFUSED") as refused, opened():
        pass
    told = refused.value.message.split("\n")
    assert told[0].startswith(f"{landed.uri} cannot be decrypted: the role role-")
    assert told[0].endswith(f"lacks the right kms:Decrypt on its key {OTHER}")
    assert "ProducerKeyArns" in told[1]
    assert len(told) == 2


def test_a_control_file_whose_key_refuses_is_not_called_missing(aws: Account, caller: As) -> None:
    """The reason is the key, not that there is no control file."""
    landed = put(aws, "c.csv", KEY)
    put(aws, "c.csv.control.json")
    s3 = caller("s3", allow("s3:*"), using("kms:Decrypt", KEY, "s3"))
    with pytest.raises(Permanent, match=r"KEY_REFUSED: s3://landing/c\.csv\.control\.json"):
        Storage(replace(SPEC, landed=landed), s3, None).control("json")


def test_a_manifest_whose_key_refuses_ends_its_batch(aws: Account, caller: As) -> None:
    """The function that reads a manifest says which key refuses it."""
    landed = put(aws, "batches/monday/_manifest.json")
    s3 = caller("s3", allow("s3:*"))
    with pytest.raises(Permanent, match=f"KEY_REFUSED: .*{OTHER}"):
        Landing(s3, "landing").manifest(landed)
