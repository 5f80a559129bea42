"""Functions' adapters, the job and a reader call a real Nessie by TLS of a private authority."""

from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
)

from access.tables.reader import Reader
from functions.adapters.iceberg.tables import Tables
from functions.adapters.nessie import Catalog
from functions.health.nessie_checks import NessieProbe
from functions.on_nessie_request import forward
from infra.aws.certificates.nessie import Certified, certified
from lakegate.audit.report import Verdict
from lakegate.errors import Transient
from lakegate.trust import PUBLIC
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.spark import jvm
from tests.certificates import terminated
from tests.spark.conftest import GOOD, Job, parquet

pytestmark = pytest.mark.spark

_CA = "LAKEGATE_NESSIE_CA"
_PASSWORD = "changeit"


@dataclass(frozen=True)
class Balancer:
    """What terminates TLS before Nessie, with a certificate as `lakegate deploy` makes it."""

    uri: str
    made: Certified


@pytest.fixture(scope="module")
def balancers(job: Job, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Balancer]]:
    """Yield two, each with an authority of its own."""
    with ExitStack() as stack:
        found = []
        for _ in range(2):
            made = certified("localhost", datetime.now(UTC))
            file = tmp_path_factory.mktemp("tls") / "server.pem"
            file.write_bytes(made.key + made.certificate)
            uri = stack.enter_context(terminated(job.services.nessie_uri, file))
            found.append(Balancer(uri, made))
        yield found


@pytest.fixture
def trusted(balancers: list[Balancer], monkeypatch: pytest.MonkeyPatch) -> Balancer:
    """Return the one whose authority this process trusts, as the stack's settings say."""
    monkeypatch.setenv(_CA, balancers[0].made.fact)
    return balancers[0]


def test_a_file_goes_to_main_by_tls(
    job: Job, trusted: Balancer, contract: Callable[..., str], table: str
) -> None:
    """The job writes and audits it, functions merge it, and readers read it, all by https."""
    services = job.services
    encrypted = replace(services, nessie_uri=trusted.uri)
    report = Job(encrypted, job.warm_spark).ingest(parquet(GOOD), contract(), table)
    assert report.verdict is Verdict.PASSED, report.reason
    merge = report.branch, report.audited_hash, report.base_hash, "Publish", {"k": "v"}
    assert Catalog(trusted.uri, services.tokens["publisher"]).merge(*merge)
    tables = Tables(trusted.uri, services.tokens["publisher"], services.s3)
    assert tables.size(table, "main")
    reader = Reader(f"{trusted.uri}/iceberg", services.tokens["reader"], "main")
    assert reader.all_rows(table).num_rows == len(GOOD["id"])


def test_checks_and_operators_come_by_tls(job: Job, trusted: Balancer) -> None:
    """The checkup and the function that forwards operators' requests trust the authority, too."""
    assert NessieProbe(trusted.uri).anonymous_answer().status == 401
    request = {"method": "GET", "path": "/api/v2/trees/main"}
    assert forward(trusted.uri, request)["status"] == 401


@pytest.mark.parametrize("told", ["another", PUBLIC])
def test_a_strangers_server_is_refused(
    told: str, job: Job, balancers: list[Balancer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No token is sent to a server whose authority is another one; two lines say what to do."""
    monkeypatch.setenv(_CA, balancers[1].made.fact if told == "another" else told)
    uri, token = balancers[0].uri, job.services.tokens["reader"]
    for ask in (Catalog(uri, token).begun, Branch(uri, "main", token).head):
        with pytest.raises(Transient, match=r"Nessie's certificate .* not trusted: ") as refusal:
            ask()
        assert "`lakegate deploy`" in refusal.value.message.splitlines()[1]
        assert len(refusal.value.message.splitlines()) == 2
    refused = forward(uri, {"method": "GET", "path": "/api/v2/trees/main"})
    assert "is not trusted" in refused["error"]


def test_spark_refuses_a_strangers_server(
    job: Job, balancers: list[Balancer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session whose catalog answers with another authority's certificate lists no tables."""
    monkeypatch.setenv(_CA, balancers[1].made.fact)
    stranger = Job(replace(job.services, nessie_uri=balancers[0].uri), job.warm_spark)
    jvm.trust(job.warm_spark, b64decode(balancers[1].made.fact))
    with pytest.raises(jvm.JavaError) as refusal:
        stranger.session("main").sql("SHOW NAMESPACES IN lake").collect()
    assert any("SSLHandshakeException" in each for each in jvm.causes(refusal.value))


def test_what_java_trusts_by_itself_stays_trusted(
    job: Job, balancers: list[Balancer], tmp_path: Path
) -> None:
    """S3's authorities are in Java's own store: here one authority is, and the other is added."""
    spark = job.warm_spark
    own = [PKCS12Certificate(balancers[0].made.authority, b"own")]
    store = tmp_path / "cacerts"
    store.write_bytes(serialize_java_truststore(own, BestAvailableEncryption(_PASSWORD.encode())))
    system = jvm.java_class(spark, "java.lang.System")
    options = {"trustStore": str(store), "trustStorePassword": _PASSWORD}
    try:
        for name, value in options.items():
            system.setProperty(f"javax.net.ssl.{name}", value)
        jvm.trust(spark, b64decode(balancers[1].made.fact))
        for each in balancers:
            known = Job(replace(job.services, nessie_uri=each.uri), spark)
            assert known.session("main").sql("SHOW NAMESPACES IN lake").collect()
    finally:
        for name in options:
            system.clearProperty(f"javax.net.ssl.{name}")
