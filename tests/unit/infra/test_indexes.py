"""The indexes of the ledger come and go one by one."""

from typing import Any

from infra.aws.table_indexes import steps
from infra.stack_spec import StackSpec


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


def between(deployed: dict[str, Any], wanted: dict[str, Any]) -> list[StackSpec]:
    return steps(deployed, StackSpec("ledger", wanted, {"Stage": "dev"}))


def test_each_step_has_one_index_more_or_less() -> None:
    """New indexes come before anything else that is new, and old ones go after it."""
    queue = {"Queue": {"Type": "AWS::SQS::Queue"}}
    found = between(template("a", "b", "c"), template("c", "d", "e", **queue))

    assert [each.template for each in found] == [
        template("a", "b", "c", "d"),
        template("a", "b", "c", "d", "e"),
        template("c", "d", "e", "a", "b", **queue),
        template("c", "d", "e", "a", **queue),
    ]
    assert [dict(each.parameters) for each in found] == [{}, {}, {"Stage": "dev"}, {"Stage": "dev"}]
    assert {each.stack for each in found} == {"ledger"}


def test_what_is_new_finds_its_index() -> None:
    """The first index of a table is there before all else, too."""
    (step,) = between(template(), template("a", Queue={"Type": "AWS::SQS::Queue"}))
    assert step.template == template("a")


def test_other_changes_need_no_step() -> None:
    """With the same indexes, in any order, and for a new table, nothing is deployed in between."""
    assert between(template("a", "b"), template("b", "a")) == []
    assert between({"Resources": {}}, template("a", "b", "c")) == []
