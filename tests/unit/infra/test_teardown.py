"""What a stage leaves behind, with the commands that delete it."""

from pathlib import Path

import pytest

from infra import template
from infra.aws import teardown
from infra.cloudformation import Resource

_ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["template.yaml", "infra/platform.yml"])
def test_all_that_outlives_its_stack_has_a_command(name: str) -> None:
    """Of what CloudFormation retains nothing would ever go by itself, such as logs and networks."""
    every = template.read(_ROOT / name)["Resources"].items()
    kept = [(n, r["Type"]) for n, r in every if r.get("DeletionPolicy") in template.RETAINED]
    assert kept
    for logical, type_ in kept:
        assert "the-id" in teardown.by_hand(Resource(logical, type_, "the-id")), (logical, type_)
    assert teardown.by_hand(Resource("AlertQueue", "AWS::SQS::Queue", "q")) == ""


def test_a_network_is_deleted_after_what_is_in_it() -> None:
    """Its commands come last, as EC2 refuses to delete a network that has parts."""
    types = ["EC2::VPC", "EC2::Subnet", "RDS::DBSubnetGroup", "RDS::DBInstance", "SQS::Queue"]
    found = [Resource(each, f"AWS::{each}", each) for each in types]
    assert [each.name for each in sorted(found, key=teardown.turn)] == types[::-1]


def test_a_protected_stack_is_freed_before_it_is_deleted() -> None:
    """`lakegate deploy` protects a production stage's stacks, and CloudFormation refuses then."""
    free, delete = teardown.stack_by_hand("lakegate-prod").split("; ")
    assert free.endswith("--no-enable-termination-protection --stack-name lakegate-prod")
    assert delete == "aws cloudformation delete-stack --stack-name lakegate-prod"
