"""Deploy the project's template and code to ministack, as `lakegate deploy` does to AWS."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from infra.aws import stack_plan
from infra.aws.site import connect
from infra.cloudformation import Tell
from infra.local import ministack
from infra.package import Package
from infra.stage import Stage


def deploy(
    endpoint: str,
    stage: str,
    template: Path,
    package: Package,
    facts: Mapping[str, str],
    chosen: Mapping[str, str],
    tell: Tell = lambda _: None,
) -> dict[str, str]:
    """Deploy a stage's stack and return its outputs.

    `facts` are the platform's, `chosen` are parameters of the template. Raises LakegateError with
    CloudFormation's reasons.
    """
    named = Stage(stage, ministack.ACCOUNT, ministack.REGION)
    site = connect(named, partial(ministack.client, endpoint=endpoint), tell)
    site.facts.put(facts)
    return stack_plan.deploy(site, stack_plan.app(template, site, package, chosen), package)


def environment(endpoint: str, function: str) -> dict[str, str]:
    """Return the settings of a deployed function."""
    found = ministack.client("lambda", endpoint).get_function_configuration(FunctionName=function)
    return dict(found["Environment"]["Variables"])
