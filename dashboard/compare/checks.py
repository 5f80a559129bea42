"""The part of a page with the rows that break a failed check."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import streamlit as st

from access.failing_rows import Finding, Question, inspection
from dashboard.formatting import count, harmless
from dashboard.session import Opened, show_error
from functions.model.ingestion import Ingestion
from lakegate.errors import LakegateError
from lakegate.report import ADDRESS, AuditReport, CheckResult
from lakegate.text import one_line, visible

if TYPE_CHECKING:
    from access.rows import Evidence

_MOST_ROWS = 100
_FILE, _PLACE = ADDRESS


def show(opened: Opened, ingestion: Ingestion, report: AuditReport, *, there: bool) -> None:
    """Show the chosen failed check, a few rows that break it, and more on request.

    `there` says that its branch exists, so that more rows can be read.
    """
    failed = {check.id: check for check in report.failed}
    if not failed:
        return
    st.subheader("Rows that break a check", anchor=False)
    picked = st.selectbox(
        f"{count(len(failed), 'failed check')}", list(failed), format_func=one_line
    )
    check = failed[picked]
    _describe(check)
    finding = None
    if there and report.audited_hash and not report.parts:
        asked = st.button("Find all such rows on the branch", icon=":material/search:")
        finding = _find(opened, ingestion, check) if asked else None
    if finding:
        _rows(finding)
    elif check.samples:
        st.caption("Some of them, as the audit noted them")
        _table(check.samples)


def _describe(check: CheckResult) -> None:
    with st.container(horizontal=True):
        for name, text in (("expected", check.expected), ("found", check.found)):
            with st.container(width="content", gap=None):
                st.caption(name)
                st.text(visible(text))
    if check.message:
        st.text(visible(check.message))


def _find(opened: Opened, ingestion: Ingestion, check: CheckResult) -> Finding | None:
    try:
        with st.spinner("Reading the branch"):
            question = Question(check.id, _MOST_ROWS)
            found = inspection(opened.adapters, ingestion, question, evidence_of(opened))
    except LakegateError as error:
        show_error(error)
        return None
    return found.findings[0]


def evidence_of(
    opened: Opened,
) -> Callable[[AuditReport], "AbstractContextManager[Evidence]"]:
    """Return the access to the rows that a report is about."""

    def evidence(report: AuditReport) -> "AbstractContextManager[Evidence]":
        rows = opened.reader(f"{report.branch}@{report.audited_hash}")
        return rows.whole(report.table) if report.effect else rows.added(report.table)

    return evidence


def _rows(finding: Finding) -> None:
    if finding.count is not None:
        shown = f", the first {len(finding.rows):,} are shown"
        st.text(count(finding.count, "row") + (shown if len(finding.rows) < finding.count else ""))
    if finding.rows:
        _table(finding.rows)
    for note in finding.notes:
        st.text(visible(note))
    if not finding.agrees:
        st.text(
            f"The branch has {finding.on_branch}, not what the audit found: please report this."
        )


def _table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Show rows unchanged: a table of texts without Markdown."""
    several = len({row.get(_FILE) for row in rows}) > 1
    left_out = () if several else (_FILE,)
    shown = [{k: v for k, v in row.items() if k not in left_out} for row in rows]
    names = {_FILE: "data file", _PLACE: "row number"}
    st.dataframe(
        harmless({names.get(k, k): v for k, v in row.items()} for row in shown),
        hide_index=True,
        alt="Rows that break the check",
    )
