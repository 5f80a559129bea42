"""The refusal of deployments that would lose data."""

from dataclasses import replace

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from infra.aws.artifacts import Artifacts
from infra.aws.losses import refuse_another_lake, refuse_foreign_lake, refuse_losses
from infra.aws.site import Site, connect
from infra.cloudformation import Change
from infra.stage import Stage
from lakegate.errors import LakegateError

_TABLE, _QUEUE, _FUNCTION = "AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::Lambda::Function"


@pytest.mark.parametrize(
    "change",
    [
        Change("Ledger", _TABLE, "Remove"),
        Change("Ledger", _TABLE, "Modify", "True", ("KeySchema",)),
        Change("Lake", "AWS::S3::Bucket", "Modify", "True", ("BucketName",)),
        Change("Uploads", _QUEUE, "Remove"),
        Change("Vpc", "AWS::EC2::VPC", "Modify", "True", ("CidrBlock",)),
    ],
)
def test_what_holds_data_is_neither_removed_nor_replaced(change: Change) -> None:
    """The error names the resource, the change, the loss and the remedy."""
    with pytest.raises(LakegateError, match=change.resource) as refused:
        refuse_losses([Change("Sweep", _FUNCTION, "Modify", "True"), change])

    assert refused.value.code == "WOULD_LOSE_DATA"
    assert all(name in refused.value.message for name in change.properties)
    assert "Nothing was changed" in refused.value.message


@pytest.mark.parametrize(
    "change",
    [
        Change("Ledger", _TABLE, "Add"),
        Change("Ledger", _TABLE, "Modify", "False", ("GlobalSecondaryIndexes",)),
        Change("Lake", "AWS::S3::Bucket", "Modify", "Conditional", ("NotificationConfiguration",)),
        Change("Sweep", _FUNCTION, "Remove"),
        Change("Sweep", _FUNCTION, "Modify", "True", ("FunctionName",)),
        Change("GlueQueue", _QUEUE, "Remove"),
        Change("SnowflakeMarks", _TABLE, "Remove"),
        Change("ThreadsTable", _TABLE, "Remove"),
    ],
)
def test_all_else_may_change(change: Change) -> None:
    """Changes in place and changes of resources without data are allowed."""
    refuse_losses([change])


def test_types_that_may_be_removed_are_removed() -> None:
    """Only types that may be removed are removed."""
    refuse_losses([Change("Uploads", _QUEUE, "Remove")], but=[_QUEUE])
    with pytest.raises(LakegateError, match="Ledger"):
        refuse_losses([Change("Ledger", _TABLE, "Remove")], but=[_QUEUE])


def _in_region(region: str) -> Site:
    stage = Stage("shop", "123456789012", region)
    return connect(stage, lambda service: boto3.client(service, region), lambda _: None)


@pytest.mark.parametrize("home", ["us-east-1", "eu-central-1"])
def test_an_existing_lake_is_the_accounts_and_in_the_region(home: str) -> None:
    """Nessie would be deployed first, a quarter of an hour, and then be unable to use it."""
    lake = {"LakeBucketName": "their-lake"}
    with mock_aws():
        refuse_foreign_lake(_in_region(home), {})
        with pytest.raises(LakegateError, match="'their-lake', which does not exist"):
            refuse_foreign_lake(_in_region(home), lake)
        place = {"CreateBucketConfiguration": {"LocationConstraint": home}}
        made = {} if home == "us-east-1" else place
        boto3.client("s3", home).create_bucket(Bucket="their-lake", **made)
        refuse_foreign_lake(_in_region(home), lake)
        with pytest.raises(LakegateError, match=f"which is in {home}, and the stage is in eu-west"):
            refuse_foreign_lake(_in_region("eu-west-1"), lake)


def test_a_lake_of_another_account_is_refused() -> None:
    """S3 refuses to tell of it, as we name the owner, so the message says what a lake must be."""
    s3 = boto3.client("s3", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    artifacts = Artifacts(s3, Stage("shop", "123456789012", "us-east-1"))
    with mock_aws():
        site = replace(_in_region("us-east-1"), artifacts=artifacts)
    asked = {"Bucket": "their-lake", "ExpectedBucketOwner": "123456789012"}
    with Stubber(s3) as answers:
        answers.add_client_error("head_bucket", "403", expected_params=asked)
        with pytest.raises(LakegateError, match="their-lake must be this account's"):
            refuse_foreign_lake(site, {"LakeBucketName": "their-lake"})


@pytest.mark.parametrize("chosen", ["theirs", "lakegate-shop-lake-123456789012-us-east-1"])
def test_a_lake_that_a_deleted_stack_left_stays_the_stages(chosen: str) -> None:
    """The next stack takes it back with the ledger: neither another one nor it is to be named."""
    with mock_aws():
        site = _in_region("us-east-1")
        refuse_another_lake(site, {"LakeBucketName": chosen})
        boto3.client("s3", "us-east-1").create_bucket(Bucket=site.stage.lake_bucket)
        refuse_another_lake(site, {})
        with pytest.raises(LakegateError, match=r"WOULD_LOSE_DATA: .*\n.* Remove LakeBucketName"):
            refuse_another_lake(site, {"LakeBucketName": chosen})
