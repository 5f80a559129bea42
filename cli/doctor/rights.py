"""The few permissions of the deployed roles that protect main.

tests/deploy checks every policy of the template; these rules ask AWS about the policies in force.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cli.doctor.aws_view import AwsView, StackView
from functions.health.model import Finding, fail, ok
from functions.settings import Settings
from infra.stage import Stage

_READ = "secretsmanager:GetSecretValue"
_RIGHTS = (
    ("OnUploadRole", "may", "emr-serverless:StartJobRun", "application"),
    ("OnUploadRole", "may", "emr-serverless:StartJobRun", "shared application"),
    ("OnUploadRole", "may not", "s3:PutObject", "data"),
    ("OnUploadRole", "may not", _READ, "publisher"),
    ("JobRole", "may", "s3:GetObject", "landed"),
    ("JobRole", "may", "s3:PutObject", "data"),
    ("JobRole", "may not", "dynamodb:PutItem", "ledger"),
    ("JobRole", "may not", _READ, "publisher"),
    ("OnJobRunRole", "may", "s3:PutObject", "metadata"),
    ("OnJobRunRole", "may", "dynamodb:PutItem", "ledger"),
    ("OnJobRunRole", "may not", "s3:DeleteObject", "data"),
    ("SweepRole", "may not", "s3:DeleteObject", "data"),
    ("CleanUpRole", "may", "s3:DeleteObject", "data"),
    ("CleanUpRole", "may", "lambda:InvokeFunction", "expire"),
    ("CleanUpRole", "may not", _READ, "publisher"),
    ("ExpireRole", "may", "s3:DeleteObject", "data"),
    ("ExpireRole", "may", _READ, "publisher"),
    ("CheckupRole", "may not", _READ, "publisher"),
    ("CheckupRole", "may not", _READ, "signing-key"),
)


@dataclass(frozen=True)
class Right:
    """An action on a resource that a role must (`may`) or must not be allowed."""

    role: str
    action: str
    resource: str
    may: bool


def rights(settings: Settings, stage: Stage) -> list[Right]:
    """Return the permissions to check in one deployment."""
    arn = f"arn:{settings.emr_role_arn.split(':')[1]}"
    here = f"{stage.region}:{stage.account}"
    lake = f"{arn}:s3:::{settings.lake_bucket}/warehouse/any/table"
    secret = f"{arn}:secretsmanager:{here}:secret:lakegate/{stage.name}/nessie"
    applications = f"{arn}:emr-serverless:{here}:/applications"
    resources = {
        "application": f"{applications}/{settings.emr_application_id}",
        "shared application": f"{applications}/{settings.emr_shared_application_id}",
        "landed": f"{arn}:s3:::{settings.landing_bucket}/any/file.csv",
        "data": f"{lake}/data/any.parquet",
        "metadata": f"{lake}/metadata/any.avro",
        "ledger": f"{arn}:dynamodb:{here}:table/{settings.ledger_table}",
        "expire": f"{arn}:lambda:{here}:function:lakegate-{stage.name}-expire",
        "publisher": f"{secret}/publisher-a1B2c3",
        "signing-key": f"{secret}/signing-key-a1B2c3",
    }
    return [Right(role, do, resources[on], may == "may") for role, may, do, on in _RIGHTS]


def check_rights(wanted: Sequence[Right], stack: StackView, aws: AwsView) -> list[Finding]:
    """Check that each role has the permissions it needs and no forbidden one. Raises NotVisible."""
    fix = "deploy again, and find out who changed the role's policies"
    return [
        fail(
            f"{right.role} {'may not' if right.may else 'may'} {right.action} on {right.resource}",
            fix,
        )
        for right in wanted
        if aws.may(stack.id_of(right.role), right.action, right.resource) != right.may
    ] or [ok(f"{len(wanted)} permissions of the roles are correct")]
