import io
from dataclasses import replace

import pytest
import typer
from rich.console import Console

from access.ingestions.follow import TrackedIngestion, dropped
from cli.ingestions.wait import exit_code, explain, stopped, wait_for
from functions.model.ingestion import Ingestion
from lakegate.audit.failing_rows import told
from lakegate.audit.report import AuditReport, Reason, Status
from lakegate.job.landing import ingestion_id
from tests.fakes.deployment import Deployment
from tests.fakes.examples import FAILED, REPORT
from tests.fakes.faults import Fault
from tests.unit.cli.cli_examples import ERRORED, IGNORED, PUBLISHED, QUEUED, REJECTED


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        ([PUBLISHED], 0),
        ([REJECTED], 3),
        ([ERRORED], 4),
        ([IGNORED], 5),
        ([PUBLISHED, REJECTED, PUBLISHED], 3),
        ([ERRORED, REJECTED], 4),
    ],
)
def test_the_exit_code_is_that_of_the_worst_state(ended: list[Ingestion], code: int) -> None:
    """The exit code distinguishes the final states; with several files the worst counts."""
    assert exit_code([TrackedIngestion(ingestion) for ingestion in ended]) == code


def remarks(ingestion: Ingestion, report: AuditReport | None = None) -> str:
    """Return what is said about an ingestion that was waited for."""
    deployment = Deployment()
    if report:
        deployment.lake.put_report(ingestion.report_key, report.to_json())
    said = io.StringIO()
    explain(Console(file=said, width=200), deployment.adapters, [TrackedIngestion(ingestion)])
    return said.getvalue()


def test_what_is_remarkable_about_a_published_file_is_said() -> None:
    """Warnings, rows in quarantine and a likely duplicate are named after the wait."""
    report = replace(REPORT, rows_rejected=1200)
    said = remarks(
        replace(PUBLISHED, audit=replace(PUBLISHED.audit, duplicate_of="d" * 32)), report
    )
    assert "März.csv: warning, few_late: 7 rows" in said
    assert "März.csv: 1,200 rows are in quarantine" in said
    assert "März.csv: likely a duplicate: dddddddddddd brought the same before" in said
    assert said.endswith("Details: `lakegate show 0123456789ab`\n")


def test_the_rows_of_a_warning_are_told() -> None:
    """Below a warning stand the lines and values of the first rows that it is about."""
    warning = replace(FAILED, id="few_late", status=Status.WARN)
    rows = tuple({"_place": f"line {n}", "late": str(n)} for n in range(2, 9))
    said = remarks(PUBLISHED, replace(REPORT, checks=(replace(warning, samples=rows),)))
    expected = [f"März.csv: line {n}: late {n}" for n in (2, 3, 4)]
    assert [line.strip() for line in said.splitlines()[1:4]] == expected


def test_the_reason_of_a_file_that_was_approved_is_told_as_one() -> None:
    """What was published despite a reason has it after a word that says so, and no line twice."""
    check = replace(FAILED, samples=({"place": "line 2", "flight": "7"},), found="1 row")
    (line,) = told(check)
    report = replace(REPORT, checks=(check,))
    why = Reason("CHECKS_FAILED", line)
    approved, failed = replace(PUBLISHED, reason=why), replace(REJECTED, reason=why)
    assert f"März.csv: published although: {line}\n" in remarks(approved, report)
    assert remarks(replace(failed, report_key="r.json"), report).count(line) == 1


def test_an_unremarkable_file_is_not_remarked() -> None:
    """A file without warnings needs no further line, and a rejected one has its reason only."""
    assert remarks(replace(PUBLISHED, audit=replace(PUBLISHED.audit, checks=()))) == ""
    assert remarks(REJECTED).splitlines()[0].endswith("1 of 3 checks failed: total.range")


def test_after_a_wait_was_stopped_the_way_on_is_named() -> None:
    """Ctrl-C during a wait prints the command for each ingestion."""
    assert "lakegate show 0123456789ab" in stopped([TrackedIngestion(QUEUED)])


def test_an_interrupted_wait_leaves_the_work_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """After Ctrl-C a wait names the way on, and exits as shells expect; the file is ingested."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    deployment = Deployment()
    landed = deployment.land("shop/orders/a.parquet")
    deployment.deliver()
    deployment.journal.strike("ledger.together", Fault(interrupt))
    with pytest.raises(typer.Exit) as ending:
        wait_for(deployment.adapters, [dropped(landed)], 60)
    assert ending.value.exit_code == 130
    assert f"lakegate show {ingestion_id(landed)[:12]}" in capsys.readouterr().err
    deployment.settle()
    assert deployment.ingestion(landed).merge_hash
