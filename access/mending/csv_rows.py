"""The rows of CSV and TSV files, with their numbers and reasons as the first two columns."""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from access.mending.records import (
    MARK,
    BadCorrection,
    Correction,
    Record,
    Text,
    marks,
    record,
    unmarked,
)
from lakegate.audit.broken_rows import BrokenRows
from lakegate.contract.model import Contract
from spark_jobs.files.text.csv_rows import apart, csv_reader, quoted_cell


@dataclass(frozen=True)
class CsvRows:
    """The rows of a CSV file, numbered by their first lines; with `spans` some have several."""

    contract: Contract
    text: Text
    spans: bool

    def records(self, lines: Iterable[str]) -> Iterator[Record]:
        """Yield all of a file's text: lines that are rows each, or rows with line ends in them."""
        number = 1
        for mark, text, is_row in self._pieces(lines):
            if mark:
                yield Record(0, mark)
            yield record(number if is_row else 0, text)
            number += _line_count(text)

    def written(self, records: Iterable[Record], broken: BrokenRows) -> Iterator[str]:
        """Yield the header with two columns more, and the broken rows."""
        rows = iter(records)
        mark, header = self._header(rows)
        names = [*self._marks(self._cells(header.text)), header.text]
        yield mark + self._delimiter.join(names) + (header.end or "\n")
        for row in rows:
            if reasons := broken.reasons.get(row.number):
                reason = self._quoted(self.text.shown("; ".join(reasons)))
                cells = [str(row.number), reason, row.text]
                yield self._delimiter.join(cells) + (row.end or "\n")

    def corrections(self, lines: Iterable[str], records: Iterable[Record]) -> Iterator[Correction]:
        """Yield the rows of such a file; all but the first two cells stay as they are written."""
        names = self._cells(self._header(iter(records))[1].text)
        expected = [*self._marks(names), *names]
        rows, line = self._rows(lines), 1
        for text, cells in chain([next(rows, ("", []))], rows):
            if line == 1 and cells != expected:
                shown = self._delimiter.join(expected)
                raise BadCorrection(line, f"its columns are not as they were written: {shown}")
            if line > 1 and cells:
                yield self._correction(line, text.rstrip("\r\n"), cells[0])
            line += _line_count(text)

    def _correction(self, line: int, text: str, number: str) -> Correction:
        start = self._first_two.match(text)
        if not start or not (number.isascii() and number.isdigit()):
            message = "it does not begin with the number of a line and a reason"
            raise BadCorrection(line, message)
        return Correction(line, int(number), text[start.end() :])

    def _pieces(self, lines: Iterable[str]) -> Iterator[tuple[str, str, bool]]:
        """Yield each row with the mark before it, and whether it is one; blank lines are none."""
        if not self.spans:
            for mark, line in unmarked(lines):
                yield mark, line, bool(line.strip("\r\n"))
            return
        first = ""

        def without() -> Iterator[str]:
            nonlocal first
            for mark, line in unmarked(lines):
                first = mark or first
                yield line

        for text, cells in self._rows(without()):
            mark, first = first, ""
            yield mark, text, bool(cells)

    def _rows(self, lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        """Yield each row as it is written, and its cells. Raises BadCorrection."""
        taken: list[str] = []

        def remembered() -> Iterator[str]:
            for _, line in unmarked(lines):
                taken.append(line)
                yield line

        options = self.contract.options
        reader = csv_reader(apart(remembered(), options), options)
        try:
            for cells in reader:
                yield "".join(taken), cells
                taken.clear()
        except csv.Error as error:
            raise BadCorrection(reader.line_num, f"it is no CSV: {error}") from error

    def _header(self, rows: Iterator[Record]) -> tuple[str, Record]:
        """Return the mark before the header, and the header; the contract's without one."""
        mark = ""
        if not self._has_header:
            names = (self._quoted(column.name) for column in self.contract.columns)
            return mark, Record(0, self._delimiter.join(names))
        for row in rows:
            if row.text == MARK:
                mark = MARK
            elif row.text:
                return mark, row
        return mark, Record(0, "")

    def _marks(self, names: Iterable[str]) -> tuple[str, str]:
        return marks("line", [*names, *(column.name for column in self.contract.columns)])

    def _cells(self, text: str) -> list[str]:
        return next(csv_reader([text], self.contract.options), [])

    def _quoted(self, text: str) -> str:
        quote, escape = self.contract.options["quote"], self.contract.options["escape"]
        escaped = text if quote == escape else text.replace(escape, escape * 2)
        return f"{quote}{escaped.replace(quote, escape + quote)}{quote}"

    @property
    def _delimiter(self) -> str:
        return self.contract.options["delimiter"]

    @property
    def _has_header(self) -> bool:
        return self.contract.options["header"] == "true"

    @cached_property
    def _first_two(self) -> re.Pattern[str]:
        delimiter, quote = re.escape(self._delimiter), re.escape(self.contract.options["quote"])
        cell = f"(?:{quoted_cell(self.contract.options)}|[^{delimiter}{quote}]*+)"
        return re.compile(f"(?:{cell}{delimiter}){{2}}", re.DOTALL)


def _line_count(text: str) -> int:
    return max(len(re.findall(r"\r\n?|\n", text)), 1)
