"""`lakegate reconcile` on the running stack, beside writers that bypass Lakegate."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from typer.testing import CliRunner, Result

from cli.main import app
from functions.adapters.secrets import secret
from functions.model.ingestion import State
from tests.e2e.conftest import Gate, contract

pytestmark = pytest.mark.stack

TABLE = "reconcile.orders"


def lakegate(*arguments: str) -> Result:
    """Run a command as in a terminal where only LAKEGATE_HOME is set."""
    return CliRunner().invoke(app, arguments, env={"LAKEGATE_LEDGER_TABLE": None})


def document(exit_code: int) -> dict[str, Any]:
    """Return the output of `lakegate reconcile --json` for the table; check its exit code."""
    said = lakegate("reconcile", "--table", TABLE, "--json")
    assert said.exit_code == exit_code, said.output
    found: dict[str, Any] = json.loads(said.stdout)
    return found


@pytest.fixture(scope="module")
def table(gate: Gate) -> Table:
    """Return a table with a good file's rows and without a bad one's, opened by the publisher."""
    gate.put_contract(contract(TABLE, "csv"))
    good = gate.end(gate.drop("reconcile/orders/good.csv", b"id,amount\n1,1\n2,2\n3,3\n4,4\n"))
    bad = gate.end(gate.drop("reconcile/orders/bad.csv", b"id,amount\n5,500\n"))
    assert (good.state, bad.state) == (State.PUBLISHED, State.REJECTED)
    catalog = RestCatalog(
        "lake",
        uri=f"{gate.stack.iceberg}/main",
        token=secret(boto3.client("secretsmanager"), gate.adapters.settings.nessie_token_secret),
        **{"s3.access-key-id": "test", "s3.secret-access-key": "test"},
    )
    return catalog.load_table(TABLE)


@pytest.fixture
def doubled(table: Table) -> Iterator[DataFile]:
    """Register the table's one data file a second time; remove the second entry afterwards."""
    file = _file(table)
    _enter(table, file)
    yield file
    table.refresh()
    with table.transaction() as change, change.update_snapshot().overwrite() as overwrite:
        overwrite.delete_data_file(file)
    _enter(table, file)


def test_what_is_right_is_said_to_be(table: Table) -> None:
    """After a good and a bad file each has its final state; the table has the good one's rows."""
    found = document(exit_code=0)
    assert (found["right"], found["landed"], found["problems"]) == (True, 2, [])
    assert found["ends"]["published"] == {"objects": 1, "rows": 4}
    assert found["ends"]["rejected"] == {"objects": 1, "rows": 1}
    [balance] = found["tables"]
    assert (balance["table"], balance["rows"], balance["off_by"]) == (TABLE, 4, 0)


def test_a_delete_by_somebody_else_is_all_right(table: Table) -> None:
    """Rows that another writer deleted on main are reported with the writer, and are no failure."""
    table.refresh()
    table.delete("id = 4")
    found = document(exit_code=0)
    [remark] = found["remarks"]
    assert f"lakegate-publisher removed 1 row of {TABLE} at 20" in remark["message"]
    [balance] = found["tables"]
    assert (balance["rows"], balance["by_others"], balance["off_by"]) == (3, -1, 0)


def test_a_file_doubled_by_hand_is_not(table: Table, doubled: DataFile) -> None:
    """A file that is registered a second time fails, and table, file and rows are named."""
    said = lakegate("reconcile", "--table", TABLE)
    assert said.exit_code == 1
    [problem] = [line for line in said.stdout.splitlines() if line.startswith("✗")]
    rows = doubled.record_count
    assert f"{TABLE} lists the data file {doubled.file_path} 2 times" in problem
    assert f"queries return its {rows} rows 2 times (DOUBLED_FILE)" in problem
    assert document(exit_code=1)["tables"][0]["rows"] == 2 * rows


def test_what_was_put_right_is_all_right_again(table: Table) -> None:
    """Removing the second entry solves the problem; the whole deployment is reported as right, too.

    The rows are counted: pyiceberg's summary wrongly says 6 after both entries were removed.
    """
    [balance] = document(exit_code=0)["tables"]
    assert (balance["rows"], balance["by_others"], balance["off_by"]) == (3, -1, 0)
    assert lakegate("reconcile", "--thorough").exit_code == 0


def _file(table: Table) -> DataFile:
    table.refresh()
    [task] = table.scan().plan_files()
    return task.file


def _enter(table: Table, file: DataFile) -> None:
    with table.transaction() as change, change.update_snapshot().fast_append() as append:
        append.append_data_file(file)
