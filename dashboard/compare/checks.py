"""The part of a page with the rows that break a failed check."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from access.evidence.failing_rows import Finding, Question, evidence_of, inspection
from dashboard import formatting
from dashboard.serve.errors import show_error
from dashboard.serve.session import Opened
from functions.model.ingestion import Ingestion
from lakegate.audit import failing_rows
from lakegate.audit.report import AuditReport, CheckResult
from lakegate.errors import LakegateError
from lakegate.text import count, one_line, visible

_MOST_ROWS = 100


def show(opened: Opened, ingestion: Ingestion, report: AuditReport, *, there: bool) -> None:
    """Show the chosen failed check, a few rows that break it, and more on request.

    `there` says that its branch exists, so that more rows can be read.
    """
    failed = {check.id: check for check in report.failed}
    if not failed:
        return
    st.header("Rows that break a check", anchor=False)
    picked = st.selectbox(
        f"{count(len(failed), 'failed check')}", list(failed), format_func=one_line
    )
    check = failed[picked]
    formatting.result(check)
    finding = None
    if there and report.audited_hash and not report.parts:
        asked = st.button("Find all such rows on the branch", icon=":material/search:")
        finding = _find(opened, ingestion, check) if asked else None
    if finding:
        _rows(finding, failing_rows.offending(check))
    elif check.samples:
        st.caption("Some of them, as the audit noted them")
        _table(check.samples, failing_rows.offending(check))


def _find(opened: Opened, ingestion: Ingestion, check: CheckResult) -> Finding | None:
    try:
        with st.spinner("Reading the branch"):
            question, rows = Question(check.id, _MOST_ROWS), partial(evidence_of, opened.reader)
            answer = inspection(opened.adapters, ingestion, question, rows)
    except LakegateError as error:
        show_error(error)
        return None
    return answer.findings[0]


def _rows(finding: Finding, marked: Sequence[str]) -> None:
    if finding.count is not None:
        shown = f", the first {len(finding.rows):,} are shown"
        st.text(count(finding.count, "row") + (shown if len(finding.rows) < finding.count else ""))
    if finding.rows:
        _table(finding.rows, marked)
    for note in finding.notes:
        st.text(visible(note))
    if not finding.agrees:
        st.text(
            f"The branch has {finding.on_branch}, not what the audit found: please report this."
        )


def _table(rows: Sequence[Mapping[str, Any]], marked: Sequence[str]) -> None:
    """Show rows by their places, with marked columns: a table of texts without Markdown."""
    formatting.grid(failing_rows.shown(rows), "Rows that break the check", marked)
