"""What is wrong with a file, as a whole or in a cell: values for its report, and their words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import normalize

from lakegate.text import count

_MOST_NAMES = 10
_MOST_OTHERS = 3
_LONGEST_NAME, _LONGEST = 60, 1000
HIDDEN = "(hidden)"  # in place of a confidential column's values
WHOLE = "the whole row"  # in place of a column's name


@dataclass(frozen=True)
class Rename:
    """A missing column and a column of the file that may be it; `score` is at most 1."""

    column: str
    found: str
    score: float


@dataclass(frozen=True)
class WrongColumns:
    """How a file's columns differ from the contract's `expected` ones.

    `causes` are sentences about what would explain it. `missing`, `unexpected` and `repeated` are
    names of columns. `renames` pair missing with unexpected ones. `padded` are the missing columns
    whose names have spaces around them in the file. `others` are sentences about columns of the
    wrong type. Where the names of the file's own columns must be hidden, `unexpected` has only
    numbers, and `places` are their places in the header, from 1.
    """

    expected: int
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    renames: tuple[Rename, ...] = ()
    padded: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    places: tuple[int, ...] = ()

    @property
    def sentence(self) -> str:
        """Return all of it for people: causes first, then each column once."""
        parts = (*self.causes, *self._padded(), *self._missing(), *self._unexpected())
        return "; ".join((*parts, *self._repeated(), *self._others()))[:_LONGEST]

    def _padded(self) -> Iterator[str]:
        if self.padded:
            many = count(len(self.padded), "header name has", "header names have")
            yield f"{many} spaces at an end: {_named(self.padded)}"

    def _missing(self) -> Iterator[str]:
        missing = [name for name in self.missing if name not in self.padded]
        if self._is_explained:
            yield f"none of the contract's {count(self.expected, 'column')} is found"
        elif len(missing) == 1:
            yield f"column {_named(missing)} is missing{self._renamed(missing[0])}"
        elif missing:
            shown = [_named([name]) + self._renamed(name) for name in missing[:_MOST_NAMES]]
            listed = ", ".join([*shown, *_more(missing, _MOST_NAMES)])
            yield f"{len(missing):,} of {self.expected:,} columns are missing: {listed}"

    def _renamed(self, name: str) -> str:
        pair = next((each for each in self.renames if each.column == name), None)
        if not pair:
            return ""
        how = f"score {pair.score:.2f}"
        if normalize("NFC", pair.found) == normalize("NFC", name):  # which people cannot see
            how = "with its accents in another form of Unicode, NFC or NFD"
        return f" (perhaps {_named([pair.found])}, {how})"

    @property
    def _is_explained(self) -> bool:
        """Return if the causes explain that no column at all was found."""
        return bool(self.causes) and len(self.missing) == self.expected and not self.padded

    def _unexpected(self) -> Iterator[str]:
        if self._is_explained:  # these are no names then
            return
        renamed = {each.found for each in self.renames}
        others = [name for name in self.unexpected if name not in renamed]
        if self.places:
            where = ", ".join([*map(str, self.places[:_MOST_NAMES]), *_more(self.places)])
            many = count(len(self.places), "name of the header is", "names of the header are")
            yield f"{many} not in the contract (numbers from the left: {where})"
        elif len(others) == 1:
            yield f"column {_named(others)} is not in the contract"
        elif others:
            yield f"{len(others):,} columns are not in the contract: {_named(others)}"

    def _repeated(self) -> Iterator[str]:
        if self.repeated:
            several = "s" if self.repeated[1:] else ""
            yield f"the file has column{several} {_named(self.repeated)} more than once"

    def _others(self) -> list[str]:
        return [*self.others[:_MOST_OTHERS], *_more(self.others, _MOST_OTHERS)]


def _named(names: Sequence[str]) -> str:
    shown = [repr(_cut(name)) for name in names[:_MOST_NAMES]]
    return ", ".join([*shown, *_more(names)])


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def _more(every: Sequence[object], shown: int = _MOST_NAMES) -> list[str]:
    return [f"and {len(every) - shown:,} more"] if len(every) > shown else []


def place(unit: str, number: int) -> str:
    """Return where a row is in its landed file, by its number from 1: `line 1,207`."""
    return f"{unit} {number:,}"


@dataclass(frozen=True)
class BadCell:
    """A cell that could not be read; `column` is "" for a whole row.

    `place` is where it is in the landed file, as `place` says it: `line 7`, where its row begins,
    else `row 6` or `item 6`; "" if unknown. `value` is its text, or that it is hidden.
    """

    place: str
    column: str
    value: str
    reason: str

    @property
    def sample(self) -> dict[str, str | None]:
        """Return the cell as a sample row of a report."""
        named = {"column": self.column or WHOLE, "value": self.value, "reason": self.reason}
        return {**({"place": self.place} if self.place else {}), **named}


def cell_told(sample: Mapping[str, str | None]) -> str:
    """Return such a sample row as a sentence for people; "" for any other sample row."""
    if not {"column", "value", "reason"} <= sample.keys() <= {*_CELL}:
        return ""
    place = f"{sample['place']}: " if sample.get("place") else ""
    return f"{place}{sample['column']} {sample['value']!r}: {sample['reason']}"


def cell_of(sample: Mapping[str, str | None]) -> BadCell | None:
    """Return the cell that such a sample row names; None for any other sample row."""
    if not cell_told(sample):
        return None
    return BadCell(**{name: sample.get(name) or "" for name in _CELL})


_CELL = ("place", "column", "value", "reason")
