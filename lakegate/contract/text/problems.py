"""The problems of a contract's text, and the words that were probably meant."""

import difflib
from collections.abc import Collection
from dataclasses import dataclass

from lakegate.errors import Permanent

_FEW_KEYS = 12  # fit into one sentence


@dataclass(frozen=True)
class Problem:
    """A problem in a contract: the line (from 1), the field's path, and the reason."""

    line: int
    field: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.field + ': ' if self.field else ''}{self.reason}"


class ContractInvalid(Permanent):
    """A contract is refused; `problems` are all of them, in the order of their lines."""

    def __init__(self, source: str, problems: Collection[Problem]) -> None:
        self.source = source
        self.problems = tuple(sorted(set(problems), key=lambda p: (p.line, p.field, p.reason)))
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        super().__init__("CONTRACT_INVALID", f"{source} is refused as a contract:{lines}")


def suggestion(word: str, known: Collection[str], nearness: float = 0.7) -> str:
    """Return ` (did you mean …?)` for a known word nearby (1 is the same), else ""."""
    lowered = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=nearness)
    return f" (did you mean {lowered[near[0]]}?)" if near else ""


def unknown_key(key: str, known: Collection[str], *, alike: bool = True) -> str:
    """Return why a key is refused, with the one probably meant if `alike`, else with all of few."""
    if near := suggestion(key, known) if alike else "":
        return f"unknown key{near}"
    few = f"; use {', '.join(sorted(known))}" if 0 < len(known) <= _FEW_KEYS else ""
    return f"unknown key{few}"
