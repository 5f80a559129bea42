"""Other writers' branches on the real stack: audited, told, decided and published like changes."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Table

from access.deployment.checkout import ROOT
from functions.adapters.nessie import Catalog
from functions.model import merge_commit
from functions.model.ingestion import State
from functions.operations.reconcile.compare import reconciled
from infra.local.ministack import KeyFiles
from tests.e2e.conftest import Gate, contract, followed, found, run
from tests.e2e.test_bad_input import GOOD, parquet

pytestmark = pytest.mark.stack


def branched(gate: Gate, name: str) -> Table:
    """Return a table with two rows on main, as another writer sees it on a new branch."""
    table, branch = f"taken.{name}", f"write/{name}"
    gate.put_contract(contract(table, "parquet"))
    assert gate.end(gate.drop(f"taken/{name}/1.parquet", GOOD)).state is State.PUBLISHED
    token = KeyFiles(gate.home / "keys").read()["writer"]
    Catalog(gate.stack.nessie, token).create_branch(branch)
    return gate.catalog(branch, token).load_table(table)


def append(table: Table, id_: int, amount: float) -> None:
    """Append a row to a table."""
    row = {"id": [id_], "amount": [amount]}
    table.append(pa.table(row, schema=table.schema().as_arrow()))


def test_a_good_branch_is_published_once(gate: Gate) -> None:
    """Its rows are on main beside a file that came meanwhile, in other files than the writer's.

    A name that no branch can have is that of an unknown one.
    """
    assert "UNKNOWN_BRANCH" in run("gate", "no name", code=1)
    table = branched(gate, "good")
    append(table, 3, 3.0)
    name, late = "taken.good", parquet(id=[7], amount=[7.0])
    assert gate.end(gate.drop("taken/good/2.parquet", late)).state is State.PUBLISHED
    told = ("--by", "Ann", "--reason", "nightly")
    output = run("gate", "write/good", *told, "--wait")
    done = found(gate, output)
    assert done.state is State.PUBLISHED
    assert gate.rows(name) == [(1, 1.0), (2, 2.0), (3, 3.0), (7, 7.0)]
    assert run("gate", "write/good", *told).split()[0] == done.id
    (entry,) = merge_commit.published(merge_commit.commit_of(gate.adapters.catalog.log(), done))
    assert (entry.kind, entry.rows, entry.asked_by) == ("change", 1, "Ann")
    assert "Take over write/good into taken.good, 1 row added" in run("log", name)
    assert "TAKE OVER write/good" in run("show", done.id)
    append(table, 4, 4.0)
    assert "ALREADY_TAKEN" in run("gate", "write/good", code=1)
    assert reconciled(gate.adapters, name, thorough=True).problems == ()


def test_the_page_works(tmp_path: Path, newcomer: dict[str, str]) -> None:
    """The page's files, program and commands, used in their order, all succeed."""
    said = followed(ROOT / "docs" / "takeovers.md", tmp_path, newcomer)
    assert "rejected, as it should be" in said
    shown = said.split("rejected, as it should be")[1]
    assert "Take over write/nightly into shop.payments, 2 rows added" in shown
    assert "-7" not in shown
