"""The page of one table."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import streamlit as st

from access.ingestions.find import Wanted, waiting
from access.tables.reader import Column as TableColumn
from access.tables.reader import Reader, TableState
from dashboard import charts, formatting, listing
from dashboard.charts import Span
from dashboard.formatting import ago, code, grid, harmless, size
from dashboard.overview import Lately, Window, bounds, lately
from dashboard.serve.errors import errors_shown
from dashboard.serve.session import Opened
from dashboard.table import (
    Entry,
    checks_within,
    doubt_of,
    freshness,
    history,
    last_compaction,
    ran,
    upkeep_of,
)
from dashboard.views.table_charts import check_history, rows_over_time
from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN
from functions.adapters.s3 import StoredContract
from functions.model.commits import Commit
from functions.operations.missing_files import due
from lakegate import times
from lakegate.contract.checks import Check, Metric
from lakegate.contract.columns import Column
from lakegate.text import count, visible
from lakegate.times import moment

_COMMITS, _MORE = 200, 5_000
_SHOWN, _RECENT, _FAILURES = 50, 25, 5
_NOT_YET = "Main has no such table yet: the first file that is published makes it."
_TABS = ["Ingestions", "Columns", "Contract", "Commits", "Checks"]


def show(opened: Opened) -> None:
    """Show the table in the address, or the list of tables."""
    name = st.query_params.get("name", "").strip()
    st.title(code(name) if name else "Tables on main", anchor=False)
    reader = opened.reader(MAIN)
    if not name:
        _every(opened.adapters, reader)
        return
    adapters = opened.adapters
    every = adapters.lake.contracts(None)
    stored = next((each for each in every if each.contract.table == name), None)
    state = reader.state(name) if not stored or reader.has(name) else None
    log = list(islice(adapters.catalog.history(), _MORE if _is_further(name) else _COMMITS))
    _numbers(state)
    _upkeep(adapters, [commit for commit, _ in log], name)
    _freshness(adapters, stored)
    _open_failures(adapters, name)
    entries = _rows_over_time(log, name, state.rows if state else 0, adapters.now())
    recent, columns, contract, commits, checks = st.tabs(_TABS)
    with recent, errors_shown():
        _recent(adapters, name)
    with columns:
        _columns(state, stored)
    with contract:
        _contract(stored)
    with commits:
        _commits(entries)
    with checks, errors_shown():
        _checks(opened, reader, name)


def _every(adapters: Adapters, reader: Reader) -> None:
    """Show all tables of main, with what landed for them in the last 30 days."""
    names = reader.names()
    if not names:
        st.markdown("There is none yet: the first file that is published makes one.")
        return
    now = adapters.now()
    since, until = bounds(Window.MONTH, now)
    landed = lately(adapters.ledger.landed(since, until), since, Window.MONTH.span.days + 1)
    late = due(adapters, adapters.ledger.freshness().since())
    rows = [_line(name, landed.get(name), late.get(name, ""), now) for name in names]
    above = st.container()
    pressed, chosen = listing.pick(harmless(rows), "tables", _LATELY, "single-row", "Tables")
    if pressed is not None:
        st.switch_page(formatting.page(formatting.TABLE), query_params={"name": names[pressed]})
    with above:
        for row in chosen:
            formatting.table(names[row], f"Open {code(names[row])}", ":material/table:")


def _line(name: str, landed: Lately | None, late: str, now: str) -> dict[str, Any]:
    return {
        "table": name,
        "last file": datetime.fromisoformat(landed.last) if landed else None,
        "late": f"since {ago(late, now)}" if late else "",
        "passed": landed.passed / landed.judged if landed and landed.judged else None,
        "need a decision": landed.waiting or None if landed else None,
        "files a day": list(landed.by_day) if landed else [],
    }


_LATELY: Mapping[str, Any] = {
    "table": st.column_config.TextColumn(width="medium"),
    "last file": st.column_config.DatetimeColumn(format="distance", timezone="UTC"),
    "passed": st.column_config.NumberColumn(format="percent", help="Of the last 30 days' files"),
    "files a day": st.column_config.BarChartColumn(y_min=0, help="Of the last 30 days"),
}


def _numbers(state: TableState | None) -> None:
    if not state:
        st.text(_NOT_YET)
        return
    with st.container(horizontal=True):
        st.metric("rows", f"{state.rows:,}", width=180)
        st.metric("data files", f"{state.files:,}", width=140)
        st.metric("size", size(state.size), width=140)
        if state.files:
            st.metric("mean file", size(state.size / state.files), width=140)
        st.metric("columns", f"{len(state.columns):,}", width=140)


def _upkeep(adapters: Adapters, log: Sequence[Commit], name: str) -> None:
    """Show what the last daily upkeep noted, and when the table was compacted last."""
    now, note = adapters.now(), adapters.ledger.upkeep()
    words = [upkeep_of(note, name, now), doubt_of(note)]
    compaction = last_compaction(log, name)
    noted = note.tables[name].compacted_at if name in note.tables else ""
    if compaction:
        at = times.text(datetime.fromisoformat(compaction.time))
        words.append(f"Last compaction: {compaction.message}, {ago(at, now)}")
    elif noted:
        words.append(f"Last compaction: {ago(noted, now)}")
    for each in filter(None, words):
        st.text(visible(f"{each}."))


def _freshness(adapters: Adapters, stored: StoredContract | None) -> None:
    if not stored or not stored.contract.expected:
        return
    last = adapters.ledger.freshness().arrived.get(stored.contract.table, "")
    words = freshness(stored.contract.expected, last, adapters.now())
    icon = "hourglass_disabled" if words.startswith("Late") else "schedule"
    st.markdown(f":material/{icon}: {words}")


def _open_failures(adapters: Adapters, name: str) -> None:
    matches = waiting(adapters.ledger, Wanted(name, limit=_FAILURES))
    if matches.ingestions:
        st.header("Needs a decision", anchor=False)
        listing.show_waiting(matches.ingestions, f"open {name}")
    if matches.more:
        st.text(f"These are the oldest {_FAILURES:,}; the inbox lists more.")


def _recent(adapters: Adapters, name: str) -> None:
    now = adapters.now()
    landed = adapters.ledger.landed(*bounds(Window.MONTH, now))
    ingestions = list(islice((each for each in landed if name in each.tables), _RECENT))
    if not ingestions:
        st.text("No file landed in the last 30 days.")
    listing.show_summaries(ingestions, f"recent {name}")


def _is_further(name: str) -> bool:
    return bool(st.session_state.get(f"further {name}", False))


def _rows_over_time(
    log: Sequence[tuple[Commit, frozenset[str]]], name: str, rows: int, now: str
) -> tuple[Entry, ...]:
    entries = history(log, name, rows, len(log))
    if entries and entries[0].after is not None:
        charts.draw(rows_over_time(entries, now), alt="Rows of the table over time")
    if not _is_further(name):
        st.checkbox(
            f"Search further back than main's last {_COMMITS:,} commits", key=f"further {name}"
        )
    return entries


def _columns(state: TableState | None, stored: StoredContract | None) -> None:
    """Show the table's columns, with what the contract in force demands of each."""
    if not state:
        st.text(_NOT_YET)
        return
    declared = {each.name: each for each in stored.contract.columns} if stored else {}
    checks = stored.contract.checks if stored else ()
    shown = [_column(c, declared.get(c.name), checks) for c in state.columns]
    grid(shown, "The table's columns, and the contract's rules for them")
    if state.partitioned_by:
        st.text(f"Partitioned by {', '.join(state.partitioned_by)}")
    st.markdown(code(state.location))


def _column(one: TableColumn, declared: Column | None, checks: Sequence[Check]) -> dict[str, str]:
    asked = [check for check in checks if one.name in check.columns]
    return {
        "column": one.name,
        "type": one.type,
        "required": "yes" if one.required or (declared and declared.required) else "",
        "key": "yes" if any(check.metric is Metric.DUPLICATE for check in asked) else "",
        "confidential": "yes" if declared and declared.sensitive else "",
        "rules": "; ".join(f"{check.measure}: {check.expected}" for check in asked),
        "about": one.about,
    }


def _contract(stored: StoredContract | None) -> None:
    if not stored:
        st.text("No contract in force is for this table.")
        return
    contract = stored.contract
    st.text(f"Files under {contract.landing_prefix}; alerts {contract.channel or 'to no channel'}")
    st.markdown(code(f"{stored.key} (version {stored.version})"))
    shown = [
        {
            "check": check.id,
            "columns": ", ".join(check.columns),
            "measured": check.measure,
            "expected": check.expected,
            "severity": check.severity.value,
        }
        for check in contract.checks
    ]
    grid(shown, "Checks of the contract")


def _commits(entries: Sequence[Entry]) -> None:
    if not entries:
        st.text("None of main's last commits published rows of this table.")
        return
    shown = [
        {
            "when": moment(e.at),
            "what": e.message,
            "rows": f"{e.gained:+,}",
            "rows after": "others wrote since" if e.after is None else f"{e.after:,}",
            "published anyway by": e.approved_by,
            "commit": e.hash,
        }
        for e in entries[:_SHOWN]
    ]
    grid(shown, "Main's commits of this table")
    formatting.ingestion(entries[0].first, "The newest one's ingestion", ":material/arrow_forward:")


def _checks(opened: Opened, reader: Reader, name: str) -> None:
    """Read the checks from main's audit table, only on request: it may have many files."""
    if not st.toggle("Read how the checks of the last 30 days ended"):
        return
    span = Span(*checks_within(opened.adapters.now()), timedelta(days=1))
    with st.spinner("Reading"), reader.records(name, span.since) as results:
        checks = tuple(ran(results))
    if not checks:
        st.text("No run of the last 30 days is recorded on main yet.")
        return
    charts.draw(check_history(checks, span), alt="Each check by day: its worst result")
    st.text(count(sum(each.runs for each in checks), "check"))
