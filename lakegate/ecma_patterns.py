r"""Translate regular expressions from ECMA-262, used in contracts, to Java's, used by Spark.

They share most of their notation and differ in places that matter: Java's `$` matches before a
final newline, its `.` and `\s` match other characters, and `\v`, `\h` and `[[` have another
meaning. Every accepted pattern means in Java what ECMA-262 says; the rest is refused.

Characters are code points, as with ECMA-262's flag `u`; no other flag is on.
"""

import re

_SPACES = (
    *((9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)),
    *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
_LAST = 0x10FFFF
_DEEPEST = 50
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_WORD = "[A-Za-z0-9_]"
BOUNDARY = rf"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))"
NO_BOUNDARY = rf"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))"
_NOT_LINE_END = r"[^\n\r\x{2028}\x{2029}]"
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d{1,4})(?:(,)(\d{1,4})?)?\})\??", re.ASCII)
_CATEGORY = re.compile(r"[pP]\{(?:L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?)\}")
_HEX = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
_RANGE = re.compile(r"-(?!\])")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})")


class PatternUnsupported(ValueError):
    """The pattern is invalid in ECMA-262 or not supported; the text says which part."""


def java_pattern(pattern: str) -> str:
    r"""Return the Java pattern that is equivalent to the ECMA-262 one, for `Column.rlike`.

    Supported: literals, `.`, classes, `\d \w \s \b` and their opposites, `\p{L}` and the other
    general categories, groups, alternatives, lookahead, greedy and lazy quantifiers up to 9999.
    Not: look-behind, named groups, back references, flags, `\u{…}`, `\k`, empty classes.

    Raises PatternUnsupported, with a sentence for people, for everything else.
    """
    return "".join(java_tokens(pattern))


def java_tokens(pattern: str) -> tuple[str, ...]:
    """Return the parts of `java_pattern`: sets of characters, quantifiers, assertions, brackets.

    Raises PatternUnsupported, as `java_pattern` does.
    """
    if not pattern:
        raise PatternUnsupported("the pattern is empty, so every value would be valid")
    return _Translation(pattern).run()


class _Translation:
    """One pass over a pattern; `repeatable` says if a quantifier may follow."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.out: list[str] = []
        self.repeatable = False
        self.groups: list[bool] = []

    def run(self) -> tuple[str, ...]:
        while self.at < len(self.pattern):
            self._token(self.pattern[self.at])
        if self.groups:
            raise PatternUnsupported("a group is opened with ( and never closed")
        return tuple(self.out)

    def _token(self, char: str) -> None:
        match char:
            case "^" | "$" | "|":
                self._emit({"^": r"\A", "$": r"\z", "|": "|"}[char], 1, repeatable=False)
            case ".":
                self._emit(_NOT_LINE_END, 1)
            case "(":
                self._open()
            case ")":
                self._close()
            case "*" | "+" | "?" | "{":
                self._quantifier()
            case "[":
                self._class()
            case "\\" if self.pattern[self.at + 1 : self.at + 2] in ("b", "B"):
                boundary = self.pattern[self.at + 1] == "b"
                self._emit(BOUNDARY if boundary else NO_BOUNDARY, 2, repeatable=False)
            case _:
                atom = self._atom()
                self._emit(f"[{atom}]" if isinstance(atom, str) else _literal(atom))

    def _emit(self, java: str, consumed: int = 0, *, repeatable: bool = True) -> None:
        self.out.append(java)
        self.at += consumed
        self.repeatable = repeatable

    def _open(self) -> None:
        if len(self.groups) == _DEEPEST:
            raise PatternUnsupported(f"its groups are nested deeper than {_DEEPEST}")
        rest = self.pattern[self.at :]
        if not rest.startswith("(?"):
            self.groups.append(True)
            return self._emit("(?:", 1, repeatable=False)
        kind = rest[:3]
        if kind not in ("(?:", "(?=", "(?!"):
            raise PatternUnsupported(
                f"{rest[:4]}… is not supported: of the groups that begin with (? only "
                "(?:…), (?=…) and (?!…) are, so no flags, names or look-behind"
            )
        self.groups.append(kind == "(?:")
        return self._emit(kind, 3, repeatable=False)

    def _close(self) -> None:
        if not self.groups:
            raise PatternUnsupported("a ) closes no group; write \\) for the character")
        self._emit(")", 1, repeatable=self.groups.pop())

    def _quantifier(self) -> None:
        matched = _QUANTIFIER.match(self.pattern, self.at)
        if not matched:
            raise PatternUnsupported(
                "a { begins no repetition up to 9999 times; write \\{ for the character"
            )
        if not self.repeatable:
            raise PatternUnsupported(f"{matched[0]} has nothing before it that could be repeated")
        if matched[3] and int(matched[1]) > int(matched[3]):
            raise PatternUnsupported(f"{matched[0]} has its larger number first")
        self._emit(matched[0], len(matched[0]), repeatable=False)

    def _class(self) -> None:
        self.at += 1
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        members: list[str] = []
        while not self.pattern.startswith("]", self.at):
            members.append(self._member())
        if not members:
            raise PatternUnsupported("the empty classes [] and [^] are not supported")
        self._emit(f"[{'^' if negated else ''}{''.join(members)}]", 1)

    def _member(self) -> str:
        first = self._class_atom()
        if not _RANGE.match(self.pattern, self.at):
            return first if isinstance(first, str) else _literal(first)
        self.at += 1
        last = self._class_atom()
        if isinstance(first, str) or isinstance(last, str):  # [\w-.]: the hyphen is a member
            return "".join(m if isinstance(m, str) else _literal(m) for m in (first, 45, last))
        if first > last:
            raise PatternUnsupported(
                f"the range {chr(first)}-{chr(last)} in a class has its larger end first"
            )
        return f"{_literal(first)}-{_literal(last)}"

    def _class_atom(self) -> int | str:
        if self.at >= len(self.pattern):
            raise PatternUnsupported("a class is opened with [ and never closed")
        if self.pattern.startswith("\\b", self.at):
            self.at += 2
            return 8
        return self._atom()

    def _atom(self) -> int | str:
        """Return the next code point, or the Java text of the next set of characters."""
        char = self.pattern[self.at]
        self.at += 1
        if char == "\\":
            return self._escape()
        if 0xD800 <= ord(char) <= 0xDFFF:
            raise PatternUnsupported("half a surrogate pair is not a character")
        return ord(char)

    def _escape(self) -> int | str:
        rest = self.pattern[self.at :]
        if not rest:
            raise PatternUnsupported("it ends in a single \\; write \\\\ for the character")
        if match := _HEX.match(rest):
            self.at += len(match[0])
            return self._code_point(int(match[1] or match[2], 16))
        if match := _CATEGORY.match(rest):
            self.at += len(match[0])
            return f"\\{match[0]}"
        self.at += 1
        return self._simple_escape(rest[0], rest[1:2])

    def _code_point(self, unit: int) -> int:
        if not 0xD800 <= unit <= 0xDFFF:
            return unit
        low = _LOW_SURROGATE.match(self.pattern, self.at)
        if unit >= 0xDC00 or not low:
            raise PatternUnsupported("half a surrogate pair is not a character")
        self.at += len(low[0])
        return 0x10000 + ((unit - 0xD800) << 10) + int(low[1], 16) - 0xDC00

    def _simple_escape(self, char: str, following: str) -> int | str:
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in "dDwW":
            return f"\\{char}"
        if char in "sS":
            return _ranges(_SPACES if char == "s" else _others(_SPACES))
        if char == "0" and not following.isdigit():
            return 0
        if char.isalnum():
            raise PatternUnsupported(f"\\{char} is not supported in ECMA-262 patterns here")
        return ord(char)


def _literal(point: int) -> str:
    """Return a code point as Java text that matches only itself, inside and outside of a class."""
    char = chr(point)
    if not 32 <= point < 127:
        return f"\\x{{{point:x}}}"
    return char if char.isalnum() else f"\\{char}"


def _ranges(ranges: tuple[tuple[int, int], ...]) -> str:
    return "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in ranges)


def _others(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return the ranges of all code points outside these ranges, which are in order."""
    starts = (0, *(high + 1 for _, high in ranges))
    ends = (*(low - 1 for low, _ in ranges), _LAST)
    return tuple(zip(starts, ends, strict=True))


# The standard's string formats as ECMA-262 patterns.
_HOST_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_HEX4 = "[0-9A-Fa-f]{1,4}"

_DATE = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"

# The common part of RFC 5322's addr-spec, RFC 9562, RFC 3986's scheme, RFC 1123, RFC 4291, RFC
# 4648. `password` and `binary` restrict no characters.
PATTERNS = {
    "email": r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@" + rf"{_HOST_LABEL}(\.{_HOST_LABEL})+$",
    "uuid": "^[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}$",
    "uri": r"^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\x22{}|\\^`]+$",
    "hostname": rf"^{_HOST_LABEL}(\.{_HOST_LABEL})*$",
    "ipv4": rf"^({_OCTET}\.){{3}}{_OCTET}$",
    "ipv6": (
        rf"^(({_HEX4}:){{7}}{_HEX4}|({_HEX4}:){{1,7}}:|({_HEX4}:){{1,6}}(:{_HEX4})"
        rf"|({_HEX4}:){{1,5}}(:{_HEX4}){{1,2}}|({_HEX4}:){{1,4}}(:{_HEX4}){{1,3}}"
        rf"|({_HEX4}:){{1,3}}(:{_HEX4}){{1,4}}|({_HEX4}:){{1,2}}(:{_HEX4}){{1,5}}"
        rf"|{_HEX4}:((:{_HEX4}){{1,6}})|:((:{_HEX4}){{1,7}}|:))$"
    ),
    "date": f"^{_DATE}$",  # this and the next two as in RFC 3339 and JSON Schema
    "time": f"^{_CLOCK}$",
    "date-time": f"^{_DATE}[Tt ]{_CLOCK}$",
    "byte": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
UNCHECKED = ("password", "binary")
