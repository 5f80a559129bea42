"""Start the servers that several suites share."""

import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
from moto import mock_aws

from functions.adapters.landing import Landing
from functions.adapters.ledger.ledger import Ledger
from functions.adapters.nessie import Catalog
from functions.adapters.s3 import Lake
from infra.local import nessie_server, processes
from infra.local.ministack import KeyFiles
from infra.local.parts import choose_ports
from lakegate import nessie_tokens
from lakegate.nessie_tokens import Keys
from tests.contract.aws import ACCOUNT
from tests.contract.buckets import LIMITS, Buckets, aged, bucket
from tests.contract.callers import Rights, credentials
from tests.contract.emr_service import EventBus, Service
from tests.contract.ledgers import AnyLedger, new_table
from tests.deploy.account import Account, running
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger
from tests.fakes.storage import FakeLake, FakeLanding
from tests.unit.lakegate.test_jobspec import SPEC
from tests.waiting import PATIENCE


@dataclass(frozen=True)
class Servers:
    """The addresses of Nessie and S3, and Nessie's key with each role's token.

    `began` are the results of several simultaneous calls that gave an empty main its first commit.
    """

    nessie: str
    keys: Keys
    s3: str
    began: list[bool]

    @property
    def tokens(self) -> Mapping[str, str]:
        """Return each role's token."""
        return self.keys.tokens


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Yield Nessie with its tokens and rules, and an S3 with its warehouse."""
    home = tmp_path_factory.mktemp("servers")
    (home / "tmp").mkdir()
    held = nessie_tokens.keep(KeyFiles(home / "keys"), datetime.now(UTC))
    ports = choose_ports(home)
    storage, address = (f"http://127.0.0.1:{ports[name]}" for name in ("ministack", "nessie"))
    warehouse = "s3://lake/warehouse"
    catalog = nessie_server.nessie_command(
        home, ports["nessie"], ports["nessie_management"], storage, warehouse
    )
    commands = (_s3(home, ports["ministack"]), catalog)
    checks = {"s3": lambda: _bucket(storage), "nessie": lambda: _answers(address, held.tokens)}
    try:
        for command in commands:
            processes.start(home, command)
        for name, answers in checks.items():
            processes.wait_until(home, name, answers, timeout=PATIENCE)
        several = [Catalog(address, held.tokens["publisher"]) for _ in range(4)]
        with ThreadPoolExecutor() as at_once:
            began = list(at_once.map(lambda catalog: catalog.begin("ops"), several))
        yield Servers(address, held, storage, began)
    finally:
        for command in commands:
            processes.stop(home, command.part)


def _s3(home: Path, port: int) -> processes.Command:
    """Return S3 as a separate process: within this one, every other use of moto would empty it."""
    argv = (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port))
    return processes.Command("s3", argv, home)


def _bucket(storage: str) -> bool:
    """Return whether S3 answers, after creating the lake bucket."""
    try:
        return requests.put(f"{storage}/lake", timeout=10).ok
    except requests.RequestException:
        return False


def _answers(address: str, tokens: Mapping[str, str]) -> bool:
    return nessie_server.nessie_answers(address, tokens["reader"])


@pytest.fixture(scope="module")
def bus() -> Iterator[EventBus]:
    bus = EventBus()
    yield bus
    bus.stop()


@pytest.fixture
def own_service(tmp_path: Path, bus: EventBus) -> Iterator[Service]:
    """Yield a service that only this test uses and starts."""
    service = Service(tmp_path / "emr", bus.url)
    yield service
    service.stop()


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[Any]:
    """Yield DynamoDB in this process."""
    with mock_aws():
        yield boto3.resource("dynamodb", **ACCOUNT)


@pytest.fixture
def clock() -> FakeClock:
    """Return the clock of the process that writes the ledger."""
    return FakeClock()


@pytest.fixture(params=["in memory", "DynamoDB"])
def ledger(request: pytest.FixtureRequest, dynamodb: Any, clock: FakeClock) -> AnyLedger:
    """Return an empty ledger, in a table with the template's keys and indexes."""
    if request.param == "in memory":
        return FakeLedger(clock.now)
    return Ledger(new_table(dynamodb), clock.now)


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    """Yield S3 in this process."""
    with mock_aws():
        yield boto3.client("s3", **ACCOUNT)


@pytest.fixture
def job_s3() -> Iterator[Any]:
    """Yield S3 in this process, with both buckets of a job's spec."""
    with mock_aws():
        client = boto3.client("s3", **ACCOUNT)
        for name in (SPEC.landed.bucket, SPEC.lake_bucket):
            client.create_bucket(Bucket=name)
            kept = {"Status": "Enabled"}
            client.put_bucket_versioning(Bucket=name, VersioningConfiguration=kept)
        yield client


@pytest.fixture(scope="module")
def sqs() -> Iterator[Any]:
    """Yield SQS in this process."""
    with mock_aws():
        yield boto3.client("sqs", **ACCOUNT)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """Yield the local AWS, a process of its own, which enforces each caller's rights."""
    with running(tmp_path_factory.mktemp("account")) as account:
        yield account


@pytest.fixture
def rights(account: Account, request: pytest.FixtureRequest) -> Rights:
    """Return a function that makes a role of this test with statements."""
    return partial(credentials, account.endpoint, f"role-{abs(hash(request.node.name))}")


@pytest.fixture(params=["in memory", "S3"])
def buckets(request: pytest.FixtureRequest, s3: Any) -> Buckets:
    """Return two empty buckets that keep versions."""
    if request.param == "in memory":
        lake, clock = FakeLake(limits=LIMITS), FakeClock()
        fake = FakeLanding(clock)
        there = partial(fake.land_in, "other")
        return Buckets(fake, lake, lake.put_text, fake.delete, clock.pass_, "other", there)
    landing, name, other = bucket(s3), bucket(s3), bucket(s3)
    return Buckets(
        Landing(s3, landing, other),
        Lake(s3, name, limits=LIMITS),
        lambda key, body: s3.put_object(Bucket=name, Key=key, Body=body),
        lambda key: s3.delete_object(Bucket=landing, Key=key),
        partial(aged, landing),
        other,
        lambda key, body: s3.put_object(Bucket=other, Key=key, Body=body),
    )
