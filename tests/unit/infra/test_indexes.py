"""New indexes of the ledger come one by one."""

from typing import Any

from infra.aws.stack_plan import steps


def template(*indexes: str, **more: Any) -> dict[str, Any]:
    """A template with a table that has these indexes, and more resources."""
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
    """Three new indexes are two updates of what is deployed before the one that is wanted."""
    queue = {"Queue": {"Type": "AWS::SQS::Queue"}}

    assert steps(template("a"), template("a", "b", "c", "d", **queue)) == [
        template("a", "b"),
        template("a", "b", "c"),
    ]


def test_one_new_index_comes_with_all_else() -> None:
    """Where DynamoDB has one to make, or none, nothing is deployed in between."""
    assert steps(template("a"), template("a", "b")) == []
    assert steps(template("a", "b"), template("a")) == []


def test_a_new_table_has_all_its_indexes_at_once() -> None:
    """What is made, or made anew, is made whole."""
    assert steps({"Resources": {}}, template("a", "b", "c")) == []
