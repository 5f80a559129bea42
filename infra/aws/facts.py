"""Facts that a stage's parts share through SSM parameters, `/lakegate/<stage>/…`."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from infra.cloudformation import translated
from infra.stage import Stage
from lakegate.errors import LakegateError

PLATFORM = (
    *("nessie-uri", "emr-application-id", "emr-shared-application-id"),
    *("subnet-a", "subnet-b", "function-security-group"),
)
# What `lakegate deploy` writes down: the job's release, whom Nessie's clients trust, and the
# certificate that it made.
JOB_RELEASE, NESSIE_CA, CERTIFICATE = "job-release", "nessie-ca", "nessie-certificate"


class Facts:
    """A stage's facts: those of PLATFORM, and what a deployment writes down."""

    def __init__(self, client: Any, stage: Stage) -> None:
        """Use boto3's `ssm` client."""
        self._client = client
        self._stage = stage

    def read(self, facts: Iterable[str]) -> dict[str, str]:
        """Return the facts that are set. Raises LakegateError FACTS_UNAVAILABLE."""
        names = {self._stage.parameter(fact): fact for fact in facts}
        with _using_ssm():
            parameters = self._client.get_parameters(Names=list(names))["Parameters"]
        return {names[each["Name"]]: each["Value"] for each in parameters}

    def put(self, facts: Mapping[str, str]) -> None:
        """Set the facts. Raises LakegateError FACTS_UNAVAILABLE."""
        known = self.read(facts)
        with _using_ssm():
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


def _using_ssm() -> AbstractContextManager[None]:
    return translated("FACTS_UNAVAILABLE", "cannot read or write the SSM parameters")
