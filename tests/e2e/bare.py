"""Empty clouds to deploy to: ministack and Nessie with nothing but what a user puts there."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from access import deployment
from infra import nessie_tokens
from infra.aws.site import Facts
from infra.cloudformation import Stacks
from infra.local import ministack, parts, processes, settings, stack
from infra.local.ministack import KeyFiles
from infra.stage import Stage
from tests.e2e.conftest import Gate
from tests.waiting import PATIENCE

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
        """The parts' addresses."""
        return {name: part.address for name, part in self.parts.items()}

    @property
    def settings(self) -> str:
        """The stage's settings, in YAML: what is not where AWS has it, and short times."""
        chosen = settings.parameters(self.at)
        return "".join(f"{name}: {json.dumps(value)}\n" for name, value in chosen.items())

    @property
    def stacks(self) -> Stacks:
        return Stacks(ministack.client("cloudformation", self.at["ministack"]))

    def gate(self) -> Gate:
        """What was deployed, to look at."""
        outputs = self.stacks.outputs(STAGE.stack)
        deployed = stack.described(self.at, outputs, self.tokens["reader"])
        stack.write(self.home, deployed)
        return Gate(self.home, deployment.of_stack(deployed).adapters())

    def empty(self) -> None:
        """Have nothing there but what a user puts there who has a platform; Spark stays warm."""
        for name in ("nessie", "ministack"):
            processes.stop(self.home, name)
            shutil.rmtree(self.home / name, ignore_errors=True)
        ministack.prepare(self.home, self.at["ministack"], datetime.now(UTC))
        for part in self.parts.values():
            if not processes.is_running(self.home, part.command):
                processes.start(self.home, part.command)
        for part in self.parts.values():
            part.wait(self.home)
        self._prepare()

    def _prepare(self) -> None:
        """Put what who has a platform already puts: its facts, and the secrets."""
        facts = Facts(ministack.client("ssm", self.at["ministack"]), STAGE)
        facts.put(settings.facts(self.at))
        secrets = ministack.client("secretsmanager", self.at["ministack"])
        for name, text in settings.secrets(self.tokens).items():
            secrets.create_secret(Name=name, SecretString=text)


@contextmanager
def ministack_alone(home: Path) -> Iterator[Callable[[str], Any]]:
    """An empty ministack; gives boto3's clients of its services."""
    port = parts.choose_ports(home)["ministack"]
    address = f"http://127.0.0.1:{port}"
    command = ministack.command(home, ROOT / ".venv-ministack/bin/python", port)
    ministack.prepare(home, address, datetime.now(UTC))
    try:
        processes.start(home, command)
        processes.wait_until(home, command.part, lambda: ministack.answers(address), PATIENCE)
        yield partial(ministack.client, endpoint=address)
    finally:
        processes.stop(home, command.part)


@contextmanager
def cloud(home: Path) -> Iterator[Cloud]:
    """A cloud that runs once it is emptied; this process's environment leads to it."""
    tokens = nessie_tokens.keep(KeyFiles(home / "keys"), datetime.now(UTC)).tokens
    every = parts.parts(home, ROOT, parts.choose_ports(home), tokens["reader"])
    made = Cloud(home, every, tokens)
    before = dict(os.environ)
    try:
        os.environ.update(parts.aws_environment(made.at["ministack"], made.at["emr"]))
        yield made
    finally:
        os.environ.clear()
        os.environ.update(before)
        for name in reversed(list(every)):
            processes.stop(home, name)
