"""Checks of drift: what the tiers measured, compared with what published runs measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite

from lakegate.contract.checks import Check, Metric
from lakegate.contract.model import Contract
from lakegate.drift import FEWEST, Baselines, baseline, comparable, deviation
from lakegate.report import Baseline, CheckResult, Tier
from spark_jobs.audit import tiers
from spark_jobs.audit.run import Measured


def compared(
    results: Sequence[CheckResult],
    contract: Contract,
    measured: Mapping[str, Measured],
    baselines: Callable[[], Baselines],
) -> tuple[CheckResult, ...]:
    """The results, those of drift by how far their measure is off; `baselines` reads what was."""
    checks = {check.id: check for check in contract.checks if check.metric is Metric.DRIFT}
    if not checks:
        return tuple(results)
    known = baselines()
    off = {id_: _compared(check, measured[id_], contract, known) for id_, check in checks.items()}
    return tuple(off.get(result.id, result) for result in results)


def _compared(
    check: Check, measured: Measured, contract: Contract, known: Baselines
) -> CheckResult:
    value = measured.value
    if measured.problem or measured.skipped:
        return tiers.result(check, measured, contract)
    if value is None or not isfinite(value):
        return tiers.result(check, _skipped(measured, "there is no value to compare"), contract)
    found = baseline(check, comparable(check, float(value), measured.rows), known)
    if found.runs < FEWEST:
        why = f"only {found.runs} of {FEWEST} published runs"
        return replace(tiers.result(check, _skipped(measured, why), contract), baseline=found)
    off = Measured(round(deviation(check, found, measured.rows), 4), measured.rows, Tier.HISTORY)
    result = tiers.result(check, off, contract)
    words = _found(check.found(off.value, off.rows), found)
    shown = f"{tiers.HIDDEN}, off by {off.value}" if contract.conceals(check) else words
    return replace(result, found=shown, baseline=found)


def _skipped(measured: Measured, why: str) -> Measured:
    return Measured(None, measured.rows, Tier.HISTORY, skipped=why)


def _found(deviations: str, found: Baseline) -> str:
    usual = f"{found.median:,.6g} is the median of {found.runs} published runs"
    return f"{found.measured:,.6g}, off by {deviations}: {usual}"
