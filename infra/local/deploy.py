"""Puts the project's template and code onto ministack, as `lakegate deploy` puts them onto AWS."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from infra.aws.app import App
from infra.aws.app import deploy as deploy_app
from infra.aws.site import connect
from infra.cloudformation import Tell
from infra.local import ministack
from infra.package import Package
from infra.stage import Stage


def put_facts(endpoint: str, facts: Mapping[str, str]) -> None:
    """Have each SSM parameter hold its value."""
    parameters = ministack.client("ssm", endpoint)
    for name, value in facts.items():
        parameters.put_parameter(Name=name, Value=value, Type="String", Overwrite=True)


def deploy(
    endpoint: str,
    stage: str,
    template: Path,
    package: Package,
    parameters: Mapping[str, str],
    tell: Tell = lambda _: None,
) -> dict[str, str]:
    """Bring a stage's stack to what template, code and parameters say; returns its outputs.

    Raises LakegateError with CloudFormation's reasons when that fails.
    """
    named = Stage(stage, ministack.ACCOUNT, ministack.REGION)
    site = connect(named, partial(ministack.client, endpoint=endpoint), tell)
    return deploy_app(site, App.of(template, named, package, parameters))


def environment(endpoint: str, function: str) -> dict[str, str]:
    """The settings that a deployed function has."""
    found = ministack.client("lambda", endpoint).get_function_configuration(FunctionName=function)
    return dict(found["Environment"]["Variables"])
