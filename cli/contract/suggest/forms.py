"""Find the few forms that all texts of a column have, such as `7:10 a.m.` or `37 patients`.

A form is a text with its digits and words left open. It is a rule only where the sample repeats it
often: a form, or a word within one, that is rare promises more of its kind in other files.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

import duckdb

from access.tables.check_sql import quoted

_DIGITS, _WORD = "[0-9]+", "[A-Za-z]+"
_TOKENS = f"{_DIGITS}|{_WORD}|[^0-9A-Za-z]+"
_LONGEST = 64
_MOST_FORMS = 5
_MOST_WORDS = 20
OFTEN = 5  # times that each form and each word occurs at least
_LONGEST_CODE = 4
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
_FORM = f"regexp_replace(regexp_replace(v, '{_DIGITS}', '9', 'g'), '{_WORD}', 'a', 'g')"


@dataclass(frozen=True)
class _Token:
    """One place of a form: its texts if they are few, the rarest's count, and the lengths.

    `is_padded` says that a number begins with 0, `is_upper` that no text has small letters.
    """

    texts: tuple[str, ...]
    rarest: int
    shortest: int
    longest: int
    is_padded: bool
    is_upper: bool

    @property
    def pattern(self) -> str:
        """Return what matches the texts of the place, "" if they are words of an open set."""
        first = self.texts[0]
        is_fixed = self.shortest == self.longest
        times = f"{{{self.longest}}}" if self.longest > 1 else ""
        if first.isdigit():
            return f"[0-9]{times}" if is_fixed and self.is_padded else "[0-9]+"
        if len(self.texts) <= _MOST_WORDS and self.rarest >= OFTEN:
            words = [_SPECIAL.sub(r"\\\g<0>", each) for each in self.texts]
            return words[0] if len(words) == 1 else f"({'|'.join(words)})"
        if first.isalpha() and self.is_upper and is_fixed and self.longest <= _LONGEST_CODE:
            return f"[A-Z]{times}"
        return ""


def form_of(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    """Return the pattern of the few forms that all texts of a column of `sample` have, or ""."""
    texts = f"SELECT {quoted(name)} AS v FROM sample WHERE {quoted(name)} IS NOT NULL"
    counted = (
        f"SELECT {_FORM} AS form, count(*) FROM ({texts}) GROUP BY ALL LIMIT {_MOST_FORMS + 1}"
    )
    forms = dict(connection.sql(counted).fetchall())
    if not _are_telling(forms.keys()) or min(forms.values()) < OFTEN:
        return ""
    patterns = [_pattern(tokens) for tokens in _tokens(connection, texts)]
    one = patterns[0] if len(patterns) == 1 else f"({'|'.join(patterns)})"
    return f"^{one}$" if all(patterns) else ""


def _are_telling(forms: Collection[str]) -> bool:
    """Return whether the forms are few and short, and some have a number among other signs."""
    are_short = all(len(form) <= _LONGEST and form.isprintable() for form in forms)
    has_numbers = any("9" in form and form != "9" for form in forms)
    return len(forms) <= _MOST_FORMS and are_short and has_numbers


def _tokens(connection: duckdb.DuckDBPyConnection, texts: str) -> list[list[_Token]]:
    """Return the places of each form, in order."""
    split = (
        f"SELECT {_FORM} AS form, unnest(parts) AS part, generate_subscripts(parts, 1) AS place"
        f" FROM (SELECT v, regexp_extract_all(v, '{_TOKENS}') AS parts FROM ({texts}))"
    )
    counted = (
        "SELECT form, place, part, sum(count(*)) OVER (PARTITION BY part) AS n"
        f" FROM ({split}) GROUP BY form, place, part"
    )
    places = (
        f"SELECT form, list(part ORDER BY part)[:{_MOST_WORDS + 1}], min(n), min(length(part)),"
        " max(length(part)), bool_or(part LIKE '0_%'), bool_and(part = upper(part))"
        f" FROM ({counted})"
        " GROUP BY form, place ORDER BY form, place"
    )
    rows = connection.sql(places).fetchall()
    return [
        [_Token(tuple(texts), *rest) for _, texts, *rest in group]
        for _, group in groupby(rows, key=lambda row: row[0])
    ]


def _pattern(tokens: Sequence[_Token]) -> str:
    patterns = [token.pattern for token in tokens]
    return "".join(patterns) if all(patterns) else ""
