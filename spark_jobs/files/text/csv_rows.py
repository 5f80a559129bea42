"""Count the rows of a CSV file without Spark's parser.

They follow the grammar of RFC 4180 with a common extension: empty lines are no rows.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.files.limits import check_line

# By Spark's names of its options. Delimiter, quote, escape and encoding are always there.
Options = Mapping[str, str]
# The limit of Python's module is the whole process's: other threads read files, too. So it limits
# nothing, and the length of each row is checked here.
csv.field_size_limit(2**31 - 1)


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

    Raises Permanent LINE_TOO_LONG if a line or a row is longer than the limit, and CORRUPT_FILE if
    a quote is not closed at the end of its cell, or not opened at its beginning: the rows after it
    are uncertain.
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
        text = io.TextIOWrapper(file, options["encoding"], errors, newline="")
        lines = _Lines(text, limits)
        reader = csv_reader(apart(lines, options), options)
        sound = re.compile(f"{row_pattern(options)}[\r\n]*", re.DOTALL)
        try:
            counted = Counter(lines.ended(row, sound) for row in reader)
            count = sum(number for (is_row, _), number in counted.items() if is_row)
            return count, frozenset(end for _, end in counted if end)
        except csv.Error as error:
            message = (
                f"line {reader.line_num:,}: {error}. A quote in this line or an earlier one is not "
                "closed at the end of its cell, so it is unknown where the next rows begin"
            )
            raise Permanent("CORRUPT_FILE", message) from error


def first_lines(
    open_text: Callable[[], AbstractContextManager[BinaryIO]],
    options: Options,
    rows: Collection[int],
) -> dict[int, int]:
    """Return the lines in which some rows of a counted file begin; all are numbered from 1.

    The header counts as a row. The file is read up to the last of them.
    """
    found: dict[int, int] = {}
    with open_text() as file:
        text = io.TextIOWrapper(file, options["encoding"], "replace", newline="")
        reader = csv_reader(apart(text, options), options)
        begin, number, left = 1, 0, {*rows}
        while left and (row := next(reader, None)) is not None:
            number += bool(row)
            if row and number in left:
                left.remove(number)
                found[number] = begin
            begin = reader.line_num + 1
    return found


@dataclass
class _Lines:
    """The lines of a text, and its rows, each within the limit; `end` is the latest line's end."""

    text: io.TextIOWrapper
    limits: Limits
    end: str = ""
    number: int = 0
    _of_row: list[str] = field(default_factory=list)
    _length: int = 0

    def __iter__(self) -> Iterator[str]:
        while line := self.text.readline(self.limits.longest_line + 2):
            length = len(line.rstrip("\r\n"))
            check_line(self._length + length, self.limits)
            self.end = line[length:]
            self.number += 1
            self._of_row.append(line if self.number > 1 else line.removeprefix("\ufeff"))
            self._length += len(line)
            yield line

    def ended(self, row: Sequence[str], sound: re.Pattern[str]) -> tuple[bool, str]:
        """Return if the latest lines are a row, and their end. Raises Permanent CORRUPT_FILE."""
        text = "".join(self._of_row)
        self._of_row.clear()
        self._length = 0
        if not sound.fullmatch(text):
            message = (
                f"line {self.number:,}: a quote stands within a cell that does not begin with one. "
                "As cells of this file may contain line ends, it is unknown where rows begin: "
                "put such a cell in quotes, and double the quotes in it"
            )
            raise Permanent("CORRUPT_FILE", message)
        return bool(row), self.end


def row_pattern(options: Options) -> str:
    """Return a regular expression for a row, in Java and in Python, in linear time.

    Quotes stand only around cells, or escaped within these.
    """
    delimiter, quote = (re.escape(options[name]) for name in ("delimiter", "quote"))
    bare = f"[^{delimiter}{quote}]*+"
    cell = f"(?:{quoted_cell(options)}|{bare})"
    return f"{cell}(?:{delimiter}{cell})*+"


def quoted_cell(options: Options) -> str:
    """Return a regular expression for a cell in quotes, in Java and in Python."""
    quote, escape = (re.escape(options[name]) for name in ("quote", "escape"))
    escaped = f"{quote}{quote}" if quote == escape else f"{escape}."
    inside = f"[^{quote}{escape}]*+(?:{escaped}[^{quote}{escape}]*+)*+"
    return f"{quote}{inside}{quote}"


def apart(lines: Iterable[str], options: Options) -> Iterator[str]:
    """Yield the lines with other characters for escapes at their ends, by which rows are counted.

    Python's reader would join the next line to such a cell. To Spark an escape is one only in
    quotes, where a line end needs none.
    """
    quote, escape = options["quote"], options["escape"]
    if quote == escape:
        yield from lines
        return
    last = re.compile(rf"{re.escape(escape)}+(?=[\r\n]*\Z)")
    for line in lines:
        yield last.sub(lambda escapes: "." * len(escapes[0]), line)


def csv_reader(lines: Iterable[str], options: Options) -> Any:
    """Return a strict reader of the lines' cells, however long they are."""
    doubled = options["quote"] == options["escape"]
    return csv.reader(
        lines,
        delimiter=options["delimiter"],
        quotechar=options["quote"],
        doublequote=doubled,
        escapechar=None if doubled else options["escape"],
        strict=True,
    )
