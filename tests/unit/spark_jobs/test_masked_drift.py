"""A report hides measures of confidential columns, drift included."""

from dataclasses import replace

import pytest

from lakegate.audit.drift import Baselines
from lakegate.audit.report import CheckResult, Tier
from lakegate.contract.model import Contract, parse
from spark_jobs.audit import tiers, verdict
from spark_jobs.audit.run import Measured
from tests.fakes.examples import REPORT
from tests.unit.contract.contract_texts import HEAD

TEXT = (
    HEAD
    + """\
schema:
  - name: shop.people
    properties:
      - name: salary
        logicalType: number
        classification: {secrecy}
        quality:
          - {{id: top, type: custom, engine: lakegate,
             implementation: {{check: quantile, share: 1, mustBeLessThan: 10}}}}
          - {{id: mean, type: custom, engine: lakegate,
             implementation: {{check: drift, of: mean}}}}
          - {{id: nulls, type: library, metric: nullValues, mustBe: 0}}
"""
)
MEASURED = Measured(98765.5, 20, Tier.SCAN)


def contract(secrecy: str) -> Contract:
    """Return a contract with checks of a column of that classification."""
    return parse(TEXT.format(secrecy=secrecy), "people.yaml")


def results(contract: Contract) -> dict[str, CheckResult]:
    """Return each check's result when it measured 98,765.5, as seven runs did before."""
    measured = {check.id: MEASURED for check in contract.checks}
    found = [verdict.result(check, MEASURED, contract) for check in contract.checks]
    known = Baselines("shop.people")
    for number in range(8):
        results_with_drift = tiers.compare_with_history(found, contract, measured, lambda: known)  # noqa: B023
        known = known.adding(replace(REPORT, ingestion=str(number), checks=results_with_drift))
    return {result.id.rpartition(".")[2]: result for result in results_with_drift}


@pytest.mark.parametrize("secrecy", ["confidential", "restricted", "Secret", "'4'"])
def test_measures_of_a_confidential_column_are_hidden(secrecy: str) -> None:
    """Neither values nor means of a confidential column are reported; counts are."""
    found = results(contract(secrecy))
    assert (found["top"].found, found["top"].value) == ("(hidden)", "")
    assert found["mean"].found == "(hidden), off by 0.0"
    assert found["nulls"].found != "(hidden)"


def test_measures_of_an_open_column_are_reported() -> None:
    """Measures of an open column are in the report."""
    found = results(contract("internal"))
    assert found["top"].found == "98,765.5"
    assert "98,765.5 is the median of 7" in found["mean"].found
