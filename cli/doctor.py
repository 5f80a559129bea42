"""`lakegate doctor`: what is wrong with a deployment, and what to do about it."""

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
from cli import aws_rules as judging
from cli import documents, terminal
from cli.aws_rules import of_rights, rights
from cli.aws_view import FUNCTION, MAPPING, QUEUE, RULE, NotSeen, Outside, StackSeen
from cli.contract_check import checked
from cli.contracts import contract_files
from cli.deploy import CONTRACTS
from cli.local_stack import teller
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

# What is looked at from outside a deployment's network.

_ALLOW = "ask for the right to look, or somebody who has it to run this"


@dataclass(frozen=True)
class Given:
    """What there should be: the deployment's settings, and what this checkout would deploy.

    `facts` are what the platform tells now, `parameters` what this checkout would give the stack.
    `contracts` are the hashes of those in this checkout by table, `in_force` of those in the lake.
    """

    stage: Stage
    settings: Settings
    outside: Outside
    facts: Callable[[], Mapping[str, str]]
    parameters: Callable[[], Mapping[str, str]]
    package: Callable[[], Package]
    contracts: Callable[[], Mapping[str, str]]
    in_force: Callable[[], Mapping[str, str]]

    @cached_property
    def stack(self) -> StackSeen:
        """The app's stack."""
        return self.outside.stack(self.stage.stack)

    @property
    def job_release(self) -> str:
        """The release of the job that the functions start."""
        return self.settings.job_code.rpartition("/")[2]


def checks(given: Given) -> Iterator[Check]:
    """All that can be seen from outside."""
    outside = given.outside
    yield Check("stack", lambda: [judging.of_stack(given.stack)], "deploy with `lakegate deploy`")
    yield Check(
        "platform", lambda: [judging.of_platform(outside.stack(given.stage.platform_stack))], _ALLOW
    )
    yield Check("platform's facts", lambda: judging.of_facts(given.facts(), _in_use(given)), _ALLOW)
    yield Check(
        "parameters",
        lambda: judging.of_parameters(given.stack.parameters, given.parameters()),
        _ALLOW,
    )
    yield Check("functions", lambda: _functions(given), _ALLOW)
    yield Check("queues' functions", lambda: _mappings(given), _ALLOW)
    yield Check("rules", lambda: _rules(given), _ALLOW)
    yield Check("job's release", lambda: [_job_release(given)], "build with `make package`")
    yield Check(
        "contracts", lambda: judging.of_contracts(given.contracts(), given.in_force()), _ALLOW
    )
    yield Check("Slack", lambda: [_slack(given)], _ALLOW)
    yield Check("buttons", _if_seen("buttons", lambda: [_buttons(given)]), _ALLOW)
    for name, look in {
        "alarms": lambda: judging.of_alarms(outside.alarms(given.stage.stack)),
        "function errors": lambda: _errors(given),
        "waiting messages": lambda: _ages(given),
        "permissions": lambda: of_rights(rights(given.settings, given.stage), given.stack, outside),
    }.items():
        yield Check(name, _if_seen(name, look), _ALLOW)


def _functions(given: Given) -> list[Finding]:
    seen = [given.outside.function(name) for name in given.stack.of_type(FUNCTION).values()]
    return judging.of_functions(seen, given.package().lambda_zip.read_bytes())


def _in_use(given: Given) -> dict[str, str]:
    settings = given.settings
    return {
        "nessie-uri": settings.nessie_uri,
        "emr-application-id": settings.emr_application_id,
        JOB_RELEASE: given.job_release,
    }


def _mappings(given: Given) -> list[Finding]:
    ids = given.stack.of_type(MAPPING)
    states = {name: (id_, given.outside.mapping(id_)) for name, id_ in ids.items()}
    fix = "`aws lambda update-event-source-mapping --enabled --uuid {}`"
    return judging.of_enabled("queues' functions", states, fix)


def _rules(given: Given) -> list[Finding]:
    ids = given.stack.of_type(RULE)
    states = {name: (id_, given.outside.rule(id_)) for name, id_ in ids.items()}
    return judging.of_enabled("rules", states, "`aws events enable-rule --name {}`")


def _job_release(given: Given) -> Finding:
    return judging.of_job_release(given.job_release, given.package().job_release)


def _errors(given: Given) -> list[Finding]:
    names = given.stack.of_type(FUNCTION).values()
    return judging.of_errors({name: given.outside.errors(name, judging.HOURS) for name in names})


def _ages(given: Given) -> list[Finding]:
    names = [url.rsplit("/", 1)[-1] for url in given.stack.of_type(QUEUE).values()]
    waited = {
        name: given.outside.oldest(name, judging.HOURS) for name in names if "dead" not in name
    }
    return judging.of_ages(waited)


def _slack(given: Given) -> Finding:
    function = given.outside.function(given.stack.id_of("OnAlertLambdaFunction"))
    secret = function.environment.get("LAKEGATE_SLACK_TOKEN_SECRET", "")
    return judging.of_slack(secret, is_there=bool(secret) and given.outside.has_secret(secret))


def _buttons(given: Given) -> Finding:
    function = given.stack.id_of("OnActionLambdaFunction")
    told = given.outside.function(function).environment
    users, secret = (told.get(f"LAKEGATE_SLACK_{name}", "") for name in ("USERS", "TOKEN_SECRET"))
    refusal = given.outside.refusal(function) if secret else ""
    return judging.of_buttons(users, secret, refusal)


def _if_seen(check: str, look: Callable[[], list[Finding]]) -> Callable[[], list[Finding]]:
    """What a person can do without: where they may not see it, that is told, and no failure."""

    def looked() -> list[Finding]:
        try:
            return look()
        except NotSeen as error:
            return [warn(check, f"skipped: {error.message}", _ALLOW)]

    return looked


_EXPECTED = {"nessie": NESSIE, "emr_release_label": EMR_RELEASE_LABEL}


def doctor(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look at a deployment from inside its network and from outside; end with 1 if it is ill."""
    found = find(context.obj)
    account, region = found.settings.emr_role_arn.split(":")[4], boto3.Session().region_name
    given = _given(found, Stage(os.environ["LAKEGATE_STAGE"], account, region))
    inside = Check(
        "checkup",
        lambda: _inside(f"{given.stage.stack}-checkup"),
        "deploy again, or ask for the right to invoke it; its log group has its errors",
    )
    tell(carry_out([inside, *checks(given)]), as_json=as_json)


def tell(found: Sequence[Finding], *, as_json: bool) -> None:
    """Print the findings; exit code 1 when something fails."""
    if as_json:
        typer.echo(documents.text({"findings": [asdict(finding) for finding in found]}))
    else:
        many = Counter(finding.status for finding in found)
        told = ", ".join(f"{many[status]} {status}" for status in Status if many[status])
        terminal.out().print(terminal.findings(found), told)
    if any(finding.status is Status.FAIL for finding in found):
        raise typer.Exit(1)


def _given(found: Deployment, stage: Stage) -> Given:
    facts = Facts(boto3.client("ssm"), stage)
    limits = found.settings.limits
    lake = Lake(boto3.client("s3"), found.settings.lake_bucket, limits=limits)
    return Given(
        stage=stage,
        settings=found.settings,
        outside=Outside(),
        facts=lambda: facts.read((*PLATFORM, JOB_RELEASE)),
        parameters=lambda: _parameters(found, stage),
        package=cache(lambda: package.build(ROOT, teller())),
        contracts=lambda: _contracts(CONTRACTS[:1] if found.local else CONTRACTS, limits),
        in_force=lambda: {s.contract.table: s.contract.sha256 for s in lake.contracts()},
    )


def _parameters(found: Deployment, stage: Stage) -> dict[str, str]:
    """What a deployment from this checkout would give the app's stack, facts in SSM apart."""
    read = template.read(ROOT / "template.yaml")
    defaults = {n: str(p["Default"]) for n, p in read["Parameters"].items() if "Default" in p}
    local = settings.parameters(found.addresses) if found.local else None
    chosen = choices(ROOT / "stages" / f"{stage.name}.yml") if local is None else local
    told, facts = stack_plan.parameters(read, stage, chosen), stack_plan.facts(read, stage)
    return {name: value for name, value in (defaults | told).items() if name not in facts}


def _inside(function: str) -> list[Finding]:
    """What the function finds. Raises LakegateError where it cannot be invoked."""
    client = boto3.client("lambda", config=checkup.PATIENT)
    told = checkup.ask(client, function, {"do": "examine", "expected": _EXPECTED})
    return [_finding(each) for each in told]


def _finding(told: Mapping[str, Any]) -> Finding:
    return Finding(told["check"], Status(told["status"]), told["message"], told["fix"])


def _contracts(directories: Iterable[Path], limits: Limits) -> dict[str, str]:
    """The contracts of this checkout that can stand, their hashes by table."""
    found = [checked(file, limits).contract for file in contract_files(directories)]
    return {contract.table: contract.sha256 for contract in found if contract}
