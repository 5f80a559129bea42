"""Text and JSON output of `lakegate reconcile`."""

import json
from contextlib import nullcontext
from dataclasses import replace

import pytest
import typer

from cli.ledger.reconcile import report
from functions.model.ingestion import State
from functions.operations.reconcile.file_sums import Reconciliation
from tests.unit.operations.main_history import ORDERS, History


def history(*, right: bool = True) -> Reconciliation:
    """Return two published files, one rejected and a deletion by others, or a doubled file."""
    made = History()
    made.publish([3000, 4])
    made.taken_in(State.REJECTED)
    made.publish([5], gain=5 if right else 10)
    made.by_others(-2)
    return made.reconcile()


def test_no_problem_exits_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    """The output has final states with objects and rows, tables, remarks and the verdict."""
    report(history(), as_json=False)
    said = capsys.readouterr().out
    lines = [line.split() for line in said.splitlines()]
    assert ["published", "3", "3,009"] in lines
    assert ["rejected", "1", "0"] in lines
    assert ["landed", "4"] in lines
    assert [ORDERS, "3,007", "3,009", "-2", "0"] in lines
    assert "! ann removed 2 rows of shop.orders" in said
    assert "no problems: landing = published + rejected + errored + ignored + in flight" in said


def test_a_problem_exits_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Each problem is printed on its own line with its code, and the exit code is 1."""
    with pytest.raises(typer.Exit) as ended:
        report(history(right=False), as_json=False)
    assert ended.value.exit_code == 1
    said = capsys.readouterr().out
    [problem] = [line for line in said.splitlines() if line.startswith("✗")]
    assert "5 too many" in problem
    assert problem.endswith("(WRONG_GAIN)")
    assert "no problems" not in said


def test_a_flood_of_problems_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal shows the first fifty problems and the number of others."""
    found = history(right=False)
    with pytest.raises(typer.Exit):
        report(replace(found, problems=found.problems * 60), as_json=False)
    said = capsys.readouterr().out
    assert said.count("✗") == 50
    assert "… and 10 more: --json lists them all" in said


@pytest.mark.parametrize("right", [True, False])
def test_a_document_has_everything(capsys: pytest.CaptureFixture[str], right: bool) -> None:
    """`--json` has every final state, table, problem and remark."""
    with nullcontext() if right else pytest.raises(typer.Exit):
        report(history(right=right), as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["right"], document["landed"]) == (right, 4)
    assert document["ends"]["published"] == {"objects": 3, "rows": 3009}
    assert (sum(end["objects"] for end in document["ends"].values()), document["since"]) == (
        4,
        None,
    )
    [table] = document["tables"]
    assert (table["table"], table["published"], table["by_others"]) == (ORDERS, 3009, -2)
    assert (table["rows"], table["off_by"]) == ((3007, 0) if right else (3012, 5))
    assert [each["code"] for each in document["problems"]] == ([] if right else ["WRONG_GAIN"])
    assert [each["code"] for each in document["remarks"]] == ["CHANGED_BY_OTHERS"]
