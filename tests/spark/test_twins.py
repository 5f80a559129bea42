"""Of two columns that differ in one cell, one passes and the other fails one check."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lakegate.audit.report import CheckResult, Status
from tests.spark.conftest import Job
from tests.spark.measuring import contract_of, reading_session, results
from tests.spark.twins import ROWS, TWINS, Twin

pytestmark = pytest.mark.spark
Found = Mapping[str, CheckResult]


def _name(index: int) -> str:
    return f"c{index}_"


def _named(stated: Mapping[str, Any], column: str) -> Any:
    return json.loads(json.dumps(stated).replace("COLUMN", column))


def _contract() -> str:
    columns = [
        {"name": _name(n), **_named(twin.property, _name(n))} for n, twin in enumerate(TWINS)
    ]
    rules = [_named(twin.rule, _name(n)) for n, twin in enumerate(TWINS) if twin.rule]
    base = {"name": "base", "logicalType": "integer"}
    return contract_of([base, *columns], rules, quarantine={"maxRows": 9})


def _rows(columns: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return [(5, *(values[n] for values in columns)) for n in range(ROWS)]


@pytest.fixture(scope="module")
def twins(job: Job) -> tuple[Found, Found]:
    """Return the results of all checks over all good columns, and over all bad ones."""
    spark, contract = reading_session(job.warm_spark), _contract()
    good = results(spark, contract, _rows([twin.good for twin in TWINS]))
    return good, results(spark, contract, _rows([twin.bad for twin in TWINS]))


@pytest.mark.parametrize(("index", "twin"), [*enumerate(TWINS)], ids=[twin.name for twin in TWINS])
def test_one_cell_flips_one_check(twins: tuple[Found, Found], index: int, twin: Twin) -> None:
    """Every check of the good column passes; of the bad one exactly one fails."""
    good, bad = (
        {id_: r.status for id_, r in found.items() if id_.startswith(_name(index))}
        for found in twins
    )
    wanted = {_name(index) + twin.check: twin.status}
    assert set(good.values()) == {Status.PASS}, good
    assert {id_: status for id_, status in bad.items() if status is not Status.PASS} == wanted


def test_every_check_could_be_evaluated(twins: tuple[Found, Found]) -> None:
    """No check of any kind fails to run on either column; a sum beyond 38 digits has no value."""
    broken = [r for found in twins for r in found.values() if r.status is Status.ERROR]
    assert broken == []
    index = next(n for n, twin in enumerate(TWINS) if twin.name == "sum of no number")
    assert twins[1][f"{_name(index)}.it"].found == "no value"
