"""The lines of JSON files, with their numbers and reasons as the first two keys."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from access.mending.records import (
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

_OBJECT = re.compile(r"\s*\{(.*)\}\s*", re.DOTALL)


@dataclass(frozen=True)
class JsonRows:
    """The rows of a file with one object a line."""

    contract: Contract
    text: Text

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
        for row in records:
            if reasons := broken.reasons.get(row.number):
                first = {self._line: row.number, self._reason: "; ".join(reasons)}
                whole = _inner(row.text)
                if whole is None:
                    whole = _inner(json.dumps({self._whole: row.text}, ensure_ascii=False)) or ""
                start = json.dumps(first, ensure_ascii=False)[:-1]
                yield f"{start}, {whole}}}\n" if whole else f"{start}}}\n"

    def corrections(self, lines: Iterable[str], records: Iterable[Record]) -> Iterator[Correction]:
        """Yield the rows of such a file, each as it is written behind the first two keys."""
        for line, (_, text) in enumerate(unmarked(lines), 1):
            if text.strip():
                start = self._first_two.match(text)
                if not start:
                    message = f'it does not begin with {{"{self._line}": …, "{self._reason}": …'
                    raise BadCorrection(line, message)
                rest = "{" + text[start.end() :].strip()
                yield Correction(line, int(start[1]), self._row(line, rest))

    def _row(self, line: int, text: str) -> str:
        """Return the line that a row is to be: its object, or the text that it was no object of."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadCorrection(line, f"it is no JSON: {error}") from error
        if [*found] != [self._whole]:
            return text
        whole = found[self._whole]
        if not isinstance(whole, str) or "\n" in whole or "\r" in whole:
            raise BadCorrection(line, f"{self._whole} is not the text of one line")
        return whole

    @cached_property
    def _names(self) -> tuple[str, str, str]:
        own = [column.name for column in self.contract.columns]
        line, reason = marks("line", [*own, "_text"])
        return line, reason, marks("text", own)[0]

    @property
    def _line(self) -> str:
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
        keys = rf'\s*\{{\s*"{re.escape(self._line)}"\s*:\s*([0-9]{{1,12}})\s*,'
        return re.compile(rf'{keys}\s*"{re.escape(self._reason)}"\s*:\s*{text}\s*(?:,|(?=\}}))')


def _inner(text: str) -> str | None:
    """Return what is within the brackets of a line that is one object, None for any other."""
    try:
        is_object = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return None
    matched = _OBJECT.fullmatch(text)
    return matched[1].strip() if is_object and matched else None
