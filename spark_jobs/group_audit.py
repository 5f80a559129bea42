"""Audit many small files of one contract in one pass, and find those that pass cleanly.

A file passes cleanly if its report needs no row of it: it has no unparseable row and no row to
quarantine, no key twice, and every check holds, or warns of something else than rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from pyspark.sql import DataFrame, SparkSession

from lakegate.contract.checks import OF_ROWS
from lakegate.contract.model import Contract
from lakegate.drift import Baselines
from lakegate.errors import Permanent, Transient
from lakegate.limits import Limits
from lakegate.report import CheckResult, Status, Verdict
from spark_jobs.append import quarantine_condition
from spark_jobs.audit import tier_files, tier_scan, tiers, verdict
from spark_jobs.audit.tier_files import FileMeasures
from spark_jobs.files.together import ONE_FILE_A_TASK, Files, Together, open_together, packed
from spark_jobs.unforeseen import UNFORESEEN, reason_of

# The files are small: few tasks take what a pass shuffles, and find the files in storage.
SETTINGS = {
    **ONE_FILE_A_TASK,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
}


@dataclass(frozen=True)
class Passed:
    """A file that passed cleanly: its rows, and the result of each check."""

    rows: int
    results: tuple[CheckResult, ...]


@dataclass(frozen=True)
class Audited:
    """The rows of files that were read together, and those that passed, by their address."""

    rows: DataFrame
    passed: Mapping[str, Passed]


@dataclass(frozen=True)
class _Audit:
    spark: SparkSession
    contract: Contract
    limits: Limits
    baselines: Callable[[], Baselines]

    def of(self, files: Files) -> Audited:
        """Return the result for the files. Raises one of `JavaError` if one cannot be read."""
        opened, found = self.measured(files)
        passed = {
            path: Passed(each.rows.read, results)
            for path, each in found.items()
            if each.rows.read == opened.declared.get(path)
            and is_clean(each, results := self._results(each))
        }
        return Audited(opened.rows, passed)

    def measured(self, files: Files) -> tuple[Together, dict[str, FileMeasures]]:
        """Return the files' rows and measures. Raises one of `JavaError`."""
        opened = open_together(self.spark, files, self.contract, self.limits)
        quarantine = quarantine_condition(self.contract)
        return opened, tier_files.measure(packed(opened.rows), self.contract, quarantine)

    def _results(self, found: FileMeasures) -> tuple[CheckResult, ...]:
        results = verdict.judge(self.contract, found.rows, found.measured)
        return tiers.compare_with_history(results, self.contract, found.measured, self.baselines)


def audit_together(
    spark: SparkSession,
    files: Files,
    contract: Contract,
    limits: Limits,
    baselines: Callable[[], Baselines],
) -> Audited:
    """Audit the files, each by itself, in one pass; `spark` has the settings `SETTINGS`.

    A file on which a reader or a check fails is left out, and does not change the others' results.
    Raises Permanent where the contract's own SQL is refused or no file can be read, Transient when
    a retry may help.
    """
    for check in contract.checks:
        tier_scan.check_own_sql(spark, check)
    audit = _Audit(spark, contract, limits, cache(baselines))
    try:
        return audit.of(files)
    except Exception as error:  # noqa: BLE001 - whatever a file does, the others are judged
        _require_fault(error)
        return audit.of(_without_culprits(audit, files, error))


def _without_culprits(audit: _Audit, files: Files, error: Exception) -> Files:
    """Return the files that can be read together, without those on which a reader fails."""
    named = [path for path in files if path in str(error)]
    if named or len(files) == 1:
        rest = {path: file for path, file in files.items() if path not in (named or files)}
        return _readable(audit, rest)
    paths = list(files)
    halves = paths[: len(paths) // 2], paths[len(paths) // 2 :]
    found = [_readable(audit, {path: files[path] for path in half}) for half in halves]
    return {**found[0], **found[1]}


def _readable(audit: _Audit, files: Files) -> Files:
    if not files:
        return files
    try:
        audit.measured(files)
    except Permanent:  # none of them is read at all
        return files
    except Exception as error:  # noqa: BLE001 - as above
        _require_fault(error)
        return _without_culprits(audit, files, error)
    return files


def _require_fault(error: Exception) -> None:
    """Raise the error unless a file, or a condition over its rows, is at fault."""
    reason = reason_of(error, "files cannot be read together", UNFORESEEN)
    if reason is error or isinstance(reason, Transient):
        raise reason from error


def is_clean(found: FileMeasures, results: Sequence[CheckResult]) -> bool:
    """Return if a file passed cleanly."""
    outcome, _ = verdict.verdict(results)
    of_rows = [each for each in results if each.status is Status.WARN and each.metric in OF_ROWS]
    odd = found.rows.bad or found.rows.quarantined or found.repeats or of_rows
    return outcome is Verdict.PASSED and not odd
