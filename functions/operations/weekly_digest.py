"""Write the weekly digest: landed files, failures by cause, and pending decisions."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import islice

from functions.model.ingestion import IN_FLIGHT
from functions.model.ingestion_summary import IngestionSummary
from functions.model.messages.alert import Alert, Block, Kind
from functions.model.shown_state import ShownState
from functions.notifications.blocks import code, context, escaped, header, link, section
from functions.operations.week import WEEK, Week
from lakegate.text import count, one_line

_MOST = 10  # lines of each list: the digest stays one screen long
_LONGEST = 80  # characters of a name in it
_ENDS = tuple(state for state in ShownState if state.value not in set(IN_FLIGHT))


def digest(
    week: Week, waiting: Iterable[IngestionSummary], keep_days: int, page_url: str = ""
) -> Alert:
    """Return the digest of a week.

    `waiting` are the failed ingestions without a decision, oldest first; their branches are kept
    for `keep_days`.
    """
    until = week.until
    days = f"{(until - WEEK):%Y-%m-%d} to {until:%Y-%m-%d}"
    title = f"Week in review: {days}"
    blocks = (
        header(title),
        section(_summary(week)),
        *_list("*By table*", _by_table(week)),
        *_list("*Rejected and errored, by cause*", _counted(week.causes.most_common())),
        *_list("*Not ingested: batches without a manifest*", _counted(week.incomplete().items())),
        *_waiting(waiting, keep_days),
        *([section(link(page_url, "The quality page"))] if page_url else []),
    )
    text = f"{title}: {_summary(week)}"
    return Alert(text=text, blocks=blocks, about=f"digest {until.isoformat()}", kind=Kind.DIGEST)


def _summary(week: Week) -> str:
    if not week.files:
        return "No file landed."
    notes = {ShownState.PUBLISHED: f" ({week.approved:,} approved)"} if week.approved else {}
    ends = [f"{week.states[s]:,} {s}{notes.get(s, '')}" for s in _ENDS if week.states[s]]
    ends += [f"{week.in_flight:,} in flight"] if week.in_flight else []
    landed = f"{count(week.files, 'file')} landed: {', '.join(ends)}."
    return f"{landed} {count(week.rows, 'row')} published."


def _by_table(week: Week) -> Iterable[str]:
    for table, its in sorted(week.tables.items(), key=lambda each: -each[1].files):
        note = f", {its.failed:,} failed" if its.failed else ""
        named = code(table[:_LONGEST] or "(no contract)")
        yield f"{named} {count(its.files, 'file')}, {count(its.rows, 'row')}{note}"


def _counted(named: Iterable[tuple[str, int]]) -> Iterable[str]:
    for name, files in named:
        yield f"{code(name[:_LONGEST])} {count(files, 'file')}"


def _waiting(waiting: Iterable[IngestionSummary], keep_days: int) -> list[Block]:
    every = iter(waiting)
    lines = [
        f"{escaped(one_line(brief.name[:_LONGEST]))} {code(_tables(brief)[:_LONGEST])}"
        f", {brief.state}{_end_date(brief)}, {_expiry(brief, keep_days)}: {code(brief.id)}"
        for brief in islice(every, _MOST)
    ]
    if not lines:
        return [context("Nothing waits for a decision.")]
    many = len(lines) + sum(1 for _ in every)
    return _list(f"*Waiting for a decision: {count(many, 'file')}*, oldest first", lines, many)


def _expiry(brief: IngestionSummary, keep_days: int) -> str:
    if not brief.branch:
        return "without a branch"
    if not brief.ended_at:
        return "with its branch"
    gone = datetime.fromisoformat(brief.ended_at) + timedelta(days=keep_days)
    return f"its branch expires {gone:%Y-%m-%d}"


def _end_date(brief: IngestionSummary) -> str:
    return f" {brief.ended_at[:10]}" if brief.ended_at else ""


def _tables(brief: IngestionSummary) -> str:
    return ", ".join(brief.tables) or "none"


def _list(head: str, lines: Iterable[str], count: int = 0) -> list[Block]:
    every = list(lines)
    left = max(count, len(every)) - _MOST
    more = [f"… and {left:,} more"] if left > 0 else []
    return [section("\n".join([head, *every[:_MOST], *more]))] if every else []
