"""Count the rows of a CSV file without Spark's parser.

They follow the grammar of RFC 4180 with two common extensions: a quote within an unquoted cell is a
plain character, and empty lines are no rows.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.files.limits import check_line
from spark_jobs.files.sniff import HEAD

# By Spark's names of its options. Delimiter, quote, escape and encoding are always there.
Options = Mapping[str, str]


@dataclass(frozen=True)
class Rows:
    """The number of a file's rows, header included; `undecodable` if bytes were no text.

    `ends` are the line ends of its rows: more than one only in files joined from others.
    """

    count: int
    ends: frozenset[str]
    undecodable: bool


def count_rows(
    open_text: Callable[[], AbstractContextManager[BinaryIO]],
    options: Options,
    limits: Limits = DEFAULTS,
) -> Rows:
    """Count a CSV file's rows by its quotes and line ends; `open_text` opens its bytes.

    Raises Permanent LINE_TOO_LONG if a line or a cell is longer than the limit, and CORRUPT_FILE if
    a quote is not closed at the end of its cell: the rows after it are uncertain.
    """
    try:
        return Rows(*_count(open_text, options, "strict", limits), undecodable=False)
    except UnicodeDecodeError:
        return Rows(*_count(open_text, options, "replace", limits), undecodable=True)


def _count(
    open_text: Callable[[], AbstractContextManager[BinaryIO]],
    options: Options,
    errors: str,
    limits: Limits,
) -> tuple[int, frozenset[str]]:
    with open_text() as file:
        lines = _Lines(io.TextIOWrapper(file, options["encoding"], errors, newline=""), limits)
        reader = csv_reader(lines, options, limits.longest_line)
        try:
            counted = Counter((bool(row), lines.end) for row in reader)
            count = sum(number for (is_row, _), number in counted.items() if is_row)
            return count, frozenset(end for _, end in counted if end)
        except csv.Error as error:
            if "field limit" in str(error):
                check_line(limits.longest_line + 1, limits)
            message = (
                f"line {reader.line_num:,}: {error}. A quote in this line or an earlier one is not "
                "closed at the end of its cell, so it is unknown where the next rows begin"
            )
            raise Permanent("CORRUPT_FILE", message) from error


@dataclass
class _Lines:
    """The lines of a text, each within the limit; `end` is the line end of the latest one."""

    text: io.TextIOWrapper
    limits: Limits
    end: str = ""

    def __iter__(self) -> Iterator[str]:
        while line := self.text.readline(self.limits.longest_line + 2):
            length = len(line.rstrip("\r\n"))
            check_line(length, self.limits)
            self.end = line[length:]
            yield line


def csv_reader(lines: Iterable[str], options: Options, longest: int = HEAD) -> Any:
    """Return a strict reader of the lines' cells, none longer than `longest` characters."""
    csv.field_size_limit(longest)
    doubled = options["quote"] == options["escape"]
    return csv.reader(
        lines,
        delimiter=options["delimiter"],
        quotechar=options["quote"],
        doublequote=doubled,
        escapechar=None if doubled else options["escape"],
        strict=True,
    )
