"""The page of a failed branch: its rows beside main's, failing rows, and possible actions."""

from collections.abc import Sequence

import streamlit as st

from dashboard import actions, charts, formatting
from dashboard.compare import bars, checks, render
from dashboard.compare.compare import knows_contract, load, shown_columns
from dashboard.compare.figures import Column, Comparison
from dashboard.formatting import code
from dashboard.ingestion import account
from dashboard.serve.errors import show_error
from dashboard.serve.session import Opened, named
from dashboard.verdict import verdict
from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN, UnknownBranch
from functions.model.ingestion import ALERTED, Ingestion, State
from functions.model.ingestion_summary import status_text
from lakegate.audit.report import AuditReport
from lakegate.errors import LakegateError
from lakegate.text import count, one_line, visible

_FIRST_COLUMNS = 12
_UNKNOWN_CONTRACT = (
    "By which contract it was judged is not known, as the ledger was rebuilt: values are counted, "
    "and none is shown. A replay goes by the contract in force."
)
_STYLE = """<style>
.lakegate-figures {width: 100%; font-size: 0.875rem; font-variant-numeric: tabular-nums;
  border-collapse: collapse; table-layout: fixed}
.lakegate-figures th {font-weight: 400; opacity: 0.7; text-align: left; width: 5.5rem}
.lakegate-figures tr:first-child th {text-align: right; width: auto}
.lakegate-figures td {text-align: right; overflow-wrap: anywhere}
.lakegate-figures td, .lakegate-figures th {padding: 0.15rem 0.25rem; border: none;
  vertical-align: top}
.lakegate-legend {font-size: 0.875rem; margin: 0}
.lakegate-bar {display: inline-block; height: 0.9em; vertical-align: -0.1em; border-radius: 1px}
</style>"""


def show(opened: Opened) -> None:
    """Show the branch of the ingestion in the address, beside main."""
    wanted = st.query_params.get("id", "").strip()
    if not wanted:
        st.title("Comparison", anchor=False)
        st.markdown("A comparison belongs to an ingestion: choose one of the list.")
        st.page_link(formatting.page(formatting.INGESTION), label="Ingestions")
        return
    ingestion = named(opened, wanted)
    st.title(f"{code(ingestion.name)} beside main", anchor=False)
    known = account(opened.adapters, ingestion)
    _head(ingestion)
    actions.show(opened, ingestion)
    if not known.report:
        st.text(visible(f"{known.no_report} Without it no rows can be compared."))
        return
    gone = _gone(opened.adapters, ingestion, known.report.branch)
    if gone:
        st.text(visible(gone))
    checks.show(opened, ingestion, known.report, there=not gone)
    if not gone:
        _compare(opened, ingestion, _one_table_report(known.report))


def _head(ingestion: Ingestion) -> None:
    with st.container(horizontal=True):
        formatting.ingestion(ingestion.id, "Its verdict and its checks", ":material/arrow_back:")
        for name in ingestion.tables:
            formatting.table(name, code(name), ":material/table:")
    st.text(visible(verdict(ingestion)))
    if ingestion.branch:
        st.markdown(f":material/graph_1: {code(ingestion.branch)}")


def _gone(adapters: Adapters, ingestion: Ingestion, branch: str) -> str:
    """Return why the audited branch cannot be read, "" if it can."""
    try:
        adapters.catalog.head(branch)
    except UnknownBranch:
        failed = ingestion.state in ALERTED
        if ingestion.state is State.PUBLISHED:
            why = "its rows are on main"
        elif ingestion.decisions.discarded:
            why = "it was discarded"
        elif failed:
            why = "somebody deleted it, although it was neither published nor discarded"
        else:
            why = status_text(ingestion)
        return f"Its branch is gone: {why}.{' A replay makes it anew.' if failed else ''}"
    return ""


def _one_table_report(report: AuditReport) -> AuditReport:
    """Return the report, or for a batch that of the chosen file."""
    if not report.parts:
        return report
    files = [
        one_line(f"{number}. {part.source.key} · {part.table}")
        for number, part in enumerate(report.parts, 1)
    ]
    number = st.selectbox(
        "The batch's file",
        range(len(files)),
        format_func=files.__getitem__,
        key=f"file of {report.branch}",
    )
    return report.parts[number]


def _compare(opened: Opened, ingestion: Ingestion, report: AuditReport) -> None:
    st.header("Column by column", anchor=False)
    if report.audited_hash in ("", report.base_hash):
        st.text("It was rejected before any row was written: there are none to compare.")
        return
    names = ("after the change" if report.is_mixed else "this file", MAIN)
    whole = st.session_state.get(f"whole {report.audited_hash}", False)
    try:
        with st.spinner("Reading all rows" if whole else "Looking at the columns"):
            comparison = _comparison(opened, ingestion, report, whole=whole)
    except LakegateError as error:
        show_error(error)
        return
    st.text(render.stands_on(comparison, names))
    if not knows_contract(ingestion, report.table):
        st.text(_UNKNOWN_CONTRACT)
    st.html(_STYLE + (render.colours(names) if comparison.main else ""))
    for line in render.legend(comparison):
        st.caption(line)
    if render.is_sampled(comparison) and st.button("Read all rows", icon=":material/database:"):
        st.session_state[f"whole {report.audited_hash}"] = True
        st.rerun()
    asked = {name for check in report.failed for name in check.columns}
    _columns(sorted(comparison.columns, key=lambda column: column.name not in asked), names)


def _comparison(
    opened: Opened, ingestion: Ingestion, report: AuditReport, *, whole: bool
) -> Comparison:
    head = opened.adapters.catalog.head(MAIN)
    state = opened.adapters.catalog.metadata(head, report.table)
    shown = tuple(sorted(shown_columns(opened.adapters, ingestion, report.table)))
    return _loaded(opened, report, head, report.audited_hash, state, shown, whole)


@st.cache_data(show_spinner=False, max_entries=20)
def _loaded(
    _opened: Opened,
    _report: AuditReport,
    _head: str,
    at: str,
    state: str,
    shown: tuple[str, ...],
    whole: bool,
) -> Comparison:
    return load(_opened.reader, _head, _report, shown, whole=whole)


def _columns(columns: Sequence[Column], names: tuple[str, str]) -> None:
    first, more = columns[:_FIRST_COLUMNS], columns[_FIRST_COLUMNS:]
    for column in first:
        _column(column, names)
    if more and st.toggle(f"Show {count(len(more), 'more column')}"):
        for column in more:
            _column(column, names)


def _column(column: Column, names: tuple[str, str]) -> None:
    with st.container(border=True):
        figures, drawn = st.columns([2, 3], gap="medium")
        with figures:
            side = column.file or column.main
            where = "" if column.main else ", not on main"
            kind = f" :small[{code(side.type)}{where}]" if side else ""
            st.markdown(f"**{code(column.name)}**{kind}")
            if side:
                st.html(render.table(column, names))
        with drawn:
            if column.picture:
                charts.draw(
                    bars.picture(column.picture, names),
                    alt=f"How the values of {one_line(column.name)} lie, {names[0]} and main",
                )
            else:
                st.caption(f"No picture: {column.note}")
