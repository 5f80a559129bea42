"""The checks from outside a deployment's network."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from access.ingestions.shared_runs import SharedRuns
from cli.doctor import rules
from cli.doctor.aws_view import (
    ALARM,
    FUNCTION,
    MAPPING,
    QUEUE,
    RULE,
    AwsView,
    FunctionView,
    StackView,
)
from cli.doctor.rights import check_rights, rights
from cli.doctor.rules import ALLOW
from functions.health.model import Check, Finding
from functions.model.budget import Spending
from functions.settings import Settings
from infra.aws.facts import JOB_RELEASE, NESSIE_CA
from infra.package import Package
from infra.stage import Stage


@dataclass(frozen=True)
class DoctorInputs:
    """A deployment's settings, a view of it on AWS, and what this checkout would deploy.

    `facts` reads the platform's SSM parameters, `parameters` are those that this checkout would
    give the stack. `contracts` maps the tables of this checkout's contracts to hashes, `in_force`
    those of the lake. `shared_runs` reads the ledger, EMR and the work queue. An installed package
    `has_checkout` not: nothing is compared with it then.
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
    spending: Callable[[], Spending]
    has_checkout: bool = True

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
            NESSIE_CA: settings.nessie_ca,
            "emr-application-id": settings.emr_application_id,
            "emr-shared-application-id": settings.emr_shared_application_id,
            JOB_RELEASE: settings.job_code.rpartition("/")[2],
        }

    def functions(self) -> list[FunctionView]:
        """Return all functions of the stack."""
        return [self.aws.function(name) for name in self.stack.ids_of_type(FUNCTION).values()]

    def code(self) -> bytes | None:
        """Return the code that this checkout would deploy, None without one."""
        return self.package().lambda_zip.read_bytes() if self.has_checkout else None

    def states(self, type_: str, look: Callable[[str], str]) -> dict[str, tuple[str, str]]:
        """Return the physical id and the state of each resource of a type, by logical id."""
        return {name: (id_, look(id_)) for name, id_ in self.stack.ids_of_type(type_).items()}

    def environment(self, function: str) -> Mapping[str, str]:
        """Return the variables of the function with a logical id."""
        return self.aws.function(self.stack.id_of(function)).environment


def _rules(inputs: DoctorInputs) -> list[Finding]:
    """Check all rules but that of the digest where nobody wants one."""
    states = inputs.states(RULE, inputs.aws.rule)
    if inputs.stack.parameters.get("DigestState") == "DISABLED":
        states.pop("DigestRule", None)
    return rules.check_enabled(states, "`aws events enable-rule --name {}`")


def _errors(inputs: DoctorInputs) -> list[Finding]:
    names = inputs.stack.ids_of_type(FUNCTION).values()
    return rules.check_errors({name: inputs.aws.errors(name, rules.HOURS) for name in names})


def _alarms(inputs: DoctorInputs) -> list[Finding]:
    """Check the alarms of both stacks: those of another stage may begin with this one's name."""
    stacks = inputs.stack, inputs.aws.stack(inputs.stage.platform_stack)
    own = {name for each in stacks for name in each.ids_of_type(ALARM).values()}
    ringing = inputs.aws.alarms(inputs.stage.stack)
    return rules.check_alarms({name: says for name, says in ringing.items() if name in own})


def _ages(inputs: DoctorInputs) -> list[Finding]:
    queues = inputs.stack.ids_of_type(QUEUE).items()
    live = [url.rsplit("/", 1)[-1] for name, url in queues if not name.endswith("DeadLetters")]
    return rules.check_ages({name: inputs.aws.oldest(name, rules.HOURS) for name in live})


def _slack(inputs: DoctorInputs) -> Finding:
    secret = inputs.environment("OnAlertLambdaFunction").get("LAKEGATE_SLACK_TOKEN_SECRET", "")
    return rules.check_slack(secret, is_there=bool(secret) and inputs.aws.has_secret(secret))


def _buttons(inputs: DoctorInputs) -> Finding:
    function = "OnActionLambdaFunction"
    environment = inputs.environment(function)
    users, secret = (
        environment.get(f"LAKEGATE_SLACK_{name}", "") for name in ("USERS", "TOKEN_SECRET")
    )
    refusal = inputs.aws.refusal(inputs.stack.id_of(function)) if secret else ""
    return rules.check_buttons(users, secret, refusal)


# A new check is one entry here. Without permission for an optional one there is only a warning.
_CHECKS: Mapping[str, Callable[[DoctorInputs], Iterable[Finding]]] = {
    "stack": lambda i: [rules.check_stack(i.stack)],
    "platform": lambda i: [rules.check_platform(i.aws.stack(i.stage.platform_stack))],
    "platform's facts": lambda i: rules.check_facts(i.facts(), i.in_use),
    "parameters": lambda i: rules.check_parameters(i.stack.parameters, i.parameters()),
    "functions": lambda i: rules.check_functions(i.functions(), i.code()),
    "queues' functions": lambda i: rules.check_enabled(
        i.states(MAPPING, i.aws.mapping),
        "`aws lambda update-event-source-mapping --enabled --uuid {}`",
    ),
    "rules": _rules,
    "job's release": lambda i: [
        rules.check_job_release(i.in_use[JOB_RELEASE], i.package().job_release)
    ],
    "contracts": lambda i: rules.check_contracts(i.contracts(), i.in_force()),
    "Slack": lambda i: [_slack(i)],
}
_OPTIONAL: Mapping[str, Callable[[DoctorInputs], Iterable[Finding]]] = {
    "buttons": lambda i: [_buttons(i)],
    "resources' settings": lambda i: rules.check_deviations(
        i.aws.deviations(i.stage.stack), i.stage.stack
    ),
    "alarms": _alarms,
    "function errors": _errors,
    "waiting messages": _ages,
    "shared runs": lambda i: rules.check_shared_runs(i.shared_runs()),
    "budget": lambda i: [rules.check_budget(i.spending(), i.settings.daily_budget_usd)],
    "permissions": lambda i: check_rights(rights(i.settings, i.stage), i.stack, i.aws),
}
_FIXES = {"job's release": "build with `make package`"}
_OF_CHECKOUT = ("parameters", "job's release", "contracts")


def checks(inputs: DoctorInputs) -> list[Check]:
    """Return all checks that can be made from outside, and from here."""
    return [
        Check(name, partial(run, inputs), _FIXES.get(name, ALLOW), name in _OPTIONAL)
        for name, run in {**_CHECKS, **_OPTIONAL}.items()
        if inputs.has_checkout or name not in _OF_CHECKOUT
    ]
