"""Plan and deploy stacks without losing data."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from botocore.waiter import WaiterModel, create_waiter_with_client

from infra import template
from infra.aws import emr
from infra.aws.site import JOB_RELEASE, Site
from infra.cloudformation import Change, Plan, translated
from infra.package import Package
from infra.stage import Stage
from infra.template import Template
from lakegate.errors import LakegateError

# CloudFormation creates or deletes one index of a table in an update ("AWS::DynamoDB::Table").

_TABLE = "AWS::DynamoDB::Table"
_INDEXES = "GlobalSecondaryIndexes"
_SETTLED = {
    "operation": "DescribeTable",
    "delay": 5,
    "maxAttempts": 720,
    "acceptors": [
        {
            "state": "success",
            "matcher": "path",
            "argument": f"length(Table.{_INDEXES}[?IndexStatus && IndexStatus!='ACTIVE'] || `[]`)",
            "expected": 0,
        }
    ],
}


@dataclass(frozen=True)
class _Index:
    """An index of the table with this logical id; `attributes` are those of the table."""

    table: str
    described: Mapping[str, Any]
    attributes: Sequence[Mapping[str, str]]


def steps(deployed: Template, wanted: "StackSpec") -> list["StackSpec"]:
    """Return the stacks to deploy before the wanted one, each with one index more or less.

    The new indexes come first, while all else stays: the functions must find theirs at any time.
    Then comes all else, and last the old indexes go.
    """
    new = accumulate(_missing(deployed, wanted.template), _with, initial=deployed)
    old = accumulate(_missing(wanted.template, deployed), _with, initial=wanted.template)
    return [
        *(unchanged(wanted.stack, each) for each in [*new][1:]),
        *(replace(wanted, template=each) for each in [*old][:0:-1]),
    ]


def _missing(here: Template, there: Template) -> Iterator[_Index]:
    """Yield the indexes that a table has there, and not here."""
    for name, table in there["Resources"].items():
        same = here["Resources"].get(name, {})
        if table["Type"] == same.get("Type") == _TABLE:
            known = {each["IndexName"] for each in same["Properties"].get(_INDEXES, [])}
            for each in table["Properties"].get(_INDEXES, []):
                if each["IndexName"] not in known:
                    yield _Index(name, each, table["Properties"]["AttributeDefinitions"])


def _with(found: Template, index: _Index) -> Template:
    """Return the template with one index more; a table has no attribute but its keys."""
    table = found["Resources"][index.table]
    properties = table["Properties"]
    attributes = {
        each["AttributeName"]: each
        for each in (*properties["AttributeDefinitions"], *index.attributes)
    }
    indexes = [*properties.get(_INDEXES, []), index.described]
    keys = [*properties["KeySchema"], *(key for each in indexes for key in each["KeySchema"])]
    names = {key["AttributeName"] for key in keys}
    changed = {
        **properties,
        _INDEXES: indexes,
        "AttributeDefinitions": [each for name, each in attributes.items() if name in names],
    }
    resources = {**found["Resources"], index.table: {**table, "Properties": changed}}
    return {**found, "Resources": resources}


# A deployment neither removes nor replaces resources that hold data.

# Each type with the reason.
HOLDS = {
    "AWS::S3::Bucket": "its objects would stay behind, and everything would read the new bucket",
    "AWS::DynamoDB::Table": "the new table would not know the files that landed so far",
    "AWS::SQS::Queue": "the messages that wait in it would be lost",
    "AWS::RDS::DBInstance": "Nessie would start with an empty database",
    "AWS::RDS::DBCluster": "Nessie would start with an empty database",
    "AWS::SecretsManager::Secret": "its text would be lost",
    "AWS::KMS::Key": "what it encrypted could not be read again",
}
# A warehouse that is set up again is refreshed by each table's next publish. Without its threads
# Slack gets new ones. Without a collector nobody reads its events.
_GROWS_AGAIN = (
    "ThreadsTable",
    *("GlueQueue", "GlueDeadLetters"),
    *("SnowflakeQueue", "SnowflakeDeadLetters", "SnowflakeMarks"),
    *("LineageQueue", "LineageDeadLetters"),
)


def loses(change: Change) -> str:
    """Return what the change would lose, "" if nothing."""
    if change.resource in _GROWS_AGAIN and change.action == "Remove":
        return ""
    gone = change.action == "Remove" or change.replacement == "True"
    return HOLDS.get(change.type, "") if gone else ""


def refuse_losses(changes: Iterable[Change], *, but: Collection[str] = ()) -> None:
    """Raise LakegateError WOULD_LOSE_DATA if a change loses data: which, and what to do.

    Resources of the types `but` may be removed.
    """
    lost = [(change, loses(change)) for change in changes if change.type not in but]
    lines = [f"    {_change_line(change)}: {reason}" for change, reason in lost if reason]
    if lines:
        advice = (
            "Nothing was changed. Put the resource back as it was deployed (its logical id, its"
            " name, its keys), or move the data first and take the resource out by hand."
        )
        message = "\n".join(["this would remove or replace what holds data:", *lines, advice])
        raise LakegateError("WOULD_LOSE_DATA", message)


def _change_line(change: Change) -> str:
    if change.action == "Remove":
        return f"{change.resource} ({change.type}) would be removed"
    changed = f" for {', '.join(change.properties)}" if change.properties else ""
    return f"{change.resource} ({change.type}) would be replaced{changed}"


def refuse_another_key(site: Site, chosen: Mapping[str, str]) -> None:
    """Raise LakegateError KEY_IN_USE if the stage's data could not be decrypted any more."""
    if not site.stacks.exists(site.stage.stack):
        return
    used, wanted = (
        each.get(_KEY, "") for each in (site.stacks.parameters(site.stage.stack), chosen)
    )
    if used not in ("", wanted):
        message = (
            f"the stage's objects, tables and messages are encrypted by {used}: leave {_KEY} as it"
            " is (KMS rotates a key under the same ARN)"
        )
        raise LakegateError("KEY_IN_USE", message)


_KEY = "KmsKeyArn"
_STOP_SECONDS = 3600.0
_FROM_SSM = "AWS::SSM::Parameter::Value<"


@dataclass(frozen=True)
class StackSpec:
    """A stack's name, template and parameters; one that is None keeps its value."""

    stack: str
    template: Template
    parameters: Mapping[str, str | None]

    @property
    def additions(self) -> list[Change]:
        """Return the changes that create the stack."""
        every = self.template["Resources"].items()
        return [Change(name, resource["Type"], "Add") for name, resource in every]


def app(file: Path, site: Site, package: Package, chosen: Mapping[str, str]) -> StackSpec:
    """Return the stack of template.yaml with the package's code; the stage sets `chosen`."""
    read = template.with_code(template.read(file), site.artifacts.code_address(package))
    return StackSpec(site.stage.stack, read, parameters(read, site.stage, chosen))


def platform(file: Path, stage: Stage, public_key: str, chosen: Mapping[str, str]) -> StackSpec:
    """Return the stack of infra/platform.yml; Nessie checks tokens by the `public_key`.

    Raises LakegateError BAD_SETTING if the values break a rule of the template.
    """
    read = template.read(file)
    values = parameters(read, stage, chosen)
    if broken := template.broken_rules(read, values):
        raise LakegateError("BAD_SETTING", "\n".join(broken))
    return StackSpec(stage.platform_stack, read, {**values, "NessiePublicKey": public_key})


def parameters(read: Mapping[str, Any], stage: Stage, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the template's parameters: the facts' names in SSM and the chosen values."""
    mine = {name: value for name, value in chosen.items() if name in read["Parameters"]}
    return {**facts(read, stage), **mine, "Stage": stage.name}


def facts(read: Mapping[str, Any], stage: Stage) -> dict[str, str]:
    """Return the template's parameters that are facts, with their names in SSM."""
    known = read["Parameters"].items()
    names = [name for name, each in known if str(each["Type"]).startswith(_FROM_SSM)]
    return {name: stage.parameter(_kebab(name)) for name in names}


def unchanged(stack: str, wanted: Template) -> StackSpec:
    """Return a deployed stack with another template and the parameters that it has."""
    return StackSpec(stack, wanted, dict.fromkeys(wanted.get("Parameters", {})))


def refuse_unknown(chosen: Mapping[str, str], files: Iterable[Path]) -> None:
    """Raise LakegateError BAD_SETTING for a setting that no template knows."""
    known = sorted({name for file in files for name in template.read(file)["Parameters"]})
    if unknown := sorted(set(chosen) - set(known)):
        message = f"there is no setting {', '.join(unknown)}; there are: {', '.join(known)}"
        raise LakegateError("BAD_SETTING", message)


# A stage with the profile `production`; the platform's template asks for the rest of it.


def is_production(chosen: Mapping[str, str]) -> bool:
    """Return whether the settings are those of a production stage.

    Raises LakegateError BAD_SETTING if nobody would hear of its alarms.
    """
    production = chosen.get("Profile") == "production"
    if production and not chosen.get("AlarmEmail"):
        message = "a production stage needs AlarmEmail: someone must hear of its alarms"
        raise LakegateError("BAD_SETTING", message)
    return production


def plan(site: Site, wanted: StackSpec) -> Plan | None:
    """Return what would change, None if nothing. Raises LakegateError."""
    source = site.artifacts.template(template.body(wanted.template))
    return site.stacks.plan(wanted.stack, source, wanted.parameters)


def deploy_stack(site: Site, wanted: StackSpec) -> None:
    """Deploy the stack.

    Raises LakegateError: WOULD_LOSE_DATA before anything changes, DEPLOYMENT_FAILED with
    CloudFormation's reasons.
    """
    if planned := make_way(site, wanted):
        site.tell(f"deploying the stack {wanted.stack}: {len(planned.changes)} changes")
        emr.stop_for(site, planned.changes, _STOP_SECONDS)
        site.stacks.carry_out(planned)
    else:
        site.tell(f"the stack {wanted.stack} is up to date: nothing to change")


def make_way(site: Site, wanted: StackSpec) -> Plan | None:
    """Return the plan of a deployment that loses nothing, None if there is nothing to change.

    If a table's indexes change, all is deployed already, except that the last old one is still
    there. Raises LakegateError WOULD_LOSE_DATA.
    """
    planned = plan(site, wanted)
    if planned:
        try:
            refuse_losses(planned.changes)
        except LakegateError:
            site.stacks.discard(planned)
            raise
    if planned and _index_by_index(site, wanted):
        return plan(site, wanted)
    return planned


def _index_by_index(site: Site, wanted: StackSpec) -> bool:
    """Deploy what comes before the wanted stack, one index at a time; return whether any did."""
    if not site.stacks.exists(wanted.stack):
        return False
    between = steps(site.stacks.template(wanted.stack), wanted)
    for number, step in enumerate(between, 1):
        site.tell(f"a table's indexes change, one at a time: update {number} of {len(between)}")
        if planned := plan(site, step):
            site.stacks.carry_out(planned)
        _await_indexes(site, wanted.stack)
    return bool(between)


def _await_indexes(site: Site, stack: str) -> None:
    """Wait until all indexes of a stack's tables can be used: CloudFormation need not wait."""
    client = site.client("dynamodb")
    model = WaiterModel({"version": 2, "waiters": {"IndexesSettled": _SETTLED}})
    waiter = create_waiter_with_client("IndexesSettled", model, client)
    with translated("DEPLOYMENT_FAILED", "a table's index is not ready: run this again to go on"):
        for each in site.stacks.resources(stack):
            if each.type == _TABLE:
                waiter.wait(TableName=each.id)


def deploy_platform(site: Site, wanted: StackSpec) -> None:
    """Deploy the platform's stack; raises as `deploy_stack` does.

    RDS does not delete a protected database, so a failed first deployment could not be rolled back:
    the first one creates the database without protection and then protects it.
    """
    if not site.stacks.exists(wanted.stack):
        free = {**wanted.parameters, "DeletionProtection": "false"}
        deploy_stack(site, replace(wanted, parameters=free))
    deploy_stack(site, wanted)


def _kebab(name: str) -> str:
    return re.sub("(?<=.)(?=[A-Z])", "-", name).lower()


# The app's stack with its code.


def prepare(site: Site, package: Package) -> None:
    """Upload the code and set which release of the job runs.

    The job's code is there before a function names it, except in the first deployment, when there
    is no lake bucket yet: then `complete` uploads it.
    """
    site.artifacts.put_code(package)
    site.artifacts.put_job(package)
    site.facts.put({JOB_RELEASE: package.job_release})


def deploy(site: Site, wanted: StackSpec, package: Package) -> dict[str, str]:
    """Deploy the app's stack with its code and return its outputs. Raises LakegateError."""
    prepare(site, package)
    deploy_stack(site, wanted)
    return complete(site, package)


def complete(site: Site, package: Package) -> dict[str, str]:
    """Upload the job's code into the new lake bucket and return the stack's outputs."""
    site.artifacts.put_job(package)
    return site.stacks.outputs(site.stage.stack)
