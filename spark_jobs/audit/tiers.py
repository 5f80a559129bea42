"""The audit's seven tiers: the first tier that can answer a check does.

| # | tier      | runs in                              | costs                                     |
|---|-----------|--------------------------------------|-------------------------------------------|
| 1 | file      | `files.open`, `schema.compare`       | the file's head or footer                 |
| 2 | manifests | `tier_statistics`                    | no row: Iceberg's writer noted statistics |
| 3 | append    | `append` (`tier_scan.observable`)    | aggregates in the pass that writes        |
| 4 | scan      | `tier_scan`                          | a pass over the new files per 60 checks   |
| 5 | keys      | `tier_keys` (and SQL, control files) | a job per check                           |
| 6 | history   | `compare_with_history`               | one S3 object with earlier measures       |
| 7 | arrow     | `tier_arrow`                         | the decoded file, instead of tiers 2 to 5 |

Tiers 1 and 3 run while the file is opened and appended, before the others.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite

from lakegate.contract.checks import Check, Metric
from lakegate.contract.model import Contract
from lakegate.diagnosis import HIDDEN
from lakegate.drift import FEWEST, Baselines, baseline, comparable, deviation
from lakegate.report import Baseline, CheckResult, Tier
from spark_jobs.audit import tier_scan, tier_statistics, verdict
from spark_jobs.audit.keys import tier_keys
from spark_jobs.audit.run import Measured, RowCounts, Run

Answer = Callable[[Run, Iterable[Check]], Mapping[str, Measured]]

# The tiers that answer checks after the append, in order.
AFTER_APPEND: Mapping[Tier, Answer] = {
    Tier.MANIFESTS: tier_statistics.answer,
    Tier.SCAN: tier_scan.answer,
    Tier.KEYS: tier_keys.answer,
}


def audit(
    run: Run,
    rows: RowCounts,
    observed: Mapping[str, Measured],
    baselines: Callable[[], Baselines],
) -> tuple[CheckResult, ...]:
    """Return the result of each check: of the file's own (tier 1) and of the contract's.

    `observed` holds what the append measured (tier 3).
    """
    measured = measure(run, observed)
    results = verdict.judge(run.contract, rows, measured)
    return compare_with_history(results, run.contract, measured, baselines)


def measure(
    run: Run, observed: Mapping[str, Measured], tiers: Mapping[Tier, Answer] = AFTER_APPEND
) -> dict[str, Measured]:
    """Return the measure of every check of the contract, by its id (tiers 2, 4 and 5).

    Each tier gets the checks that neither `observed` nor an earlier tier answered.
    """
    found = dict(observed)
    for answer in tiers.values():
        found |= answer(run, [check for check in run.contract.checks if check.id not in found])
    return found


def compare_with_history(
    results: Sequence[CheckResult],
    contract: Contract,
    measured: Mapping[str, Measured],
    baselines: Callable[[], Baselines],
) -> tuple[CheckResult, ...]:
    """Return the results, with each check of drift compared with its baseline (tier 6).

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
    found = baseline(check, comparable(check, float(value), measured.rows), known)
    if found.runs < FEWEST:
        why = f"only {found.runs} of {FEWEST} published runs"
        return replace(verdict.result(check, _skipped(measured, why), contract), baseline=found)
    off = Measured(round(deviation(check, found, measured.rows), 4), measured.rows, Tier.HISTORY)
    result = verdict.result(check, off, contract)
    words = _found(check.found(off.value, off.rows), found)
    shown = f"{HIDDEN}, off by {off.value}" if contract.conceals(check) else words
    return replace(result, found=shown, baseline=found)


def _skipped(measured: Measured, why: str) -> Measured:
    return Measured(None, measured.rows, Tier.HISTORY, skipped=why)


def _found(deviations: str, found: Baseline) -> str:
    usual = f"{found.median:,.6g} is the median of {found.runs} published runs"
    return f"{found.measured:,.6g}, off by {deviations}: {usual}"
