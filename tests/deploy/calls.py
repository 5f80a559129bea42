"""The calls of commands that deploy, and those that CloudFormation makes for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

RECORD = Path(__file__).with_name("deployer_calls.txt")


class Call(NamedTuple):
    """An action on a resource, with an `own` or a `given` platform, by a `command` or another."""

    platform: str
    by: str
    action: str
    resource: str

    def __str__(self) -> str:
        return " ".join(self)


def recorded() -> Iterator[Call]:
    """Yield the calls on record; lines that begin with # are comments."""
    for line in RECORD.read_text().splitlines():
        if line and not line.startswith("#"):
            yield Call(*line.split())
