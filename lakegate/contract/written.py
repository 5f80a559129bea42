"""Recognise how the cells of text files are often written, beside ISO 8601 and the decimal point.

A format is a pattern of Java's DateTimeFormatter, as a contract declares it (`format`).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

# What each part of a format matches, and the directive of `strptime` that reads it.
_PARTS: Mapping[str, tuple[str, str]] = {
    "yyyy": ("[0-9]{4}", "%Y"),
    "MMM": ("(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", "%b"),
    "MM": ("(0[1-9]|1[0-2])", "%m"),
    "dd": ("(0[1-9]|[12][0-9]|3[01])", "%d"),
    "HH": ("([01][0-9]|2[0-3])", "%H"),
    "mm": ("[0-5][0-9]", "%M"),
    "ss": ("[0-5][0-9]", "%S"),
    "M": ("(0?[1-9]|1[0-2])", "%m"),
    "d": ("(0?[1-9]|[12][0-9]|3[01])", "%d"),
}
_PART = re.compile("|".join(_PARTS))
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
    parts = re.split(f"({_PART.pattern})", pattern)
    regex = "".join(_PARTS[part][0] if part in _PARTS else re.escape(part) for part in parts)
    directives = "".join(_PARTS[part][1] if part in _PARTS else part for part in parts)
    return Format(pattern, regex, directives)


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
