"""The platform's stack with TLS: Nessie verifies its database and sends catalogs to https.

The PostgreSQL of the tests is built without TLS, so a server that speaks TLS stands before it.
"""

import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from functions.adapters.nessie import Catalog
from infra.local import processes
from infra.local.nessie_server import S3
from infra.stage import Stage
from lakegate.nessie_tokens import Keys
from tests import postgres
from tests.certificates import Authority, encrypted
from tests.deploy.platform import NESSIE, ROOT, Platforms
from tests.deploy.test_platform_deployed import Server, begun, started
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack

_TRUSTED = "quarkus.http.proxy.trusted-proxies"
_CA = "LAKEGATE_DATABASE_CA"


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Return the authority that signs the database's certificate."""
    return Authority("Database CA")


@pytest.fixture(scope="module")
def stage(aws: Platforms, keys: Keys, authority: Authority) -> Stage:
    """Return a stage that knows its database's authority."""
    return aws.deploy(
        "tls",
        NessiePublicKey=keys.public_key,
        DatabaseCa=authority.pem,
    )


@pytest.fixture(scope="module")
def container(
    aws: Platforms, stage: Stage, home: Path, authority: Authority
) -> Iterator[dict[str, str]]:
    """Yield the container's environment, with a database of this machine under the same options."""
    certificate = authority.certify("localhost", home / "server.pem")
    with (
        postgres.running(home, ROOT / ".venv-deploy") as database,
        encrypted(database.port, certificate) as port,
    ):
        yield {**_here(aws.container(stage), f"localhost:{port}"), **_storage(aws)}


def test_the_stack_says_https(aws: Platforms, stage: Stage) -> None:
    """The address in SSM is https and has the certificate's name, which the zone resolves."""
    fact = aws.client("ssm").get_parameter(Name=stage.parameter("nessie-uri"))
    assert fact["Parameter"]["Value"] == f"https://{NESSIE}:19120"
    assert {"NessieZone", "NessieAddress"} <= aws.resources(stage).keys()


@pytest.fixture(scope="module")
def server(home: Path, keys: Keys, container: dict[str, str]) -> Iterator[Server]:
    """Yield Nessie as the container runs it; this machine is the trusted load balancer."""
    own = {_TRUSTED: "127.0.0.1"}
    yield started(home, keys.tokens, {"verified": container | own})["verified"]
    processes.stop(home, "verified")


def test_nessie_verifies_its_database(container: dict[str, str], server: Server) -> None:
    """With its authority's certificate Nessie stores commits in the database, by TLS alone."""
    assert "sslmode=verify-full" in container["quarkus.datasource.postgresql.jdbc.url"]
    assert Catalog(server.uri, server.tokens["publisher"]).begin("ops")


def test_nessie_sends_catalogs_to_https(container: dict[str, str], server: Server) -> None:
    """The catalog's address is the one by which the load balancer was called.

    Another client's claim that it came by TLS is not believed.
    """
    assert container[_TRUSTED] == "10.42.0.0/16"
    assert _catalog(server, "127.0.0.1") == f"https://{NESSIE}:19120/iceberg/"
    assert _catalog(server, "127.0.0.2").startswith("http://")


def _catalog(server: Server, client: str) -> str:
    """Return the catalog's address in the answer to a load balancer with the address `client`."""
    headers = {
        "Authorization": f"Bearer {server.tokens['reader']}",
        "Host": f"{NESSIE}:19120",
        "X-Forwarded-For": "10.42.0.9",
        "X-Forwarded-Port": "19120",
        "X-Forwarded-Proto": "https",
    }
    connection = HTTPConnection(urlsplit(server.uri).netloc, source_address=(client, 0))
    connection.request("GET", "/iceberg/v1/config", headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == 200, body
    return str(json.loads(body)["overrides"]["uri"])


@pytest.mark.parametrize(
    ("part", "host", "reason"),
    [
        ("foreign", "localhost", "CertPathValidatorException|PKIX path"),
        ("renamed", "127.0.0.1", "could not be verified|hostname"),
    ],
)
def test_another_server_is_not_trusted(
    part: str,
    host: str,
    reason: str,
    home: Path,
    keys: Keys,
    container: dict[str, str],
) -> None:
    """Nessie sends no password to a database of another authority or with another name."""
    own = {_CA: Authority("Another CA").pem} if part == "foreign" else {}
    name = "quarkus.datasource.postgresql.jdbc.url"
    own[name] = container[name].replace("localhost", host)
    begun(home, keys.tokens, {part: {**container, **own}})
    log = processes.log_file(home, part)
    try:
        eventually(lambda: re.search(reason, log.read_text()), PATIENCE, "no refusal is logged")
    finally:
        processes.stop(home, part)


def _here(container: dict[str, str], server: str) -> dict[str, str]:
    """Return the environment with the database at `server`, and all else as it is."""
    source = "quarkus.datasource.postgresql"
    url = container[f"{source}.jdbc.url"]
    assert re.match(r"jdbc:postgresql://[^/]+/nessie\?", url)
    moved = re.sub(r"//[^/]+/nessie", f"//{server}/postgres", url)
    user = {f"{source}.username": "nessie", f"{source}.password": postgres.PASSWORD}
    return {**container, f"{source}.jdbc.url": moved, **user}


def _storage(aws: Platforms) -> dict[str, str]:
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    return {f"{S3}.endpoint": aws.account.endpoint, f"{S3}.path-style-access": "true", **keys}
