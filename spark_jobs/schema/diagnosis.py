"""Say how a file's columns break its contract, each column once, with likely renames. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from unicodedata import normalize

from lakegate.audit.diagnosis import Rename, WrongColumns
from lakegate.contract.model import Contract
from lakegate.contract.reading.settings import FLAT_FORMATS

_LIKELY = 0.6  # of two names that may mean one column
_MOST_COMPARED = 100  # on each side: pairs take time
_LONGEST_COMPARED = 100


@dataclass(frozen=True)
class Finding:
    """A column of the file that breaks the contract; `code` is the reason's code.

    `is_plain` if code and column say everything that the `message` does.
    """

    code: str
    column: str
    message: str
    is_plain: bool = False


def diagnose(
    names: Sequence[str], findings: Sequence[Finding], contract: Contract, *, hides: bool
) -> WrongColumns:
    """Return how a file with columns of these `names`, in order, breaks the contract.

    If it `hides` names, the findings have them masked, and so has the result.
    """
    plain = {code: _columns(findings, code) for code in _PLAIN}
    missing, unexpected = plain["MISSING_COLUMN"], plain["EXTRA_COLUMN"]
    padded = _padded(names, missing)
    left = [name for name in missing if name not in padded.values()]
    declared = {column.name.lower() for column in contract.columns if column.is_declared}
    places = [
        n for n, name in enumerate(names, 1) if not {name.lower(), name} & {*declared, *padded}
    ]
    own = [name for name in unexpected if name not in padded]
    hides_places = hides and contract.format in FLAT_FORMATS
    return WrongColumns(
        expected=len(declared),
        missing=missing,
        unexpected=() if hides_places and not places else tuple(own),
        repeated=plain["DUPLICATE_COLUMN"],
        renames=() if hides else tuple(_renames(left, own)),
        padded=tuple(padded.values()),
        others=tuple(each.message for each in findings if not each.is_plain),
        places=tuple(places) if hides_places and unexpected else (),
    )


_PLAIN = ("MISSING_COLUMN", "EXTRA_COLUMN", "DUPLICATE_COLUMN")


def _columns(findings: Iterable[Finding], code: str) -> tuple[str, ...]:
    return tuple(each.column for each in findings if each.is_plain and each.code == code)


def _padded(names: Iterable[str], missing: Iterable[str]) -> dict[str, str]:
    """Return, by the file's spelling, the missing columns with spaces around their names."""
    wanted = {name.lower(): name for name in missing}
    stripped = ((name, wanted.get(name.strip().lower(), "")) for name in names)
    return {name: meant for name, meant in stripped if meant}


def _renames(missing: Sequence[str], unexpected: Sequence[str]) -> Iterator[Rename]:
    """Yield pairs of similar names, the most similar first, each name in one of them at most."""
    scored = (
        Rename(wanted, extra, similarity(wanted, extra))
        for wanted in missing[:_MOST_COMPARED]
        for extra in unexpected[:_MOST_COMPARED]
    )
    likely = [each for each in scored if each.score >= _LIKELY]
    taken: set[tuple[str, str]] = set()
    for each in sorted(likely, key=lambda pair: -pair.score):
        sides = {("contract", each.column), ("file", each.found)}
        if not sides & taken:
            taken |= sides
            yield each


def similarity(wanted: str, actual: str) -> float:
    """Return how similar two names are, from 0 to 1, without regard to case and punctuation."""
    one, other = (
        re.sub(r"[\W_]", "", normalize("NFC", name[: 2 * _LONGEST_COMPARED]).casefold())
        for name in (wanted, actual)
    )
    one, other = one[:_LONGEST_COMPARED], other[:_LONGEST_COMPARED]
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return round(matcher.ratio(), 2) if one and other and matcher.quick_ratio() >= _LIKELY else 0.0
