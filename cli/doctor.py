"""`lakegate doctor`: find problems of a deployment, and suggest fixes."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any

import boto3
import typer

from access.deployment import ROOT, Deployment, find
from cli import aws_rules, json_output, terminal
from cli.aws_rules import of_rights, rights
from cli.aws_view import FUNCTION, MAPPING, QUEUE, RULE, AwsView, NotVisible, StackView
from cli.contract_check import checked
from cli.contracts import contract_files
from cli.deploy import CONTRACTS
from cli.local_stack import progress_printer
from functions.adapters.s3 import Lake
from functions.health.model import Check, Finding, Status, carry_out, warn
from functions.settings import Settings
from infra import checkup, package, template
from infra.aws import stack_plan
from infra.aws.site import JOB_RELEASE, PLATFORM, Facts, choices
from infra.local import settings
from infra.package import Package
from infra.stage import Stage
from infra.versions import EMR_RELEASE_LABEL, NESSIE
from lakegate.limits import Limits

# The checks from outside a deployment's network.

_ALLOW = "ask for permission to read it, or run this with a role that has it"


@dataclass(frozen=True)
class DoctorInputs:
    """A deployment's settings, a view of it on AWS, and what this checkout would deploy.

    `facts` reads the platform's SSM parameters, `parameters` are those that this checkout would
    give the stack. `contracts` maps the tables of this checkout's contracts to hashes, `in_force`
    those of the lake.
    """

    stage: Stage
    settings: Settings
    aws: AwsView
    facts: Callable[[], Mapping[str, str]]
    parameters: Callable[[], Mapping[str, str]]
    package: Callable[[], Package]
    contracts: Callable[[], Mapping[str, str]]
    in_force: Callable[[], Mapping[str, str]]

    @cached_property
    def stack(self) -> StackView:
        """Return the app's stack."""
        return self.aws.stack(self.stage.stack)

    @property
    def job_release(self) -> str:
        """Return the release of the job that the functions start."""
        return self.settings.job_code.rpartition("/")[2]


def checks(inputs: DoctorInputs) -> Iterator[Check]:
    """Yield all checks that can be made from outside."""
    aws = inputs.aws
    yield Check(
        "stack", lambda: [aws_rules.of_stack(inputs.stack)], "deploy with `lakegate deploy`"
    )
    yield Check(
        "platform", lambda: [aws_rules.of_platform(aws.stack(inputs.stage.platform_stack))], _ALLOW
    )
    yield Check(
        "platform's facts", lambda: aws_rules.of_facts(inputs.facts(), _in_use(inputs)), _ALLOW
    )
    yield Check(
        "parameters",
        lambda: aws_rules.of_parameters(inputs.stack.parameters, inputs.parameters()),
        _ALLOW,
    )
    yield Check("functions", lambda: _functions(inputs), _ALLOW)
    yield Check("queues' functions", lambda: _mappings(inputs), _ALLOW)
    yield Check("rules", lambda: _rules(inputs), _ALLOW)
    yield Check("job's release", lambda: [_job_release(inputs)], "build with `make package`")
    yield Check(
        "contracts", lambda: aws_rules.of_contracts(inputs.contracts(), inputs.in_force()), _ALLOW
    )
    yield Check("Slack", lambda: [_slack(inputs)], _ALLOW)
    yield Check("buttons", _optional("buttons", lambda: [_buttons(inputs)]), _ALLOW)
    for name, look in {
        "alarms": lambda: aws_rules.of_alarms(aws.alarms(inputs.stage.stack)),
        "function errors": lambda: _errors(inputs),
        "waiting messages": lambda: _ages(inputs),
        "permissions": lambda: of_rights(rights(inputs.settings, inputs.stage), inputs.stack, aws),
    }.items():
        yield Check(name, _optional(name, look), _ALLOW)


def _functions(inputs: DoctorInputs) -> list[Finding]:
    functions = [inputs.aws.function(name) for name in inputs.stack.of_type(FUNCTION).values()]
    return aws_rules.of_functions(functions, inputs.package().lambda_zip.read_bytes())


def _in_use(inputs: DoctorInputs) -> dict[str, str]:
    settings = inputs.settings
    return {
        "nessie-uri": settings.nessie_uri,
        "emr-application-id": settings.emr_application_id,
        JOB_RELEASE: inputs.job_release,
    }


def _mappings(inputs: DoctorInputs) -> list[Finding]:
    ids = inputs.stack.of_type(MAPPING)
    states = {name: (id_, inputs.aws.mapping(id_)) for name, id_ in ids.items()}
    fix = "`aws lambda update-event-source-mapping --enabled --uuid {}`"
    return aws_rules.of_enabled("queues' functions", states, fix)


def _rules(inputs: DoctorInputs) -> list[Finding]:
    ids = inputs.stack.of_type(RULE)
    states = {name: (id_, inputs.aws.rule(id_)) for name, id_ in ids.items()}
    return aws_rules.of_enabled("rules", states, "`aws events enable-rule --name {}`")


def _job_release(inputs: DoctorInputs) -> Finding:
    return aws_rules.of_job_release(inputs.job_release, inputs.package().job_release)


def _errors(inputs: DoctorInputs) -> list[Finding]:
    names = inputs.stack.of_type(FUNCTION).values()
    return aws_rules.of_errors({name: inputs.aws.errors(name, aws_rules.HOURS) for name in names})


def _ages(inputs: DoctorInputs) -> list[Finding]:
    names = [url.rsplit("/", 1)[-1] for url in inputs.stack.of_type(QUEUE).values()]
    waited = {
        name: inputs.aws.oldest(name, aws_rules.HOURS) for name in names if "dead" not in name
    }
    return aws_rules.of_ages(waited)


def _slack(inputs: DoctorInputs) -> Finding:
    function = inputs.aws.function(inputs.stack.id_of("OnAlertLambdaFunction"))
    secret = function.environment.get("LAKEGATE_SLACK_TOKEN_SECRET", "")
    return aws_rules.of_slack(secret, is_there=bool(secret) and inputs.aws.has_secret(secret))


def _buttons(inputs: DoctorInputs) -> Finding:
    function = inputs.stack.id_of("OnActionLambdaFunction")
    environment = inputs.aws.function(function).environment
    users, secret = (
        environment.get(f"LAKEGATE_SLACK_{name}", "") for name in ("USERS", "TOKEN_SECRET")
    )
    refusal = inputs.aws.refusal(function) if secret else ""
    return aws_rules.of_buttons(users, secret, refusal)


def _optional(check: str, look: Callable[[], list[Finding]]) -> Callable[[], list[Finding]]:
    """Wrap a check that is optional: without permission it warns instead of failing."""

    def run() -> list[Finding]:
        try:
            return look()
        except NotVisible as error:
            return [warn(check, f"skipped: {error.message}", _ALLOW)]

    return run


_EXPECTED = {"nessie": NESSIE, "emr_release_label": EMR_RELEASE_LABEL}


def doctor(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a deployment from inside and outside its network; exits 1 on problems."""
    found = find(context.obj)
    account, region = found.settings.emr_role_arn.split(":")[4], boto3.Session().region_name
    inputs = _inputs(found, Stage(os.environ["LAKEGATE_STAGE"], account, region))
    inside = Check(
        "checkup",
        lambda: _inside(f"{inputs.stage.stack}-checkup"),
        "deploy again, or ask for permission to invoke it; its errors are in its log group",
    )
    report(carry_out([inside, *checks(inputs)]), as_json=as_json)


def report(found: Sequence[Finding], *, as_json: bool) -> None:
    """Print the findings; exit with 1 if one is a failure."""
    if as_json:
        typer.echo(json_output.text({"findings": [asdict(finding) for finding in found]}))
    else:
        many = Counter(finding.status for finding in found)
        summary = ", ".join(f"{many[status]} {status}" for status in Status if many[status])
        terminal.out().print(terminal.findings(found), summary)
    if any(finding.status is Status.FAIL for finding in found):
        raise typer.Exit(1)


def _inputs(found: Deployment, stage: Stage) -> DoctorInputs:
    facts = Facts(boto3.client("ssm"), stage)
    limits = found.settings.limits
    lake = Lake(boto3.client("s3"), found.settings.lake_bucket, limits=limits)
    return DoctorInputs(
        stage=stage,
        settings=found.settings,
        aws=AwsView(),
        facts=lambda: facts.read((*PLATFORM, JOB_RELEASE)),
        parameters=lambda: _parameters(found, stage),
        package=cache(lambda: package.build(ROOT, progress_printer())),
        contracts=lambda: _contracts(CONTRACTS[:1] if found.local else CONTRACTS, limits),
        in_force=lambda: {s.contract.table: s.contract.sha256 for s in lake.contracts()},
    )


def _parameters(found: Deployment, stage: Stage) -> dict[str, str]:
    """Return this checkout's parameters for the app's stack, without facts from SSM."""
    read = template.read(ROOT / "template.yaml")
    defaults = {n: str(p["Default"]) for n, p in read["Parameters"].items() if "Default" in p}
    local = settings.parameters(found.addresses) if found.local else None
    chosen = choices(ROOT / "stages" / f"{stage.name}.yml") if local is None else local
    own, facts = stack_plan.parameters(read, stage, chosen), stack_plan.facts(read, stage)
    return {name: value for name, value in (defaults | own).items() if name not in facts}


def _inside(function: str) -> list[Finding]:
    """Return the findings of the checkup function. Raises LakegateError if it cannot be invoked."""
    client = boto3.client("lambda", config=checkup.PATIENT)
    answer = checkup.ask(client, function, {"do": "examine", "expected": _EXPECTED})
    return [_finding(each) for each in answer]


def _finding(document: Mapping[str, Any]) -> Finding:
    return Finding(
        document["check"], Status(document["status"]), document["message"], document["fix"]
    )


def _contracts(directories: Iterable[Path], limits: Limits) -> dict[str, str]:
    """Return the hashes of this checkout's valid contracts, by table."""
    found = [checked(file, limits).contract for file in contract_files(directories)]
    return {contract.table: contract.sha256 for contract in found if contract}
