"""What a stage leaves behind, with the commands that delete it."""

from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from infra import template
from infra.aws import stack_plan, teardown
from infra.aws.site import connect
from infra.cloudformation import Resource
from infra.stack_spec import StackSpec
from infra.stage import Stage

_ROOT = Path(__file__).parents[3]
_FACT = {
    "Type": "AWS::SSM::Parameter::Value<String>",
    "Default": "/lakegate/shop/emr-application-id",
}
_KEPT = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Parameters": {"EmrApplicationId": _FACT},
    "Resources": {
        "JobLogs": {
            "Type": "AWS::Logs::LogGroup",
            "DeletionPolicy": "Retain",
            "Properties": {"LogGroupName": {"Fn::Sub": "/jobs/${EmrApplicationId}"}},
        }
    },
}


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


def test_what_was_taken_down_is_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an interruption only the rest is taken down: the platform's facts may be gone.

    CloudFormation makes no plan for a stack with a parameter from SSM that is not there.
    """
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        site = connect(Stage("shop", "123456789012", "eu-central-1"), boto3.client, lambda _: None)
        site.facts.put({"emr-application-id": "00app"})
        planned = stack_plan.plan(site, StackSpec(site.stage.stack, _KEPT, {}))
        assert planned
        site.stacks.carry_out(planned)
        site.client("ssm").delete_parameter(Name=site.stage.parameter("emr-application-id"))
        assert teardown.plan(site, site.stage.stack) is None
