"""Register the files of a group that fit their table as they are, in one commit."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from secrets import token_hex

from pyspark.sql import SparkSession

from lakegate.contract.checks import Metric
from lakegate.contract.model import Contract
from lakegate.landing import group_branch
from spark_jobs.append import open_table
from spark_jobs.audit import tiers, verdict
from spark_jobs.audit.tier_files import FileMeasures
from spark_jobs.files.arrow import MustRewrite
from spark_jobs.fitting import Fitting, enter, examine
from spark_jobs.group_audit import Passed, is_clean
from spark_jobs.group_report import Entered, Group
from spark_jobs.nessie_branch import Branch
from spark_jobs.spark.session import CATALOG, another_session, require_rest_catalog
from spark_jobs.spark.step_metrics import Meter
from spark_jobs.storage import Storage

_THREADS = 8


@dataclass(frozen=True)
class Clean:
    """A file that fits its table and passed cleanly."""

    storage: Storage
    fitting: Fitting
    passed: Passed


@dataclass(frozen=True)
class SortedOut:
    """The files to register, and those of which Arrow cannot tell whether they pass."""

    clean: list[Clean] = field(default_factory=list)
    others: list[Storage] = field(default_factory=list)


def sort_out(files: Sequence[Storage], contract: Contract) -> SortedOut:
    """Audit the files with Arrow; leave out those that do not pass cleanly.

    Raises LakegateError.
    """
    found = SortedOut()
    baselines = cache(files[0].baselines)
    with ThreadPoolExecutor(_THREADS) as threads:
        for storage, fitting in zip(files, threads.map(_examined(contract), files), strict=True):
            if isinstance(fitting, MustRewrite) or any(
                check.id not in fitting.measured for check in contract.checks
            ):
                found.others.append(storage)
                continue
            results = verdict.judge(contract, fitting.rows, fitting.measured)
            results = tiers.compare_with_history(results, contract, fitting.measured, baselines)
            if is_clean(_measures(fitting, contract), results):
                found.clean.append(Clean(storage, fitting, Passed(fitting.rows.read, results)))
    return found


def _examined(contract: Contract) -> Callable[[Storage], Fitting | MustRewrite]:
    def examined(storage: Storage) -> Fitting | MustRewrite:
        try:
            return examine(storage, contract, storage.spec.limits)
        except MustRewrite as why:
            return why

    return examined


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
    first = files[0].storage.spec
    spec = replace(first, branch=group_branch(first.table, token_hex(8)))
    branch = Branch(spec.nessie_uri, spec.branch, token)
    spec = replace(spec, base_hash=branch.create())
    session = another_session(spark, spec, token)
    require_rest_catalog(session, CATALOG)
    with meter.step("append"):
        opened = open_table(session, spec, branch, contract)
        name, fitting = spec.branch.rpartition("/")[2], [each.fitting for each in files]
        made, audited_hash = enter(session, opened, fitting, contract, name, branch)
    entered = [Entered(each.storage, each.passed, m) for each, m in zip(files, made, strict=True)]
    engine = {"write": "registered"}
    return Group(spec, contract, audited_hash, opened.changes, meter, entered, engine)
