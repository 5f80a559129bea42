"""A stage whose data is under keys, with a bucket of others: the real functions and jobs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest

from functions.model.ingestion import Ingestion
from infra import checkup, package
from infra.local import settings
from infra.local.stack import deploy_stage
from lakegate.job.landing import LandedObject
from tests.compiled import Compiled
from tests.deploy import bare
from tests.deploy.account import running
from tests.e2e.conftest import Gate, contract, unexpected
from tests.e2e.test_rights import TEMPLATE, assert_told_as_allowed, parameters

pytestmark = pytest.mark.stack

CSV = b"id,amount\n1,10.5\n2,20\n"


@dataclass(frozen=True)
class Keyed:
    """The stage, its parameters, and the ARN of a key that it may not use."""

    gate: Gate
    chosen: dict[str, str]
    foreign: str

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
        s3, kms = account.client("s3"), account.client("kms")
        keys = [kms.create_key()["KeyMetadata"]["Arn"] for _ in range(3)]
        s3.create_bucket(Bucket="their-files")
        kept = {"Status": "Enabled"}
        s3.put_bucket_versioning(Bucket="their-files", VersioningConfiguration=kept)
        s3.put_bucket_notification_configuration(
            Bucket="their-files", NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
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
        yield Keyed(gate, chosen, keys[2])


def test_files_under_their_producers_key_are_published(keyed: Keyed) -> None:
    """A file in the stage's bucket and one in a bucket of others reach main."""
    own = keyed.gate.stack.landing_bucket
    for where, body in ((own, CSV), ("their-files", CSV + b"3,1\n")):
        end = keyed.end(where, "keyed/orders/a b+ü.csv", keyed.chosen["ProducerKeyArns"], body)
        assert (end.state.value, end.landed.bucket) == ("published", where), end.reason
    assert len(keyed.gate.rows("keyed.orders")) == 5


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
