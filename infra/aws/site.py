"""A stage and the adapters that deploy it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from botocore.exceptions import BotoCoreError, ClientError

from infra.aws.artifacts import Artifacts
from infra.cloudformation import Stacks, Tell
from infra.stage import Stage, checked_name
from lakegate.errors import LakegateError

# Facts that a stage's parts share through SSM parameters, `/lakegate/<stage>/…`.

PLATFORM = ("nessie-uri", "emr-application-id", "subnet-a", "subnet-b", "function-security-group")
JOB_RELEASE = "job-release"
_AT_ONCE = 10  # the most names in a GetParameters request


class Facts:
    """A stage's facts: those of PLATFORM and JOB_RELEASE."""

    def __init__(self, client: Any, stage: Stage) -> None:
        """Use boto3's `ssm` client."""
        self._client = client
        self._stage = stage

    def read(self, facts: Iterable[str]) -> dict[str, str]:
        """Return the facts that are set. Raises LakegateError FACTS_UNAVAILABLE."""
        names = {self._stage.parameter(fact): fact for fact in facts}
        with _translated():
            every = list(names)
            pages = [every[i : i + _AT_ONCE] for i in range(0, len(every), _AT_ONCE)]
            found = [
                p for page in pages for p in self._client.get_parameters(Names=page)["Parameters"]
            ]
        return {names[each["Name"]]: each["Value"] for each in found}

    def put(self, facts: Mapping[str, str]) -> None:
        """Set the facts. Raises LakegateError FACTS_UNAVAILABLE."""
        known = self.read(facts)
        with _translated():
            for fact, value in facts.items():
                if known.get(fact) != value:
                    name = self._stage.parameter(fact)
                    self._client.put_parameter(
                        Name=name, Value=value, Type="String", Overwrite=True
                    )


def check_platform(facts: Facts, stage: Stage) -> None:
    """Raise LakegateError NO_PLATFORM with the commands that set the missing facts."""
    known = facts.read(PLATFORM)
    missing = [stage.parameter(fact) for fact in PLATFORM if fact not in known]
    if missing:
        commands = [
            f"    aws ssm put-parameter --type String --name {n} --value …" for n in missing
        ]
        message = "your own platform needs these SSM parameters; put them with:"
        raise LakegateError("NO_PLATFORM", "\n".join([message, *commands]))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        message = f"cannot read or write the SSM parameters: {error}"
        raise LakegateError("FACTS_UNAVAILABLE", message) from error


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
        stacks=Stacks(client("cloudformation"), tell),
        artifacts=Artifacts(client("s3"), stage),
        facts=Facts(client("ssm"), stage),
        client=client,
        tell=tell,
    )


def has_own_platform(site: Site) -> bool:
    """Return whether the platform's facts were set, but not by Lakegate's platform stack.

    An own platform has to be declared only once, and Lakegate never builds a second one.
    """
    known = site.facts.read(PLATFORM)
    return len(known) == len(PLATFORM) and not site.stacks.exists(site.stage.platform_stack)


# The caller's identity, account and region.


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


# A stage's choices for the template's parameters, in `stages/<stage>.yml`.


def choices(file: Path) -> dict[str, str]:
    """Return the parameters that a stage's file sets, none without a file. Raises LakegateError."""
    if not file.exists():
        return {}
    try:
        found = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise LakegateError("BAD_SETTING", f"{file} cannot be read: {error}") from error
    if not isinstance(found or {}, dict):
        raise LakegateError("BAD_SETTING", f"{file} must have names and values: SlackChannel: …")
    return {str(name): str(value) for name, value in (found or {}).items()}
