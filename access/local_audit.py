"""Audit local files on this machine alone, as the job would."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from lakegate.contract.model import Contract
from lakegate.errors import LakegateError
from lakegate.report import AuditReport


def audits(contract: Contract, files: Iterable[Path]) -> Iterator[AuditReport]:
    """Yield the audit report of each file, by one Spark on this machine.

    Raises Transient for a fault that is not the file's.
    """
    from infra.local.contract_test import audit, local_spark  # an extra of the package has Spark

    with local_spark() as spark:
        for file in files:
            yield audit(spark, contract, file)


def data_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files, and those in directories whose names start with neither `.` nor `_`.

    Raises LakegateError NO_DATA for a directory without such a file, and for a path without a file.
    """
    for path in paths:
        within = sorted(path.iterdir()) if path.is_dir() else [path]
        found = [each for each in within if each.is_file() and (each == path or _is_data(each))]
        if not found:
            raise LakegateError("NO_DATA", f"no data file in {path}")
        yield from found


def _is_data(file: Path) -> bool:
    return not file.name.startswith((".", "_"))
