"""The local stack's parts: their ports, their commands and their health."""

import json
import secrets
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from infra import lambda_python
from infra.local import ministack, processes, settings
from infra.local.nessie_server import nessie_answers, nessie_command
from infra.local.processes import Command
from lakegate.errors import LakegateError

# In the order of their start.
NAMES = ("ministack", "nessie", "emr", "slack")
_SECONDS_TO_START = 300.0  # on a busy machine; a part that dies is noticed at once
_OWN_PORTS = (*NAMES, "nessie_management")
_EMR_FLAGS = (
    *("--application-id", settings.APPLICATION),
    *("--shared-application-id", settings.SHARED_APPLICATION),
    *("--event-source", settings.EVENT_SOURCE),
    *("--prewarm", "--iam"),
    *("--drivers", "2"),
    # A usual run ends sooner than another driver starts, so that one JVM is mostly enough.
    *("--patience-seconds", "5"),
)
# Below the ports of outgoing connections.
_PORTS = range(20000, 32000)


@dataclass(frozen=True)
class Part:
    """One process of the stack; `answers` returns whether it serves requests."""

    command: Command
    address: str
    answers: Callable[[], bool]

    @property
    def name(self) -> str:
        """Return the part's name, which its log file has, too."""
        return self.command.part

    def wait(self, home: Path) -> None:
        """Wait until it answers. Raises LakegateError with the end of its log."""
        processes.wait_until(home, self.name, self.answers, _SECONDS_TO_START)


def parts(home: Path, root: Path, ports: dict[str, int], reader_token: str) -> dict[str, Part]:
    """Return all parts of the stack at `home` on these ports, run from the checkout at `root`."""
    at = {name: _address(port) for name, port in ports.items()}
    warehouse = f"s3://{settings.LAKE_BUCKET}/warehouse"
    aws = root / lambda_python.ENVIRONMENT / "bin" / "python"
    if not aws.exists():
        raise LakegateError("NOT_SET_UP", f"{aws} is not there: run `make setup`")
    commands = (
        ministack.command(home, aws, ports["ministack"]),
        nessie_command(
            home, ports["nessie"], ports["nessie_management"], at["ministack"], warehouse
        ),
        _stand_in(home, root, "emr", ports, *_EMR_FLAGS),
        _stand_in(home, root, "slack", ports),
    )
    checks: dict[str, Callable[[], bool]] = {
        "ministack": lambda: ministack.answers(at["ministack"]),
        "nessie": lambda: nessie_answers(at["nessie"], reader_token),
        "emr": lambda: processes.answers(f"{at['emr']}/_health"),
        "slack": lambda: processes.answers(f"{at['slack']}/messages"),
    }
    return {c.part: Part(c, at[c.part], checks[c.part]) for c in commands}


def aws_environment(endpoint: str, emr: str) -> dict[str, str]:
    """Return the variables that point boto3 to the local stack."""
    return {
        **ministack.CREDENTIALS,
        "AWS_REGION": ministack.REGION,
        "AWS_DEFAULT_REGION": ministack.REGION,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ENDPOINT_URL_EMR_SERVERLESS": emr,
    }


def choose_ports(home: Path) -> dict[str, int]:
    """Return a port for each server: the last one, unless another process uses it."""
    known = known_ports(home)
    ports: dict[str, int] = {}
    for name in _OWN_PORTS:
        part = name.partition("_")[0]
        if name in known and (processes.running(home, part) or _is_free(known[name])):
            ports[name] = known[name]
        else:
            ports[name] = free_port({*known.values(), *ports.values()})
    new = home / "ports.json.new"  # a full disk must leave the last ones
    new.write_text(json.dumps(ports))
    new.replace(home / "ports.json")
    return ports


def known_ports(home: Path) -> dict[str, int]:
    """Return the ports that were last chosen, if any."""
    file = home / "ports.json"
    return dict(json.loads(file.read_text())) if file.exists() else {}


def _stand_in(home: Path, root: Path, name: str, ports: dict[str, int], *more: str) -> Command:
    flags = ("--port", str(ports[name]), "--home", str(home / name), *more)
    environment = aws_environment(_address(ports["ministack"]), _address(ports["emr"]))
    return Command(name, (sys.executable, "-m", f"infra.local.{name}", *flags), root, environment)


def _address(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def free_port(taken: set[int]) -> int:
    """Return a free port that is not in `taken`."""
    while True:
        port = secrets.choice(_PORTS)
        if port not in taken and _is_free(port):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
