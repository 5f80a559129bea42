"""The platform's stack deployed locally, with Nessie as its container runs it."""

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from functions.adapters.nessie import Catalog
from functions.health.conformance.trial import tried
from functions.health.model import Status
from infra.aws.facts import PLATFORM
from infra.local import nessie_server, processes
from infra.local.nessie_server import S3, options
from infra.local.parts import free_port
from infra.stage import Stage
from lakegate.errors import LakegateError
from lakegate.nessie_tokens import Keys
from tests import postgres
from tests.deploy.platform import APPLICATION, NESSIE, ROOT, Platforms, read
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack


@dataclass(frozen=True)
class Server:
    """A Nessie with a container's environment."""

    uri: str
    management: str
    tokens: Mapping[str, str]

    def answer(self, method: str, path: str, role: str = "", **arguments: object) -> int:
        """Return the status of Nessie's answer to a role, or to a request without a token."""
        headers = {"Authorization": f"Bearer {self.tokens[role]}"} if role else {}
        url = f"{self.uri}{path}"
        return requests.request(
            method,
            url,
            headers=headers,
            timeout=PATIENCE,
            **arguments,  # type: ignore[arg-type]
        ).status_code

    def answers(self) -> bool:
        """Return whether it serves its main branch."""
        return nessie_server.nessie_answers(self.uri, self.tokens["reader"])

    def health(self, kind: str) -> int:
        """Return the status of a health check's answer."""
        return requests.get(f"{self.management}/q/health/{kind}", timeout=PATIENCE).status_code


@pytest.fixture(scope="module")
def stages(aws: Platforms, keys: Keys) -> dict[str, Stage]:
    """Return a platform for each store, by the store's name."""
    return {
        store: aws.deploy(name, NessieStore=store, NessiePublicKey=keys.public_key)
        for name, store in (("sql", "JDBC2"), ("dynamo", "DYNAMODB2"))
    }


@pytest.fixture(scope="module")
def servers(
    aws: Platforms, home: Path, keys: Keys, stages: dict[str, Stage]
) -> Iterator[dict[str, Server]]:
    """Yield Nessie as each container runs it, with this machine's ports, store and S3."""
    with postgres.running(home, ROOT / ".venv-deploy") as database:
        own = {
            "JDBC2": database_variables(database.url, postgres.PASSWORD),
            "DYNAMODB2": {"quarkus.dynamodb.endpoint-override": aws.account.endpoint},
        }
        try:
            yield started(
                home,
                keys.tokens,
                {store: {**storage(aws, stage), **own[store]} for store, stage in stages.items()},
            )
        finally:
            for store in stages:
                processes.stop(home, store)


@pytest.fixture(params=["JDBC2", "DYNAMODB2"])
def server(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Server:
    """Return the server with one of the stores."""
    return servers[request.param]


@pytest.mark.parametrize("store", ["JDBC2", "DYNAMODB2"])
def test_the_stack_publishes_its_facts(
    store: str, aws: Platforms, stages: dict[str, Stage]
) -> None:
    """With either store the stack is created and puts its facts into the parameters."""
    ssm, stage = aws.client("ssm"), stages[store]
    facts = {f: ssm.get_parameter(Name=stage.parameter(f))["Parameter"]["Value"] for f in PLATFORM}
    assert facts["emr-application-id"] == facts["emr-shared-application-id"] == APPLICATION
    assert facts["nessie-uri"] == f"https://{NESSIE}:19120"
    assert facts["subnet-a"] != facts["subnet-b"]


def test_taken_down_it_keeps_its_data_and_comes_back(aws: Platforms, keys: Keys) -> None:
    """The first deployment creates the database and then protects it.

    `destroy` keeps the database with its references, and the next deployment uses it again.
    """
    stage = aws.begin("back", NessiePublicKey=keys.public_key)
    resources = aws.resources(stage)
    stacks = aws.client("cloudformation").describe_stacks(StackName=stage.platform_stack)
    assert stacks["Stacks"][0]["StackStatus"] == "UPDATE_COMPLETE"
    (database,) = aws.client("rds").describe_db_instances(
        DBInstanceIdentifier=resources["Database"]
    )["DBInstances"]
    assert database["DeletionProtection"]
    aws.reduce(stage)
    kept = aws.resources(stage)
    assert kept.keys() >= {"Database", "DatabaseSecret", "SubnetA", "Vpc"}
    assert kept.keys().isdisjoint({"NessieService", "NessieLoadBalancer", "SqsEndpoint"})
    aws.deploy("back", NessiePublicKey=keys.public_key)
    again = aws.resources(stage)
    assert again.keys() == resources.keys()
    assert kept.items() <= again.items() & resources.items()


def test_a_production_stage_without_an_address_is_refused(aws: Platforms, keys: Keys) -> None:
    """CloudFormation refuses a production stage whose alarms nobody would get."""
    two = {"EndpointZones": "2", "DatabaseZones": "2", "LogRetentionDays": "365"}
    prod = {"NessiePublicKey": keys.public_key, "Profile": "production", "DatabaseCa": "x"}
    prod |= {**two, "NessieDigest": f"sha256:{'0' * 64}"}
    with pytest.raises(LakegateError, match="AlarmEmail"):
        aws.deploy("prod", **prod)
    assert aws.deploy("prod", AlarmEmail="team@example.com", **prod).name == "prod"


def test_the_container_has_every_nessies_options(
    aws: Platforms, keys: Keys, stages: dict[str, Stage]
) -> None:
    """The deployed container has the rules and options of the local stack."""
    stage = stages["JDBC2"]
    expected = options(f"s3://{stage.lake_bucket}/warehouse", stage.region, keys.public_key)
    assert aws.container(stage).items() >= expected.items()


def test_nessie_is_live_and_ready_before_there_is_a_lake(server: Server) -> None:
    """Nessie is live and ready in the platform's deployment, before the lake's bucket exists."""
    for kind in ("live", "ready"):
        eventually(lambda: server.health(kind) == 200, message=f"it is not {kind}")  # noqa: B023


def test_the_containers_health_check_asks_nessie(server: Server) -> None:
    """The check's command succeeds if Nessie is live and fails if nothing answers."""
    (container,) = read()["Resources"]["NessieTask"]["Properties"]["ContainerDefinitions"]
    _, *command = container["HealthCheck"]["Command"]
    here = server.management.rpartition(":")[2]
    for port, healthy in ((here, True), ("1", False)):
        asked = [word.replace("/9000", f"/{port}") for word in command]
        done = subprocess.run(asked, capture_output=True, timeout=PATIENCE, check=False)
        assert (done.returncode == 0) is healthy


def test_only_the_publisher_changes_main(server: Server) -> None:
    """Only the publisher's token may commit to main or merge into it; a missing token is a 401."""
    assert server.answer("GET", "/api/v2/trees/main") == 401
    publisher = Catalog(server.uri, server.tokens["publisher"])
    publisher.begin("ops")
    branch = "ingest/t/f-1"
    base = Catalog(server.uri, server.tokens["uploader"]).create_branch(branch)
    assert server.answer("POST", _commit(publisher, branch), "job", json=_namespace("a")) == 200
    assert server.answer("POST", _commit(publisher, "main"), "job", json=_namespace("b")) == 403
    merge = f"/api/v2/trees/main@{publisher.head('main')}/history/merge"
    body = {"fromRefName": branch, "fromHash": publisher.head(branch)}
    assert server.answer("POST", merge, "job", json=body) == 403
    assert publisher.merge(branch, publisher.head(branch), base, "Publish", {"k": "v"})


def test_it_behaves_as_is_relied_on(server: Server) -> None:
    """With either store each behaviour that Lakegate relies on is found."""
    token = server.tokens["publisher"]
    Catalog(server.uri, token).begin("ops")
    assert [each for each in tried(server.uri, token) if each.status is not Status.OK] == []


def test_its_role_lets_nessie_make_a_table(
    server: Server, aws: Platforms, stages: dict[str, Stage]
) -> None:
    """The task's own role may write a table's metadata into the lake."""
    for stage in stages.values():
        aws.client("s3").create_bucket(Bucket=stage.lake_bucket)
    catalog, publisher = "/iceberg/v1/main", Catalog(server.uri, server.tokens["publisher"])
    publisher.begin("ops")
    body = {"namespace": ["made"]}
    assert server.answer("POST", f"{catalog}/namespaces", "publisher", json=body) == 200
    table = {"name": "t", "schema": {"type": "struct", "fields": []}, "stage-create": False}
    made = server.answer("POST", f"{catalog}/namespaces/made/tables", "publisher", json=table)
    assert made == 200
    assert publisher.metadata(publisher.head("main"), "made.t").startswith("s3://lakegate-")


def _commit(catalog: Catalog, branch: str) -> str:
    reference = f"{branch.replace('/', '%2F')}@{catalog.head(branch)}"
    return f"/api/v2/trees/{reference}/history/commit"


def _namespace(name: str) -> dict[str, object]:
    key = {"elements": [name]}
    change = {"type": "PUT", "key": key, "content": {"type": "NAMESPACE", **key}}
    return {"commitMeta": {"message": f"Make {name}"}, "operations": [change]}


def storage(aws: Platforms, stage: Stage) -> dict[str, str]:
    """Return the container's environment with its task role's credentials and the account's S3."""
    role = aws.credentials(aws.task(stage)["taskRoleArn"])
    s3 = {f"{S3}.endpoint": aws.account.endpoint, f"{S3}.path-style-access": "true"}
    return aws.container(stage) | role | s3


def started(
    home: Path, tokens: Mapping[str, str], environments: Mapping[str, Mapping[str, str]]
) -> dict[str, Server]:
    """Start a server for each environment, all at once; return them when they answer."""
    servers = begun(home, tokens, environments)
    for store, server in servers.items():
        processes.wait_until(home, store, server.answers, timeout=PATIENCE)
    return servers


def begun(
    home: Path, tokens: Mapping[str, str], environments: Mapping[str, Mapping[str, str]]
) -> dict[str, Server]:
    """Start a server for each environment, and wait for none."""
    (home / "tmp").mkdir(exist_ok=True)
    servers = {}
    for store, environment in environments.items():
        port = free_port(set())
        management = free_port({port})
        here = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(port),
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": str(management),
        }
        command = nessie_server.java_command(home / "tmp")
        processes.start(home, processes.Command(store, command, home, {**environment, **here}))
        at = "http://127.0.0.1:{}".format
        servers[store] = Server(at(port), at(management), tokens)
    return servers


def database_variables(url: str, password: str) -> dict[str, str]:
    """Return the database's variables; a container gets the secret's two values by these names."""
    source = "quarkus.datasource.postgresql"
    return {
        f"{source}.jdbc.url": url,
        f"{source}.username": postgres.USER,
        f"{source}.password": password,
    }
