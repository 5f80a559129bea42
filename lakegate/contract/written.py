"""Know how the cells of text files are often written, beside ISO 8601 and the decimal point.

A format is a pattern of Java's DateTimeFormatter, as a contract declares it (`format`).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# What each part of a format matches, and the directive of `strptime` that reads it.
_PARTS: Mapping[str, tuple[str, str]] = {
    "yyyy": ("[0-9]{4}", "%Y"),
    "MMM": (f"(?i:{'|'.join(MONTHS)})", "%b"),
    "MM": ("(0[1-9]|1[0-2])", "%m"),
    "dd": ("(0[1-9]|[12][0-9]|3[01])", "%d"),
    "HH": ("([01][0-9]|2[0-3])", "%H"),
    "mm": ("[0-5][0-9]", "%M"),
    "ss": ("[0-5][0-9]", "%S"),
    "M": ("(0?[1-9]|1[0-2])", "%m"),
    "d": ("(0?[1-9]|[12][0-9]|3[01])", "%d"),
}
_PART = re.compile("|".join(_PARTS))
# Texts with the digits of each part, whose numbers may be too large; and all that a lenient reader
# could take for a moment.
_SHAPES = {part: f"([0-9]{{{len(part)},{max(len(part), 2)}}})" for part in _PARTS}
_SHAPES["MMM"] = f"({_PARTS['MMM'][0]})"
_LOOSE = {part: f"[+-]?[0-9]{{{len(part)},}}" for part in _PARTS} | {"MMM": "[^0-9]*"}
# A format without zeros before a single digit comes after that with them, which fits fewer texts.
_DAYS = (
    *("dd.MM.yyyy", "dd/MM/yyyy", "dd-MM-yyyy", "MM/dd/yyyy", "MM-dd-yyyy", "yyyy/MM/dd"),
    *("ddMMMyyyy", "dd-MMM-yyyy", "dd MMM yyyy", "d.M.yyyy", "d/M/yyyy", "M/d/yyyy"),
)
_TIMES = ("", " HH:mm", " HH:mm:ss")
_DECIMAL_COMMA = re.compile("[+-]?[0-9]+,([0-9]{1,2}|[0-9]{4,})")  # 1,234 may be a thousand


@dataclass(frozen=True)
class Format:
    """A format, what all its texts match, and the directives of `strptime` that read them."""

    pattern: str
    regex: str
    directives: str

    @property
    def shape(self) -> str:
        """Return what texts with this format's digits match, each part in a group of its own."""
        return f"^{_joined(self.pattern, _SHAPES)}$"

    @property
    def loose(self) -> str:
        """Return what all texts match that could be meant in this format."""
        return rf"^\s*{_joined(self.pattern, _LOOSE)}\s*$"

    @property
    def iso(self) -> str:
        """Return the groups of `shape` as `yyyy-MM-dd`, with the time behind it if there is one.

        A month keeps its name, and a part its single digit.
        """
        at = {part[0]: f"\\{n}" for n, part in enumerate(_PART.findall(self.pattern), 1)}
        day = f"{at['y']}-{at['M']}-{at['d']}"
        return f"{day} {at['H']}:{at['m']}:{at.get('s', '00')}" if self.has_time else day

    @property
    def has_time(self) -> bool:
        """Return if its texts have a time of day."""
        return "H" in self.pattern

    def fits(self, text: str) -> bool:
        """Return if a text is a moment of the calendar in this format."""
        try:
            datetime.strptime(text, self.directives)  # noqa: DTZ007, it has no zone
        except ValueError:  # such as 31.02.2026
            return False
        return re.fullmatch(self.regex, text) is not None


def _format(pattern: str) -> Format:
    regex = _joined(pattern, {part: matching for part, (matching, _) in _PARTS.items()})
    return Format(pattern, regex, _PART.sub(lambda part: _PARTS[part[0]][1], pattern))


def _joined(pattern: str, parts: Mapping[str, str]) -> str:
    """Return the regular expression of a format by those of its parts."""
    split = re.split(f"({_PART.pattern})", pattern)
    return "".join(parts[part] if part in parts else re.escape(part) for part in split)


FORMATS = {day + time: _format(day + time) for day in _DAYS for time in _TIMES}


def formats_of(text: str, *, with_time: bool) -> tuple[str, ...]:
    """Return the formats by which a text is a moment; both where day and month may be either.

    Without `with_time` it is a day.
    """
    fitting = [f for f in FORMATS.values() if f.has_time <= with_time and f.fits(text)]
    return narrowest([each.pattern for each in fitting])


def narrowest(formats: Collection[str]) -> tuple[str, ...]:
    """Return the formats, of which those without zeros only if there are no others."""
    return tuple([each for each in formats if "dd" in each] or formats)


def needs_decimal_comma(text: str) -> bool:
    """Return if a text is surely a number such as 12,5."""
    return _DECIMAL_COMMA.fullmatch(text) is not None
