"""Append files in order to a table in which their keys must be unique, in one commit.

The keys of all files are counted together, and looked up in main's table once. Where one is there
twice, the files before the first that has it are appended; that one is judged alone, against a
table with the others.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from spark_jobs.audit.keys import tier_keys
from spark_jobs.audit.run import Measured, Run
from spark_jobs.groups.group_arrow import Audited
from spark_jobs.groups.group_commit import GroupTable
from spark_jobs.one_pass.examined import require_all
from spark_jobs.write.commit import data_files
from spark_jobs.write.description import Written
from spark_jobs.write.files import DataFiles, Rows

_THREADS = 4  # files that are written at the same time

Measures = Mapping[str, Measured]


@dataclass(frozen=True)
class Appended:
    """The first files of those given, as they were appended in one commit.

    Of each there are its data files (Iceberg's `DataFile`) and the measures of the table's keys.
    """

    audited_hash: str
    files: Sequence[tuple[Sequence[Any], Measures]]


def append(table: GroupTable, files: Sequence[Audited]) -> Appended:
    """Append the rows of the first files whose keys are new, if there are any; they have some rows.

    A key is also not new if a check of it cannot be answered. Raises MustRewrite if Spark must
    write the files, LakegateError.
    """
    made = _written(table, files)
    count, measured = _first_with_new_keys(table.run, made)
    if not count:
        return Appended("", ())
    every = _all(made[:count])
    rows = sum(each.found.found.rows for each in files[:count])
    appended = [(own, _file_measures(own, measured)) for own in made[:count]]
    return Appended(table.commit(every, rows), appended)


def _written(table: GroupTable, files: Sequence[Audited]) -> list[list[Any]]:
    """Write the rows of each file; return its data files."""

    def write(file: Audited) -> list[Written]:
        sink = DataFiles(file.storage, table.layout, table.contract, file.storage.spec)
        written = sink.write_whole([Rows(file.rows)])
        require_all(file.found, written)
        return written

    with ThreadPoolExecutor(_THREADS) as threads:
        written = threads.map(write, files)
        return [data_files(table.spark, table.layout, each) for each in written]


def _first_with_new_keys(run: Run, files: Sequence[Sequence[Any]]) -> tuple[int, Measures]:
    """Return of how many files from the first on all keys are new, and their measures together."""
    measures = _measured(run, files)
    if measures:
        return len(files), measures
    new: tuple[int, Measures] = (0, {})
    end = len(files)  # so many have a key that is not new
    middle = 1  # as it is mostly the first one, which ended the turn before
    while new[0] < middle < end:
        if measures := _measured(run, files[:middle]):
            new = middle, measures
        else:
            end = middle
        middle = (new[0] + end) // 2
    return new


def _measured(run: Run, files: Sequence[Sequence[Any]]) -> Measures:
    """Return the measures of the table's keys in all files together, none if one is not new."""
    checks = [check for check in run.contract.checks if check.is_key_of_table]
    measures = tier_keys.answer(replace(run, files=tuple(_all(files))), checks)
    return measures if all(each.value == 0 for each in measures.values()) else {}


def _all(files: Sequence[Sequence[Any]]) -> list[Any]:
    return [each for own in files for each in own]


def _file_measures(own: Sequence[Any], together: Measures) -> Measures:
    """Return the measures of a file whose keys are new, as those of all files are."""
    rows = sum(each.recordCount() for each in own)
    return {id_: replace(each, rows=rows) for id_, each in together.items()}
