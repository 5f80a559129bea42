"""What is looked at from outside a deployment's network, and how it should stand."""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cli.outside import FUNCTION, MAPPING, QUEUE, RULE, FunctionSeen, NotSeen, Outside, StackSeen
from cli.rights import of_rights, rights
from functions.diagnosis import Check, Finding, fail, ok, warn
from functions.settings import Settings
from infra.package import Package
from infra.versions import ICEBERG, NESSIE, PYTHON, SPARK

HOURS = 1
_OLD = 15 * 60
_DEPLOY = "`lakegate deploy` (`lakegate up` on one machine) brings it to this checkout's"
_ALLOW = "ask for the right to look, or somebody who has it to run this"


@dataclass(frozen=True)
class Given:
    """What there should be: the deployment's settings, and what this checkout would deploy.

    `contracts` are the hashes of those in this checkout by table, `in_force` of those in the lake.
    """

    stage: str
    region: str
    settings: Settings
    outside: Outside
    package: Callable[[], Package]
    contracts: Callable[[], Mapping[str, str]]
    in_force: Callable[[], Mapping[str, str]]

    @cached_property
    def stack(self) -> StackSeen:
        """The app's stack."""
        return self.outside.stack(f"lakegate-{self.stage}")


def checks(given: Given) -> Iterator[Check]:
    """All that can be seen from outside."""
    outside = given.outside
    yield Check("stack", lambda: [of_stack(given.stack)], "deploy with `lakegate deploy`")
    yield Check("functions", lambda: _functions(given), _ALLOW)
    yield Check("queues' functions", lambda: _mappings(given), _ALLOW)
    yield Check("rules", lambda: _rules(given), _ALLOW)
    yield Check("job's release", lambda: [_job_release(given)], "build with `make package`")
    yield Check("contracts", lambda: of_contracts(given.contracts(), given.in_force()), _ALLOW)
    yield Check("Slack", lambda: [_slack(given)], _ALLOW)
    for name, look in {
        "alarms": lambda: [of_alarms(outside.alarms(f"lakegate-{given.stage}"))],
        "function errors": lambda: _errors(given),
        "waiting messages": lambda: _ages(given),
        "permissions": lambda: of_rights(
            rights(given.settings, given.stage, given.region), given.stack, outside
        ),
    }.items():
        yield Check(name, _if_seen(name, look), _ALLOW)


def of_stack(found: StackSeen) -> Finding:
    """The last deployment came to its end, and to the one that was wanted."""
    told = f"{found.name} is {found.status}"
    if found.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        return ok("stack", told)
    if found.status.endswith("_IN_PROGRESS"):
        return warn("stack", told, "wait until it is through, and look again")
    fix = "read the stack's events for the reason, mend it, and deploy again"
    return (warn if found.status == "UPDATE_ROLLBACK_COMPLETE" else fail)("stack", told, fix)


def of_functions(found: Sequence[FunctionSeen], built: bytes) -> list[Finding]:
    """Each function can run, on our Python, with this checkout's code."""
    digest = base64.b64encode(hashlib.sha256(built).digest()).decode()
    wrong: list[Finding] = []
    for each in found:
        if each.state not in ("", "Active", "Inactive") or each.update == "Failed":
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


def of_alarms(ringing: list[str]) -> Finding:
    """No alarm rings."""
    if not ringing:
        return ok("alarms", "none rings")
    fix = "docs/troubleshooting.md says what each of them means"
    return fail("alarms", f"ringing: {', '.join(ringing)}", fix)


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


def _functions(given: Given) -> list[Finding]:
    seen = [given.outside.function(name) for name in given.stack.of_type(FUNCTION).values()]
    return of_functions(seen, given.package().lambda_zip.read_bytes())


def _mappings(given: Given) -> list[Finding]:
    ids = given.stack.of_type(MAPPING)
    states = {name: (id_, given.outside.mapping(id_)) for name, id_ in ids.items()}
    fix = "`aws lambda update-event-source-mapping --enabled --uuid {}`"
    return of_enabled("queues' functions", states, fix)


def _rules(given: Given) -> list[Finding]:
    ids = given.stack.of_type(RULE)
    states = {name: (id_, given.outside.rule(id_)) for name, id_ in ids.items()}
    return of_enabled("rules", states, "`aws events enable-rule --name {}`")


def _job_release(given: Given) -> Finding:
    deployed = given.settings.job_code.rpartition("/")[2]
    return of_job_release(deployed, given.package().job_release)


def _errors(given: Given) -> list[Finding]:
    names = given.stack.of_type(FUNCTION).values()
    return of_errors({name: given.outside.errors(name, HOURS) for name in names})


def _ages(given: Given) -> list[Finding]:
    names = [url.rsplit("/", 1)[-1] for url in given.stack.of_type(QUEUE).values()]
    waited = {name: given.outside.oldest(name, HOURS) for name in names if "dead" not in name}
    return of_ages(waited)


def _slack(given: Given) -> Finding:
    function = given.outside.function(given.stack.resources["OnAlertLambdaFunction"][1])
    secret = function.environment.get("LAKEGATE_SLACK_TOKEN_SECRET", "")
    return of_slack(secret, is_there=bool(secret) and given.outside.has_secret(secret))


def _if_seen(check: str, look: Callable[[], list[Finding]]) -> Callable[[], list[Finding]]:
    """What a person can do without: where they may not see it, that is told, and no failure."""

    def looked() -> list[Finding]:
        try:
            return look()
        except NotSeen as error:
            return [warn(check, f"skipped: {error.message}", _ALLOW)]

    return looked
