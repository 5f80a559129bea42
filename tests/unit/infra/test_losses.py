"""The refusal of deployments that would lose data."""

import boto3
import pytest
from moto import mock_aws

from infra.aws.losses import refuse_another_region, refuse_losses
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
def test_a_stage_is_in_one_region(home: str) -> None:
    """With another region by mistake a second platform would be made, and then fail at a bucket."""
    with mock_aws():
        refuse_another_region(_in_region(home))
        place = {"CreateBucketConfiguration": {"LocationConstraint": home}}
        bucket = _in_region(home).stage.artifact_bucket
        made = {} if home == "us-east-1" else place
        boto3.client("s3", home).create_bucket(Bucket=bucket, **made)
        refuse_another_region(_in_region(home))
        with pytest.raises(LakegateError, match=f"WRONG_REGION: .*shop.* is in {home}.*eu-west-1"):
            refuse_another_region(_in_region("eu-west-1"))
