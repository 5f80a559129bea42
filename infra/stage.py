"""The names of a stage's parts, by convention."""

import re
from dataclasses import dataclass

from lakegate.errors import LakegateError

# With it, an account and a region the longest name of a bucket has the 63 letters that S3 allows.
_NAME = re.compile(r"(?=.{1,18}$)[a-z][a-z0-9]*(-[a-z0-9]+)*")
# Stage `x` calls its second stack and its second EMR application so.
_TAKEN = ("-platform", "-shared")


@dataclass(frozen=True)
class Stage:
    """A deployment of Lakegate: its name, AWS account and region, and an existing lake bucket."""

    name: str
    account: str
    region: str
    lake: str = ""

    @property
    def stack(self) -> str:
        """Return the name of the CloudFormation stack of template.yaml."""
        return f"lakegate-{self.name}"

    @property
    def platform_stack(self) -> str:
        """Return the name of the CloudFormation stack of infra/platform.yml."""
        return f"lakegate-{self.name}-platform"

    @property
    def artifact_bucket(self) -> str:
        """Return the bucket with the code and the templates that CloudFormation reads."""
        return f"lakegate-{self.name}-code-{self.account}-{self.region}"

    @property
    def lake_bucket(self) -> str:
        """Return the bucket of tables, contracts, reports and the jobs' code."""
        return self.lake or f"lakegate-{self.name}-lake-{self.account}-{self.region}"

    @property
    def tags(self) -> dict[str, str]:
        """Return the tags of both stacks and of their resources, for the allocation of costs."""
        return {"project": "lakegate", "stage": self.name}

    def parameter(self, fact: str) -> str:
        """Return the SSM parameter of a fact about the platform, such as `nessie-uri`."""
        return f"/lakegate/{self.name}/{fact}"

    def token_secret(self, role: str) -> str:
        """Return the secret with the bearer token of one of Nessie's roles."""
        return f"lakegate/{self.name}/nessie/{role}"


def checked_name(name: str) -> str:
    """Return the stage's name. Raises LakegateError BAD_STAGE if no other name may contain it."""
    if not _NAME.fullmatch(name):
        message = (
            f"{name!r} cannot be a stage's name: 1 to 18 of a-z, 0-9 and single -, a letter first"
        )
        raise LakegateError("BAD_STAGE", message)
    if name.endswith(_TAKEN):
        message = f"{name!r} cannot be a stage's name: another stage may have parts of that name"
        raise LakegateError("BAD_STAGE", f"{message}\nchoose one that does not end so")
    return name
