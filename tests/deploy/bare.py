"""A cloud to deploy to: an account, Nessie, EMR and Slack, with a user's prerequisites."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

from access.deployment.choice import stack_deployment
from infra.aws.facts import Facts
from infra.cloudformation import Stacks
from infra.local import ministack, parts, processes, settings, stack, stack_file
from infra.local.ministack import KeyFiles
from infra.stage import Stage
from lakegate import nessie_tokens
from tests.deploy.account import Account
from tests.e2e.conftest import Gate

ROOT = Path(__file__).parents[2]
STAGE = Stage(settings.STAGE, ministack.ACCOUNT, ministack.REGION)


@dataclass(frozen=True)
class Cloud:
    """A ministack, a Nessie, EMR's stand-in and Slack's, and the roles' tokens."""

    home: Path
    parts: Mapping[str, parts.Part]
    tokens: Mapping[str, str]

    @property
    def at(self) -> dict[str, str]:
        """Return the parts' addresses."""
        return {name: part.address for name, part in self.parts.items()}

    @property
    def settings(self) -> str:
        """Return the stage's settings as YAML: addresses other than AWS's, and short times.

        A message is hidden for as long as a function may run, as AWS wants.
        """
        chosen = {**settings.parameters(self.at), "VisibilityTimeout": "60"}
        return "".join(f"{name}: {json.dumps(value)}\n" for name, value in chosen.items())

    @property
    def stacks(self) -> Stacks:
        return Stacks(ministack.client("cloudformation", self.at["ministack"]))

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Point this process's environment to the cloud."""
        aws = parts.aws_environment(self.at["ministack"], self.at["emr"])
        with mock.patch.dict(os.environ, aws):
            yield

    def gate(self) -> Gate:
        """Return the deployed stack for tests."""
        outputs = self.stacks.outputs(STAGE.stack)
        deployed = stack.described(self.at, outputs, self.tokens["reader"])
        stack_file.write(self.home, deployed)
        return Gate(self.home, stack_deployment(deployed).adapters())

    def prepare(self) -> None:
        """Store the facts and the secrets of an existing platform, as its owner does."""
        facts = Facts(ministack.client("ssm", self.at["ministack"]), STAGE)
        facts.put(settings.facts(self.at))
        secrets = ministack.client("secretsmanager", self.at["ministack"])
        for name, text in settings.secrets(self.tokens).items():
            secrets.create_secret(Name=name, SecretString=text)


@contextmanager
def cloud(account: Account) -> Iterator[Cloud]:
    """Yield a cloud that is ready to deploy to.

    Its account has other stages; of this stage it has only the facts and secrets of the platform.
    """
    home = account.home
    tokens = nessie_tokens.keep(KeyFiles(home / "keys"), datetime.now(UTC)).tokens
    every = parts.parts(home, ROOT, parts.choose_ports(home), tokens["reader"])
    made = Cloud(home, every, tokens)
    own = [part for name, part in every.items() if name != "ministack"]
    try:
        for part in own:
            processes.start(home, part.command)
        for part in every.values():
            part.wait(home)
        made.prepare()
        yield made
    finally:
        for part in reversed(own):
            processes.stop(home, part.name)
