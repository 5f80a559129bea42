"""Rows are traced to their file and back, and taken back, on the real stack."""

import pytest

from functions.model.ingestion import State
from functions.operations.reconcile.compare import reconciled
from tests.e2e.conftest import Gate, contract, document, run
from tests.e2e.test_bad_input import parquet

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("kind", ["named", "plain"])
def test_rows_are_traced_and_taken_back(gate: Gate, kind: str) -> None:
    """With columns of provenance and without, each row leads to its file, commit and report."""
    table = f"traced.{kind}"
    text = contract(table, "parquet", isolation="shared")
    asked = "  - {property: provenance, value: all}\nschema:"
    gate.put_contract(text.replace("schema:", asked) if kind == "named" else text)
    bodies = [parquet(id=[10 * n + 1, 10 * n + 2], amount=[1.0, 2.0]) for n in range(4)]
    landed = [gate.drop(f"traced/{kind}/{n}.parquet", body) for n, body in enumerate(bodies)]
    ended = [gate.end(each) for each in landed]
    assert {each.state for each in ended} == {State.PUBLISHED}
    for n, each in enumerate(ended):
        (found,) = document("trace", table, "--where", f"id = {10 * n + 2}")
        assert (found["ingestion"], found["file"], found["rows"]) == (each.id, each.landed.uri, 1)
        assert (found["report"], found["commit"]) == (each.report_key, each.merge_hash)
        assert found["row_numbers"] == ([2] if kind == "named" else [])
        (back,) = document("trace", each.id)
        assert (back["rows"], back["data_file"]) == (2, found["data_file"])
        assert (back["version"], back["commit"]) == (each.landed.version, each.merge_hash)
    if kind == "named":
        assert document("trace", ended[1].id, "--row", "2")[0]["row_numbers"] == [2]
    else:
        run("trace", ended[1].id, "--row", "2", code=1)
    told = ("--by", "Ada", "--reason", "the wrong day", "--yes")
    run("retract", ended[1].id, *told, "--wait")
    rows = gate.rows(table)
    assert [row[0] for row in rows] == [1, 2, 21, 22, 31, 32]
    assert "by Ada: the wrong day" in run("trace", ended[1].id, code=1)
    assert reconciled(gate.adapters, table, thorough=True).problems == ()
