"""The local AWS refuses what a KMS key encrypts, as AWS does, and Lakegate tells people of it."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from functions.adapters.landing import Landing
from infra.local.ministack import ACCOUNT, REGION
from lakegate.errors import Permanent
from lakegate.job.landing import LandedObject
from spark_jobs.lake.storage import Storage
from tests.asked import asked
from tests.deploy.account import Account, running
from tests.unit.lakegate.test_jobspec import SPEC

pytestmark = pytest.mark.stack

KEY, OTHER = (f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{n}" for n in ("ours", "theirs"))
BODY = b"id\n1\n"
# Makes a role with statements, and returns its client of a service.
As = Callable[..., Any]


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with running(tmp_path_factory.mktemp("keys")) as account:
        s3 = account.client("s3")
        s3.create_bucket(Bucket="landing")
        s3.put_bucket_versioning(Bucket="landing", VersioningConfiguration={"Status": "Enabled"})
        yield account


@pytest.fixture
def caller(aws: Account, request: pytest.FixtureRequest) -> As:
    name, iam = f"role-{abs(hash(request.node.name))}", aws.client("iam")

    def make(service: str, *statements: Mapping[str, Any]) -> Any:
        root = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
        trust = {"Effect": "Allow", "Principal": root, "Action": "sts:AssumeRole"}
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=document(trust))
        iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=document(*statements))
        arn = f"arn:aws:iam::{ACCOUNT}:role/{name}"
        taken = aws.client("sts").assume_role(RoleArn=arn, RoleSessionName="ann")["Credentials"]
        return boto3.client(
            service,
            endpoint_url=aws.endpoint,
            region_name=REGION,
            aws_access_key_id=taken["AccessKeyId"],
            aws_secret_access_key=taken["SecretAccessKey"],
            aws_session_token=taken["SessionToken"],
        )

    return make


def document(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(action: str, resource: str = "*", via: str = "") -> dict[str, Any]:
    found = {"Effect": "Allow", "Action": action, "Resource": resource}
    held = {"StringEquals": {"kms:ViaService": f"{via}.{REGION}.amazonaws.com"}}
    return {**found, "Condition": held} if via else found


def put(aws: Account, key: str, under: str = OTHER) -> LandedObject:
    """Land a file under a KMS key, as its producer does."""
    told = aws.client("s3").put_object(
        Bucket="landing", Key=key, Body=BODY, ServerSideEncryption="aws:kms", SSEKMSKeyId=under
    )
    return LandedObject("landing", key, told["VersionId"], told["ETag"].strip('"'), len(BODY))


def refusal(call: Callable[..., Any], **given: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(**given)
    error = refused.value.response["Error"]
    return f"{error['Code']}: {error['Message']}"


def test_s3_uses_the_key_with_the_callers_rights(aws: Account, caller: As) -> None:
    """Without kms:Decrypt on an object's key its bytes are refused, in S3's words; HEAD is not."""
    landed = put(aws, "a.csv")
    s3 = caller("s3", allow("s3:*"), allow("kms:Decrypt", KEY, "s3"))
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
    s3 = caller("s3", allow("s3:*"), allow("kms:Decrypt", OTHER, "s3"), allow("kms:*", KEY, "sqs"))
    theirs, ours = put(aws, "theirs.csv"), put(aws, "ours.csv", KEY)
    assert s3.get_object(Bucket="landing", Key=theirs.key)["Body"].read() == BODY
    told = refusal(s3.get_object, Bucket="landing", Key=ours.key)
    assert f"kms:Decrypt on resource: {KEY}" in told


def test_writing_under_a_key_needs_a_data_key(caller: As) -> None:
    """Without kms:GenerateDataKey an object cannot be put under a key."""
    s3 = caller("s3", allow("s3:*"), allow("kms:Decrypt", OTHER, "s3"))
    under = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": OTHER}
    told = refusal(s3.put_object, Bucket="landing", Key="new", Body=b"", **under)
    assert f"kms:GenerateDataKey on resource: {OTHER}" in told


def test_the_etag_under_a_key_is_no_digest(aws: Account) -> None:
    """The same bytes under a key have another etag each time, as in S3."""
    assert put(aws, "same.csv").etag != put(aws, "same.csv").etag


def test_messages_items_and_secrets_need_the_key_too(aws: Account, caller: As) -> None:
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
    rights = [allow(f"{service}:*") for service in ("sqs", "secretsmanager", "dynamodb")]
    sqs = caller("sqs", *rights, allow("kms:Decrypt", KEY, "sqs"))
    vault, dynamodb = (like(sqs, name) for name in ("secretsmanager", "dynamodb"))
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


def like(client: Any, service: str) -> Any:
    """Return a client of another service with the same credentials."""
    held = client._request_signer._credentials.get_frozen_credentials()  # noqa: SLF001
    return boto3.client(
        service,
        endpoint_url=client.meta.endpoint_url,
        region_name=REGION,
        aws_access_key_id=held.access_key,
        aws_secret_access_key=held.secret_key,
        aws_session_token=held.token,
    )


@pytest.mark.parametrize("read", ["range", "open", "pinned"])
def test_the_job_ends_a_file_whose_key_refuses_it(aws: Account, caller: As, read: str) -> None:
    """The reason names the file, the role, the key and the setting; no retry can mend it."""
    landed = put(aws, f"{read}.csv")
    s3 = caller("s3", allow("s3:*"), allow("kms:Decrypt", KEY, "s3"))
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
    s3 = caller("s3", allow("s3:*"), allow("kms:Decrypt", KEY, "s3"))
    with pytest.raises(Permanent, match=r"KEY_REFUSED: s3://landing/c\.csv\.control\.json"):
        Storage(replace(SPEC, landed=landed), s3, None).control("json")


def test_a_manifest_whose_key_refuses_ends_its_batch(aws: Account, caller: As) -> None:
    """The function that reads a manifest says which key refuses it."""
    landed = put(aws, "batches/monday/_manifest.json")
    s3 = caller("s3", allow("s3:*"))
    with pytest.raises(Permanent, match=f"KEY_REFUSED: .*{OTHER}"):
        Landing(s3, "landing").manifest(landed)
