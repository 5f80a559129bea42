"""What the deployed roles may do, and what they must not: the few rights that keep the promises.

tests/deploy look at every policy of the template; this asks AWS about those that are in force.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cli.outside import Outside, StackSeen
from functions.diagnosis import Finding, fail, ok
from functions.settings import Settings
from infra.stage import Stage


@dataclass(frozen=True)
class Right:
    """Something that a role of the template may do to a resource, or must not."""

    role: str
    action: str
    resource: str
    may: bool


def rights(settings: Settings, stage: Stage) -> list[Right]:
    """Those of one deployment."""
    partition = settings.emr_role_arn.split(":")[1]
    here = f"{stage.region}:{stage.account}"
    landed = f"arn:{partition}:s3:::{settings.landing_bucket}/any/file.csv"
    lake = f"arn:{partition}:s3:::{settings.lake_bucket}/warehouse/any/table"
    ledger = f"arn:{partition}:dynamodb:{here}:table/{settings.ledger_table}"
    secret = f"arn:{partition}:secretsmanager:{here}:secret:lakegate/{stage.name}/nessie"
    application = f"/applications/{settings.emr_application_id}"
    return [
        Right(
            "OnUploadRole",
            "emr-serverless:StartJobRun",
            f"arn:{partition}:emr-serverless:{here}:{application}",
            may=True,
        ),
        Right("OnUploadRole", "s3:PutObject", f"{lake}/data/any.parquet", may=False),
        Right("OnUploadRole", "secretsmanager:GetSecretValue", f"{secret}/publisher-a1B2c3", False),
        Right("JobRole", "s3:GetObject", landed, may=True),
        Right("JobRole", "s3:PutObject", f"{lake}/data/any.parquet", may=True),
        Right("JobRole", "dynamodb:PutItem", ledger, may=False),
        Right("JobRole", "secretsmanager:GetSecretValue", f"{secret}/publisher-a1B2c3", False),
        Right("OnJobRunRole", "s3:PutObject", f"{lake}/metadata/any.avro", may=True),
        Right("OnJobRunRole", "dynamodb:PutItem", ledger, may=True),
        Right("OnJobRunRole", "s3:DeleteObject", f"{lake}/data/any.parquet", may=False),
        Right("SweepRole", "s3:DeleteObject", f"{lake}/data/any.parquet", may=False),
        Right("CleanUpRole", "s3:DeleteObject", f"{lake}/data/any.parquet", may=True),
        Right(
            "CheckupRole", "secretsmanager:GetSecretValue", f"{secret}/signing-key-a1B2c3", False
        ),
    ]


def of_rights(wanted: Sequence[Right], stack: StackSeen, outside: Outside) -> list[Finding]:
    """Each role may what it must, and nothing that it must not. Raises NotSeen."""
    fix = "deploy again, and see who changed the role's policies"
    wrong = [
        fail(
            "permissions",
            f"{right.role} {'may not' if right.may else 'may'} {right.action} on {right.resource}",
            fix,
        )
        for right in wanted
        if outside.may(stack.id_of(right.role), right.action, right.resource) != right.may
    ]
    return wrong or [ok("permissions", f"{len(wanted)} of the roles' rights are as they must be")]
