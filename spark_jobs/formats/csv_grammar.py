"""Where the rows of a CSV file begin and end, found without Spark's parser. Pure.

The grammar is RFC 4180's, with two liberties that everybody takes: a quote inside of a cell that
began without one is a character like any other, and empty lines are no rows.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.formats.promises import check_line
from spark_jobs.sniff import HEAD

# Spark's names of the reader's options; delimiter, quote, escape and encoding are always given.
Options = Mapping[str, str]


@dataclass(frozen=True)
class Rows:
    """A file's rows, its header among them; `undecodable` where bytes were no text.

    `ends` are the line ends behind its rows: one of a kind, but for files put together of others.
    """

    count: int
    ends: frozenset[str]
    undecodable: bool


def complete_line(options: Options) -> str:
    """A Java regular expression for lines that are whole rows by themselves.

    Where all lines of a file match there is no line end within quotes, so that the file can be
    read line by line, in parallel. No part of it can go back, so that it takes linear time.
    """
    delimiter, quote, escape = (
        f"\\x{{{ord(options[name]):x}}}" for name in ("delimiter", "quote", "escape")
    )
    escaped = f"{quote}{quote}" if quote == escape else f"{escape}."
    inside = f"[^{quote}{escape}]*+(?:{escaped}[^{quote}{escape}]*+)*+"
    cell = f"(?:{quote}{inside}{quote}|(?!{quote})[^{delimiter}]*+)"
    return f"(?s)\\A{cell}(?:{delimiter}{cell})*+\\z"


def header(head: bytes, options: Options) -> tuple[tuple[str, ...], str]:
    """The names in a CSV file's first row, and its first line as it stands there.

    Raises Permanent NOT_CSV when the row cannot be read, or does not end within `head`.
    """
    text = head.decode(options["encoding"], errors="replace").removeprefix("\ufeff")
    if len(head) >= HEAD and not re.search(r"\S.*[\r\n]", text):
        raise Permanent("NOT_CSV", f"there is no line end among the first {HEAD:,} bytes")
    first = next(filter(None, re.split(r"\r\n?|\n", text)), "")
    try:
        rows = _reader(io.StringIO(text, newline=""), options)
        return tuple(next(filter(None, rows), ())), first
    except csv.Error as error:
        message = f"the first row cannot be read: {error}"
        raise Permanent("NOT_CSV", message) from error


def count_rows(
    opened: Callable[[], AbstractContextManager[BinaryIO]],
    options: Options,
    limits: Limits = DEFAULTS,
) -> Rows:
    """Count a CSV file's rows by its quotes and line ends; `opened` gives its bytes.

    Raises Permanent LINE_TOO_LONG where a line or a cell has more characters than are taken, and
    CORRUPT_FILE where a quote that was opened is not closed at the end of a cell: whatever follows
    might be data, or might be part of that cell.
    """
    try:
        return Rows(*_count(opened, options, "strict", limits), undecodable=False)
    except UnicodeDecodeError:
        return Rows(*_count(opened, options, "replace", limits), undecodable=True)


def _count(
    opened: Callable[[], AbstractContextManager[BinaryIO]],
    options: Options,
    errors: str,
    limits: Limits,
) -> tuple[int, frozenset[str]]:
    with opened() as file:
        lines = _Lines(io.TextIOWrapper(file, options["encoding"], errors, newline=""), limits)
        reader = _reader(lines, options, limits.longest_line)
        try:
            counted = Counter((bool(row), lines.end) for row in reader)
            count = sum(number for (is_row, _), number in counted.items() if is_row)
            return count, frozenset(end for _, end in counted if end)
        except csv.Error as error:
            if "field limit" in str(error):
                check_line(limits.longest_line + 1, limits)
            message = (
                f"line {reader.line_num:,}: {error}. A quote there, or on a line before it, is not "
                "closed where its cell ends, so it is unknown where the next rows begin"
            )
            raise Permanent("CORRUPT_FILE", message) from error


@dataclass
class _Lines:
    """The lines, none longer than one may be in memory; `end` is the end of the latest one."""

    text: io.TextIOWrapper
    limits: Limits
    end: str = ""

    def __iter__(self) -> Iterator[str]:
        while line := self.text.readline(self.limits.longest_line + 2):
            length = len(line.rstrip("\r\n"))
            check_line(length, self.limits)
            self.end = line[length:]
            yield line


def _reader(lines: Iterable[str], options: Options, longest: int = HEAD) -> Any:
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
