"""Compare a deployment on AWS with this checkout."""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from textwrap import shorten

from access.ingestions.outcomes import files_waiting
from access.ingestions.shared_runs import SharedRuns
from cli.doctor.aws_view import QUEUE, Deviation, FunctionView, StackView
from functions.health.model import Finding, fail, ok, warn
from functions.model.budget import Spending
from infra.versions import ICEBERG, NESSIE, PYTHON, SPARK

HOURS = 1
_OLD = 15 * 60
_LONGEST_VALUE = 60
ALLOW = "ask for permission to read it, or run this with a role that has it"
_DEPLOY = "deploy this checkout with `lakegate deploy` (`lakegate up` for the local stack)"
# Properties that data or work depends on: a difference is a failure, of any other a warning.
_VITAL = {
    ("AWS::S3::Bucket", "VersioningConfiguration"),
    ("AWS::S3::Bucket", "BucketEncryption"),
    ("AWS::S3::Bucket", "PublicAccessBlockConfiguration"),
    ("AWS::S3::BucketPolicy", "PolicyDocument"),
    ("AWS::DynamoDB::Table", "KeySchema"),
    ("AWS::DynamoDB::Table", "GlobalSecondaryIndexes"),
    ("AWS::Lambda::Function", "Runtime"),
    ("AWS::Lambda::Function", "Environment"),
    (QUEUE, "RedrivePolicy"),
}


def check_stack(stack: StackView) -> Finding:
    """Check that the last deployment of the stack succeeded."""
    message = f"{stack.name} is {stack.status}"
    if not stack.status:
        return fail(f"there is no {stack.name}", "deploy with `lakegate deploy`")
    if stack.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        return ok(message)
    if stack.status.endswith("_IN_PROGRESS"):
        return warn(message, "wait until it finishes, and check again")
    fix = "find the reason in the stack's events, fix it, and deploy again"
    return (warn if stack.status == "UPDATE_ROLLBACK_COMPLETE" else fail)(message, fix)


def check_platform(stack: StackView) -> Finding:
    """Check the platform's stack, if there is one."""
    if stack.status:
        return check_stack(stack)
    return ok(f"no {stack.name}: Nessie and the EMR applications are deployed elsewhere")


def check_deviations(deviations: Iterable[Deviation], stack: str) -> list[Finding]:
    """Check that each resource has the settings of the deployed template."""
    wrong = [finding for each in deviations for finding in _deviation(each, stack)]
    return wrong or [ok("all that CloudFormation can compare are as deployed")]


def _deviation(deviation: Deviation, stack: str) -> list[Finding]:
    if deviation.status == "DELETED":
        fix = f"find out who deleted it; create it again as in the template of {stack}"
        return [fail(f"{deviation.resource} does not exist any more", fix)]
    if deviation.status == "UNKNOWN":
        return [warn(f"{deviation.resource} cannot be compared: {deviation.reason}", ALLOW)]
    fix = f"set it back to the template's value: deploying {stack} again leaves it as it is"
    return [
        (fail if (deviation.type, path.split("/")[1]) in _VITAL else warn)(
            f"{deviation.resource}{path} is {_short(now)}, but {_short(expected)} in the template",
            fix,
        )
        for path, expected, now in deviation.differences
    ]


def _short(value: str) -> str:
    return shorten(value, _LONGEST_VALUE, placeholder="…") or "empty"


def check_facts(current: Mapping[str, str], in_use: Mapping[str, str]) -> list[Finding]:
    """Check that the functions use the values that the platform's SSM parameters have now."""
    wrong = []
    for name, used in in_use.items():
        if name not in current:
            fix = "deploy the platform, or create the parameter in SSM (docs/aws.md)"
            wrong.append(fail(f"SSM has no {name}", fix))
        elif current[name] != used:
            message = f"{name} is {current[name]} in SSM, but the functions use {used}"
            wrong.append(warn(message, "deploy again: the functions get the new value"))
    return wrong or [ok(f"{', '.join(in_use)} match the functions' settings")]


def check_parameters(deployed: Mapping[str, str], expected: Mapping[str, str]) -> list[Finding]:
    """Check that the stack has the parameters that this checkout would set."""
    return [
        warn(f"{name} is {deployed[name] or 'empty'}, but {value} in this checkout", _DEPLOY)
        for name, value in expected.items()
        if deployed.get(name, value) != value
    ] or [ok(f"all {len(deployed)} as in this checkout")]


def check_functions(functions: Sequence[FunctionView], built: bytes | None) -> list[Finding]:
    """Check that each function can run, with this checkout's code if there is a checkout."""
    fix = "deploy again; the function's configuration shows why it cannot run"
    wrong = [
        fail(f"{each.name} is {each.state}, last update {each.update}", fix)
        for each in functions
        if "Failed" in (each.state, each.update)
    ]
    if built is None:
        return wrong or [ok(f"{len(functions)} can run")]
    digest = base64.b64encode(hashlib.sha256(built).digest()).decode()
    if others := [each.name for each in functions if each.sha256 != digest]:
        message = f"code other than this checkout's runs in {', '.join(others)}"
        wrong.append(warn(message, _DEPLOY, "functions' code"))
    versions = f"Python {PYTHON}, Spark {SPARK}, Iceberg {ICEBERG}, Nessie {NESSIE} or newer"
    return wrong or [ok(f"{len(functions)} with this checkout's code ({versions})")]


def check_enabled(states: Mapping[str, tuple[str, str]], fix: str) -> list[Finding]:
    """Check that event source mappings or rules are enabled.

    `states` maps each logical id to physical id and state; `fix` has a placeholder for the physical
    id.
    """
    return [
        fail(f"{name} is {state}: it delivers nothing", fix.format(id_))
        for name, (id_, state) in states.items()
        if state.upper() != "ENABLED"
    ] or [ok(f"all {len(states)} are enabled")]


def check_job_release(deployed: str, built: str) -> Finding:
    """Check that new job runs use this checkout's code."""
    if deployed == built:
        return ok(f"matches this checkout, {built}")
    return warn(f"is {deployed}, but {built} in this checkout", _DEPLOY)


def check_contracts(here: Mapping[str, str], in_force: Mapping[str, str]) -> list[Finding]:
    """Check that the contracts in force are those of this checkout."""
    push = "run `lakegate contract push` to put this checkout's contracts in force"
    keep = "if no other folder has it either, `lakegate contract withdraw` takes it out of force"
    other = sorted(table for table in here.keys() & in_force if here[table] != in_force[table])
    cases = (
        ("in force in another version", other, push),
        ("not in force", sorted(here.keys() - in_force), push),
        ("in force, but not in this checkout", sorted(in_force.keys() - here), keep),
    )
    return [warn(f"{', '.join(tables)}: {what}", fix) for what, tables, fix in cases if tables] or [
        ok(f"{len(here)} in force, as in this checkout")
    ]


def check_alarms(ringing: Mapping[str, str]) -> list[Finding]:
    """Check that no alarm is active."""
    fix = "see its entry in docs/alarms.md"
    return [fail(f"{name} is in alarm. {says}".strip(), fix) for name, says in ringing.items()] or [
        ok("none in alarm")
    ]


def check_errors(failed: Mapping[str, float]) -> list[Finding]:
    """Check that no function failed lately; a redelivered message may have succeeded since."""
    return [
        warn(
            f"{name} failed {many:,.0f} times within {HOURS} hour",
            f"find the reason with `aws logs tail /aws/lambda/{name} --since {HOURS}h"
            " --filter-pattern ERROR`",
        )
        for name, many in failed.items()
        if many
    ] or [ok(f"none within {HOURS} hour")]


def check_ages(seconds: Mapping[str, float]) -> list[Finding]:
    """Check that no message waited long."""
    fix = "check that the queue's function is enabled and does not fail; then raise its concurrency"
    return [
        warn(f"{name}: a message waited {age / 60:,.0f} minutes", fix)
        for name, age in seconds.items()
        if age > _OLD
    ] or [ok(f"none waited {_OLD // 60} minutes within {HOURS} hour")]


def check_shared_runs(runs: SharedRuns) -> list[Finding]:
    """Check that a shared run is up while files wait, and that none failed lately."""
    files = files_waiting(runs.files) or "no file waits"
    wrong = []
    if runs.files and not runs.up:
        fix = (
            "the sweep starts one: if this lasts, its log and that of on-upload have the reason"
            if runs.most
            else "wait: after an hour the sweep gives each a run of its own; or raise SharedRuns"
        )
        wrong.append(warn(f"none is up, but {files}", fix))
    if runs.failed:
        one = runs.failed[0]
        message = f"{len(runs.failed)} failed in the last hour, such as {one.name}: {one.details}"
        fix = f"find the reason in the log of job run {one.id}; the next run takes its files again"
        wrong.append(warn(message, fix))
    return wrong or [ok(f"{len(runs.up)} of at most {runs.most} up, {files}")]


def check_budget(spending: Spending, budget: int) -> Finding:
    """Check that a job run may be started within the day's budget, in dollars; 0 is none."""
    if not budget:
        return ok("none is set: DailyBudgetUsd is 0")
    fix = "wait, or raise DailyBudgetUsd in the stage's file under stages/ and deploy"
    why = spending.why_wait(budget)
    return warn(why, fix) if why else ok(spending.amounts(budget))


def check_slack(secret: str, *, is_there: bool) -> Finding:
    """Check that the secret of the Slack token exists, if alerts go to Slack."""
    if not secret:
        return ok("is not set up: alerts go to the log")
    if is_there:
        return ok(f"its token is in the secret {secret}")
    fix = f"put Slack's bot token into the secret {secret}"
    return fail(f"the secret {secret} does not exist: alerts do not reach Slack", fix)


def check_buttons(users: str, secret: str, refusal: str) -> Finding:
    """Check that presses can be verified; `refusal` is the answer to an unsigned request."""
    many = len(list(filter(None, users.split(","))))
    has_key = refusal != "NO_SIGNING_SECRET"
    if refusal not in ("", "NO_SIGNING_SECRET", "NOT_SLACK"):
        fix = "read the log of the function on-action with `aws logs tail`"
        return fail(f"every press is answered {refusal}", fix)
    if many and secret and has_key:
        return ok(f"{many} users may press them")
    if many:
        fix = f'put {{"token": …, "signing_secret": …}} into the secret {secret or "of Slack"}'
        message = (
            f"{many} users may press them, but no press is verifiable: no signing secret exists"
        )
        return fail(message, fix)
    if secret and has_key:
        fix = "set `SlackUsers` to the ids of the users who may, and deploy again"
        return warn("there is a signing secret, but no user may press them", fix)
    return ok("are not set up: alerts have none")
