"""A stage and the adapters that deploy it, wired once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from infra.aws.artifacts import Artifacts
from infra.aws.facts import Facts
from infra.cloudformation import Stacks, Tell
from infra.stage import Stage

# boto3's client of a service.
Client = Callable[[str], Any]


@dataclass(frozen=True)
class Site:
    """Where a stage is deployed; `tell` hears what is being done."""

    stage: Stage
    stacks: Stacks
    artifacts: Artifacts
    facts: Facts
    client: Client
    tell: Tell


def connect(stage: Stage, client: Client, tell: Tell) -> Site:
    """The adapters of a stage."""
    return Site(
        stage=stage,
        stacks=Stacks(client("cloudformation"), tell),
        artifacts=Artifacts(client("s3"), stage),
        facts=Facts(client("ssm"), stage),
        client=client,
        tell=tell,
    )
