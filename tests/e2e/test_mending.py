"""Broken rows of a rejected file are corrected alone, and the whole file is published once."""

from pathlib import Path

import pytest

from functions.model import merge_commit
from functions.model.ingestion import State
from functions.model.shown_state import ShownState
from tests.e2e.conftest import Gate, contract, lakegate

pytestmark = pytest.mark.stack

TABLE, KEY = "mending.orders", "mending/orders/monday.csv"
ROWS = {n: f"{n},{n}.5" for n in range(1, 11)}
BODY = "\n".join(["id,amount", *{**ROWS, 4: "4,400", 7: "seven,7.5"}.values()]) + "\n"


def test_two_rows_of_ten_are_mended(gate: Gate, tmp_path: Path) -> None:
    """Two rows are written with line and reason; corrected, all ten are on main, under both names.

    The same command again brings nothing twice.
    """
    gate.put_contract(contract(TABLE, "csv", "shared"))
    rejected = gate.end(gate.drop(KEY, BODY.encode()))
    assert rejected.state is State.REJECTED

    broken = tmp_path / "broken.csv"
    said = lakegate("mend", rejected.id, "--out", str(broken))
    assert said.exit_code == 0, said.output
    assert "2 broken rows of monday.csv written to" in said.stderr.replace("\n", " ")
    assert broken.read_text() == (
        "_line,_reason,id,amount\n"
        '5,"a row whose amount is not between 0 and 100",4,400\n'
        '8,"id: not a whole number of at most 64 bits",seven,7.5\n'
    )

    fixed = tmp_path / "fixed.csv"
    fixed.write_text(broken.read_text().replace("400", "4.5").replace("seven", "7"))
    first = lakegate("mend", rejected.id, str(fixed), "--by", "Ann")
    assert first.exit_code == 0, first.output
    assert "2 broken rows replaced" in first.stderr
    again = lakegate("mend", rejected.id, str(fixed), "--by", "Ann")  # in flight, or published
    assert again.stdout == first.stdout or "NOT_REJECTED" in again.stderr, again.output

    mended = gate.end(gate.adapters.landing.brought(KEY)[0])
    assert (mended.id, mended.state) == (first.stdout.split()[0], State.PUBLISHED)
    assert gate.rows(TABLE) == [(n, n + 0.5) for n in ROWS]
    assert len(list(gate.adapters.ledger.versions(mended.landed))) == 2
    assert ShownState.of(gate.end(rejected.landed)) is ShownState.SUPERSEDED
    commit = merge_commit.commit_of(gate.adapters.catalog.log(), mended)
    assert commit.message == f"Publish 10 rows of monday.csv mended with fixed.csv to {TABLE}"
    (named,) = merge_commit.published(commit)
    assert (named.mends, named.mended_with, named.mended_by) == (rejected.id, "fixed.csv", "Ann")

    refused = lakegate("mend", rejected.id, str(fixed))
    assert (refused.exit_code, "NOT_REJECTED" in refused.stderr) == (1, True)
