"""A stack as it is to be: planned, judged, and made so."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from infra import template
from infra.aws.site import JOB_RELEASE, Site
from infra.cloudformation import Change, Plan
from infra.package import Package
from infra.stage import Stage
from infra.template import Template
from lakegate.errors import LakegateError

# New indexes of DynamoDB's tables, one an update: more DynamoDB does not make at a time.

_TABLE = "AWS::DynamoDB::Table"
_INDEXES = "GlobalSecondaryIndexes"


def steps(deployed: Template, wanted: Template) -> list[Template]:
    """The templates to deploy before the wanted one: the deployed one with one index more each.

    None where a table has but one new index, which can come with all else that is wanted.
    """
    found = []
    for name, table in wanted["Resources"].items():
        old = deployed["Resources"].get(name, {})
        if table["Type"] == old.get("Type") == _TABLE:
            for properties in _between(old["Properties"], table["Properties"]):
                resources = {**deployed["Resources"], name: {**old, "Properties": properties}}
                deployed = {**deployed, "Resources": resources}
                found.append(deployed)
    return found


def _between(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The table's properties as its new indexes come, all but the last."""
    indexes = list(old.get(_INDEXES, []))
    known = {index["IndexName"] for index in indexes}
    for index in [each for each in new.get(_INDEXES, []) if each["IndexName"] not in known][:-1]:
        indexes = [*indexes, index]
        keys = [*old["KeySchema"], *(key for each in indexes for key in each["KeySchema"])]
        names = {key["AttributeName"] for key in keys}
        # DynamoDB refuses an attribute that is no key.
        attributes = [a for a in new["AttributeDefinitions"] if a["AttributeName"] in names]
        yield {**old, _INDEXES: indexes, "AttributeDefinitions": attributes}


# What a change may not do: take away, or put another in the place of, what holds data.

# And what would be lost.
HOLDS = {
    "AWS::S3::Bucket": "its objects would stay behind, out of sight of everything that reads them",
    "AWS::DynamoDB::Table": "the new table would know none of the files that landed so far",
    "AWS::SQS::Queue": "the messages that wait in it would be lost",
    "AWS::RDS::DBInstance": "Nessie would find an empty database, and no table",
    "AWS::RDS::DBCluster": "Nessie would find an empty database, and no table",
    "AWS::SecretsManager::Secret": "what it holds would be gone",
    "AWS::KMS::Key": "what it encrypted could never be read again",
}
# What a warehouse waits for is of no use once it is not set up any more, and set up again it is
# brought along by each table's next publish. Without its threads Slack is told in new ones.
_GROWS_AGAIN = (
    "ThreadsTable",
    *("GlueQueue", "GlueDeadLetters"),
    *("SnowflakeQueue", "SnowflakeDeadLetters", "SnowflakeMarks"),
)


def loses(change: Change) -> str:
    """What the change would lose, "" where it loses nothing."""
    if change.resource in _GROWS_AGAIN and change.action == "Remove":
        return ""
    gone = change.action == "Remove" or change.replacement == "True"
    return HOLDS.get(change.type, "") if gone else ""


def refuse_losses(changes: Iterable[Change], *, but: Collection[str] = ()) -> None:
    """Raises LakegateError WOULD_LOSE_DATA: what each change would lose, and what to do.

    `but` are types of resources that may go.
    """
    lost = [(change, loses(change)) for change in changes if change.type not in but]
    lines = [f"    {_told(change)}: {reason}" for change, reason in lost if reason]
    if lines:
        advice = (
            "Nothing was changed. Put the resource back as it was deployed (its logical id, its"
            " name, its keys), or move the data first and take the resource out by hand."
        )
        message = "\n".join(["this would take away what holds data:", *lines, advice])
        raise LakegateError("WOULD_LOSE_DATA", message)


def _told(change: Change) -> str:
    if change.action == "Remove":
        return f"{change.resource} ({change.type}) would be removed"
    changed = f" for {', '.join(change.properties)}" if change.properties else ""
    return f"{change.resource} ({change.type}) would be replaced{changed}"


_TOLD_BY_SSM = "AWS::SSM::Parameter::Value<"


@dataclass(frozen=True)
class Wanted:
    """A stack's name, template and parameters."""

    stack: str
    template: Template
    parameters: Mapping[str, str]

    @property
    def additions(self) -> list[Change]:
        """What is made where there is nothing yet."""
        every = self.template["Resources"].items()
        return [Change(name, resource["Type"], "Add") for name, resource in every]


def app(file: Path, site: Site, package: Package, chosen: Mapping[str, str]) -> Wanted:
    """The stack of template.yaml, with the package's code; `chosen` is what the stage sets."""
    read = template.with_code(template.read(file), site.artifacts.code_address(package))
    return Wanted(site.stage.stack, read, parameters(read, site.stage, chosen))


def platform(file: Path, stage: Stage, public_key: str, chosen: Mapping[str, str]) -> Wanted:
    """The stack of infra/platform.yml; Nessie knows tokens by the `public_key`."""
    read = template.read(file)
    told = parameters(read, stage, chosen)
    return Wanted(stage.platform_stack, read, {**told, "NessiePublicKey": public_key})


def parameters(read: Mapping[str, Any], stage: Stage, chosen: Mapping[str, str]) -> dict[str, str]:
    """The template's parameters: the names of the facts in SSM, and those that were chosen."""
    mine = {name: value for name, value in chosen.items() if name in read["Parameters"]}
    return {**facts(read, stage), **mine, "Stage": stage.name}


def facts(read: Mapping[str, Any], stage: Stage) -> dict[str, str]:
    """The template's parameters that are facts, and what each is called in SSM."""
    known = read["Parameters"].items()
    told = [name for name, each in known if str(each["Type"]).startswith(_TOLD_BY_SSM)]
    return {name: stage.parameter(_kebab(name)) for name in told}


def refuse_unknown(chosen: Mapping[str, str], files: Iterable[Path]) -> None:
    """Raises LakegateError BAD_SETTING for a setting that none of the templates knows."""
    known = sorted({name for file in files for name in template.read(file)["Parameters"]})
    if unknown := sorted(set(chosen) - set(known)):
        message = f"there is no setting {', '.join(unknown)}; there are: {', '.join(known)}"
        raise LakegateError("BAD_SETTING", message)


def plan(site: Site, wanted: Wanted) -> Plan | None:
    """What would change; None where nothing would. Raises LakegateError."""
    source = site.artifacts.template(template.body(wanted.template))
    return site.stacks.plan(wanted.stack, source, wanted.parameters)


def bring(site: Site, wanted: Wanted) -> None:
    """Have the stack be what is wanted.

    Raises LakegateError: WOULD_LOSE_DATA before anything was changed, DEPLOYMENT_FAILED with
    CloudFormation's reasons.
    """
    planned = plan(site, wanted)
    if planned:
        try:
            refuse_losses(planned.changes)
        except LakegateError:
            site.stacks.discard(planned)
            raise
    if planned and _index_by_index(site, wanted):
        planned = plan(site, wanted)
    if planned:
        site.tell(f"deploying the stack {wanted.stack}: {len(planned.changes)} changes")
        site.stacks.carry_out(planned)
    else:
        site.tell(f"the stack {wanted.stack} is up to date: nothing to change")


def _index_by_index(site: Site, wanted: Wanted) -> bool:
    """Make a table's new indexes but the last of them; whether there were any to make."""
    if not site.stacks.exists(wanted.stack):
        return False
    between = steps(site.stacks.template(wanted.stack), wanted.template)
    for number, step in enumerate(between, 1):
        site.tell(f"a table's new indexes, one at a time: {number} of {len(between) + 1}")
        source = site.artifacts.template(template.body(step))
        planned = site.stacks.plan(wanted.stack, source, dict.fromkeys(step.get("Parameters", {})))
        if planned:
            site.stacks.carry_out(planned)
    return bool(between)


def bring_platform(site: Site, wanted: Wanted) -> None:
    """Have the platform's stack be what is wanted; raises as `bring` does.

    RDS does not let go of what is protected, so that a first deployment that fails could not be
    taken back: the first one makes the database without, and then gives it its protection.
    """
    if not site.stacks.exists(wanted.stack):
        free = {**wanted.parameters, "DeletionProtection": "false"}
        bring(site, replace(wanted, parameters=free))
    bring(site, wanted)


def _kebab(name: str) -> str:
    return re.sub("(?<=.)(?=[A-Z])", "-", name).lower()


# The app's stack together with the code that it runs.


def prepare(site: Site, package: Package) -> None:
    """Put code where a stack takes it from, and say which release of the job's it is.

    The job's code is there before a function names it, but for the very first time, when there is
    no lake bucket yet: then `complete` puts it there.
    """
    site.artifacts.put_code(package)
    site.artifacts.put_job(package)
    site.facts.put({JOB_RELEASE: package.job_release})


def deploy(site: Site, wanted: Wanted, package: Package) -> dict[str, str]:
    """Bring the app's stack to what is wanted; returns its outputs. Raises LakegateError."""
    prepare(site, package)
    bring(site, wanted)
    return complete(site, package)


def complete(site: Site, package: Package) -> dict[str, str]:
    """Put the job's code into the lake bucket that there is by now; returns the stack's outputs."""
    site.artifacts.put_job(package)
    return site.stacks.outputs(site.stage.stack)
