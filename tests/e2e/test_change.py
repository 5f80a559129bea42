"""Changes on the real stack: made once, in turn with files, and alerted and decided like files."""

import pytest

from functions.model import merge_commit
from functions.model.ingestion import State
from functions.operations.reconcile.compare import reconciled
from tests.e2e.conftest import Gate, contract, found, run
from tests.e2e.test_bad_input import GOOD, parquet

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def tables(gate: Gate) -> dict[str, str]:
    """Return a table for each test, with two rows on main; their files are dropped together."""
    names = {name: f"changed.{name}" for name in ("once", "rejected")}
    for full in names.values():
        gate.put_contract(contract(full, "parquet"))
    landed = [gate.drop(f"changed/{name}/good.parquet", GOOD) for name in names]
    assert {gate.end(each).state for each in landed} == {State.PUBLISHED}
    return names


def test_an_update_is_made_once(gate: Gate, tables: dict[str, str]) -> None:
    """An update requested twice beside a new file raises amounts by one and loses no row."""
    name = tables["once"]
    told = ("--token", "one", "--by", "Ann", "--message", "a cent was missing")
    sql = f"UPDATE {name} SET amount = amount + 1 WHERE id <= 2"
    late = gate.drop("changed/once/late.parquet", parquet(id=[7], amount=[7.0]))
    output = run("change", name, "--sql", sql, *told)
    assert run("change", name, "--sql", sql, *told, "--wait").split()[0] == output.split()[0]
    assert gate.end(late).state is State.PUBLISHED
    assert gate.rows(name) == [(1, 2.0), (2, 3.0), (7, 7.0)]
    done = found(gate, output)
    (entry,) = merge_commit.published(merge_commit.commit_of(gate.adapters.catalog.log(), done))
    assert (entry.kind, entry.statement, entry.asked_by) == ("change", sql, "Ann")
    assert (entry.rows, entry.replaced_rows) == (2, 2)
    assert "a cent was missing" in run("show", done.id)
    assert sql[:40] in run("runs", "--table", name)
    assert reconciled(gate.adapters, name, thorough=True).problems == ()


def test_a_rejected_change_is_a_persons_to_decide(gate: Gate, tables: dict[str, str]) -> None:
    """A rejected change is alerted with its statement, inspected, and published by a person.

    Main's log names who, and why.
    """
    name = tables["rejected"]
    sql = f"UPDATE {name} SET amount = 101 WHERE id = 1"
    output = run("change", name, "--sql", sql, "--wait", code=3)
    failed = found(gate, output)
    (message,) = gate.alerts(failed)
    assert sql in str(message)
    assert gate.rows(name) == [(1, 1.0), (2, 2.0)]
    assert "101.0" in run("inspect", failed.id)
    run("publish", failed.id, "--by", "Ann Ö.", "--reason", 'it\'s right: "1 < 2"')
    assert gate.rows(name) == [(1, 101.0), (2, 2.0)]
    done = gate.adapters.ledger.get(failed.id)
    (entry,) = merge_commit.published(merge_commit.commit_of(gate.adapters.catalog.log(), done))
    assert (entry.approved_by, entry.approved_because) == ("Ann Ö.", 'it\'s right: "1 < 2"')
