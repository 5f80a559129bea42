"""How a deployment should stand as AWS shows it: held against what this checkout would deploy."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.aws_view import FunctionSeen, Outside, StackSeen
from functions.health.model import Finding, fail, ok, warn
from functions.settings import Settings
from infra.stage import Stage
from infra.versions import ICEBERG, NESSIE, PYTHON, SPARK

HOURS = 1
_OLD = 15 * 60
_DEPLOY = "`lakegate deploy` (`lakegate up` on one machine) brings it to this checkout's"


def of_stack(found: StackSeen, check: str = "stack") -> Finding:
    """The last deployment came to its end, and to the one that was wanted."""
    told = f"{found.name} is {found.status}"
    if not found.status:
        return fail(check, f"there is no {found.name}", "deploy with `lakegate deploy`")
    if found.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        return ok(check, told)
    if found.status.endswith("_IN_PROGRESS"):
        return warn(check, told, "wait until it is through, and look again")
    fix = "read the stack's events for the reason, mend it, and deploy again"
    return (warn if found.status == "UPDATE_ROLLBACK_COMPLETE" else fail)(check, told, fix)


def of_platform(found: StackSeen) -> Finding:
    """The platform's stack is well; there need be none."""
    if found.status:
        return of_stack(found, "platform")
    return ok("platform", f"no {found.name}: Nessie and the EMR application are others'")


def of_facts(told: Mapping[str, str], in_use: Mapping[str, str]) -> list[Finding]:
    """The functions work with what the platform tells now."""
    wrong = []
    for name, used in in_use.items():
        if name not in told:
            fix = "deploy the platform, or put the parameter into SSM as docs/aws.md says"
            wrong.append(fail("platform's facts", f"SSM has no {name}", fix))
        elif told[name] != used:
            message = f"{name} is {told[name]} now, and the functions work with {used}"
            wrong.append(warn("platform's facts", message, "deploy again: they are told then"))
    return wrong or [ok("platform's facts", f"{', '.join(in_use)} are those in use")]


def of_parameters(deployed: Mapping[str, str], wanted: Mapping[str, str]) -> list[Finding]:
    """The stack was given what this checkout would give it."""
    other = {name: value for name, value in wanted.items() if deployed.get(name, value) != value}
    found = [
        warn("parameters", f"{name} is {deployed[name] or 'empty'}, here {value}", _DEPLOY)
        for name, value in other.items()
    ]
    return found or [ok("parameters", f"all {len(deployed)} as in this checkout")]


def of_functions(found: Sequence[FunctionSeen], built: bytes) -> list[Finding]:
    """Each function can run, on our Python, with this checkout's code."""
    digest = base64.b64encode(hashlib.sha256(built).digest()).decode()
    wrong: list[Finding] = []
    for each in found:
        if each.state == "Failed" or each.update == "Failed":
            fix = "deploy again; the function's configuration says why it cannot run"
            told = f"{each.name} is {each.state}, its last update {each.update}"
            wrong.append(fail("functions", told, fix))
        if each.runtime != f"python{PYTHON}":
            told = f"{each.name} runs {each.runtime}, not python{PYTHON}"
            wrong.append(fail("functions", told, _DEPLOY))
    if others := [each.name for each in found if each.sha256 != digest]:
        told = f"another code than this checkout's runs in {', '.join(others)}"
        wrong.append(warn("functions' code", told, _DEPLOY))
    versions = f"Python {PYTHON}, Spark {SPARK}, Iceberg {ICEBERG}, Nessie {NESSIE} or newer"
    return wrong or [ok("functions", f"{len(found)} with this checkout's code ({versions})")]


def of_enabled(check: str, states: Mapping[str, tuple[str, str]], fix: str) -> list[Finding]:
    """What has to be on is on.

    `states` has an id and a state by the name in the template; `fix` has a place for the id.
    """
    wrong = [
        fail(check, f"{name} is {state}: nothing comes through it", fix.format(id_))
        for name, (id_, state) in states.items()
        if state.upper() != "ENABLED"
    ]
    return wrong or [ok(check, f"all {len(states)} are enabled")]


def of_job_release(deployed: str, built: str) -> Finding:
    """New runs take the job's code of this checkout."""
    if deployed == built:
        return ok("job's release", f"is this checkout's, {built}")
    return warn("job's release", f"is {deployed}, and this checkout's is {built}", _DEPLOY)


def of_contracts(here: Mapping[str, str], in_force: Mapping[str, str]) -> list[Finding]:
    """The contracts in force are those of this checkout."""
    fix = "`lakegate contract push` puts this checkout's in force"
    other = sorted(table for table in here.keys() & in_force if here[table] != in_force[table])
    found = {
        "in force in another version": other,
        "not in force": sorted(here.keys() - in_force),
        "in force, and not in this checkout": sorted(in_force.keys() - here),
    }
    told = [f"{', '.join(tables)}: {what}" for what, tables in found.items() if tables]
    if told:
        return [warn("contracts", each, fix) for each in told]
    return [ok("contracts", f"{len(here)} in force as in this checkout")]


def of_alarms(ringing: Mapping[str, str]) -> list[Finding]:
    """No alarm rings."""
    fix = "see `When an alarm comes` in docs/troubleshooting.md"
    told = [fail("alarms", f"{name} rings. {says}".strip(), fix) for name, says in ringing.items()]
    return told or [ok("alarms", "none rings")]


def of_errors(failed: Mapping[str, float]) -> list[Finding]:
    """No function failed lately; what a queue redelivers may have succeeded since."""
    return [
        warn(
            "function errors",
            f"{name} failed {many:,.0f} times within {HOURS} hour",
            f"read why: `aws logs tail /aws/lambda/{name} --filter-pattern ERROR`",
        )
        for name, many in failed.items()
        if many
    ] or [ok("function errors", f"none within {HOURS} hour")]


def of_ages(seconds: Mapping[str, float]) -> list[Finding]:
    """Nothing waited long."""
    fix = "see that the queue's function is enabled and does not fail; then its concurrency"
    return [
        warn("waiting messages", f"{name}: one waited {age / 60:,.0f} minutes", fix)
        for name, age in seconds.items()
        if age > _OLD
    ] or [ok("waiting messages", f"none waited {_OLD // 60} minutes within {HOURS} hour")]


def of_slack(secret: str, *, is_there: bool) -> Finding:
    """Where alerts go to Slack, there is a token for it."""
    if not secret:
        return ok("Slack", "is not set up: alerts go to the log")
    if is_there:
        return ok("Slack", f"its token is in the secret {secret}")
    fix = f"put Slack's bot token into the secret {secret}"
    return fail("Slack", f"there is no secret {secret}: alerts are not shown", fix)


def of_buttons(users: str, secret: str, refusal: str) -> Finding:
    """Who may press buttons under alerts is heard; `refusal` is what a stranger is told."""
    many = len(list(filter(None, users.split(","))))
    has_key = refusal != "NO_SIGNING_SECRET"
    if refusal not in ("", "NO_SIGNING_SECRET", "NOT_SLACK"):
        fix = "read its log: `aws logs tail` of the function on-action"
        return fail("buttons", f"whatever is pressed is answered {refusal}", fix)
    if many and secret and has_key:
        return ok("buttons", f"{many} may press them")
    if many:
        fix = f'put {{"token": …, "signing_secret": …}} into the secret {secret or "of Slack"}'
        message = f"{many} may press them, and nothing they press can be verified"
        return fail("buttons", f"{message}: there is no signing secret", fix)
    if secret and has_key:
        fix = "set `SlackUsers` to the ids of those who may, and deploy again"
        return warn("buttons", "there is a signing secret, and nobody may press them", fix)
    return ok("buttons", "are not set up: alerts have none")


# What the deployed roles may do, and what they must not: the few rights that keep the promises.
#
# tests/deploy look at every policy of the template; this asks AWS about those that are in force.


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
