"""What a stage's parts tell each other through SSM parameters, `/lakegate/<stage>/…`."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.stage import Stage
from lakegate.errors import LakegateError

PLATFORM = ("nessie-uri", "emr-application-id", "subnet-a", "subnet-b", "function-security-group")
JOB_RELEASE = "job-release"
_AT_ONCE = 10  # names that GetParameters takes


class Facts:
    """A stage's facts: those of PLATFORM, and JOB_RELEASE."""

    def __init__(self, client: Any, stage: Stage) -> None:
        """`client` is boto3's `ssm` client."""
        self._client = client
        self._stage = stage

    def read(self, facts: Iterable[str]) -> dict[str, str]:
        """Those of the facts that are told. Raises LakegateError FACTS_UNAVAILABLE."""
        names = {self._stage.parameter(fact): fact for fact in facts}
        with _translated():
            every = list(names)
            pages = [every[i : i + _AT_ONCE] for i in range(0, len(every), _AT_ONCE)]
            found = [
                p for page in pages for p in self._client.get_parameters(Names=page)["Parameters"]
            ]
        return {names[each["Name"]]: each["Value"] for each in found}

    def put(self, facts: Mapping[str, str]) -> None:
        """Tell the facts. Raises LakegateError FACTS_UNAVAILABLE."""
        known = self.read(facts)
        with _translated():
            for fact, value in facts.items():
                if known.get(fact) != value:
                    name = self._stage.parameter(fact)
                    self._client.put_parameter(
                        Name=name, Value=value, Type="String", Overwrite=True
                    )


def check_platform(facts: Facts, stage: Stage) -> None:
    """Raises LakegateError NO_PLATFORM, with the commands that tell what is not told yet."""
    told = facts.read(PLATFORM)
    missing = [stage.parameter(fact) for fact in PLATFORM if fact not in told]
    if missing:
        commands = [
            f"    aws ssm put-parameter --type String --name {n} --value …" for n in missing
        ]
        message = "a platform of your own tells Lakegate its facts in SSM, and these are missing:"
        raise LakegateError("NO_PLATFORM", "\n".join([message, *commands]))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        message = f"cannot read or write the SSM parameters: {error}"
        raise LakegateError("FACTS_UNAVAILABLE", message) from error
