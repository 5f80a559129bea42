"""What a deleted stack left is taken into the next one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from infra.aws import adoption
from infra.aws.site import Site, connect
from infra.aws.stack_plan import deploy_stack
from infra.local import ministack
from infra.stack_spec import StackSpec
from infra.stage import Stage
from infra.template import Template
from tests.deploy.account import Account

pytestmark = pytest.mark.stack

_STAGE = Stage("left", ministack.ACCOUNT, ministack.REGION)
_BUCKET = _STAGE.lake_bucket
_TABLE = "lakegate-left-ledger"
_LOGS = "/lakegate/left/jobs"


@pytest.fixture
def client(account: Account) -> Callable[[str], Any]:
    return account.client


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def site(client: Callable[[str], Any], told: list[str]) -> Site:
    return connect(_STAGE, client, told.append)


def wanted(*indexes: str) -> StackSpec:
    """Return a stack like the app's: retained resources, and one that refers to them."""
    return StackSpec(_STAGE.stack, _template(indexes), {"Stage": _STAGE.name, "Days": "7"})


def _template(indexes: tuple[str, ...]) -> Template:
    kept = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    keys = ("id", *indexes)
    table = {
        "TableName": {"Fn::Sub": "lakegate-${Stage}-ledger"},
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in keys],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": f"by_{key}",
                "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
            for key in indexes
        ],
    }
    bucket = {
        "BucketName": {"Fn::Sub": "lakegate-${Stage}-lake-${AWS::AccountId}-${AWS::Region}"},
        "VersioningConfiguration": {"Status": "Enabled"},
    }
    logs = {
        "LogGroupName": {"Fn::Sub": "/lakegate/${Stage}/jobs"},
        "RetentionInDays": {"Ref": "Days"},
    }
    queue = {"QueueName": {"Fn::Sub": "${Table}-queue"}}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"Stage": {"Type": "String"}, "Days": {"Type": "Number"}},
        "Resources": {
            "Lake": {
                "Type": "AWS::S3::Bucket",
                "DependsOn": ["Queue"],
                **kept,
                "Properties": bucket,
            },
            "Table": {"Type": "AWS::DynamoDB::Table", **kept, "Properties": table},
            "Logs": {"Type": "AWS::Logs::LogGroup", **kept, "Properties": logs},
            "Queue": {"Type": "AWS::SQS::Queue", "Properties": queue},
        },
        "Outputs": {"TableName": {"Value": {"Ref": "Table"}}},
    }


def removed(site: Site, client: Callable[[str], Any]) -> None:
    """Delete the stack as `osls remove` does."""
    cloudformation = client("cloudformation")
    cloudformation.delete_stack(StackName=_STAGE.stack)
    cloudformation.get_waiter("stack_delete_complete").wait(
        StackName=_STAGE.stack, WaiterConfig={"Delay": 1, "MaxAttempts": 60}
    )
    assert not site.stacks.exists(_STAGE.stack)


def test_a_removed_stack_comes_back_with_its_data(
    site: Site, client: Callable[[str], Any], told: list[str]
) -> None:
    """Bucket, table and logs belong to the next stack, which also gets what is new.

    What is old goes: an index that the table has and the next stack does not want.
    """
    deploy_stack(site, wanted("state", "etag"))
    client("s3").put_object(Bucket=_BUCKET, Key="a", Body=b"kept")
    client("dynamodb").put_item(TableName=_TABLE, Item={"id": {"S": "kept"}})
    removed(site, client)
    newer = wanted("state", "day", "key")

    adoption.adopt(site, newer)

    assert any(_BUCKET in line and _TABLE in line for line in told)
    every = {each.name: each.id for each in site.stacks.resources(_STAGE.stack)}
    assert every == {"Lake": _BUCKET, "Table": _TABLE, "Logs": _LOGS}
    deploy_stack(site, newer)
    assert {each.name for each in site.stacks.resources(_STAGE.stack)} == {*every, "Queue"}
    assert client("s3").get_object(Bucket=_BUCKET, Key="a")["Body"].read() == b"kept"
    assert client("dynamodb").scan(TableName=_TABLE)["Count"] == 1
    indexes = client("dynamodb").describe_table(TableName=_TABLE)["Table"]["GlobalSecondaryIndexes"]
    assert {each["IndexName"] for each in indexes} == {"by_state", "by_day", "by_key"}


def test_what_a_release_in_between_left_out_is_taken_back(
    site: Site, client: Callable[[str], Any], told: list[str]
) -> None:
    """An older release does not know a log group, which stays; a newer one has it again."""
    newer = wanted("state", "day", "key")
    without = {name: r for name, r in newer.template["Resources"].items() if name != "Logs"}
    older = replace(newer, template={**newer.template, "Resources": without})
    deploy_stack(site, newer)
    deploy_stack(site, older)
    assert client("logs").describe_log_groups(logGroupNamePrefix=_LOGS)["logGroups"]

    adoption.adopt(site, newer)

    assert any("its logs" in line for line in told)
    every = {each.name: each.id for each in site.stacks.resources(_STAGE.stack)}
    assert (every["Logs"], set(every)) == (_LOGS, {"Lake", "Table", "Logs", "Queue"})
    deploy_stack(site, newer)
    assert site.stacks.outputs(_STAGE.stack) == {"TableName": _TABLE}


def test_without_remains_nothing_is_taken_back(site: Site, told: list[str]) -> None:
    """A stack that exists, and one without remains, are left to the deployment."""
    nothing = StackSpec("lakegate-none", _template(()), {"Stage": "none"})
    deploy_stack(site, wanted("state", "day", "key"))
    told.clear()

    adoption.adopt(site, wanted("state", "day", "key"))
    other = connect(Stage("none", _STAGE.account, _STAGE.region), site.client, told.append)
    adoption.adopt(other, nothing)

    assert told == []
