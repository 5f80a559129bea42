"""What is looked at from outside a deployment's network."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from cli import outside_judging as judging
from cli.outside import FUNCTION, MAPPING, QUEUE, RULE, NotSeen, Outside, StackSeen
from cli.rights import of_rights, rights
from functions.diagnosis import Check, Finding, warn
from functions.settings import Settings
from infra.aws.facts import JOB_RELEASE
from infra.package import Package
from infra.stage import Stage

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
