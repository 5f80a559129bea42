"""Guess why the header of a CSV file is not the contract's. Pure.

Each clue tells only what names of the contract were found where, and no text of the file: where the
header is lost, its cells are values.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence

from lakegate.contract.model import Contract

_DELIMITERS = {",": "`,`", ";": "`;`", "\t": "a tab", "|": "`|`", ":": "`:`", " ": "a space"}
_FEWEST = 2  # names of the contract that are no coincidence
_ROWS = 10
# A name of a column begins with a letter or an underscore.
_NAME = re.compile(r"\s*[^\W\d]")


def clues(text: str, names: Sequence[str], contract: Contract) -> tuple[str, ...]:
    """Return what would explain a wrong header; `text` is the beginning of the file."""
    if text.lstrip()[:1] in ("{", "["):
        return ("this looks like JSON",)
    declared = frozenset(c.name.lower() for c in contract.columns if c.is_declared)
    own = contract.options["encoding"]
    hints = (*_delimiter(text, names, contract.options, declared), *_encoding(names, own, declared))
    return hints or tuple(_other_row(text, names, contract.options, declared))


def _delimiter(
    text: str, names: Sequence[str], options: Mapping[str, str], declared: frozenset[str]
) -> Iterator[str]:
    own = options["delimiter"]
    others = [each for each in _DELIMITERS if each != own]
    hits = {each: _hits(_rows(text, each, options["quote"], 1)[0], declared) for each in others}
    best = max(others, key=lambda each: hits[each])
    if hits[best] >= _FEWEST and hits[best] > _hits(names, declared):
        sign = "\\t" if best == "\t" else best
        told = (
            f"the delimiter looks like {_DELIMITERS[best]}, not {_DELIMITERS.get(own, repr(own))}"
        )
        yield f'{told} (set options: {{delimiter: "{sign}"}})'


def _encoding(names: Sequence[str], own: str, declared: frozenset[str]) -> Iterator[str]:
    if any("\ufffd" in name for name in names):
        remedy = " (set options: {encoding: Windows-1252}, or its own)" if own == "UTF-8" else ""
        yield f"the header is not in {own}, the contract's encoding{remedy}"
        return
    again = names if own == "UTF-8" else [_as_utf_8(name, own) for name in names]
    if _hits(again, declared) > _hits(names, declared):
        yield f"the header is in UTF-8, not in {own} (set options: {{encoding: UTF-8}})"


def _as_utf_8(name: str, encoding: str) -> str:
    """Return a name whose bytes were read in another encoding; itself if they are not UTF-8."""
    try:
        return name.encode(encoding).decode("utf-8-sig")
    except UnicodeError:
        return name


def _other_row(
    text: str, names: Sequence[str], options: Mapping[str, str], declared: frozenset[str]
) -> Iterator[str]:
    """Yield that the header is in a later row, or that there is none."""
    here = _hits(names, declared)
    rows = _rows(text, options["delimiter"], options["quote"], _ROWS)
    hits = [_hits(row, declared) for row in rows]
    best = hits.index(max(hits))
    if hits[best] >= _FEWEST and hits[best] > here:
        yield f"the header looks to be in row {best + 1}: remove the rows above it"
    elif not here and not all(_NAME.match(name) for name in names):
        yield "the header looks to be missing: the first row has no name of the contract"


def _rows(text: str, delimiter: str, quote: str, most: int) -> list[list[str]]:
    """Return the first rows, at least one; what cannot be parsed has no cells."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote)
    rows: list[list[str]] = []
    try:
        for row in reader:
            if row:
                rows.append(row)
            if len(rows) == most:
                break
    except csv.Error:
        pass
    return rows or [[]]


def _hits(names: Sequence[str], declared: frozenset[str]) -> int:
    return len({name.strip().lower() for name in names} & declared)
