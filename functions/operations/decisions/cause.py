"""Decide about all failed ingestions that have one cause and wait for a decision.

People press one button, or name the cause to a command. Each ingestion has its own decision, so
what fails for one does not keep the others from theirs.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from functions.model.ingestion import Ingestion
from functions.model.ingestion_summary import IngestionSummary, status_text
from lakegate.audit.report import Status
from lakegate.errors import LakegateError
from lakegate.text import count, one_line

if TYPE_CHECKING:  # they take a second to import, which help does not need
    from functions.adapters.ledger.ledger import Ledger
    from functions.operations.decisions.failed import Outcome

_FAILED = (Status.FAIL, Status.ERROR)
_NAMED = 3  # of many files
MOST_REFUSALS = 10  # are told
_LONGEST_WHY = 200
_Each = TypeVar("_Each")


def cause(ingestion: Ingestion) -> tuple[str, ...]:
    """Return the tables, the code of its reason and its failed checks; equal ones are one cause."""
    failed = (each["id"] for each in ingestion.audit.checks if each["status"] in _FAILED)
    return (*sorted(ingestion.tables), ingestion.reason_code, *sorted(failed))


def waiting(ledger: "Ledger") -> list[Ingestion]:
    """Return all ingestions that wait for a decision, oldest landing first."""
    ingestions = ledger.read(brief.id for brief in ledger.open_failures())
    return [each for each in ingestions if each.is_open]


def waiting_with(ledger: "Ledger", ingestion: Ingestion) -> list[Ingestion]:
    """Return those that wait for a decision with the cause of a failed ingestion."""
    same, alike = cause(ingestion), (sorted(ingestion.tables), ingestion.reason_code)
    listed = (b for b in ledger.open_failures() if (sorted(b.tables), b.reason_code) == alike)
    ingestions = ledger.read(brief.id for brief in listed)
    return [each for each in ingestions if each.is_open and cause(each) == same]


def version(group: Sequence[Ingestion | IngestionSummary]) -> str:
    """Return how many ingestions these are, with a digest of which."""
    return _digest(each.id for each in group)


def failures(group: Sequence[Ingestion]) -> str:
    """Return the same with when each failed: another attempt has other rows to decide about."""
    return _digest(f"{each.id} {each.ended_at}" for each in group)


def _digest(names: Iterable[str]) -> str:
    every = sorted(names)
    return f"{len(every)}:{hashlib.sha256(' '.join(every).encode()).hexdigest()[:16]}"


def named(group: Sequence[Ingestion]) -> str:
    """Return how many these are, and the first names: `40 files: a.csv, b.csv and 38 more`."""
    more = len(group) - _NAMED
    names = ", ".join(each.name for each in group[:_NAMED])
    return f"{count(len(group), 'file')}: {names}{f' and {more:,} more' if more > 0 else ''}"


def each_alone(
    every: Iterable[_Each], decide: Callable[[_Each], "Outcome"]
) -> Iterator[tuple[_Each, "Outcome | LakegateError"]]:
    """Decide about each alone; yield each with its outcome, or with what was raised."""
    for each in every:
        try:
            yield each, decide(each)
        except LakegateError as error:
            yield each, error


def refusal(ingestion: Ingestion, result: "Outcome | LakegateError") -> str:
    """Return the name with why it was not decided, or failed again at once; "" if neither."""
    if isinstance(result, LakegateError):
        return f"{ingestion.name}: {one_line(' '.join(result.message.split()))[:_LONGEST_WHY]}"
    now = result.ingestion
    why = one_line(now.reason.message) if now.reason else status_text(now)
    return f"{now.name}: {why[:_LONGEST_WHY]}" if now.is_open else ""


def told(done: str, files: int, refusals: Sequence[str], refused: int) -> str:
    """Return what became of a group: `replayed 37 of 40 files; not these 3: a.csv: why; …`.

    `refusals` are the first of those that were `refused`.
    """
    words = f"{done} {files - refused:,} of {count(files, 'file')}"
    if not refused:
        return words
    more = refused - len(refusals[:MOST_REFUSALS])
    last = [f"and {more:,} more"] if more else []
    return f"{words}; not these {refused:,}: {'; '.join([*refusals[:MOST_REFUSALS], *last])}"
