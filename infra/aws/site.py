"""A stage and the adapters that deploy it, wired once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from infra.aws.artifacts import Artifacts
from infra.aws.facts import PLATFORM, Facts
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


def has_own_platform(site: Site) -> bool:
    """Whether somebody else than Lakegate's platform stack told the platform's facts.

    So that a platform of one's own has to be claimed once only, and none is ever built beside it.
    """
    told = site.facts.read(PLATFORM)
    return len(told) == len(PLATFORM) and not site.stacks.exists(site.stage.platform_stack)
