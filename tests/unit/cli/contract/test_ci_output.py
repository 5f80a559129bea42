"""`contract check` and `contract test` in the notations of pipelines."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from cli.contract.ci_output import Format, Level, Result, audit_results, text
from cli.main import app
from lakegate.audit.report import READABLE, AuditReport, CheckResult, Status, Verdict
from lakegate.contract.model import parse
from tests.fakes.examples import REPORT, WRONG_FILE
from tests.unit.contract.contract_texts import contract_text

COLUMNS = """\
- {name: carrier, logicalType: string}
- {name: flight, logicalType: string, logicalTypeOptions: {maxLength: 4}}
"""
CONTRACT = parse(contract_text(COLUMNS), "orders.yaml")
LINES = {"id": 8, "carrier": 9, "flight": 10}


def failed(check: str, **row: str | None) -> CheckResult:
    return CheckResult(check, "file", (), "error", Status.FAIL, "0", "1", samples=(row,))


def audited(*checks: CheckResult) -> AuditReport:
    return replace(REPORT, checks=checks)


def only(report: AuditReport) -> Result:
    (result,) = audit_results(report, CONTRACT, "orders.yaml")
    return result


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (audited(failed("id.nullValues")), LINES["id"]),
        (audited(failed("flight.invalidValues")), LINES["flight"]),
        (audited(failed(READABLE, line="3", column="carrier", value="x")), LINES["carrier"]),
        (audited(failed(READABLE, line="3", column="(hidden)")), 1),
        (WRONG_FILE, LINES["carrier"]),
    ],
)
def test_a_failure_is_at_the_line_of_its_check_or_column(report: AuditReport, line: int) -> None:
    """An annotation is where the contract states what the file breaks."""
    assert only(report).line == line
    assert text([only(report)], Format.GITHUB).startswith(
        f"::error file=orders.yaml,line={line},title="
    )


def test_what_a_file_holds_cannot_command_the_pipeline() -> None:
    """A cell or a name stays within its line, and within XML, whatever characters it has."""
    hostile = "a\n::warning::b\r\x1b]0;\x00%0A"
    report = audited(failed("id.nullValues", **{hostile: hostile}))
    line = text([replace(only(report), subject=hostile)], Format.GITHUB)
    assert line.splitlines() == [line]
    assert "%250A" in line
    passed = replace(only(report), level=Level.PASSED, subject=hostile)
    assert len(text([passed], Format.GITHUB).splitlines()) == 1
    (case,) = ET.fromstring(text([only(report)], Format.JUNIT)).iter("testcase")  # noqa: S314
    assert "::warning::" in case[0].get("message", "") + (case[0].text or "")


def test_each_status_has_its_notation() -> None:
    """JUnit counts failed and skipped checks; only failures and warnings are annotated."""
    checks = [replace(failed(f"c.{status}"), status=status) for status in Status]
    results = audit_results(audited(*checks), CONTRACT, "orders.yaml")
    root = ET.fromstring(text(results, Format.JUNIT))  # noqa: S314
    (suite,) = root
    assert {k: suite.get(k) for k in ("tests", "failures", "skipped")} == {
        "tests": "5",
        "failures": "2",
        "skipped": "1",
    }
    commands = text(results, Format.GITHUB).splitlines()
    assert [line.split()[0] for line in commands if line.startswith("::")] == [
        "::warning",
        "::error",
        "::error",
    ]


def test_a_file_that_could_not_be_audited_is_a_failure() -> None:
    """A report without checks fails with its reason."""
    errored = replace(REPORT, verdict=Verdict.ERRORED, checks=())
    assert only(errored).name == "CHECKS_FAILED"


@pytest.mark.parametrize("format_", ["github", "junit"])
def test_contracts_are_checked_for_a_pipeline(tmp_path: Path, format_: str) -> None:
    """Each problem and hint has its file and line; the exit code says if a contract is refused."""
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(contract_text(COLUMNS))
    bad.write_text(contract_text(COLUMNS.replace("carrier, logicalType", "carrier, logcalType")))

    said = CliRunner().invoke(app, ["contract", "check", str(good), "--format", format_])
    assert said.exit_code == 0, said.output
    said = CliRunner().invoke(app, ["contract", "check", str(tmp_path), "--format", format_])
    assert said.exit_code == 1
    if format_ == "github":
        assert f"::error file={bad},line=9," in said.stdout
    else:
        cases = ET.fromstring(said.stdout).iter("testcase")  # noqa: S314
        assert any(
            (case.get("file"), case.get("line"), case[0].tag) == (str(bad), "9", "failure")
            for case in cases
            if len(case)
        )


def test_contracts_that_clash_fail_a_pipeline(tmp_path: Path) -> None:
    """Two contracts that claim the same files are an error of no single line."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(contract_text(COLUMNS))
    said = CliRunner().invoke(app, ["contract", "check", str(tmp_path), "--format", "github"])
    assert said.exit_code == 1
    assert "::error title=" in said.stdout


@pytest.mark.parametrize("command", [["check"], ["test", "--data", "."]])
def test_one_notation_at_a_time(tmp_path: Path, command: list[str]) -> None:
    """JSON and another notation cannot be asked for together."""
    file = tmp_path / "a.yaml"
    file.write_text(contract_text(COLUMNS))
    words = ["contract", *command, str(file), "--json", "--format", "junit"]
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 2
    assert "not both" in said.output
