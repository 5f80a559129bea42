"""The commands of operators work where Nessie cannot be reached, through the stage's function."""

import json
import os
import subprocess
import sys
from urllib.parse import urlsplit

import boto3
import pytest

from functions.model.ingestion import Ingestion, State
from functions.wiring import assumed
from infra.local.parts import aws_environment
from infra.local.settings import STAGE
from tests.e2e.conftest import Gate, contract
from tests.e2e.test_bad_input import GOOD, parquet
from tests.waiting import PATIENCE

pytestmark = pytest.mark.stack

_TABLE = "outside.orders"
# A process that can open no connection to Nessie.
_CLOSED = """
import sys
def closed(event, arguments):
    if event == "socket.connect" and arguments[1][1:2] == ({port},):
        raise ConnectionRefusedError("Nessie cannot be reached from here")
sys.addaudithook(closed)
"""
_COMMAND = """
from cli.main import app
app()
"""
_VIEW = """
import sys
from access.deployment.choice import Choice
from dashboard.views import table as table_page
from dashboard.serve.session import opened
table_page.show(opened(Choice.of(sys.argv[2])))
"""
_PAGE = f"""
from streamlit.testing.v1 import AppTest
page = AppTest.from_string({_VIEW!r}, default_timeout=600)
page.query_params["name"] = sys.argv[3]
page.run()
assert not page.exception, page.exception
print({{metric.label: metric.value for metric in page.metric}})
"""


def outside(
    gate: Gate, *arguments: str, program: str = _COMMAND, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command on the stage, or another program, from outside its network."""
    port = urlsplit(gate.stack.nessie).port
    own = {name: value for name, value in os.environ.items() if "LAKEGATE" not in name}
    return subprocess.run(
        [
            sys.executable,
            "-c",
            f"{_CLOSED.format(port=port)}{program}",
            "--stage",
            STAGE,
            *arguments,
        ],
        env={**own, **aws_environment(gate.stack.s3, gate.stack.emr), **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def run(gate: Gate, *arguments: str) -> str:
    """Return the output of a command outside. Raise AssertionError if it fails."""
    done = outside(gate, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def steward(gate: Gate) -> dict[str, str]:
    """Return the credentials of a person who has just the rights that docs/aws.md lists."""
    settings, iam = gate.adapters.settings, boto3.client("iam")
    rights = {
        "cloudformation:DescribeStacks": "*",
        "lambda:GetFunctionConfiguration": "*",
        "dynamodb:GetItem": "*",
        "sts:AssumeRole": settings.clean_up_role_arn,
    }
    allowed = [{"Effect": "Allow", "Action": do, "Resource": on} for do, on in rights.items()]
    policy = json.dumps({"Version": "2012-10-17", "Statement": allowed})
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    trusted = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = iam.create_role(RoleName="steward", AssumeRolePolicyDocument=trusted)["Role"]
    iam.put_role_policy(RoleName="steward", PolicyName="discard", PolicyDocument=policy)
    given = assumed(role["Arn"]).get_credentials()
    return {
        "AWS_ACCESS_KEY_ID": given.access_key,
        "AWS_SECRET_ACCESS_KEY": given.secret_key,
        "AWS_SESSION_TOKEN": given.token,
    }


@pytest.fixture(scope="module")
def bad(gate: Gate) -> dict[str, Ingestion]:
    """Return two rejected files of a table that has a published one."""
    gate.put_contract(contract(_TABLE, "parquet"))
    good = gate.drop("outside/orders/good.parquet", GOOD)
    assert gate.end(good).state is State.PUBLISHED
    landed = {
        name: gate.drop(f"outside/orders/{name}.parquet", parquet(id=[nth], amount=[101.0]))
        for nth, name in enumerate(("published", "discarded"), 7)
    }
    ended = {name: gate.end(each) for name, each in landed.items()}
    assert {each.state for each in ended.values()} == {State.REJECTED}
    return ended


@pytest.mark.usefixtures("bad")
def test_nessie_itself_cannot_be_reached(gate: Gate) -> None:
    """Without the function a command fails, and its error says that Nessie did not answer."""
    done = outside(gate, "query", f"SELECT * FROM {_TABLE}", LAKEGATE_NESSIE_DIRECT="1")
    assert done.returncode == 1
    assert "CATALOG_UNAVAILABLE" in done.stderr


def test_an_operator_reads_and_decides(gate: Gate, bad: dict[str, Ingestion]) -> None:
    """Rows and failures are shown, one rejected file is published and the other one discarded.

    The person who discards may read no secret.
    """
    count = f"SELECT count(*) AS n FROM {_TABLE}"
    assert json.loads(run(gate, "query", count, "--json")) == [{"n": 2}]
    published, discarded = bad["published"], bad["discarded"]
    ids = run(gate, "query", f"SELECT id FROM {_TABLE}", "--ref", published.branch, "--json")
    assert {"id": 7} in json.loads(ids)
    assert "101" in run(gate, "inspect", published.id)
    run(gate, "publish", published.id, "--by", "Ann", "--reason", "it is right")
    assert gate.end(published.landed).state is State.PUBLISHED
    assert (7, 101.0) in gate.rows(_TABLE)
    done = outside(gate, "discard", discarded.id, "--by", "Ann", "--yes", **steward(gate))
    assert done.returncode == 0, done.stderr
    assert gate.adapters.ledger.get(discarded.id).decisions.discarded
    assert gate.adapters.catalog.branches(discarded.branch) == []
    assert json.loads(run(gate, "query", count, "--json")) == [{"n": 3}]


@pytest.mark.usefixtures("bad")
def test_the_page_shows_main(gate: Gate) -> None:
    """The page reads a table of main through the function, too."""
    done = outside(gate, _TABLE, program=_PAGE)
    assert done.returncode == 0, done.stderr
    rows = len(gate.rows(_TABLE))
    assert f"'rows': '{rows}'" in done.stdout


def test_a_replayed_file_gets_nessies_own_address(gate: Gate) -> None:
    """A job run that is requested from outside runs on when the command has ended."""
    landed = gate.drop("outside/later/good.parquet", GOOD)
    ended = gate.end(landed)
    assert ended.state is State.ERRORED
    gate.put_contract(contract("outside.later", "parquet"))
    run(gate, "replay", ended.id)
    assert gate.end(landed).state is State.PUBLISHED


@pytest.mark.usefixtures("bad")
def test_reconcile_compares_a_table(gate: Gate) -> None:
    """The comparison reads main's log through the function and finds no loss of this table."""
    done = outside(gate, "reconcile", "--table", _TABLE, "--json")
    found = json.loads(done.stdout)
    assert "outside/" not in json.dumps(found["problems"])
    (balance,) = (each for each in found["tables"] if each["table"] == _TABLE)
    assert (balance["rows"], balance["off_by"]) == (len(gate.rows(_TABLE)), 0)
