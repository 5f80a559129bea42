"""Reconcile compares the records of a whole deployment."""

import pytest

from functions.operations.reconcile.compare import reconciled
from functions.operations.reconcile.file_sums import Reconciliation
from functions.operations.reconcile.row_balance import Finding
from lakegate.errors import LakegateError
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import TABLE
from tests.fakes.job import rejected
from tests.fakes.promises import unwatched
from tests.fakes.rows import ROWS_A_FILE
from tests.fakes.scenario import Scenario


@pytest.fixture
def deployment() -> Scenario:
    """Return a deployment that published two files one after the other, and rejected one."""
    made = Scenario()
    for name in ("a", "b"):
        made.land(f"shop/orders/{name}.parquet")
        made.settle()
    made.land("shop/orders/bad.parquet", script=rejected)
    made.settle()
    made.clock.pass_(24 * 3600)
    return made


def result_of(deployment: Scenario, table: str = "", *, thorough: bool = False) -> Reconciliation:
    return reconciled(unwatched(deployment), table, thorough=thorough)


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [each.code for each in findings]


def test_no_single_object_is_asked_for(deployment: Scenario) -> None:
    """Each record is read once; later runs read no earlier commit or report."""
    result_of(deployment)
    deployment.journal.calls.clear()
    reconciled(deployment.adapters)
    assert [call for call in deployment.journal.calls if call != "lake.is_gone"] == [
        "lake.checkpoint",
        "ledger.upkeep",
        "catalog.history",
        "ledger.all",
        "landing.landed",
        "lake.changes",
        "ledger.known",
        "tables.rows",
        "tables.listed",
        "catalog.branches",
        "tables.rows",
        "lake.put_checkpoint",
    ]


def test_a_dropped_table_is_reported_without_loss(deployment: Scenario) -> None:
    """A dropped table is a remark, and then has only the files that land later."""
    deployment.catalog.commit("main", TABLE, None)
    assert codes(result_of(deployment).remarks) == ["CHANGED_BY_OTHERS"]
    deployment.ended("shop/orders/c.parquet")
    found = result_of(deployment)
    assert found.problems == ()
    assert found.balances[0].rows.live == ROWS_A_FILE


def test_a_table_of_others_is_none_of_ours(deployment: Scenario) -> None:
    """Tables without published data are ignored."""
    deployment.catalog.commit("main", "lab.notes", FakeTable("uuid", files=("a", "a")))
    found = result_of(deployment)
    assert [balance.table for balance in found.balances] == [TABLE]
    assert (found.problems, found.remarks) == ((), ())


def test_an_object_that_was_forgotten_is_a_problem_after_the_sweeps_turn(
    deployment: Scenario,
) -> None:
    """An object without its event is in flight until the sweep should have run."""
    deployment.loses_events = True
    deployment.land("shop/orders/lost.parquet")
    deployment.clock.pass_(deployment.settings.grace_seconds * 1.5)
    assert result_of(deployment).problems == ()
    deployment.clock.pass_(deployment.settings.grace_seconds)
    assert codes(result_of(deployment).problems) == ["NOT_TAKEN_IN"]
    deployment.settle()
    assert result_of(deployment).problems == ()


def test_only_what_concerns_a_table(deployment: Scenario) -> None:
    """With a table named, other tables are ignored, but unknown objects are not."""
    assert result_of(deployment, TABLE).landed == 3
    with pytest.raises(LakegateError, match=r"UNKNOWN_TABLE.*landed for shop\.other"):
        result_of(deployment, "shop.other")  # nothing of it is right or wrong
    deployment.loses_events = True
    deployment.land("shop/orders/lost.parquet")
    deployment.clock.pass_(24 * 3600)
    assert codes(result_of(deployment, "shop.other").problems) == ["NOT_TAKEN_IN"]


@pytest.mark.parametrize("thorough", [False, True])
def test_a_data_file_that_is_not_there_is_a_problem(deployment: Scenario, thorough: bool) -> None:
    """A missing data file is found in a sample of the files, or in all on request."""
    table = deployment.main()
    more = [f"{number}.parquet" for number in range(30)]
    deployment.catalog.commit("main", TABLE, table.append(*more))
    deployment.lake.deleted[table.files[0]] = None
    deployment.lake.deleted[more[-1]] = None
    found = result_of(deployment, thorough=thorough)
    assert codes(found.problems) == ["FILE_GONE"] * (1 + thorough)
    assert (
        f"lists the data file {table.files[0]}, which does not exist" in found.problems[0].message
    )


def test_a_run_for_one_table_leaves_the_checkpoint(deployment: Scenario) -> None:
    """A run for one table does not write the checkpoint."""
    result_of(deployment, TABLE)
    assert deployment.lake.checkpoint() == (None, "")


def test_a_checkpoint_that_cannot_be_written_is_a_remark(deployment: Scenario) -> None:
    """A checkpoint that cannot be written is a remark, and the results stand."""
    deployment.fail("lake.put_checkpoint")
    found = reconciled(deployment.adapters)
    assert (found.problems, codes(found.remarks)) == ((), ["NO_CHECKPOINT"])
