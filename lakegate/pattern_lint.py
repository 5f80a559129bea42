"""Refuse patterns whose search tries very many paths through one text.

A backtracking search returns to each place where it had a choice. For a text without a match, the
number of tries is the number of paths through the pattern's automaton; the text with the most paths
is built here, character by character. Java remembers some failed loops (since version 9), and so is
merely slow with some of these patterns; Python's `re`, which the command line uses to find the rows
that break a check, remembers nothing. A linear-time engine accepts such patterns as well, so its
acceptance would be no proof.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from lakegate.ecma_patterns import PatternUnsupported
from lakegate.pattern_automaton import START, Automaton, TooLarge, automaton, reads
from lakegate.pattern_tree import BEGIN, END, tree

LONGEST = 40
MOST_STEPS = 5_000
"""Ways that pass for a text of LONGEST: a square of them does (861), a cube (12,341) does not."""

_MOST_TRIED = 12
_MOST_STATES = 2_000
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
