"""Servers that several behaviour suites share."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import boto3
import pytest
from moto.server import ThreadedMotoServer

from infra.local import keys, nessie, processes
from tests.fakes import wire


@dataclass(frozen=True)
class Servers:
    """Where Nessie and S3 answer, and each role's token for Nessie."""

    nessie: str
    tokens: dict[str, str]
    s3: str


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Nessie with its tokens and rules, and an S3 with its warehouse."""
    home = tmp_path_factory.mktemp("servers")
    (home / "tmp").mkdir()
    address, management = wire.nobody(), wire.nobody()
    tokens = keys.tokens(home / "keys", nessie.ROLES, datetime.now(UTC))
    s3 = ThreadedMotoServer(port=0, verbose=False)
    s3.start()
    storage = "http://{}:{}".format(*s3.get_host_and_port())
    boto3.client(
        "s3",
        endpoint_url=storage,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    ).create_bucket(Bucket="lake")
    port, management_port = (int(url.rpartition(":")[2]) for url in (address, management))
    processes.start(
        home, nessie.command(home, port, management_port, storage, "s3://lake/warehouse")
    )
    try:
        processes.wait_until(
            home, "nessie", lambda: nessie.answers(address, tokens["reader"]), timeout=90
        )
        nessie.seed(address, tokens["publisher"])
        yield Servers(address, tokens, storage)
    finally:
        processes.stop(home, "nessie")
        s3.stop()
