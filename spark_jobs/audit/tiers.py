"""The audit's five tiers: the first tier that can answer a check does.

| # | tier    | runs in                              | costs                                  |
|---|---------|--------------------------------------|----------------------------------------|
| 1 | file    | `files.open`, `schema.compare`       | the file's head or footer              |
| 2 | arrow   | `tier_arrow`                         | the decoded file, while it is written  |
| 3 | scan    | `tier_scan`                          | a pass over the data files a 60 checks |
| 4 | keys    | `tier_keys` (and SQL, control files) | a job per check                        |
| 5 | history | `compare_with_history`               | one S3 object with earlier measures    |

Tiers 1 and 2 run while the file is opened and written, before the others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite

from pyspark.sql import DataFrame

from lakegate.audit.diagnosis import HIDDEN
from lakegate.audit.drift import FEWEST, Baselines, baseline, comparable, deviation
from lakegate.audit.report import Baseline, CheckResult, Tier
from lakegate.contract.checks import Check, Metric
from lakegate.contract.model import Contract
from spark_jobs.audit import tier_scan, verdict
from spark_jobs.audit.keys import file_keys, tier_keys
from spark_jobs.audit.run import Measured, RowCounts, Run


def audit(
    run: Run,
    rows: RowCounts,
    known: Mapping[str, Measured],
    baselines: Callable[[], Baselines],
) -> tuple[CheckResult, ...]:
    """Return the result of each check: of the file's own (tier 1) and of the contract's.

    `known` holds what was measured while the file was written.
    """
    measured = measure(run, known)
    results = verdict.judge(run.contract, rows, measured)
    return compare_with_history(results, run.contract, measured, baselines)


def measure(run: Run, known: Mapping[str, Measured]) -> dict[str, Measured]:
    """Return the measure of every check of the contract, by its id, with those `known`."""
    left = [check for check in run.contract.checks if check.id not in known]
    return {**known, **tier_scan.answer(run, left), **tier_keys.answer(run, left)}


def measure_files(rows: DataFrame, contract: Contract) -> dict[str, dict[str, Measured]]:
    """Return the measures of checks that need no other rows than a file's own, by their ids.

    They are those of each file with rows, by its address in `FILE`. Raises one of `JavaError` where
    a file cannot be read, or a condition of the contract cannot be evaluated.
    """
    # Two passes: with distinct keys, Spark would add up the others in another order.
    scanned, keyed = tier_scan.by_file(rows, contract), file_keys.by_file(rows, contract)
    return {file: scanned.get(file, {}) | keyed.get(file, {}) for file in scanned | keyed}


def compare_with_history(
    results: Sequence[CheckResult],
    contract: Contract,
    measured: Mapping[str, Measured],
    baselines: Callable[[], Baselines],
) -> tuple[CheckResult, ...]:
    """Return the results, with each check of drift compared with its baseline (tier 5).

    `baselines` reads the measures of published runs, only if the contract has such a check.
    """
    checks = {check.id: check for check in contract.checks if check.metric is Metric.DRIFT}
    if not checks:
        return tuple(results)
    known = baselines()
    drifts = {id_: _drift_result(c, measured[id_], contract, known) for id_, c in checks.items()}
    return tuple(drifts.get(result.id, result) for result in results)


def _drift_result(
    check: Check, measured: Measured, contract: Contract, known: Baselines
) -> CheckResult:
    value = measured.value
    if measured.problem or measured.skipped:
        return verdict.result(check, measured, contract)
    if value is None or not isfinite(value):
        return verdict.result(check, _skipped(measured, "there is no value to compare"), contract)
    history = baseline(check, comparable(check, float(value), measured.rows), known)
    if history.runs < FEWEST:
        why = f"only {history.runs} of {FEWEST} published runs"
        return replace(verdict.result(check, _skipped(measured, why), contract), baseline=history)
    off = Measured(round(deviation(check, history, measured.rows), 4), measured.rows, Tier.HISTORY)
    result = verdict.result(check, off, contract)
    words = _off_by(check.found(off.value, off.rows), history)
    shown = f"{HIDDEN}, off by {off.value}" if contract.conceals(check) else words
    return replace(result, found=shown, baseline=history)


def _skipped(measured: Measured, why: str) -> Measured:
    return Measured(None, measured.rows, Tier.HISTORY, skipped=why)


def _off_by(deviations: str, history: Baseline) -> str:
    usual = f"{history.median:,.6g} is the median of {history.runs} published runs"
    return f"{history.measured:,.6g}, off by {deviations}: {usual}"
