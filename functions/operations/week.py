"""Count what landed in a week, one ingestion after the other, however many there are."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from functions.model.ingestion import ALERTED, State
from functions.model.ingestion_summary import IngestionSummary
from functions.model.shown_state import ShownState, is_approved
from lakegate import times

WEEK, GRACE = timedelta(days=7), timedelta(days=1)


@dataclass
class TableWeek:
    """The files for a table, how many of them failed, and the rows that the others published."""

    files: int = 0
    failed: int = 0
    rows: int = 0


@dataclass
class Week:
    """The week before `until`: its files by state, cause and table, and the rows it published.

    Batches are counted from the GRACE before the week on, as one is incomplete after that time.
    """

    until: datetime
    files: int = 0
    rows: int = 0
    approved: int = 0
    in_flight: int = 0
    states: Counter[ShownState] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    tables: dict[str, TableWeek] = field(default_factory=dict)
    _complete: dict[str, str] = field(default_factory=dict)
    _members: dict[str, list[str]] = field(default_factory=dict)

    @property
    def begins(self) -> str:
        """Return from which time on landings are to be noted."""
        return times.text(self.until - WEEK - GRACE)

    @cached_property
    def _since(self) -> str:
        return times.text(self.until - WEEK)

    @cached_property
    def _early(self) -> str:
        return times.text(self.until - GRACE)

    def add(self, brief: IngestionSummary) -> None:
        """Note an ingestion that landed since `begins`; the order does not matter."""
        self._add_to_batch(brief)
        if brief.landed_at < self._since:
            return
        self.files += 1
        self.states[ShownState.of(brief)] += 1
        self.approved += is_approved(brief)
        self.in_flight += not brief.ended
        self.rows += brief.rows if brief.state is State.PUBLISHED else 0
        if brief.state in ALERTED:
            self.causes[brief.reason_code or "?"] += 1
        if brief.state is not State.IGNORED:
            self._add_to_tables(brief)

    def incomplete(self) -> dict[str, int]:
        """Return the batches without a manifest for a day, with their number of files.

        A manifest covers files that landed before it or before its replay. A listing's times are
        whole seconds, so files of the manifest's own second count as covered. As the WEEK and the
        GRACE before `until` were noted, each batch is reported once.
        """
        batches: dict[str, int] = {}
        for batch, landed in sorted(self._members.items()):
            complete = times.second(self._complete.get(batch, ""))
            if late := sum(each > complete for each in landed):
                batches[batch] = late
        return batches

    def _add_to_batch(self, brief: IngestionSummary) -> None:
        if brief.is_member and brief.landed_at < self._early:
            self._members.setdefault(brief.batch, []).append(times.second(brief.landed_at))
        if brief.batch and brief.state is not State.IGNORED:
            known = self._complete.get(brief.batch, "")
            self._complete[brief.batch] = max(brief.landed_at, brief.replayed_at, known)

    def _add_to_tables(self, brief: IngestionSummary) -> None:
        for table in brief.tables or ("",):
            week = self.tables.setdefault(table, TableWeek())
            week.files += 1
            week.failed += brief.state in ALERTED
            week.rows += brief.rows_for(table) if brief.state is State.PUBLISHED else 0
