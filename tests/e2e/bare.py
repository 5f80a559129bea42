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

from infra import keys
from infra.aws.facts import Facts
from infra.local import ministack, parts, processes, settings
from infra.local.key_files import KeyFiles
from infra.stage import Stage

ROOT = Path(__file__).parents[2]
STAGE = Stage(settings.STAGE, ministack.ACCOUNT, ministack.REGION)


@dataclass(frozen=True)
class Cloud:
    """A ministack, a Nessie, EMR's stand-in and Slack's, by their addresses in `at`."""

    home: Path
    at: Mapping[str, str]
    tokens: Mapping[str, str]

    @property
    def settings(self) -> Path:
        """The stage's settings: what is not where AWS has it, and short times."""
        file = self.home / "stage.yml"
        file.write_text(json.dumps(settings.parameters(self.at)))
        return file

    def prepare(self) -> None:
        """Put what who has a platform already puts: its facts, and the secrets."""
        facts = Facts(ministack.client("ssm", self.at["ministack"]), STAGE)
        facts.put(settings.facts(self.at))
        secrets = ministack.client("secretsmanager", self.at["ministack"])
        for name, text in settings.secrets(self.tokens).items():
            secrets.create_secret(Name=name, SecretString=text)


@contextmanager
def ministack_alone(home: Path) -> Iterator[Callable[[str], Any]]:
    """An empty ministack; gives boto3's clients of its services."""
    every = parts.parts(home, ROOT, parts.choose_ports(home), "")
    part = every["ministack"]
    ministack.prepare(home, part.address, datetime.now(UTC))
    try:
        processes.start(home, part.command)
        part.wait(home)
        yield partial(ministack.client, endpoint=part.address)
    finally:
        processes.stop(home, part.name)


@contextmanager
def cloud(home: Path) -> Iterator[Cloud]:
    """A cloud that runs; this process's environment leads to it."""
    tokens = keys.keep(KeyFiles(home / "keys"), datetime.now(UTC)).tokens
    every = parts.parts(home, ROOT, parts.choose_ports(home), tokens["reader"])
    made = Cloud(home, {name: part.address for name, part in every.items()}, tokens)
    before = dict(os.environ)
    try:
        empty(made, every)
        os.environ.update(parts.aws_environment(made.at["ministack"], made.at["emr"]))
        yield made
    finally:
        os.environ.clear()
        os.environ.update(before)
        for name in reversed(list(every)):
            processes.stop(home, name)


def empty(made: Cloud, every: Mapping[str, parts.Part]) -> None:
    """Start what does not run, ministack and Nessie with nothing in them."""
    for name in ("nessie", "ministack"):
        processes.stop(made.home, name)
        shutil.rmtree(made.home / name, ignore_errors=True)
    ministack.prepare(made.home, made.at["ministack"], datetime.now(UTC))
    for part in every.values():
        if not processes.is_running(made.home, part.command):
            processes.start(made.home, part.command)
    for part in every.values():
        part.wait(made.home)
    made.prepare()
