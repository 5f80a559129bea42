"""Register the files of a group that fit their table as they are, in one commit."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

from pyspark.sql import SparkSession

from lakegate.contract.checks import Metric
from lakegate.contract.model import Contract
from lakegate.drift import Baselines
from lakegate.errors import Permanent
from lakegate.report import CheckResult
from spark_jobs.audit import tiers, verdict
from spark_jobs.audit.tier_files import FileMeasures
from spark_jobs.files.arrow import Damaged, MustRewrite
from spark_jobs.fitting import Fitting, enter, examine
from spark_jobs.group_audit import Passed, is_clean
from spark_jobs.group_commit import Entered, Group, GroupTable, spec_like
from spark_jobs.spark.session import another_session
from spark_jobs.spark.step_metrics import Meter
from spark_jobs.storage import Storage
from spark_jobs.unforeseen import explained

_THREADS = 8


@dataclass(frozen=True)
class Clean:
    """A file that fits its table and passed cleanly."""

    storage: Storage
    fitting: Fitting
    passed: Passed


def sort_out(files: Sequence[Storage], contract: Contract) -> tuple[list[Clean], list[Storage]]:
    """Audit the files with Arrow.

    Returns those that passed cleanly, and those of which only Spark can tell whether they pass; a
    file that did not pass, or is damaged, is in neither. Raises LakegateError.
    """
    with ThreadPoolExecutor(_THREADS) as threads:
        examined = list(threads.map(partial(_examined, contract), files))
    baselines = cache(files[0].baselines)
    found = [*zip(files, examined, strict=True)]
    decided = [(file, each) for file, each in found if isinstance(each, Fitting)]
    judged = [(file, each, _results(each, contract, baselines)) for file, each in decided]
    clean = [
        Clean(file, each, Passed(each.rows.read, results))
        for file, each, results in judged
        if is_clean(_measures(each, contract), results)
    ]
    left = (Fitting, Damaged)
    return clean, [file for file, each in found if not isinstance(each, left)]


def _examined(contract: Contract, storage: Storage) -> Fitting | MustRewrite:
    """Return the file with a measure for every check, or why there is none.

    A file that cannot be examined at all is Damaged here: alone it says why. Raises Transient.
    """
    try:
        with explained("the file cannot be examined", contract):
            return _measured(contract, storage)
    except Permanent as why:
        return Damaged(why.message)


def _measured(contract: Contract, storage: Storage) -> Fitting | MustRewrite:
    try:
        found = examine(storage, contract, storage.spec.limits)
    except MustRewrite as why:
        return why
    every = all(check.id in found.measured for check in contract.checks)
    return found if every else MustRewrite("Arrow cannot answer all checks")


def _results(
    found: Fitting, contract: Contract, baselines: Callable[[], Baselines]
) -> tuple[CheckResult, ...]:
    results = verdict.judge(contract, found.rows, found.measured)
    return tiers.compare_with_history(results, contract, found.measured, baselines)


def _measures(fitting: Fitting, contract: Contract) -> FileMeasures:
    keys = (check.id for check in contract.checks if check.metric is Metric.DUPLICATE)
    repeats = any(fitting.measured[id_].value for id_ in keys)
    return FileMeasures(fitting.rows, fitting.measured, repeats)


def register_together(
    spark: SparkSession, meter: Meter, files: Sequence[Clean], contract: Contract, token: str
) -> Group:
    """Register the files on a branch of their own.

    Raises LakegateError, and MustRewrite if the table takes no files as they are.
    """
    spec = spec_like(files[0].storage.spec)
    session = another_session(spark, spec, token)
    with meter.step("append"):
        table = GroupTable.open(session, spec, contract, token)
        fitting = [each.fitting for each in files]
        made, audited_hash = enter(
            session, table.opened, fitting, contract, table.name, table.branch
        )
    entered = [Entered(each.storage, each.passed, m) for each, m in zip(files, made, strict=True)]
    return Group(table, contract, audited_hash, meter, entered, {"write": fitting[0].way})
