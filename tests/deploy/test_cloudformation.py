"""Stacks are deployed by change sets on ministack."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra import template
from infra.aws.artifacts import Artifacts
from infra.aws.site import connect
from infra.aws.stack_plan import deploy_stack
from infra.cloudformation import Change, Stacks
from infra.local import ministack
from infra.package import Package
from infra.stack_spec import StackSpec
from infra.stage import Stage
from lakegate.errors import LakegateError
from tests.deploy.account import Account

pytestmark = pytest.mark.stack

Client = Callable[[str], Any]
STAGE = Stage("change-sets", ministack.ACCOUNT, ministack.REGION)


@pytest.fixture
def client(account: Account) -> Client:
    return account.client


@pytest.fixture
def stacks(client: Client) -> Stacks:
    return Stacks(client("cloudformation"))


def body(stack: str, **more: Any) -> dict[str, str]:
    """Return a template with a table, a queue that its parameter names, and `more`."""
    table = {
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Retain",
        "Properties": {
            "TableName": stack,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        },
    }
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Ref": "Name"}}}
    whole = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"Name": {"Type": "String"}, "Stage": {"Type": "String", "Default": "x"}},
        "Resources": {"Table": table, "Queue": queue, **more},
        "Outputs": {"TableName": {"Value": {"Ref": "Table"}}},
    }
    return {"TemplateBody": json.dumps(whole)}


def deploy(stacks: Stacks, stack: str, **more: Any) -> None:
    planned = stacks.plan(stack, body(stack, **more), {"Name": stack})
    assert planned
    stacks.carry_out(planned)


def test_a_plan_says_what_would_change_and_changes_nothing(stacks: Stacks, client: Client) -> None:
    """A discarded plan leaves not even an empty stack."""
    planned = stacks.plan("planned", body("planned"), {"Name": "planned"})

    assert planned
    assert [(c.resource, c.action) for c in planned.changes] == [("Queue", "Add"), ("Table", "Add")]
    stacks.discard(planned)
    assert not stacks.exists("planned")
    listed = client("cloudformation").list_stacks()["StackSummaries"]
    alive = [s for s in listed if s["StackStatus"] != "DELETE_COMPLETE"]
    assert "planned" not in [s["StackName"] for s in alive]


def test_what_is_deployed_already_is_no_change(stacks: Stacks) -> None:
    """A second deployment has no change to make, and a parameter can keep its value."""
    deploy(stacks, "twice")

    assert stacks.plan("twice", body("twice"), {"Name": "twice"}) is None
    assert stacks.plan("twice", body("twice"), {"Name": None}) is None
    assert stacks.outputs("twice") == {"TableName": "twice"}


def test_a_replacement_is_reported_with_what_causes_it(stacks: Stacks) -> None:
    """A changed name of a queue is planned as a replacement, with its cause."""
    deploy(stacks, "renamed")

    planned = stacks.plan("renamed", body("renamed"), {"Name": "other"})

    assert planned
    queue = Change("Queue", "AWS::SQS::Queue", "Modify", "True", ("QueueName",))
    assert planned.changes == (queue,)
    stacks.discard(planned)
    assert stacks.exists("renamed")


def test_a_failure_reports_cloudformations_reasons(stacks: Stacks) -> None:
    """The error names each failed resource, and none that failed in an earlier try."""
    wrong = {"Type": "AWS::Lambda::Url", "Properties": {"TargetFunctionArn": "nobody"}}
    deploy(stacks, "wrong")
    for name in ("First", "Second"):
        planned = stacks.plan("wrong", body("wrong", **{name: wrong}), {"Name": "wrong"})
        assert planned

        with pytest.raises(LakegateError, match=rf"{name}: \w+_FAILED: \w+") as told:
            stacks.carry_out(planned)

    assert "First" not in told.value.message
    assert stacks.plan("wrong", body("wrong"), {"Name": "wrong"}) is None


def test_a_stack_that_never_came_to_be_is_made_again(stacks: Stacks) -> None:
    """The remains of a failed creation do not prevent the next one."""
    wrong = {"Type": "AWS::Lambda::Url", "Properties": {"TargetFunctionArn": "nobody"}}
    with pytest.raises(LakegateError, match="ROLLBACK_COMPLETE"):
        deploy(stacks, "again", Wrong=wrong)
    assert not stacks.exists("again")

    deploy(stacks, "again")

    assert stacks.exists("again")


def test_what_is_retained_is_built_upon_again(stacks: Stacks, client: Client) -> None:
    """A stack reduced to its data gets its other resources back, and keeps the data."""
    deploy(stacks, "reduced")
    client("dynamodb").put_item(TableName="reduced", Item={"id": {"S": "row"}})
    left = template.reduced(stacks.template("reduced"))

    planned = stacks.plan(
        "reduced", {"TemplateBody": template.body(left)}, dict.fromkeys(left.get("Parameters", {}))
    )
    assert planned
    stacks.carry_out(planned)

    assert [each.name for each in stacks.resources("reduced")] == ["Table"]
    deploy(stacks, "reduced")
    assert len(stacks.resources("reduced")) == 2
    assert client("dynamodb").scan(TableName="reduced")["Count"] == 1


def test_indexes_come_and_go_one_by_one(client: Client) -> None:
    """Each index that comes or goes is an update of its own, and the items stay."""
    told: list[str] = []
    site = connect(STAGE, client, told.append)
    for indexes in ((), ("by_a", "by_b"), ("by_b", "by_c", "by_d"), ("by_d",)):
        whole = json.loads(body("indexed")["TemplateBody"])
        properties = whole["Resources"]["Table"]["Properties"]
        names = [index.removeprefix("by_") for index in indexes]
        properties["AttributeDefinitions"] += [
            {"AttributeName": name, "AttributeType": "S"} for name in names
        ]
        if indexes:
            properties["GlobalSecondaryIndexes"] = [
                {
                    "IndexName": f"by_{name}",
                    "KeySchema": [{"AttributeName": name, "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
                for name in names
            ]
        deploy_stack(site, StackSpec("indexed", whole, {"Name": "indexed"}))
        table = client("dynamodb").describe_table(TableName="indexed")["Table"]
        found = {index["IndexName"] for index in table.get("GlobalSecondaryIndexes", [])}
        assert found == set(indexes)
        item = {"id": {"S": "kept"}, "a": {"S": "1"}, "d": {"S": "1"}}
        client("dynamodb").put_item(TableName="indexed", Item=item)

    condition = {"KeyConditionExpression": "d = :d", "ExpressionAttributeValues": {":d": item["d"]}}
    query = client("dynamodb").query
    assert query(TableName="indexed", IndexName="by_d", **condition)["Items"] == [item]
    updates = [line for line in told if line.startswith("a table's indexes change")]
    assert len(updates) == 2 + 3 + 2


def test_a_large_template_goes_by_way_of_s3(stacks: Stacks, client: Client) -> None:
    """A template that is too large for a request is read from S3, with the same resulting stack."""
    artifacts = Artifacts(client("s3"), STAGE)
    words = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "x" * 4000}}
    large = {f"Words{number}": words for number in range(14)}

    source = artifacts.template(body("large", **large)["TemplateBody"])

    assert set(source) == {"TemplateURL"}
    planned = stacks.plan("large", source, {"Name": "large"})
    assert planned
    assert len(planned.changes) == 16
    stacks.discard(planned)


def test_code_under_its_hash_is_not_trusted_unread(client: Client, tmp_path: Path) -> None:
    """Another object under the code's key is replaced, and the code itself is not sent again."""
    zipped = tmp_path / "lambda.zip"
    zipped.write_bytes(b"the functions")
    built = Package(zipped, ())
    artifacts, s3 = Artifacts(client("s3"), STAGE), client("s3")
    artifacts.put_code(built)
    at = {"Bucket": STAGE.artifact_bucket, "Key": f"code/{built.lambda_release}.zip"}
    first = s3.head_object(**at)["VersionId"]
    artifacts.put_code(built)
    assert s3.head_object(**at)["VersionId"] == first

    s3.put_object(**at, Body=b"something else")
    artifacts.put_code(built)

    assert s3.get_object(**at)["Body"].read() == b"the functions"


def test_the_artifact_bucket_is_closed(client: Client) -> None:
    """The bucket of the code is versioned, not public, and refuses requests without TLS."""
    Artifacts(client("s3"), STAGE).template("x" * 60_000)
    s3, bucket = client("s3"), {"Bucket": STAGE.artifact_bucket}

    assert s3.get_bucket_versioning(**bucket)["Status"] == "Enabled"
    assert all(s3.get_public_access_block(**bucket)["PublicAccessBlockConfiguration"].values())
    assert "aws:SecureTransport" in s3.get_bucket_policy(**bucket)["Policy"]
    assert s3.get_bucket_lifecycle_configuration(**bucket)["Rules"]
