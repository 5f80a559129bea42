"""The rows of JSON files, with their numbers and reasons as the first two keys."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from access.mending.records import (
    MARK,
    BadCorrection,
    Correction,
    Record,
    marks,
    record,
    unmarked,
)
from lakegate.audit.broken_rows import BrokenRows
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError

_OBJECT = re.compile(r"\s*\{(.*)\}\s*", re.DOTALL)
_BLANKS = " \t\r\n"
# Strings, which may hold any sign, and the signs that an array's items begin or end with.
_SIGN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{},]', re.DOTALL)


@dataclass(frozen=True)
class JsonRows:
    """The rows of a file with one object a line."""

    contract: Contract
    unit: ClassVar[str] = "line"

    def records(self, lines: Iterable[str]) -> Iterator[Record]:
        """Yield all of a file's text, line by line."""
        for number, (mark, line) in enumerate(unmarked(lines), 1):
            if mark:
                yield Record(0, mark)
            yield record(number, line)

    def written(self, records: Iterable[Record], broken: BrokenRows) -> Iterator[str]:
        """Yield the broken lines, each as an object with two keys more.

        A line that is no object is the text of a third key.
        """
        for each in self._marked(records, broken):
            yield f"{each}\n"

    def corrections(self, lines: Iterable[str], records: Iterable[Record]) -> Iterator[Correction]:
        """Yield the rows of such a file, each as it is written behind the first two keys."""
        for line, text in self._corrected(lines):
            if text.strip():
                start = self._first_two.match(text)
                if not start:
                    message = f'it does not begin with {{"{self._number}": …, "{self._reason}": …'
                    raise BadCorrection(line, message)
                rest = "{" + text[start.end() :].strip()
                yield Correction(line, int(start[1]), self._row(line, rest))

    def _marked(self, records: Iterable[Record], broken: BrokenRows) -> Iterator[str]:
        for row in records:
            if reasons := broken.reasons.get(row.number):
                first = {self._number: row.number, self._reason: "; ".join(reasons)}
                whole = _inner(row.text)
                if whole is None:
                    whole = _inner(json.dumps({self._whole: row.text}, ensure_ascii=False)) or ""
                start = json.dumps(first, ensure_ascii=False)[:-1]
                yield f"{start}, {whole}}}" if whole else f"{start}}}"

    def _corrected(self, lines: Iterable[str]) -> Iterator[tuple[int, str]]:
        """Yield the number and the text of each line."""
        return enumerate((line for _, line in unmarked(lines)), 1)

    def _row(self, line: int, text: str) -> str:
        """Return the text that a row is to be: its object, or what it was that is no object."""
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadCorrection(line, f"it is no JSON: {error}") from error
        if [*row] != [self._whole]:
            return text
        whole = row[self._whole]
        if not isinstance(whole, str) or not self._is_one(whole):
            raise BadCorrection(line, f"{self._whole} is not the text of one {self.unit}")
        return whole

    def _is_one(self, text: str) -> bool:
        return "\n" not in text and "\r" not in text

    @cached_property
    def _names(self) -> tuple[str, str, str]:
        own = [column.name for column in self.contract.columns]
        number, reason = marks(self.unit, [*own, "_text"])
        return number, reason, marks("text", own)[0]

    @property
    def _number(self) -> str:
        return self._names[0]

    @property
    def _reason(self) -> str:
        return self._names[1]

    @property
    def _whole(self) -> str:
        return self._names[2]

    @cached_property
    def _first_two(self) -> re.Pattern[str]:
        text = r'"(?:[^"\\]|\\.)*+"'
        keys = rf'\s*\{{\s*"{re.escape(self._number)}"\s*:\s*([0-9]{{1,12}})\s*,'
        return re.compile(rf'{keys}\s*"{re.escape(self._reason)}"\s*:\s*{text}\s*(?:,|(?=\}}))')


@dataclass(frozen=True)
class JsonItems(JsonRows):
    """The rows of a file that is one array, whose text is in memory as a whole."""

    unit: ClassVar[str] = "item"

    def records(self, lines: Iterable[str]) -> Iterator[Record]:
        """Yield all of a file's text, item by item. Raises LakegateError NOT_BY_ROWS."""
        text = "".join(lines)
        places = [*_items(text)]
        if any(begin == stop for begin, stop in places):
            raise LakegateError("NOT_BY_ROWS", "an item of the array is empty")
        begins = [begin for begin, _ in places]
        last = places[-1][1]
        yield Record(0, text[: begins[0]])
        ends = [*begins[1:], last]
        for number, ((begin, stop), end) in enumerate(zip(places, ends, strict=True), 1):
            yield Record(number, text[begin:stop], text[stop:end])
        yield Record(0, text[last:])

    def written(self, records: Iterable[Record], broken: BrokenRows) -> Iterator[str]:
        """Yield an array of the broken items, each with two keys more, as of lines."""
        before = "[\n"
        for each in self._marked(records, broken):
            yield before + each
            before = ",\n"
        yield "\n]\n"

    def _corrected(self, lines: Iterable[str]) -> Iterator[tuple[int, str]]:
        """Yield each item of an array with the number of its first line. Raises BadCorrection."""
        text = "".join(lines).removeprefix(MARK)
        _require_array(text)
        line, counted = 1, 0
        for begin, stop in _items(text):
            line += text.count("\n", counted, begin)
            counted = begin
            yield line, text[begin:stop]

    def _is_one(self, text: str) -> bool:
        return [*_items(f"[{text}]")] == [(1, 1 + len(text))]


def _require_array(text: str) -> None:
    """Raise BadCorrection unless the text is an array, or empty."""
    try:
        document = json.loads(text if text.strip() else "[]")
    except (ValueError, RecursionError) as error:
        raise BadCorrection(getattr(error, "lineno", 1), f"it is no JSON: {error}") from error
    if not isinstance(document, list):
        raise BadCorrection(1, "it is no array, as it was written")


def _items(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each item of an array begins and stops, without the blanks around it."""
    depth = begin = 0
    for sign in _SIGN.finditer(text):
        opens, closes = sign[0] in "[{", sign[0] in "]}"
        if depth == 1 and (closes or sign[0] == ","):
            yield _stripped(text, begin, sign.start())
            begin = sign.end()
        depth += opens - closes
        if depth == 1 and opens:
            begin = sign.end()


def _stripped(text: str, begin: int, stop: int) -> tuple[int, int]:
    piece = text[begin:stop]
    inner = piece.lstrip(_BLANKS)
    begin += len(piece) - len(inner)
    return begin, begin + len(inner.rstrip(_BLANKS))


def _inner(text: str) -> str | None:
    """Return what is within the brackets of a text that is one object, None for any other."""
    try:
        is_object = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return None
    matched = _OBJECT.fullmatch(text)
    return matched[1].strip() if is_object and matched else None
