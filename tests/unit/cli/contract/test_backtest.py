"""`--since` of `contract test` and `contract push --dry-run`: output, formats and exit codes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from access.evidence.backtest import Backtest, Backtested
from cli.contract import backtest as command
from cli.contract.ci_output import Format
from lakegate.audit.report import AuditReport, Verdict
from tests.fakes import job
from tests.fakes.deployment import ORDERS, TABLE, Deployment
from tests.unit.lakegate.test_jobspec import SPEC

CSV = ORDERS.replace("schema:", "customProperties: [{property: format, value: csv}]\nschema:", 1)
GONE = "the landed file is gone"


def report(name: str, verdict: Verdict) -> AuditReport:
    made = replace(job.passed_report(SPEC, ""), rows_read=1000)
    made = replace(made, source=replace(made.source, key=name))
    return made if verdict is Verdict.PASSED else job.rejected(made)


def file(name: str, before: Verdict, now: Verdict | None) -> Backtested:
    """Return a file of a thousand rows; without a verdict now it is gone."""
    rows = 1000 if before is Verdict.PASSED else 0
    made = Backtested("a1" * 16, name, "v1", before, rows, unjudged="" if now else GONE)
    return replace(made, report=report(name, now)) if now else made


WORSE = file("worse.csv", Verdict.PASSED, Verdict.REJECTED)
BETTER = file("better.csv", Verdict.REJECTED, Verdict.PASSED)
SAME = file("same.csv", Verdict.PASSED, Verdict.PASSED)
LOST = file("lost.csv", Verdict.PASSED, None)


@pytest.mark.parametrize(
    ("files", "code"),
    [((), 0), ((BETTER, SAME), 0), ((SAME, LOST), 4), ((LOST, WORSE, BETTER), 3)],
)
def test_the_exit_code_is_the_worst_news(files: tuple[Backtested, ...], code: int) -> None:
    """What would fail counts most, then what is not judged; what would pass is no failure."""
    assert command.exit_code([Backtest(TABLE, ()), Backtest(TABLE, files)]) == code


def test_changes_are_shown_with_their_checks(capsys: pytest.CaptureFixture[str]) -> None:
    """Each changed file stands in a line with its checks; what is not judged with its reason."""
    command.show(Backtest(TABLE, (WORSE, BETTER, SAME, LOST)))
    said = " ".join(capsys.readouterr().out.split())
    assert "worse.csv passed → rejected 1,000 id.required 1 of 2 checks failed" in said
    assert "better.csv rejected → passed 1,000 1,000 rows would pass, not 0" in said
    assert (
        "shop.orders: 4 files, 1 passed → rejected (1,000 rows), 1 rejected → passed (1,000 rows),"
        f" 1 unchanged, 1 not judged not judged, {GONE}: lost.csv"
    ) in said
    assert "same.csv" not in said


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment where two files were published by a contract for CSV."""
    made = Deployment()
    made.lake.put_text(f"contracts/{TABLE}.yaml", CSV.encode())
    for number in range(2):
        made.land(f"shop/orders/{number}.csv", f"id\n{number}\n".encode())
    made.settle()
    return made


def audited(deployment: Deployment, named: Path, **how: Any) -> int:
    asked = {"limit": 50, "as_format": Format.TEXT, "as_json": False, **how}
    contract = command.tried_contract(deployment.adapters, named, "")
    return command.audit_landed(deployment.adapters, contract, named, "2000-01-01", **asked)


@pytest.mark.parametrize("by_file", [True, False])
def test_files_are_judged_by_a_file_or_the_contract_in_force(
    deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str], by_file: bool
) -> None:
    """A contract's file and a table's name both lead to the table's landed files."""
    (tmp_path / "a.yaml").write_text(CSV)
    assert audited(deployment, tmp_path / "a.yaml" if by_file else Path(TABLE), as_json=True) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert [(each["name"], each["recorded"], each["verdict"], each["rows"]) for each in files] == [
        (f"shop/orders/{number}.csv", "passed", "passed", 1) for number in (1, 0)
    ]


def test_a_folder_of_a_tables_name_is_no_contract(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table is found by its name although the current folder has one of that name."""
    (tmp_path / TABLE).mkdir()
    monkeypatch.chdir(tmp_path)
    assert command.tried_contract(deployment.adapters, Path(TABLE), "").table == TABLE


def test_a_limit_is_told_when_it_cuts(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    """If older files are left out, standard error says so, and how to judge all."""
    audited(deployment, Path(TABLE), limit=1)
    said = capsys.readouterr()
    assert "Only the newest 1 ingestions of shop.orders; --limit 0 judges all" in said.err
    assert "1 file," in said.out


def test_pipelines_get_what_would_fail(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is gone is a warning for GitHub; one that passes as before is a plain line."""
    deployment.landing.lose("shop/orders/0")
    assert audited(deployment, Path(TABLE), as_format=Format.GITHUB) == 4
    said = capsys.readouterr().out
    assert f"::warning title=not judged::shop/orders/0.csv: {GONE}" in said
    assert "shop/orders/1.csv: backtest: passed passed → passed" in said
