"""Files are counted by stage, and by table where a stage asks for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from functions.sweep import sweep
from functions.telemetry import count_files
from infra import template
from tests.fakes.job import errored, rejected
from tests.fakes.metrics import Written, metrics, metrics_of
from tests.fakes.scenario import KEY, Scenario

ROOT = Path(__file__).parents[3]
STAGE = {"service": "lakegate", "stage": "prod"}
ORDERS = {**STAGE, "table": "shop.orders"}
Run = Callable[[Callable[[], Any]], Written]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what does some work as a handler of stage `prod`, and tells the metrics written."""
    monkeypatch.setenv("LAKEGATE_STAGE", "prod")
    return lambda work: metrics_of(work, capsys)


def finish(deployment: Scenario) -> None:
    """Publish two files, reject one, and break one."""
    deployment.ended()
    deployment.ended("shop/orders/b.csv")
    deployment.ended("shop/orders/c.csv", script=rejected)
    deployment.ended("shop/orders/d.csv", script=errored)


def test_ends_are_counted_by_stage_alone(deployment: Scenario, run: Run) -> None:
    """By default there is no metric of a table, each of which CloudWatch would charge for."""
    found = run(lambda: finish(deployment))
    for name, many in (("Published", 2), ("Rejected", 1), ("Errored", 1)):
        assert (name, many, STAGE) in found
    assert all(dimensions == STAGE for _, _, dimensions in found)


def test_an_end_is_counted_once_it_is_saved(deployment: Scenario, run: Run) -> None:
    """A file whose end could not be saved, and ends at the next try, counts once."""
    deployment.run(KEY, script=rejected)
    deployment.fail("ledger.save")

    def deliver_twice() -> None:
        deployment.deliver()
        deployment.deliver()

    found = run(deliver_twice)
    assert [each for each in found if each[0] == "Rejected"] == [("Rejected", 1, STAGE)]


def test_a_stage_can_count_by_table(
    deployment: Scenario, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With TableMetrics each table has its own counts beside the totals, once for an invocation."""
    monkeypatch.setenv("LAKEGATE_TABLE_METRICS", "true")
    found = run(lambda: finish(deployment))
    for name, many in (("Published", 2), ("Rejected", 1), ("Errored", 1)):
        assert [each for each in found if each[0] == name] == [
            (name, many, STAGE),
            (name, many, ORDERS),
        ]
    assert not run(lambda: None)


def test_a_sweep_tells_how_many_files_wait(
    deployment: Scenario, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files without a final state are counted, and a sweep that finds none says 0."""
    monkeypatch.setenv("LAKEGATE_TABLE_METRICS", "true")
    deployment.submit(KEY)
    deployment.submit("shop/orders/b.csv")
    found = run(lambda: sweep(deployment.adapters))
    assert ("Waiting", 2, STAGE) in found
    assert ("Waiting", 2, ORDERS) in found
    deployment.settle()
    assert [each for each in run(lambda: sweep(deployment.adapters)) if each[0] == "Waiting"] == [
        ("Waiting", 0, STAGE)
    ]


def test_a_handler_that_fails_has_counted(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """What was done before the failure is written, and not counted again by the next invocation."""

    def break_off() -> None:
        count_files("Published", [("shop.orders",)])
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        run(break_off)
    assert metrics(capsys.readouterr().out) == [("Published", 1, STAGE)]
    assert not run(lambda: None)


def test_a_command_writes_no_metrics(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no handler runs, none is written, however many files a command decides about."""
    run(lambda: None)
    for _ in range(101):
        count_files("Published", [("shop.orders",)])
    assert capsys.readouterr().out == ""
    assert not run(lambda: None)


def test_every_function_names_its_stage() -> None:
    """Each function knows the stage that its metrics name."""
    every = template.read(ROOT / "template.yaml")["Resources"].values()
    functions = [each["Properties"] for each in every if each["Type"].endswith("::Function")]
    assert functions
    for each in functions:
        assert each["Environment"]["Variables"]["LAKEGATE_STAGE"] == {"Ref": "Stage"}
