"""Remove a stage except what holds data, which stays in its stacks for the next deployment."""

from typing import Any

from infra import stack_spec, template
from infra.aws import stack_plan
from infra.aws.site import Site
from infra.cloudformation import Plan, Resource, translated

# Commands that delete what stays, in the order in which it can go; Lakegate does not run them.
_BY_HAND = {
    "AWS::S3::Bucket": (
        'aws s3api delete-bucket-policy --bucket {id}; python3 -c "import boto3;'
        " b = boto3.resource('s3').Bucket('{id}'); b.object_versions.delete(); b.delete()\""
    ),
    "AWS::DynamoDB::Table": (
        "aws dynamodb update-table --table-name {id} --no-deletion-protection-enabled;"
        " aws dynamodb delete-table --table-name {id}"
    ),
    "AWS::RDS::DBInstance": (
        "aws rds modify-db-instance --db-instance-identifier {id} --no-deletion-protection"
        " --apply-immediately; aws rds delete-db-instance --db-instance-identifier {id}"
        " --final-db-snapshot-identifier {id}-last"
    ),
    "AWS::SecretsManager::Secret": "aws secretsmanager delete-secret --secret-id {id}",
    "AWS::Logs::LogGroup": "aws logs delete-log-group --log-group-name {id}",
    "AWS::RDS::DBSubnetGroup": "aws rds delete-db-subnet-group --db-subnet-group-name {id}",
    "AWS::EC2::SecurityGroup": "aws ec2 delete-security-group --group-id {id}",
    "AWS::EC2::Subnet": "aws ec2 delete-subnet --subnet-id {id}",
    "AWS::EC2::VPC": "aws ec2 delete-vpc --vpc-id {id}",
}


def plan(site: Site, stack: str) -> Plan | None:
    """Return what would be removed of a stack; None if there is no stack or only data in it.

    CloudFormation is not asked about the latter: it would look for facts in SSM that are gone.
    """
    if not site.stacks.exists(stack):
        return None
    deployed = site.stacks.template(stack)
    left = template.reduced(deployed)
    if left["Resources"] == deployed["Resources"]:
        return None
    return stack_plan.plan(site, stack_spec.unchanged(stack, left))


def messages(site: Site) -> dict[str, int]:
    """Return how many messages wait in each queue of the app's stack, without empty queues."""
    every = site.stacks.resources(site.stage.stack)
    queues = {each.name: each.id for each in every if each.type == "AWS::SQS::Queue"}
    sqs = site.client("sqs")
    with translated("QUEUE_UNAVAILABLE", "cannot read a queue"):
        counted = {name: _waiting(sqs, address) for name, address in queues.items()}
    return {name: many for name, many in counted.items() if many}


def by_hand(resource: Resource) -> str:
    """Return the command that deletes what stays, "" for what is deleted with its stack."""
    return _BY_HAND.get(resource.type, "").format(id=resource.id)


def turn(resource: Resource) -> int:
    """Return the place of a resource's command among all, as some must be deleted before others."""
    types = ["", *_BY_HAND]
    return types.index(resource.type if resource.type in types else "")


def stack_by_hand(stack: str) -> str:
    """Return the command that deletes a stack, which may be protected."""
    aws = "aws cloudformation"
    free = f"{aws} update-termination-protection --no-enable-termination-protection"
    return f"{free} --stack-name {stack}; {aws} delete-stack --stack-name {stack}"


def _waiting(sqs: Any, address: str) -> int:
    names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
    attributes = sqs.get_queue_attributes(QueueUrl=address, AttributeNames=names)["Attributes"]
    return sum(int(attributes.get(name, 0)) for name in names)
