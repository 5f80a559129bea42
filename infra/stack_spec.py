"""A stack as it is to be: its name, its template, and its parameters."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from infra import template
from infra.cloudformation import Change
from infra.stage import Stage
from infra.template import Template
from lakegate.errors import LakegateError
from lakegate.job.workers import bounds

_FROM_SSM = "AWS::SSM::Parameter::Value<"
_IN_REGION = re.compile(r"arn:[^:]+:[^:]+:([a-z0-9-]+):")
_FUNCTION = "AWS::Serverless::Function"
_MOST_SETTINGS = 4096  # bytes of a function's environment as JSON (AWS Lambda, "Lambda quotas")
_QUEUES = {"Fn::Sub": "https://sqs.${AWS::Region}.amazonaws.com/${AWS::AccountId}/"}
_NAMED_BY = {**template.NAMED_BY, "AWS::SQS::Queue": "QueueName"}
_RANDOM = "0123456789ab"  # which CloudFormation adds to a role's name
_PLACEHOLDER = re.compile(r"\$\{([^}]+)\}")


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


def refuse_unfit(
    stage: Stage, chosen: Mapping[str, str], app: Path, platform: Path, authority: str = ""
) -> None:
    """Raise LakegateError BAD_SETTING for values that AWS would refuse in the midst of all.

    Functions have the `authority` of Nessie's certificate among their settings.
    """
    read = template.read(app)
    faults = [*template.unfit(read, chosen), *template.unfit(template.read(platform), chosen)]
    faults = [*dict.fromkeys(faults), *_elsewhere(stage, chosen), *_own(read, stage, chosen)]
    faults = faults or [*_unfit_together({**template.defaults(read), **chosen})]
    if faults := [*faults, *_too_long(read, stage, chosen, authority)]:
        raise LakegateError("BAD_SETTING", "\n".join(faults))


def _unfit_together(known: Mapping[str, str]) -> Iterator[str]:
    """Yield the settings that fit, but not each other; Lambda polls no queue with such a time."""
    hidden, timeout = known["VisibilityTimeout"], known["FunctionTimeout"]
    if int(hidden) < int(timeout):
        least = f"{timeout} (FunctionTimeout) at least, better six times that"
        yield f"VisibilityTimeout is {hidden!r}: it must be {least}"
    memory, cores = known["JobWorkerMemory"], int(known["JobWorkerCores"])
    low, high = bounds(cores)  # a tenth comes to the JVM's memory
    if not low <= ceil(int(memory[:-1]) * 11 / 10) <= high:
        wanted = f"{low} to {high} GB with a tenth more, as JobWorkerCores is {cores}"
        yield f"JobWorkerMemory is {memory!r}: it must be {wanted}"


def _elsewhere(stage: Stage, chosen: Mapping[str, str]) -> Iterator[str]:
    """Yield the settings that name something of another region, which no service would take."""
    for name, value in chosen.items():
        for arn in value.split(","):
            named = _IN_REGION.match(arn.strip())
            if named and named[1] != stage.region:
                yield f"{name} is in {named[1]}, and the stage in {stage.region}: name one there"


def _own(read: Template, stage: Stage, chosen: Mapping[str, str]) -> Iterator[str]:
    """Yield the stage's buckets that are named as others': what it writes would land there."""
    lake = chosen.get("LakeBucketName") or stage.lake_bucket
    own = {lake, stage.artifact_bucket, _references(read, stage, chosen)["LandingBucket"]}
    named = [arn.rpartition(":")[2] for arn in chosen.get("LandingBucketArns", "").split(",")]
    for bucket in sorted(own.intersection(named)):
        yield f"LandingBucketArns has {bucket!r}, a bucket of the stage itself: take it out"


def _too_long(
    read: Template, stage: Stage, chosen: Mapping[str, str], authority: str
) -> Iterator[str]:
    """Yield a function whose settings are longer than Lambda takes, if any, and what to do."""
    known = {**_references(read, stage, chosen), "NessieCa": authority}
    for each in read["Resources"].values():
        if each["Type"] == _FUNCTION:
            variables = each["Properties"]["Environment"]["Variables"]
            said = {name: filled(value, known) for name, value in variables.items()}
            size = len(json.dumps(said, separators=(",", ":")))
            mine = chosen.keys() & set(template.references(variables))
            longest = sorted(mine, key=lambda name: -len(chosen[name]))[:2]
            if size > _MOST_SETTINGS:
                yield (
                    f"the settings of {filled(each['Properties']['FunctionName'], known)} have"
                    f" {size:,} bytes, and Lambda takes {_MOST_SETTINGS:,}: shorten"
                    f" {' or '.join(longest)}"
                )
                return  # most functions have the same ones


def _references(read: Template, stage: Stage, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return what references become, facts and roles about: they are known to AWS alone."""
    here = {"Region": stage.region, "AccountId": stage.account, "NoValue": ""}
    known = {**template.defaults(read), **parameters(read, stage, chosen)}
    known |= {f"AWS::{name}": text for name, text in here.items()}
    for name, each in read["Resources"].items():
        by = _NAMED_BY.get(each["Type"], "")
        own = filled(each["Properties"][by], known) if by else f"{stage.stack}-{name}-{_RANDOM}"
        known[name] = (filled(_QUEUES, known) if by == "QueueName" else "") + own
    return known


def filled(value: Any, known: Mapping[str, str]) -> str:
    """Return what a value becomes; of two that a condition chooses between the longer."""
    match value:
        case {"Ref": str(name)}:
            return known[name]
        case {"Fn::GetAtt": [str(name), "Arn"]}:
            return f"arn:aws:iam::{known['AWS::AccountId']}:role/{known[name]}"
        case {"Fn::If": [_, *both]}:
            return max((filled(each, known) for each in both), key=len)
        case {"Fn::Sub": [str(text), dict(own)]}:
            more = {name: filled(each, known) for name, each in own.items()}
            return filled({"Fn::Sub": text}, {**known, **more})
        case {"Fn::Sub": str(text)}:
            return _PLACEHOLDER.sub(lambda found: known[found[1]], text)
    return str(value)


def is_production(chosen: Mapping[str, str]) -> bool:
    """Return whether the settings are those of a production stage.

    Raises LakegateError BAD_SETTING if nobody would hear of its alarms.
    """
    production = chosen.get("Profile") == "production"
    if production and not chosen.get("AlarmEmail"):
        message = "a production stage needs AlarmEmail: someone must hear of its alarms"
        raise LakegateError("BAD_SETTING", message)
    return production


def _kebab(name: str) -> str:
    return re.sub("(?<=.)(?=[A-Z])", "-", name).lower()
