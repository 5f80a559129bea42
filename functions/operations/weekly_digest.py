"""Write the weekly digest: landed files, failures by cause, and pending decisions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from functions.model.ingestion import ALERTED, IN_FLIGHT, State
from functions.model.ingestion_summary import IngestionSummary
from functions.model.messages.alert import Alert, Block, Kind
from functions.model.shown_state import ShownState, is_approved
from functions.notifications.blocks import code, context, escaped, header, link, section
from lakegate import times
from lakegate.text import count, one_line

WEEK, GRACE = timedelta(days=7), timedelta(days=1)
_MOST = 10  # lines of each list: the digest stays one screen long
_LONGEST = 80  # characters of a name in it
_ENDS = tuple(state for state in ShownState if state.value not in set(IN_FLIGHT))


def incomplete(recent: Sequence[IngestionSummary], until: datetime) -> dict[str, int]:
    """Return the batches without a manifest for a day, with their number of files.

    A manifest covers files that landed before it or before its replay. A listing's times are whole
    seconds, so files of the manifest's own second count as covered. The digest reads the WEEK and
    the GRACE before `until`, so each batch is reported once.
    """
    early = times.text(until - GRACE)
    complete: dict[str, str] = {}
    for brief in (each for each in recent if each.state is not State.IGNORED):
        end = max(brief.landed_at, brief.replayed_at, complete.get(brief.batch, ""))
        complete[brief.batch] = end
    files = Counter(
        each.batch
        for each in recent
        if each.is_member
        and each.landed_at < early
        and times.second(each.landed_at) > times.second(complete.get(each.batch, ""))
    )
    return dict(sorted(files.items()))


def digest(
    landed: Sequence[IngestionSummary],
    waiting: Sequence[IngestionSummary],
    incomplete: Mapping[str, int],
    until: datetime,
    keep_days: int,
    page_url: str = "",
) -> Alert:
    """Return the digest of the week before `until`.

    `landed` is what landed in it, `waiting` the failed ingestions without a decision, oldest first;
    their branches are kept for `keep_days`. `incomplete` maps batches without a manifest to their
    number of files.
    """
    days = f"{(until - WEEK):%Y-%m-%d} to {until:%Y-%m-%d}"
    title = f"Week in review: {days}"
    blocks = (
        header(title),
        section(_summary(landed)),
        *_list("*By table*", _by_table(landed)),
        *_list("*Rejected and errored, by cause*", _by_cause(landed)),
        *_list("*Not ingested: batches without a manifest*", _by_batch(incomplete)),
        *_waiting(waiting, keep_days),
        *([section(link(page_url, "The quality page"))] if page_url else []),
    )
    text = f"{title}: {_summary(landed)}"
    return Alert(text=text, blocks=blocks, about=f"digest {until:%G-W%V}", kind=Kind.DIGEST)


def _summary(landed: Sequence[IngestionSummary]) -> str:
    if not landed:
        return "No file landed."
    states = Counter(map(ShownState.of, landed))
    approved = sum(map(is_approved, landed))
    notes = {ShownState.PUBLISHED: f" ({approved:,} approved)"} if approved else {}
    ends = [f"{states[s]:,} {s}{notes.get(s, '')}" for s in _ENDS if states[s]]
    in_flight = sum(not brief.ended for brief in landed)
    ends += [f"{in_flight:,} in flight"] if in_flight else []
    return (
        f"{count(len(landed), 'file')} landed: {', '.join(ends)}."
        f" {count(_published(landed), 'row')} published."
    )


def _by_table(landed: Sequence[IngestionSummary]) -> Iterable[str]:
    ingested = [brief for brief in landed if brief.state is not State.IGNORED]
    own: dict[str, list[IngestionSummary]] = {}
    for brief in ingested:
        for table in brief.tables or ("",):
            own.setdefault(table, []).append(brief)
    for table, briefs in sorted(own.items(), key=lambda each: -len(each[1])):
        failed = sum(brief.state in ALERTED for brief in briefs)
        note = f", {failed:,} failed" if failed else ""
        rows = sum(brief.rows_for(table) for brief in briefs if brief.state is State.PUBLISHED)
        named = code(table[:_LONGEST] or "(no contract)")
        yield f"{named} {count(len(briefs), 'file')}, {count(rows, 'row')}{note}"


def _by_cause(landed: Sequence[IngestionSummary]) -> Iterable[str]:
    causes = Counter(brief.reason_code or "?" for brief in landed if brief.state in ALERTED)
    for cause, files in causes.most_common():
        yield f"{code(cause[:_LONGEST])} {count(files, 'file')}"


def _by_batch(incomplete: Mapping[str, int]) -> Iterable[str]:
    for batch, files in incomplete.items():
        yield f"{code(batch[:_LONGEST])} {count(files, 'file')}"


def _waiting(waiting: Sequence[IngestionSummary], keep_days: int) -> list[Block]:
    if not waiting:
        return [context("Nothing waits for a decision.")]
    lines = [
        f"{escaped(one_line(brief.name[:_LONGEST]))} {code(_tables(brief)[:_LONGEST])}"
        f", {brief.state}{_end_date(brief)}, {_expiry(brief, keep_days)}: {code(brief.id)}"
        for brief in waiting[:_MOST]
    ]
    head = f"*Waiting for a decision: {count(len(waiting), 'file')}*, oldest first"
    return _list(head, lines, len(waiting))


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


def _published(landed: Sequence[IngestionSummary]) -> int:
    return sum(brief.rows for brief in landed if brief.state is State.PUBLISHED)
