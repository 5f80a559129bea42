"""The refusal of deployments that would lose data."""

import pytest

from infra.aws.losses import refuse_losses
from infra.cloudformation import Change
from lakegate.errors import LakegateError

_TABLE, _QUEUE, _FUNCTION = "AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::Lambda::Function"


@pytest.mark.parametrize(
    "change",
    [
        Change("Ledger", _TABLE, "Remove"),
        Change("Ledger", _TABLE, "Modify", "True", ("KeySchema",)),
        Change("Lake", "AWS::S3::Bucket", "Modify", "True", ("BucketName",)),
        Change("Uploads", _QUEUE, "Remove"),
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
