"""One column's values on both sides, counted in the same bins or value by value."""

from collections.abc import Mapping, Sequence

from dashboard.comparison_bins import bins
from dashboard.comparison_figures import Picture
from dashboard.comparison_kinds import Kind
from dashboard.comparison_profile import Values
from lakegate.visible import one_line

OTHERS = "… all others"


def picture(kind: Kind, file: Values | None, main: Values | None) -> Picture | None:
    """The picture of a column; None where there is nothing to be seen in it.

    That is so without values, and where no text is there twice.
    """
    return _binned(kind, file, main) if kind.in_order else _listed(file, main)


def _binned(kind: Kind, file: Values | None, main: Values | None) -> Picture | None:
    spreads = [side.spread() if side else None for side in (file, main)]
    found = bins(kind, *spreads)
    if not found:
        return None
    counts = [side.binned(found) if side else () for side in (file, main)]
    return Picture(kind, found.labels, *map(_shares, counts))


def _listed(file: Values | None, main: Values | None) -> Picture | None:
    frequent = [side.frequent() for side in (file, main) if side]
    texts = list(dict.fromkeys(text for side in frequent for text in side))
    if max((many for side in frequent for many in side.values()), default=0) < 2:
        return None
    sides = [side.often(texts) if side else {} for side in (file, main)]
    totals = [side.present if side else 0 for side in (file, main)]
    shown = [_shown(side, total) for side, total in zip(sides, totals, strict=True)]
    labels = sorted({*shown[0], *shown[1]} - {OTHERS}, key=lambda t: (-_weight(t, shown), t))
    if any(side.get(OTHERS) for side in shown):
        labels.append(OTHERS)
    counts = ([side.get(label, 0) for label in labels] for side in shown)
    return Picture(Kind.WORDS, tuple(labels), *map(_shares, counts))


def _shown(counts: Mapping[str, int], total: int) -> dict[str, int]:
    """Counts by what can be seen of the values, which for two of them may be the same."""
    shown: dict[str, int] = {}
    for text, many in counts.items():
        label = one_line(text)
        shown[label] = shown.get(label, 0) + many
    rest = total - sum(counts.values())
    return {**shown, OTHERS: shown.get(OTHERS, 0) + rest} if rest else shown


def _weight(label: str, sides: Sequence[Mapping[str, int]]) -> float:
    return sum(side.get(label, 0) / max(1, sum(side.values())) for side in sides)


def _shares(counts: Sequence[int]) -> tuple[float, ...]:
    total = sum(counts)
    return tuple(many / total for many in counts) if total else ()
