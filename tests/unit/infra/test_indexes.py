"""New indexes of the ledger come one by one."""

from typing import Any

from infra.aws.stack_plan import steps


def template(*indexes: str, **more: Any) -> dict[str, Any]:
    """Return a template with a table that has these indexes, and more resources."""
    attributes = [{"AttributeName": name, "AttributeType": "S"} for name in ("id", *indexes)]
    made = [
        {"IndexName": n, "KeySchema": [{"AttributeName": n, "KeyType": "HASH"}]} for n in indexes
    ]
    properties = {
        "AttributeDefinitions": attributes,
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": made,
    }
    return {
        "Resources": {"Ledger": {"Type": "AWS::DynamoDB::Table", "Properties": properties}, **more}
    }


def test_each_step_has_one_index_more_and_nothing_else_that_is_new() -> None:
    """Three new indexes need two updates before the final template."""
    queue = {"Queue": {"Type": "AWS::SQS::Queue"}}

    assert steps(template("a"), template("a", "b", "c", "d", **queue)) == [
        template("a", "b"),
        template("a", "b", "c"),
    ]


def test_one_new_index_comes_with_all_else() -> None:
    """With one new index or none, and for a new table, nothing is deployed in between."""
    assert steps(template("a"), template("a", "b")) == []
    assert steps(template("a", "b"), template("a")) == []
    assert steps({"Resources": {}}, template("a", "b", "c")) == []
