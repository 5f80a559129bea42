"""Audit local files on this machine alone, as the job would."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from lakegate.audit.broken_rows import BrokenRows
from lakegate.audit.report import AuditReport
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError
from lakegate.job.landing import ignore_rule
from lakegate.limits import Limits

Judge = Callable[[Contract, Path], AuditReport]


@contextmanager
def local_judge(limits: Limits) -> Iterator[Judge]:
    """Provide what returns the audit report of a file by a contract, up to the limits.

    Arrow finds that a file passes. Others are audited by one Spark on this machine, which starts
    with the first of them. It raises LakegateError for a fault that is not the file's.
    """
    from infra.local import contract_test  # an extra of the package has Spark

    with ExitStack() as running:
        spark = cache(lambda: running.enter_context(contract_test.local_spark()))

        def judge(contract: Contract, file: Path) -> AuditReport:
            passed = contract_test.passed(contract, file, limits)
            return passed or contract_test.audit(spark(), contract, file, limits)

        yield judge


def broken_rows(
    contract: Contract, file: Path, failed: Collection[str], limits: Limits
) -> BrokenRows:
    """Return all rows of a file that break one of the `failed` checks. Raises as `local_judge`."""
    from infra.local import contract_test  # an extra of the package has Spark

    with contract_test.local_spark() as spark:
        return contract_test.broken_rows(spark, contract, file, failed, limits)


def audits(contract: Contract, files: Iterable[Path], limits: Limits) -> Iterator[AuditReport]:
    """Yield the audit report of each file. Raises LakegateError as `local_judge` does."""
    with local_judge(limits) as judge:
        for file in files:
            yield judge(contract, file)


def data_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files, and those in directories that would be ingested if they landed.

    Raises LakegateError NO_DATA for a directory without such a file, and for a path without a file.
    """
    for path in paths:
        landing = (each for each in path.glob("*") if not ignore_rule(each.name))
        within = sorted(landing) if path.is_dir() else [path]
        files = [each for each in within if each.is_file()]
        if not files:
            raise LakegateError("NO_DATA", f"no data file in {path}")
        yield from files
