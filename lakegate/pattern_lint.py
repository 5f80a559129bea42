"""Refuse patterns whose search tries very many paths through one text.

A backtracking search returns to each place where it had a choice. For a text without a match, the
number of tries is the number of paths through the pattern's automaton; the text with the most paths
is built here, character by character. Java remembers some failed loops (since version 9), and so is
merely slow with some of these patterns; Python's `re`, which the command line uses to find the rows
that break a check, remembers nothing. A linear-time engine accepts such patterns as well, so its
acceptance would be no proof.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain

from lakegate.ecma_patterns import PatternUnsupported
from lakegate.pattern_tree import BEGIN, END, NEVER, All, Either, One, Repeat, Tree, tree

# A pattern as an automaton with as many paths as a backtracking search has.
#
# Its states are the places of the pattern's sets of characters (Glushkov's construction). An edge
# that can be taken for two reasons, such as the two loops of `(a+)+`, counts twice.

START = 0
_ANY = One(r"[\x{0}-\x{10ffff}]")
_ANYWHERE = Either((All(()), All((One(BEGIN), Repeat(_ANY, 0, None)))))
_CATEGORY = re.compile(r"\\([pP])\{(\w+)\}")
_POINT = re.compile(r"\\x\{([0-9a-f]+)\}")
_SPECIMENS = "aZ09_ -.@\n\u00e9\u0663\u20ac\u2028"


class TooLarge(ValueError):
    """The pattern has too many states, because of repetitions within repetitions."""


@dataclass(frozen=True)
class Automaton:
    """An automaton: `sets` are the characters that each state reads, `edges` lead to states.

    Each edge has the number of its paths. A search begins in START, which reads nothing, and
    succeeds in any state of `found`.
    """

    sets: tuple[str, ...]
    edges: Mapping[int, Mapping[int, int]]
    found: frozenset[int]

    @property
    def alphabet(self) -> tuple[str, ...]:
        """Return one character of each class that the sets distinguish."""
        kinds = sorted(set(self.sets) - {BEGIN, END, NEVER})
        by_kind: dict[tuple[bool, ...], str] = {}
        for char in (*_SPECIMENS, *sorted(set().union(*map(_ends, kinds)))):
            by_kind.setdefault(tuple(reads(kind, char) for kind in kinds), char)
        return tuple(by_kind.values())


def automaton(tree: Tree, most_repeated: int, most_states: int) -> Automaton:
    """Return the automaton that searches a text, between BEGIN and END, for the pattern in `tree`.

    More than `most_repeated` repetitions count as unlimited. Raises TooLarge beyond `most_states`.
    """
    builder = _Builder(most_repeated, most_states)
    whole = builder.fragment(All((_ANYWHERE, tree)))
    builder.join(Counter({START: 1}), whole.first)
    return Automaton(tuple(builder.sets), builder.edges, frozenset(whole.last))


@cache
def reads(kind: str, char: str) -> bool:
    """Return if a Java set of characters contains a character; BEGIN and END contain none."""
    if kind in (BEGIN, END, NEVER) or char in (BEGIN, END):
        return kind == char
    categories = _CATEGORY.findall(kind)
    of_category = any(
        unicodedata.category(char).startswith(name) is (sign == "p") for sign, name in categories
    )
    listed = _CATEGORY.sub("", _POINT.sub(lambda p: f"\\U{int(p[1], 16):08x}", kind))
    listed = listed.replace("[^", "[", 1) if kind.startswith("[^") else listed
    has = of_category or (listed != "[]" and bool(re.fullmatch(listed, char, re.ASCII)))
    return has is not kind.startswith("[^")


def _ends(kind: str) -> set[str]:
    """Return the characters beside and at the ends of a set's ranges, and some of its escapes."""
    points = {int(point, 16) for point in _POINT.findall(kind)}
    points |= {ord(char) for char in _POINT.sub("", kind)}
    near = {point + step for point in points for step in (-1, 0, 1)}
    return {chr(p) for p in near if 0 <= p <= 0x10FFFF and not 0xD800 <= p <= 0xDFFF}


@dataclass(frozen=True)
class _Fragment:
    """A part of the automaton: the number of paths into it, out of it and past it."""

    first: Counter[int]
    last: Counter[int]
    empty: bool


_NOTHING = _Fragment(Counter(), Counter(), empty=True)


class _Builder:
    def __init__(self, most_repeated: int, most_states: int) -> None:
        self.most_repeated = most_repeated
        self.most_states = most_states
        self.sets = [NEVER]
        self.edges: dict[int, Counter[int]] = defaultdict(Counter)

    def join(self, last: Counter[int], first: Counter[int]) -> None:
        for state, ways in last.items():
            for to, more in first.items():
                self.edges[state][to] += ways * more

    def fragment(self, tree: Tree) -> _Fragment:
        match tree:
            case One(of):
                self.sets.append(of)
                if len(self.sets) > self.most_states:
                    raise TooLarge
                place = Counter({len(self.sets) - 1: 1})
                return _Fragment(place, place, empty=False)
            case All(parts):
                whole = _NOTHING
                for part in parts:
                    whole = self._then(whole, self.fragment(part))
                return whole
            case Either(parts):
                ways = [self.fragment(part) for part in parts]
                first = sum((way.first for way in ways), Counter[int]())
                last = sum((way.last for way in ways), Counter[int]())
                return _Fragment(first, last, any(way.empty for way in ways))
            case Repeat(part, low, high):
                return self._repeat(part, low, high)

    def _then(self, one: _Fragment, next_: _Fragment) -> _Fragment:
        self.join(one.last, next_.first)
        first = one.first + next_.first if one.empty else one.first
        last = next_.last + one.last if next_.empty else next_.last
        return _Fragment(first, last, one.empty and next_.empty)

    def _repeat(self, part: Tree, low: int, high: int | None) -> _Fragment:
        endless = high is None or high > self.most_repeated
        whole = _NOTHING
        for _ in range(min(low, self.most_repeated) - endless):
            whole = self._then(whole, self.fragment(part))
        if endless:
            return self._then(whole, self._loop(part, optional=low == 0))
        rest = _NOTHING
        for _ in range((high or 0) - low):
            more = self._then(self.fragment(part), rest)
            rest = _Fragment(more.first, more.last, empty=True)
        return self._then(whole, rest)

    def _loop(self, part: Tree, *, optional: bool) -> _Fragment:
        body = self.fragment(part)
        self.join(body.last, body.first)
        return _Fragment(body.first, body.last, optional or body.empty)


LONGEST = 40
MOST_STEPS = 5_000
"""Ways that pass for a text of LONGEST: a square of them does (861), a cube (12,341) does not."""

_MOST_TRIED = 12
_MOST_STATES = 2_000
_LONGEST_PATTERN = 25_000  # characters, as even its tree would take long
_REPEATED = (32, 8, 2)  # how often a part is repeated at most, the first that is small enough
_ENDINGS = 60

_Ways = Mapping[int, int]


@dataclass(frozen=True)
class _Text:
    """A text, and the number of paths to each state with it; `steps` counts all paths so far."""

    text: str
    ways: _Ways
    steps: int


def refuse_slow(pattern: str) -> None:
    """Raise PatternUnsupported for a pattern whose search in Java could take very long.

    Raises as `java_pattern` does, too.
    """
    try:
        text = slow_text(pattern)
    except TooLarge:
        raise PatternUnsupported(
            "it is too large to be judged; list values as enum or validValues"
        ) from None
    if text is not None:
        raise PatternUnsupported(
            f"it can take very long: there are more than {MOST_STEPS:,} ways to look for it in "
            f"{text!r}. Let parts that are repeated, inside or after each other, not match the "
            "same characters"
        )


@lru_cache(maxsize=4096)
def slow_text(pattern: str) -> str | None:
    """Return a text of at most LONGEST characters on which Java tries more than MOST_STEPS paths.

    None if there is no such text. The pattern is ECMA-262, as in `java_pattern`, and has no match
    in the text. Raises PatternUnsupported as `java_pattern` does, TooLarge for a pattern that is
    too large to judge.
    """
    if len(pattern) > _LONGEST_PATTERN:
        raise TooLarge
    for repeated in _REPEATED:
        try:
            return _Search(automaton(tree(pattern), repeated, _MOST_STATES)).slow_text()
        except TooLarge:
            if repeated == _REPEATED[-1]:
                raise
    return None


class _Search:
    def __init__(self, searched: Automaton) -> None:
        self.automaton = searched
        self.alphabet = searched.alphabet
        self.moves: dict[tuple[int, str], list[tuple[int, int]]] = {}

    def slow_text(self) -> str | None:
        texts = [_Text("", self._read({START: 1}, BEGIN), 0)]
        for _ in range(LONGEST):
            grown: dict[frozenset[int], _Text] = {}
            for more in chain.from_iterable(map(self._longer, texts)):
                if more.steps > MOST_STEPS and (ending := self._failing_end(more.ways)) is not None:
                    return more.text + ending
                states = frozenset(more.ways)
                if states not in grown or grown[states].steps < more.steps:
                    grown[states] = more
            texts = sorted(grown.values(), key=lambda text: -text.steps)[:_MOST_TRIED]
        return None

    def _longer(self, text: _Text) -> list[_Text]:
        """Yield the text with each further character, unless the pattern then matches."""
        grown = ((char, self._read(text.ways, char)) for char in self.alphabet)
        return [
            _Text(text.text + char, ways, text.steps + sum(ways.values()))
            for char, ways in grown
            if ways and not self._found(ways)
        ]

    def _failing_end(self, ways: _Ways) -> str | None:
        """Return a short text after which the pattern has no match, if there is one."""
        seen, open_ = {frozenset(ways)}, [("", ways)]
        for text, here in open_:
            if not self._found(self._read(here, END)):
                return text
            for char in self.alphabet:
                there = self._read(here, char)
                if frozenset(there) not in seen and not self._found(there) and len(seen) < _ENDINGS:
                    seen.add(frozenset(there))
                    open_.append((text + char, there))
        return None

    def _found(self, ways: _Ways) -> bool:
        return not self.automaton.found.isdisjoint(ways)

    def _read(self, ways: _Ways, char: str) -> _Ways:
        after: dict[int, int] = defaultdict(int)
        for state, many in ways.items():
            for to, edges in self._moves(state, char):
                after[to] += many * edges
        return after

    def _moves(self, state: int, char: str) -> list[tuple[int, int]]:
        found = self.moves.get((state, char))
        if found is None:
            edges = self.automaton.edges.get(state, {}).items()
            found = [(to, n) for to, n in edges if reads(self.automaton.sets[to], char)]
            self.moves[state, char] = found
        return found
