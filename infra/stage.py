"""What is whose: every name that a stage's parts have, by convention."""

import re
from dataclasses import dataclass

from lakegate.errors import LakegateError

_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")


@dataclass(frozen=True)
class Stage:
    """A deployment of Lakegate: its name, and the AWS account and region that it is in."""

    name: str
    account: str
    region: str

    @property
    def stack(self) -> str:
        """The CloudFormation stack of template.yaml."""
        return f"lakegate-{self.name}"

    @property
    def platform_stack(self) -> str:
        """The CloudFormation stack of infra/platform.yml, which lives longer."""
        return f"lakegate-{self.name}-platform"

    @property
    def artifact_bucket(self) -> str:
        """Where the code and the templates are that CloudFormation reads."""
        return f"lakegate-{self.name}-artifacts-{self.account}"

    @property
    def lake_bucket(self) -> str:
        """Where tables, contracts, reports and the jobs' code are."""
        return f"lakegate-{self.name}-lake-{self.account}"

    def parameter(self, fact: str) -> str:
        """The SSM parameter with which the platform tells a fact, such as `nessie-uri`."""
        return f"/lakegate/{self.name}/{fact}"

    def token_secret(self, role: str) -> str:
        """The secret with the bearer token of one of Nessie's roles."""
        return f"lakegate/{self.name}/nessie/{role}"


def checked_name(name: str) -> str:
    """The stage's name. Raises LakegateError BAD_STAGE where it could not be part of others."""
    if not _NAME.fullmatch(name):
        message = f"{name!r} cannot be a stage's name: 1 to 20 of a-z, 0-9 and -, a letter first"
        raise LakegateError("BAD_STAGE", message)
    return name
