"""A stage and the adapters that deploy it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from botocore.exceptions import BotoCoreError, ClientError

from infra.aws.artifacts import Artifacts
from infra.aws.facts import PLATFORM, Facts
from infra.cloudformation import Stacks, Tell
from infra.stage import Stage, checked_name
from lakegate.errors import LakegateError

# Returns boto3's client of a service.
Client = Callable[[str], Any]


@dataclass(frozen=True)
class Site:
    """The adapters that deploy a stage; `tell` reports the progress."""

    stage: Stage
    stacks: Stacks
    artifacts: Artifacts
    facts: Facts
    client: Client
    tell: Tell


def connect(stage: Stage, client: Client, tell: Tell) -> Site:
    """Return the adapters of a stage."""
    return Site(
        stage=stage,
        stacks=Stacks(client("cloudformation"), tell, stage.tags),
        artifacts=Artifacts(client("s3"), stage),
        facts=Facts(client("ssm"), stage),
        client=client,
        tell=tell,
    )


def has_own_platform(site: Site) -> bool:
    """Return whether the platform's facts were set, but not by Lakegate's platform stack.

    An own platform has to be declared only once, and Lakegate never builds a second one, also if a
    new release needs one fact more: `check_platform` asks for that.
    """
    known = site.facts.read(PLATFORM)
    return bool(known) and not site.stacks.exists(site.stage.platform_stack)


def stage_here(name: str, session: Any, tell: Callable[[str], None]) -> Stage:
    """Return the stage `name` in the account and region of boto3's `session`, and report both.

    Raises LakegateError BAD_STAGE, NO_REGION or NO_CREDENTIALS.
    """
    checked_name(name)
    if not session.region_name:
        message = "no AWS region is set: set AWS_DEFAULT_REGION, or `region` in ~/.aws/config"
        raise LakegateError("NO_REGION", message)
    try:
        caller = session.client("sts").get_caller_identity()
    except (ClientError, BotoCoreError) as error:
        message = f"AWS does not know you: {error}; try `aws sts get-caller-identity`"
        raise LakegateError("NO_CREDENTIALS", message) from error
    stage = Stage(name, caller["Account"], session.region_name)
    where = f"account {stage.account}, region {stage.region}"
    tell(f"stage {name} in {where}, as {caller['Arn']}")
    return stage


def choices(file: Path) -> dict[str, str]:
    """Return the parameters that a stage's file sets, none without a file. Raises LakegateError."""
    if not file.exists():
        return {}
    try:
        parameters = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise LakegateError("BAD_SETTING", f"{file} cannot be read: {error}") from error
    if not isinstance(parameters or {}, dict):
        raise LakegateError("BAD_SETTING", f"{file} must have names and values: SlackChannel: …")
    return {str(name): _text(file, name, value) for name, value in (parameters or {}).items()}


def _text(file: Path, name: object, value: object) -> str:
    """Return a setting as a template takes it."""
    if value is None:
        message = f"{file}: {name} has no value; quote one that begins with #, or remove the line"
        raise LakegateError("BAD_SETTING", message)
    return str(value).lower() if isinstance(value, bool) else str(value)
