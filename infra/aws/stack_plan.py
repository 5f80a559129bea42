"""Plan and deploy stacks without losing data."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from botocore.waiter import WaiterModel, create_waiter_with_client

from infra import template
from infra.aws import emr
from infra.aws.facts import JOB_RELEASE
from infra.aws.losses import refuse_losses
from infra.aws.site import Site
from infra.aws.table_indexes import SETTLED, TABLE, steps
from infra.cloudformation import Plan, translated
from infra.package import Package
from infra.stack_spec import StackSpec, parameters
from lakegate.errors import LakegateError

_STOP_SECONDS = 3600.0


def app(file: Path, site: Site, package: Package, chosen: Mapping[str, str]) -> StackSpec:
    """Return the stack of template.yaml with the package's code; the stage sets `chosen`."""
    read = template.with_code(template.read(file), site.artifacts.code_address(package))
    return StackSpec(site.stage.stack, read, parameters(read, site.stage, chosen))


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
    model = WaiterModel({"version": 2, "waiters": {"IndexesSettled": SETTLED}})
    waiter = create_waiter_with_client("IndexesSettled", model, client)
    with translated("DEPLOYMENT_FAILED", "a table's index is not ready: run this again to go on"):
        for each in site.stacks.resources(stack):
            if each.type == TABLE:
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
