"""`lakegate doctor`: find problems of a deployment, and suggest fixes."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from pathlib import Path

import boto3
import typer

from access.contract_check import checked
from access.deployment import Deployment, checkout, find
from access.shared_runs import SharedRuns, shared_runs
from cli.console import json_output, terminal
from cli.console.options import AsJson
from cli.console.terminal import progress_printer
from cli.contract.check import contract_files
from cli.doctor import rules
from cli.doctor.aws_view import FUNCTION, MAPPING, QUEUE, RULE, AwsView, FunctionView, StackView
from cli.doctor.rules import ALLOW, rights
from cli.local.stack import continue_in_project
from cli.operate.deploy import CONTRACTS
from functions.adapters.s3 import Lake
from functions.health.model import Check, Finding, Status, carry_out
from functions.settings import Settings
from infra import checkup, package, template
from infra.aws import stack_plan
from infra.aws.site import JOB_RELEASE, PLATFORM, Facts, choices
from infra.package import Package
from infra.stage import Stage
from infra.versions import EMR_RELEASE_LABEL, NESSIE
from lakegate.limits import Limits

# The checks from outside a deployment's network.


@dataclass(frozen=True)
class DoctorInputs:
    """A deployment's settings, a view of it on AWS, and what this checkout would deploy.

    `facts` reads the platform's SSM parameters, `parameters` are those that this checkout would
    give the stack. `contracts` maps the tables of this checkout's contracts to hashes, `in_force`
    those of the lake. `shared_runs` reads the ledger, EMR and the work queue.
    """

    stage: Stage
    settings: Settings
    aws: AwsView
    facts: Callable[[], Mapping[str, str]]
    parameters: Callable[[], Mapping[str, str]]
    package: Callable[[], Package]
    contracts: Callable[[], Mapping[str, str]]
    in_force: Callable[[], Mapping[str, str]]
    shared_runs: Callable[[], SharedRuns]

    @cached_property
    def stack(self) -> StackView:
        """Return the app's stack."""
        return self.aws.stack(self.stage.stack)

    @property
    def in_use(self) -> dict[str, str]:
        """Return the platform's facts that the functions use."""
        settings = self.settings
        return {
            "nessie-uri": settings.nessie_uri,
            "emr-application-id": settings.emr_application_id,
            JOB_RELEASE: settings.job_code.rpartition("/")[2],
        }

    def functions(self) -> list[FunctionView]:
        """Return all functions of the stack."""
        return [self.aws.function(name) for name in self.stack.of_type(FUNCTION).values()]

    def states(self, type_: str, look: Callable[[str], str]) -> dict[str, tuple[str, str]]:
        """Return the physical id and the state of each resource of a type, by logical id."""
        return {name: (id_, look(id_)) for name, id_ in self.stack.of_type(type_).items()}

    def environment(self, function: str) -> Mapping[str, str]:
        """Return the variables of the function with a logical id."""
        return self.aws.function(self.stack.id_of(function)).environment


def _errors(inputs: DoctorInputs) -> list[Finding]:
    names = inputs.stack.of_type(FUNCTION).values()
    return rules.of_errors({name: inputs.aws.errors(name, rules.HOURS) for name in names})


def _ages(inputs: DoctorInputs) -> list[Finding]:
    names = [url.rsplit("/", 1)[-1] for url in inputs.stack.of_type(QUEUE).values()]
    live = [name for name in names if "dead" not in name]
    return rules.of_ages({name: inputs.aws.oldest(name, rules.HOURS) for name in live})


def _slack(inputs: DoctorInputs) -> Finding:
    secret = inputs.environment("OnAlertLambdaFunction").get("LAKEGATE_SLACK_TOKEN_SECRET", "")
    return rules.of_slack(secret, is_there=bool(secret) and inputs.aws.has_secret(secret))


def _buttons(inputs: DoctorInputs) -> Finding:
    function = "OnActionLambdaFunction"
    environment = inputs.environment(function)
    users, secret = (
        environment.get(f"LAKEGATE_SLACK_{name}", "") for name in ("USERS", "TOKEN_SECRET")
    )
    refusal = inputs.aws.refusal(inputs.stack.id_of(function)) if secret else ""
    return rules.of_buttons(users, secret, refusal)


# A new check is one entry here. Without permission for an optional one there is only a warning.
_CHECKS: Mapping[str, Callable[[DoctorInputs], Iterable[Finding]]] = {
    "stack": lambda i: [rules.of_stack(i.stack)],
    "platform": lambda i: [rules.of_platform(i.aws.stack(i.stage.platform_stack))],
    "platform's facts": lambda i: rules.of_facts(i.facts(), i.in_use),
    "parameters": lambda i: rules.of_parameters(i.stack.parameters, i.parameters()),
    "functions": lambda i: rules.of_functions(i.functions(), i.package().lambda_zip.read_bytes()),
    "queues' functions": lambda i: rules.of_enabled(
        i.states(MAPPING, i.aws.mapping),
        "`aws lambda update-event-source-mapping --enabled --uuid {}`",
    ),
    "rules": lambda i: rules.of_enabled(
        i.states(RULE, i.aws.rule), "`aws events enable-rule --name {}`"
    ),
    "job's release": lambda i: [
        rules.of_job_release(i.in_use[JOB_RELEASE], i.package().job_release)
    ],
    "contracts": lambda i: rules.of_contracts(i.contracts(), i.in_force()),
    "Slack": lambda i: [_slack(i)],
}
_OPTIONAL: Mapping[str, Callable[[DoctorInputs], Iterable[Finding]]] = {
    "buttons": lambda i: [_buttons(i)],
    "resources' settings": lambda i: rules.of_deviations(
        i.aws.deviations(i.stage.stack), i.stage.stack
    ),
    "alarms": lambda i: rules.of_alarms(i.aws.alarms(i.stage.stack)),
    "function errors": _errors,
    "waiting messages": _ages,
    "shared runs": lambda i: rules.of_shared_runs(i.shared_runs()),
    "permissions": lambda i: rules.of_rights(rights(i.settings, i.stage), i.stack, i.aws),
}
_FIXES = {"job's release": "build with `make package`"}


def checks(inputs: DoctorInputs) -> list[Check]:
    """Return all checks that can be made from outside."""
    return [
        Check(name, partial(run, inputs), _FIXES.get(name, ALLOW), name in _OPTIONAL)
        for name, run in {**_CHECKS, **_OPTIONAL}.items()
    ]


_PUBLISHER = "publisher's token"  # which only functions that publish may read
_EXPECTED = {"nessie": NESSIE, "emr_release_label": EMR_RELEASE_LABEL}


def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Check a deployment from inside and outside its network; exits 1 on problems."""
    continue_in_project(context.obj)
    found = find(context.obj)
    account, region = found.settings.emr_role_arn.split(":")[4], boto3.Session().region_name
    inputs = _inputs(found, Stage(os.environ["LAKEGATE_STAGE"], account, region))
    stack = inputs.stage.stack
    inside = [_inside("checkup", f"{stack}-checkup"), _inside(_PUBLISHER, f"{stack}-sweep")]
    report(carry_out([*inside, *checks(inputs)]), as_json=as_json)


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
    adapters = found.adapters()  # boto3 creates clients safely in one thread only
    return DoctorInputs(
        stage=stage,
        settings=found.settings,
        aws=AwsView(),
        facts=lambda: facts.read((*PLATFORM, JOB_RELEASE)),
        parameters=lambda: _parameters(found, stage),
        package=cache(lambda: _package(found, stage)),
        contracts=lambda: _contracts(CONTRACTS[:1] if found.local else CONTRACTS, limits),
        in_force=lambda: {s.contract.table: s.contract.sha256 for s in lake.contracts()},
        shared_runs=lambda: shared_runs(adapters),
    )


def _package(found: Deployment, stage: Stage) -> Package:
    """Return this checkout's package for the stage, or for the local stack."""
    tell = progress_printer()
    if found.local:
        return package.build_here(checkout(), tell)
    chosen = choices(checkout() / "stages" / f"{stage.name}.yml")
    return package.build(checkout(), tell, processors=package.architecture(chosen))


def _parameters(found: Deployment, stage: Stage) -> dict[str, str]:
    """Return this checkout's parameters for the app's stack, without facts from SSM."""
    from infra.local import settings  # it imports Flask and more, which help does not need

    read = template.read(checkout() / "template.yaml")
    local = settings.parameters(found.addresses) if found.local else None
    chosen = choices(checkout() / "stages" / f"{stage.name}.yml") if local is None else local
    own, facts = stack_plan.parameters(read, stage, chosen), stack_plan.facts(read, stage)
    return {
        name: value for name, value in (template.defaults(read) | own).items() if name not in facts
    }


def _inside(name: str, function: str) -> Check:
    """Return the check whose findings are those of a function inside the network."""

    def run() -> list[Finding]:
        client = boto3.client("lambda", config=checkup.PATIENT)
        answer = checkup.ask(client, function, {"do": "examine", "expected": _EXPECTED})
        return [Finding(**(each | {"status": Status(each["status"])})) for each in answer]

    fix = "deploy again, or ask for permission to invoke it; its errors are in its log group"
    return Check(name, run, fix)


def _contracts(directories: Iterable[Path], limits: Limits) -> dict[str, str]:
    """Return the hashes of this checkout's valid contracts, by table."""
    found = [checked(file, limits).contract for file in contract_files(directories)]
    return {contract.table: contract.sha256 for contract in found if contract}
