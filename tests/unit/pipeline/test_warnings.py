"""A file that is published with warnings causes one notice."""

from dataclasses import replace

from functions.model import steps
from functions.model.ingestion import Ingestion, State
from functions.model.messages.alert import Alert, Kind
from functions.pipeline.verdict.decision import with_findings
from lakegate.audit.report import AuditReport
from tests.fakes.examples import INGESTION, REPORT
from tests.fakes.job import NOTED, PASSED, WARNED, Script, rejected, warned
from tests.fakes.promises import check_promises
from tests.fakes.scenario import KEY, Scenario

OTHER = "shop/orders/b.parquet"


def noted(report: AuditReport) -> AuditReport:
    """Return the report with a finding of severity info."""
    return replace(report, checks=(PASSED, NOTED))


def elsewhere(report: AuditReport) -> AuditReport:
    """Return the report with a warning of another check."""
    return replace(report, checks=(PASSED, replace(WARNED, id="few_lost")))


def with_rows(report: AuditReport) -> AuditReport:
    """Return the report with a warning that names rows."""
    rows = tuple({"_place": f"line {n}", "id": str(n)} for n in range(2, 9))
    return replace(report, checks=(PASSED, replace(WARNED, samples=rows)))


def ended(deployment: Scenario, script: Script, key: str = KEY) -> Ingestion:
    """Return the ingestion of a file whose run goes as scripted."""
    landed = deployment.ended(key, script=script)
    check_promises(deployment)
    return deployment.ingestion(landed)


def told(deployment: Scenario) -> list[Alert]:
    """Return the alerts in the contract's channel."""
    assert {channel for channel, _ in deployment.alerts.posted} <= {"#orders"}
    return [alert for _, alert in deployment.alerts.posted]


def test_a_file_published_with_warnings_causes_one_notice(
    deployment: Scenario,
) -> None:
    """The notice names the file, the check, what was expected and what was found."""
    found = ended(deployment, warned)
    assert (found.state, found.alerted) == (State.PUBLISHED, True)
    (notice,) = told(deployment)
    assert (notice.kind, notice.ingestion) == (Kind.WARNING, found.id)
    assert notice.text == "Published with a warning: a.parquet"
    text = str(notice.blocks)
    assert "7 rows, expected less than 10 rows" in text
    assert NOTED.id not in text
    deployment.send_all_again()
    deployment.settle()
    assert deployment.journal.calls.count("alerts.post") == 1


def test_a_notice_names_the_first_rows_of_a_warning(deployment: Scenario) -> None:
    """Their places and values stand below the warning, as in the alert of a rejected file."""
    ended(deployment, with_rows)
    (notice,) = told(deployment)
    assert "line 2: id 2\nline 3: id 3\nline 4: id 4```" in notice.blocks[2]["text"]["text"]


def test_informative_checks_are_only_in_the_report(deployment: Scenario) -> None:
    """A check of severity info causes no notice."""
    found = ended(deployment, noted)
    assert (found.state, found.audit.warnings) == (State.PUBLISHED, ())
    assert told(deployment) == []


def test_the_same_warnings_of_a_table_share_a_thread(deployment: Scenario) -> None:
    """Only files of one table with the same warnings share a cause."""
    for number in range(3):
        ended(deployment, warned, f"shop/orders/{number}.parquet")
    ended(deployment, elsewhere)
    causes = [(alert.table, alert.cause) for alert in told(deployment)]
    assert len(causes) == 4
    assert len(set(causes)) == 2


def test_a_likely_duplicate_with_warnings_is_one_notice(deployment: Scenario) -> None:
    """One notice names both the likely original and the warnings of the audit."""
    for key in (KEY, OTHER):
        deployment.ended(key, body=b"the same", script=warned)
    first, again = told(deployment)
    assert "duplicate" not in first.text
    assert again.text == "Published, but likely a duplicate: b.parquet"
    assert "*few_late* on `id`" in str(again.blocks)


def test_a_recovery_with_warnings_is_reported_in_its_thread(deployment: Scenario) -> None:
    """A replay that is published with warnings reports both in the alert's thread."""
    failed = ended(deployment, rejected)
    deployment.script(failed.landed, warned)
    deployment.replay(failed)
    deployment.settle()
    _, recovery = told(deployment)
    assert recovery.kind is Kind.RECOVERED
    assert "*few_late* on `id`" in str(recovery.blocks)


def test_no_number_of_other_findings_hides_a_warning() -> None:
    """The ledger lists failed checks first, then warnings, and then all others."""
    many = [replace(NOTED, id=f"noted {number}") for number in range(30)]
    found = with_findings(INGESTION, replace(REPORT, checks=(*many, WARNED, *REPORT.checks)))
    published = found.but(state=State.PUBLISHED, alerted=False)
    assert [check["status"] for check in found.audit.checks[:3]] == ["fail", "warn", "warn"]
    assert [check["id"] for check in published.audit.warnings] == [WARNED.id]
    assert steps.needs_alert(published)
