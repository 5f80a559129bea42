"""Taking a stage down: what holds data stays, in stacks of nothing else, to be built upon again."""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra import template
from infra.aws.site import Site
from infra.cloudformation import Plan, Resource
from lakegate.errors import LakegateError

# How to delete by hand what stays; nothing here does.
_BY_HAND = {
    "AWS::S3::Bucket": (
        'aws s3api delete-bucket-policy --bucket {id}; python3 -c "import boto3;'
        " b = boto3.resource('s3').Bucket('{id}'); b.object_versions.delete(); b.delete()\""
    ),
    "AWS::DynamoDB::Table": "aws dynamodb delete-table --table-name {id}",
    "AWS::RDS::DBInstance": (
        "aws rds modify-db-instance --db-instance-identifier {id} --no-deletion-protection"
        " --apply-immediately; aws rds delete-db-instance --db-instance-identifier {id}"
        " --final-db-snapshot-identifier {id}-last"
    ),
    "AWS::SecretsManager::Secret": "aws secretsmanager delete-secret --secret-id {id}",
}


def plan(site: Site, stack: str) -> Plan | None:
    """What would go of a stack; None where there is no stack, or nothing but data in it."""
    if not site.stacks.exists(stack):
        return None
    left = template.reduced(site.stacks.template(stack))
    source = site.artifacts.template(template.body(left))
    return site.stacks.plan(stack, source, dict.fromkeys(left.get("Parameters", {})))


def messages(site: Site) -> dict[str, int]:
    """How many messages wait in the queues of the app's stack, where any do."""
    every = site.stacks.resources(site.stage.stack)
    queues = {each.name: each.id for each in every if each.type == "AWS::SQS::Queue"}
    sqs = site.client("sqs")
    try:
        counted = {name: _waiting(sqs, address) for name, address in queues.items()}
    except (ClientError, BotoCoreError) as error:
        raise LakegateError("QUEUE_UNAVAILABLE", f"cannot look into a queue: {error}") from error
    return {name: many for name, many in counted.items() if many}


def by_hand(resource: Resource) -> str:
    """The command that deletes what stays, "" where it goes with its stack."""
    return _BY_HAND.get(resource.type, "").format(id=resource.id)


def _waiting(sqs: Any, address: str) -> int:
    names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
    found = sqs.get_queue_attributes(QueueUrl=address, AttributeNames=names)["Attributes"]
    return sum(int(found.get(name, 0)) for name in names)
