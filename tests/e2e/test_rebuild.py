"""The ledger of a running deployment is lost, and rebuilt from all other data."""

import json

import boto3
import pytest
from typer.testing import CliRunner

from cli.main import app
from functions.model import merge_commit
from functions.model.ingestion import State
from tests.e2e.conftest import Gate, contract
from tests.e2e.killing import sweep, sweep_grace

pytestmark = pytest.mark.stack


def test_a_lost_ledger_is_rebuilt(gate: Gate) -> None:
    """After a rebuild published files are published once, and a rejected one is alerted again."""
    gate.put_contract(contract("rebuild.orders", "csv"))
    bodies = {"a": b"id,amount\n1,1\n", "b": b"id,amount\n2,2\n", "bad": b"id,amount\n3,999\n"}
    first = gate.drop("rebuild/orders/a.csv", bodies.pop("a"))
    gate.end(first)  # then there is a table, and no other file's job has to run again
    others = [gate.drop(f"rebuild/orders/{name}.csv", body) for name, body in bodies.items()]
    landed = [first, *others]
    before = [gate.end(each) for each in landed]
    assert [each.state for each in before] == [State.PUBLISHED, State.PUBLISHED, State.REJECTED]
    rows, merges = gate.rows("rebuild.orders"), _merges(gate)

    ledger = boto3.resource("dynamodb").Table(gate.stack.ledger_table)
    with sweep_grace(gate, 3600):  # which would restore them, too
        for each in before:
            ledger.delete_item(Key={"id": each.id})
        said = CliRunner().invoke(
            app, ["ledger", "rebuild", "--json"], env={"LAKEGATE_LEDGER_TABLE": None}
        )
    assert said.exit_code == 0, said.stderr
    restored = {each["id"]: each["state"] for each in json.loads(said.stdout)}
    ids = [each.id for each in before]
    assert restored == dict(zip(ids, ["published", "published", "submitted"], strict=True))

    with sweep_grace(gate, 1):
        sweep(gate)
    after = [gate.end(each) for each in landed]
    same = [
        (i.state, i.audit.rows, i.reason, i.audit.checks, i.merge_hash, i.landed) for i in after
    ]
    assert same == [
        (i.state, i.audit.rows, i.reason, i.audit.checks, i.merge_hash, i.landed) for i in before
    ]
    assert gate.rows("rebuild.orders") == rows
    assert _merges(gate) == merges
    assert gate.adapters.catalog.branches("ingest/rebuild.orders/") == [before[2].branch]
    assert len(gate.alerts(before[2])) == 2


def _merges(gate: Gate) -> list[str]:
    """Return the commits on main that published a file, without those that record audits."""
    return [commit.hash for commit in gate.adapters.catalog.log() if merge_commit.published(commit)]
