"""The page of one table."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

import altair as alt
import duckdb
import streamlit as st

from access.tables import Reader, TableState
from dashboard import charts, formatting
from dashboard.charts import Span
from dashboard.formatting import code, count, grid, moment, size
from dashboard.session import Opened, errors_shown
from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN
from functions.model.commits import Commit
from functions.model.merge_commit import Published, gains, published, tables
from lakegate import times
from lakegate.report import Status

# A table: rows over time, main's commits, checks passed and failed.

_CHECKS_DAYS = 30
_BY_DAY = """
    SELECT strftime(run_ts, '%Y-%m-%dT00:00:00+00:00') AS day, status, count(*) AS checks
    FROM results WHERE check_id <> 'run' GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True)
class Entry:
    """A commit on main that published rows of the table.

    The table grew by `gained` rows to `after`. `first` is the id of one of the published
    ingestions; `approved_by` is the person who approved them despite a failed audit, "" if it
    passed.
    """

    at: str
    message: str
    hash: str
    gained: int
    after: int
    first: str
    approved_by: str


class Ran(NamedTuple):
    """The number of checks of a day's runs with a status (see `lakegate.report.Status`)."""

    day: str
    status: str
    checks: int


def history(log: Iterable[Commit], table: str, rows: int, looked_at: int) -> tuple[Entry, ...]:
    """Return the commits of a table among the newest of main's log, newest first.

    `rows` are the table's current rows; only `looked_at` commits of the log are read.
    """
    found: list[Entry] = []
    for commit in islice(log, looked_at):
        if table in tables(commit) and (members := published(commit)):
            found.append(_entry(commit, members, gains(commit)[table], rows))
            rows -= found[-1].gained
    return tuple(found)


def _entry(commit: Commit, members: Sequence[Published], gained: int, after: int) -> Entry:
    return Entry(
        at=times.text(datetime.fromisoformat(commit.time)),
        message=commit.message,
        hash=commit.hash,
        gained=gained,
        after=after,
        first=members[0].id,
        approved_by=", ".join(sorted({e.approved_by for e in members if e.approved_by})),
    )


def checks_within(now: str) -> tuple[str, str]:
    """Return the time in which the checks of a table's runs are counted, in whole days."""
    today = datetime.fromisoformat(f"{now[:10]}T00:00:00+00:00")
    begin, end = today - timedelta(days=_CHECKS_DAYS - 1), today + timedelta(days=1)
    return times.text(begin), times.text(end)


def ran(results: duckdb.DuckDBPyConnection) -> Iterator[Ran]:
    """Return the checks of a table's runs by day and status; `results` are `Reader.records`."""
    return map(Ran._make, results.execute(_BY_DAY).fetchall())


# The charts of one table.

_ORDER = [status.value for status in charts.RESULT_COLOURS]


def rows_over_time(entries: Sequence[Entry], now: str) -> alt.LayerChart | alt.FacetChart:
    """Return the table's rows after each commit, up to now; `entries` newest first."""
    first, last = entries[-1], entries[0]
    rows = [{"time": e.at, "rows": e.after, "gained": e.gained, "what": e.message} for e in entries]
    before = {"time": first.at, "rows": first.after - first.gained}
    shown = [before, *reversed(rows), {"time": now, "rows": last.after}]
    numbers = alt.Axis(format="~s", tickCount=5, tickMinStep=1)
    base = charts.chart([{"number": number, **row} for number, row in enumerate(shown)]).encode(
        x=charts.time_axis("time", first.at, now),
        y=alt.Y("rows:Q", title="rows", axis=numbers, stack=False),
        tooltip=[charts.time(), charts.number("rows"), charts.number("gained"), "what:N"],
    )
    point = {"color": charts.GREEN, "size": 24}
    return alt.layer(
        # With an order, Vega draws each row as an area of its own.
        base.mark_area(interpolate="step-after", color=charts.GREEN, opacity=0.25),
        base.mark_line(interpolate="step-after", color=charts.GREEN, point=point).encode(
            order="number:Q"
        ),
    ).properties(height=240)


def checks_by_day(ran: Sequence[Ran], span: Span) -> alt.Chart:
    """Return the checks of a table's runs by day and status."""
    parts = [
        {"begin": each.day, "result": charts.RESULT_WORDS[Status(each.status)], "many": each.checks}
        for each in sorted(ran, key=lambda each: _ORDER.index(each.status))
    ]
    return (
        charts.bars(parts, "checks", span)
        .encode(
            color=charts.by_result({Status(each.status) for each in ran}),
            tooltip=[charts.time(), "result:N", charts.number("many", "checks")],
        )
        .properties(height=200)
    )


_COMMITS, _MORE = 200, 5_000
_SHOWN = 50


def show(opened: Opened) -> None:
    """Show the table in the address, or the list of tables."""
    name = st.query_params.get("name", "").strip()
    st.title(code(name) if name else "Tables on main", anchor=False)
    reader = opened.reader(MAIN)
    if not name:
        _ask(reader)
        return
    state = reader.state(name)
    _numbers(state)
    entries = _rows_over_time(opened.adapters, name, state.rows)
    columns, contract, commits, checks = st.tabs(["Columns", "Contract", "Commits", "Checks"])
    with columns:
        _columns(state)
    with contract, errors_shown():
        _contract(opened.adapters, name)
    with commits:
        _commits(entries)
    with checks, errors_shown():
        _checks(opened, reader, name)


def _ask(reader: Reader) -> None:
    names = reader.names()
    for name in names:
        formatting.table(name, code(name), ":material/table:")
    if not names:
        st.markdown("There is none yet: the first file that is published makes one.")


def _numbers(state: TableState) -> None:
    with st.container(horizontal=True):
        st.metric("rows", f"{state.rows:,}", width=180)
        st.metric("data files", f"{state.files:,}", width=140)
        st.metric("size", size(state.size), width=140)
        st.metric("columns", f"{len(state.columns):,}", width=140)


def _rows_over_time(adapters: Adapters, name: str, rows: int) -> tuple[Entry, ...]:
    further = st.session_state.get(f"further {name}", False)
    entries = history(adapters.catalog.log(), name, rows, _MORE if further else _COMMITS)
    if entries:
        st.altair_chart(rows_over_time(entries, adapters.now()), alt="Rows of the table over time")
    if not further:
        st.checkbox(
            f"Search further back than main's last {_COMMITS:,} commits", key=f"further {name}"
        )
    return entries


def _columns(state: TableState) -> None:
    shown = [
        {
            "column": c.name,
            "type": c.type,
            "required": "yes" if c.required else "",
            "about": c.about,
        }
        for c in state.columns
    ]
    grid(shown, "The table's columns")
    if state.partitioned_by:
        st.text(f"Partitioned by {', '.join(state.partitioned_by)}")
    st.markdown(code(state.location))


def _contract(adapters: Adapters, name: str) -> None:
    stored = next((s for s in adapters.lake.contracts() if s.contract.table == name), None)
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
            "rows after": f"{e.after:,}",
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
        found = tuple(ran(results))
    if not found:
        st.text("No run of the last 30 days is recorded on main yet.")
        return
    st.altair_chart(checks_by_day(found, span), alt="Checks by day and result")
    st.text(count(sum(each.checks for each in found), "check"))
