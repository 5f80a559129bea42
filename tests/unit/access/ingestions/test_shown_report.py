"""Reports are shown without the values that the contracts in force hide by now."""

from dataclasses import replace

import pytest

from access.ingestions.shown_report import shown_report
from functions.model.ingestion import Ingestion
from lakegate.audit.diagnosis import BadCell
from lakegate.audit.report import READABLE, AuditReport, Baseline
from tests.fakes.deployment import ORDERS, OTHER_TABLE, RETURNS, TABLE, Deployment
from tests.fakes.job import FAILED, rejected

HIDDEN = "(hidden)"
SECRET = "required: true, classification: confidential"
CELL = BadCell("line 3", "id", "x", "not a whole number").sample
ROW = {"_place": "line 2", "id": "7", "city": "Rome"}


def failing(report: AuditReport) -> AuditReport:
    """Return the report of a run that found a row and a cell."""
    row, cell = replace(FAILED, samples=(ROW,)), replace(FAILED, id=READABLE, samples=(CELL,))
    return replace(rejected(report), checks=(row, cell))


@pytest.fixture
def deployment() -> Deployment:
    return Deployment()


def put(deployment: Deployment, contract: str, table: str = TABLE) -> None:
    deployment.lake.put_text(f"contracts/{table}.yaml", contract.encode())


def samples(deployment: Deployment, ingestion: Ingestion) -> list[dict[str, str | None]]:
    report = shown_report(deployment.adapters, ingestion)
    assert report
    return [dict(row) for check in report.checks for row in check.samples]


@pytest.mark.parametrize(
    ("contract", "shown"),
    [
        (ORDERS, [ROW, CELL]),
        (
            ORDERS.replace("required: true", SECRET),
            [ROW | {"id": HIDDEN}, CELL | {"value": HIDDEN}],
        ),
        ("no contract", [ROW | {"id": HIDDEN, "city": HIDDEN}, CELL | {"value": HIDDEN}]),
    ],
)
def test_values_that_are_confidential_by_now_are_hidden(
    deployment: Deployment, contract: str, shown: list[dict[str, str | None]]
) -> None:
    """A column that became confidential is hidden in older reports, all where nobody knows."""
    landed = deployment.land("shop/orders/a.csv", script=failing)
    deployment.settle()
    put(deployment, contract)
    assert samples(deployment, deployment.ingestion(landed)) == shown


def measuring(report: AuditReport) -> AuditReport:
    """Return the report of a run that measured a column, and its drift."""
    mean = replace(FAILED, metric="mean", columns=("id",), found="5,200", value="5200.0")
    off = replace(mean, metric="drift", found="(hidden), off by 5", value="5.0")
    return replace(rejected(report), checks=(mean, replace(off, baseline=Baseline("a", 5200.0, 0))))


@pytest.mark.parametrize("secret", [True, False])
def test_measures_of_what_is_confidential_are_hidden(
    deployment: Deployment, *, secret: bool
) -> None:
    """A mean is hidden once its column is confidential, and so is the one behind its drift."""
    landed = deployment.land("shop/orders/a.csv", script=measuring)
    deployment.settle()
    put(deployment, ORDERS.replace("required: true", SECRET) if secret else ORDERS)
    report = shown_report(deployment.adapters, deployment.ingestion(landed))
    assert report
    assert ("5200" in report.to_json().replace(",", "")) is not secret


@pytest.mark.parametrize(
    ("table", "contract", "shown"), [(TABLE, ORDERS, "7"), (OTHER_TABLE, RETURNS, HIDDEN)]
)
def test_of_a_batch_each_file_goes_by_its_own_contract(
    deployment: Deployment, table: str, contract: str, shown: str
) -> None:
    """What a table's contract hides is hidden in that table's file, and shown in another's."""
    batch = deployment.batch("monday", {"a.csv": OTHER_TABLE, "b.csv": TABLE}, script=failing)
    deployment.settle()
    put(deployment, contract.replace("required: true", SECRET), table)
    assert samples(deployment, deployment.ingestion(batch))[0]["id"] == shown
