"""Take what survived a deleted stack into the next one.

`lakegate destroy` reduces a stack to what holds data. Any other way to delete one, such as
`osls remove`, leaves the buckets, the ledger and the logs without a stack, and their names taken.
So does an older release with the logs of functions that it does not have.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from infra import template
from infra.aws.site import Site
from infra.cloudformation import Existing, translated
from infra.stack_spec import StackSpec, filled
from infra.template import NAMED_BY, RETAINED, Template
from lakegate.errors import LakegateError

_TABLE = "AWS::DynamoDB::Table"
_INDEXES = "GlobalSecondaryIndexes"
_LOGS = "AWS::Logs::LogGroup"


def find(site: Site, wanted: StackSpec) -> list[Existing]:
    """Return what the stack does not have and could not create, as it is there already."""
    deployed, stage = _deployed(site, wanted.stack).get("Resources", {}), site.stage
    known = {"Stage": stage.name, "AWS::AccountId": stage.account, "AWS::Region": stage.region}
    kept = [
        Existing(name, resource["Type"], by, filled(resource["Properties"][by], known))
        for name, resource in wanted.template["Resources"].items()
        if resource.get("DeletionPolicy") in RETAINED
        and name not in deployed
        and (by := NAMED_BY.get(resource["Type"]))
    ]
    with translated("ADOPTION_FAILED", "cannot look for what an earlier stack left"):
        return [each for each in kept if _is_there(site, each)]


def adopt(site: Site, wanted: StackSpec) -> None:
    """Take into the stack, or create it from, what is there already. Raises LakegateError."""
    kept = find(site, wanted)
    if not kept:
        return
    data = ", ".join(each.id for each in kept if each.type != _LOGS)
    site.tell(f"an earlier deployment left {data or 'its logs'}: the stack takes them back")
    deployed = _deployed(site, wanted.stack)
    left = _as_it_is(site, template.alone(wanted.template, {each.name for each in kept}), kept)
    left = _beside(deployed, left)
    values = {**wanted.parameters, **dict.fromkeys(deployed.get("Parameters", {}))}
    parameters = {name: value for name, value in values.items() if name in left["Parameters"]}
    source = site.artifacts.template(template.body(left))
    planned = site.stacks.plan(wanted.stack, source, parameters, kept)
    if planned is None:
        raise LakegateError("ADOPTION_FAILED", f"the stack {wanted.stack} takes nothing back")
    site.stacks.carry_out(planned)


def _deployed(site: Site, stack: str) -> Template:
    """Return the stack's template, an empty one without a stack."""
    return site.stacks.template(stack) if site.stacks.exists(stack) else {}


def _beside(deployed: Template, left: Template) -> Template:
    """Return the deployed template with what another one has more; it changes nothing itself."""
    parts = {
        part: {**left.get(part, {}), **deployed.get(part, {})}
        for part in ("Parameters", "Conditions", "Resources")
    }
    return {**left, **deployed, **{name: part for name, part in parts.items() if part}}


def _as_it_is(site: Site, left: Template, existing: Iterable[Existing]) -> Template:
    """Return the template without outputs, and with the indexes that the tables have.

    CloudFormation neither makes outputs nor changes indexes while it takes resources in.
    """
    resources = dict(left["Resources"])
    for each in existing:
        if each.type == _TABLE:
            table = resources[each.name]
            there = site.client("dynamodb").describe_table(TableName=each.id)["Table"]
            resources[each.name] = {**table, "Properties": _indexed(table["Properties"], there)}
    return {k: v for k, v in left.items() if k != "Outputs"} | {"Resources": resources}


def _indexed(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table's properties with the indexes that it has, wanted or not."""
    names = ("IndexName", "KeySchema", "Projection")
    indexes = [{k: each[k] for k in names} for each in there.get(_INDEXES, [])]
    kept = {name: value for name, value in wanted.items() if name != _INDEXES}
    kept |= {_INDEXES: indexes} if indexes else {}
    return kept | {"AttributeDefinitions": there["AttributeDefinitions"]}


def _is_there(site: Site, each: Existing) -> bool:
    match each.type:
        case "AWS::S3::Bucket":
            return site.artifacts.has_bucket(each.id)
        case "AWS::DynamoDB::Table":
            return _has_table(site.client("dynamodb"), each.id)
        case _:
            groups = site.client("logs").describe_log_groups(logGroupNamePrefix=each.id)
            return each.id in [group["logGroupName"] for group in groups["logGroups"]]


def _has_table(client: Any, name: str) -> bool:
    try:
        client.describe_table(TableName=name)
    except client.exceptions.ResourceNotFoundException:
        return False
    return True
