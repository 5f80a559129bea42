"""Compare a deployment on AWS with this checkout."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.aws_view import AwsView, FunctionView, StackView
from functions.health.model import Finding, fail, ok, warn
from functions.settings import Settings
from infra.stage import Stage
from infra.versions import ICEBERG, NESSIE, PYTHON, SPARK

HOURS = 1
_OLD = 15 * 60
_DEPLOY = "deploy this checkout with `lakegate deploy` (`lakegate up` for the local stack)"


def of_stack(found: StackView, check: str = "stack") -> Finding:
    """Check that the last deployment of the stack succeeded."""
    message = f"{found.name} is {found.status}"
    if not found.status:
        return fail(check, f"there is no {found.name}", "deploy with `lakegate deploy`")
    if found.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        return ok(check, message)
    if found.status.endswith("_IN_PROGRESS"):
        return warn(check, message, "wait until it finishes, and check again")
    fix = "find the reason in the stack's events, fix it, and deploy again"
    return (warn if found.status == "UPDATE_ROLLBACK_COMPLETE" else fail)(check, message, fix)


def of_platform(found: StackView) -> Finding:
    """Check the platform's stack, if there is one."""
    if found.status:
        return of_stack(found, "platform")
    return ok("platform", f"no {found.name}: Nessie and the EMR application are deployed elsewhere")


def of_facts(current: Mapping[str, str], in_use: Mapping[str, str]) -> list[Finding]:
    """Check that the functions use the values that the platform's SSM parameters have now."""
    wrong = []
    for name, used in in_use.items():
        if name not in current:
            fix = "deploy the platform, or create the parameter in SSM (docs/aws.md)"
            wrong.append(fail("platform's facts", f"SSM has no {name}", fix))
        elif current[name] != used:
            message = f"{name} is {current[name]} in SSM, but the functions use {used}"
            wrong.append(
                warn("platform's facts", message, "deploy again: the functions get the new value")
            )
    return wrong or [ok("platform's facts", f"{', '.join(in_use)} match the functions' settings")]


def of_parameters(deployed: Mapping[str, str], expected: Mapping[str, str]) -> list[Finding]:
    """Check that the stack has the parameters that this checkout would set."""
    other = {name: value for name, value in expected.items() if deployed.get(name, value) != value}
    found = [
        warn(
            "parameters",
            f"{name} is {deployed[name] or 'empty'}, but {value} in this checkout",
            _DEPLOY,
        )
        for name, value in other.items()
    ]
    return found or [ok("parameters", f"all {len(deployed)} as in this checkout")]


def of_functions(found: Sequence[FunctionView], built: bytes) -> list[Finding]:
    """Check that each function can run, with this checkout's Python version and code."""
    digest = base64.b64encode(hashlib.sha256(built).digest()).decode()
    wrong: list[Finding] = []
    for each in found:
        if each.state == "Failed" or each.update == "Failed":
            fix = "deploy again; the function's configuration shows why it cannot run"
            message = f"{each.name} is {each.state}, last update {each.update}"
            wrong.append(fail("functions", message, fix))
        if each.runtime != f"python{PYTHON}":
            message = f"{each.name} runs {each.runtime}, not python{PYTHON}"
            wrong.append(fail("functions", message, _DEPLOY))
    if others := [each.name for each in found if each.sha256 != digest]:
        message = f"code other than this checkout's runs in {', '.join(others)}"
        wrong.append(warn("functions' code", message, _DEPLOY))
    versions = f"Python {PYTHON}, Spark {SPARK}, Iceberg {ICEBERG}, Nessie {NESSIE} or newer"
    return wrong or [ok("functions", f"{len(found)} with this checkout's code ({versions})")]


def of_enabled(check: str, states: Mapping[str, tuple[str, str]], fix: str) -> list[Finding]:
    """Check that event source mappings or rules are enabled.

    `states` maps each logical id to physical id and state; `fix` has a placeholder for the physical
    id.
    """
    wrong = [
        fail(check, f"{name} is {state}: it delivers nothing", fix.format(id_))
        for name, (id_, state) in states.items()
        if state.upper() != "ENABLED"
    ]
    return wrong or [ok(check, f"all {len(states)} are enabled")]


def of_job_release(deployed: str, built: str) -> Finding:
    """Check that new job runs use this checkout's code."""
    if deployed == built:
        return ok("job's release", f"matches this checkout, {built}")
    return warn("job's release", f"is {deployed}, but {built} in this checkout", _DEPLOY)


def of_contracts(here: Mapping[str, str], in_force: Mapping[str, str]) -> list[Finding]:
    """Check that the contracts in force are those of this checkout."""
    fix = "run `lakegate contract push` to put this checkout's contracts in force"
    other = sorted(table for table in here.keys() & in_force if here[table] != in_force[table])
    found = {
        "in force in another version": other,
        "not in force": sorted(here.keys() - in_force),
        "in force, but not in this checkout": sorted(in_force.keys() - here),
    }
    messages = [f"{', '.join(tables)}: {what}" for what, tables in found.items() if tables]
    if messages:
        return [warn("contracts", each, fix) for each in messages]
    return [ok("contracts", f"{len(here)} in force, as in this checkout")]


def of_alarms(ringing: Mapping[str, str]) -> list[Finding]:
    """Check that no alarm is active."""
    fix = "see `When an alarm comes` in docs/troubleshooting.md"
    findings = [
        fail("alarms", f"{name} is in alarm. {says}".strip(), fix) for name, says in ringing.items()
    ]
    return findings or [ok("alarms", "none in alarm")]


def of_errors(failed: Mapping[str, float]) -> list[Finding]:
    """Check that no function failed lately; a redelivered message may have succeeded since."""
    return [
        warn(
            "function errors",
            f"{name} failed {many:,.0f} times within {HOURS} hour",
            f"find the reason with `aws logs tail /aws/lambda/{name} --filter-pattern ERROR`",
        )
        for name, many in failed.items()
        if many
    ] or [ok("function errors", f"none within {HOURS} hour")]


def of_ages(seconds: Mapping[str, float]) -> list[Finding]:
    """Check that no message waited long."""
    fix = "check that the queue's function is enabled and does not fail; then raise its concurrency"
    return [
        warn("waiting messages", f"{name}: a message waited {age / 60:,.0f} minutes", fix)
        for name, age in seconds.items()
        if age > _OLD
    ] or [ok("waiting messages", f"none waited {_OLD // 60} minutes within {HOURS} hour")]


def of_slack(secret: str, *, is_there: bool) -> Finding:
    """Check that the secret of the Slack token exists, if alerts go to Slack."""
    if not secret:
        return ok("Slack", "is not set up: alerts go to the log")
    if is_there:
        return ok("Slack", f"its token is in the secret {secret}")
    fix = f"put Slack's bot token into the secret {secret}"
    return fail("Slack", f"the secret {secret} does not exist: alerts do not reach Slack", fix)


def of_buttons(users: str, secret: str, refusal: str) -> Finding:
    """Check that presses can be verified; `refusal` is the answer to an unsigned request."""
    many = len(list(filter(None, users.split(","))))
    has_key = refusal != "NO_SIGNING_SECRET"
    if refusal not in ("", "NO_SIGNING_SECRET", "NOT_SLACK"):
        fix = "read the log of the function on-action with `aws logs tail`"
        return fail("buttons", f"every press is answered {refusal}", fix)
    if many and secret and has_key:
        return ok("buttons", f"{many} users may press them")
    if many:
        fix = f'put {{"token": …, "signing_secret": …}} into the secret {secret or "of Slack"}'
        message = (
            f"{many} users may press them, but no press is verifiable: no signing secret exists"
        )
        return fail("buttons", message, fix)
    if secret and has_key:
        fix = "set `SlackUsers` to the ids of the users who may, and deploy again"
        return warn("buttons", "there is a signing secret, but no user may press them", fix)
    return ok("buttons", "are not set up: alerts have none")


# The few permissions of the deployed roles that protect main. tests/deploy checks every policy of
# the template; these rules ask AWS about the policies in force.


@dataclass(frozen=True)
class Right:
    """An action on a resource that a role must (`may`) or must not be allowed."""

    role: str
    action: str
    resource: str
    may: bool


def rights(settings: Settings, stage: Stage) -> list[Right]:
    """Return the permissions to check in one deployment."""
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


def of_rights(wanted: Sequence[Right], stack: StackView, aws: AwsView) -> list[Finding]:
    """Check that each role has the permissions it needs and no forbidden one. Raises NotVisible."""
    fix = "deploy again, and find out who changed the role's policies"
    wrong = [
        fail(
            "permissions",
            f"{right.role} {'may not' if right.may else 'may'} {right.action} on {right.resource}",
            fix,
        )
        for right in wanted
        if aws.may(stack.id_of(right.role), right.action, right.resource) != right.may
    ]
    return wrong or [ok("permissions", f"{len(wanted)} permissions of the roles are correct")]
