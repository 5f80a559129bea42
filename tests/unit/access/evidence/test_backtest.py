"""Landed files are judged by another contract, and compared with their recorded verdicts."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from access.evidence.backtest import Backtest, Request, backtest
from lakegate.audit.report import AuditReport, CheckResult, Status, Verdict
from lakegate.contract.model import Contract, parse
from lakegate.errors import Transient
from tests.fakes import job
from tests.fakes.deployment import ORDERS, TABLE, Deployment
from tests.fakes.job import FAILED, PASSED, Script, passed_report
from tests.unit.lakegate.test_jobspec import SPEC

BEFORE, NOW = 100, 90  # rows that a file's audits read
QUALITY = "required: true, quality: [RULE]"
KEYS = "{metric: duplicateValues, mustBe: 0, customProperties: [{property: scope, value: table}]}"
AGE = """\
    quality:
      - type: custom
        engine: lakegate
        implementation: {check: freshness, column: at, mustBeLessThan: 48}
"""
Judge = Callable[[Contract, Path], AuditReport]


def read(script: Script) -> Script:
    """Return a script of a run that also read rows."""

    def run(report: AuditReport) -> AuditReport | None:
        found = script(report)
        return replace(found, rows_read=BEFORE) if found else None

    return run


def reporting(*results: CheckResult) -> AuditReport:
    """Return the report by a local audit that has these results."""
    report = replace(passed_report(SPEC, ""), checks=results or (PASSED,), rows_read=NOW)
    return job.rejected(report) if FAILED in results else report


def judge(contract: Contract, file: Path) -> AuditReport:
    """Return the report of a fake audit: a file passes unless it has the word bad."""
    return reporting(FAILED) if b"bad" in file.read_bytes() else reporting()


def with_checks(result: CheckResult, report: AuditReport) -> AuditReport:
    """Return the report of a run that also has this result."""
    return replace(report, checks=(PASSED, result))


def beyond(check: str) -> CheckResult:
    """Return a result of a check that needs more than the file."""
    message = "looks at the whole table, which is not here"
    return replace(PASSED, id=check, status=Status.SKIPPED, found="skipped", message=message)


def tried(deployment: Deployment, judge: Judge = judge, text: str = ORDERS, **how: Any) -> Backtest:
    """Return what all that landed would become by a contract's text."""
    request = Request(parse(text, "orders.yaml"), "2000-01-01", **{"limit": 50, **how})
    return backtest(deployment.adapters, request, judge)


def landed(*files: tuple[bytes, Script]) -> Deployment:
    """Return a deployment in which files have ended, the first one landed first."""
    deployment = Deployment()
    for number, (body, script) in enumerate(files):
        deployment.land(f"shop/orders/{number}.csv", body, read(script))
        deployment.clock.pass_(1)
    deployment.settle()
    return deployment


def test_each_file_has_both_verdicts() -> None:
    """Recorded and new verdicts stand side by side, with the rows between them, newest first."""
    deployment = landed((b"bad 1", job.passed), (b"2", job.rejected), (b"bad 3", job.rejected))

    found = tried(deployment)

    assert [
        (each.name, each.recorded, each.verdict, each.rows_changed) for each in found.files
    ] == [
        ("shop/orders/2.csv", Verdict.REJECTED, Verdict.REJECTED, 0),
        ("shop/orders/1.csv", Verdict.REJECTED, Verdict.PASSED, NOW),
        ("shop/orders/0.csv", Verdict.PASSED, Verdict.REJECTED, BEFORE),
    ]
    assert [each.name for each in found.files if each.would_fail] == ["shop/orders/0.csv"]
    failing = found.files[-1].report
    assert failing is not None
    assert [check.id for check in failing.failed] == [FAILED.id]
    assert failing.source.key == "shop/orders/0.csv"


def test_other_quarantined_rows_are_a_change() -> None:
    """A file that passes by both contracts is changed by as many rows as are published less."""
    (file,) = tried(landed((b"1", job.passed))).files
    assert (file.is_changed, file.would_fail, file.rows_changed) == (True, False, BEFORE - NOW)


@pytest.mark.parametrize("error", [KeyboardInterrupt, Transient("A", "b")])
def test_one_file_at_a_time_is_on_this_machine(error: BaseException) -> None:
    """Each file's copy is gone before the next is judged, and after an interruption too."""
    deployment = landed((b"1", job.passed), (b"2", job.passed), (b"last", job.passed))
    copies: list[Path] = []

    def judge(contract: Contract, file: Path) -> AuditReport:
        assert [copy for copy in copies if copy.parent.exists()] == []
        copies.append(file)
        if file.read_bytes() == b"1":
            raise error
        return reporting()

    with pytest.raises(type(error) if isinstance(error, Exception) else KeyboardInterrupt):
        tried(deployment, judge)
    assert len(copies) == 3
    assert [copy for copy in copies if copy.parent.exists()] == []


def test_what_cannot_be_judged_is_named() -> None:
    """A file that is gone or in flight is named with the reason; a change is no file."""
    deployment = landed((b"1", job.passed))
    deployment.landing.lose()
    deployment.change()
    deployment.settle()
    deployment.land("shop/orders/late.csv")
    deployment.deliver()

    found = {each.name: each for each in tried(deployment).files}

    assert {name: each.unjudged for name, each in found.items()} == {
        "shop/orders/0.csv": "the landed file is gone",
        "shop/orders/late.csv": "it is submitted, and has no verdict yet",
    }
    assert {(each.verdict, each.is_changed) for each in found.values()} == {(None, False)}


def test_a_file_that_was_errored_without_a_report_may_pass() -> None:
    """Where no job left a report, the recorded verdict is the ledger's."""
    (file,) = tried(landed((b"1", job.crashed))).files
    assert (file.recorded, file.verdict, file.rows_changed) == (
        Verdict.ERRORED,
        Verdict.PASSED,
        NOW,
    )


def test_a_check_beyond_the_file_needs_the_recorded_audit() -> None:
    """A new check of the whole table leaves a passing file open, unless the file has passed it."""
    text = ORDERS.replace("required: true", QUALITY.replace("RULE", KEYS))
    (check,) = (c for c in parse(text, "orders.yaml").checks if c.checks_whole_table)
    skipped = beyond(check.id)
    met = replace(skipped, status=Status.PASS)
    for in_force, recorded, expected in (
        (ORDERS, met, True),
        (text, met, False),
        (text, replace(met, status=Status.FAIL), True),
    ):
        deployment = Deployment()
        deployment.lake.put_text(f"contracts/{TABLE}.yaml", in_force.encode())
        deployment.land("shop/orders/a.csv", script=partial(with_checks, recorded))
        deployment.settle()

        (file,) = tried(deployment, lambda *_: reporting(skipped), text).files

        assert (f"{check.id} looks at the whole table" in file.unjudged) is expected
        assert tried(deployment, lambda *_: reporting(FAILED, skipped), text).files[0].verdict


def test_age_is_not_measured_again() -> None:
    """A file that was fresh when it landed is not judged by its age now."""
    text = ORDERS + "      - {name: at, logicalType: timestamp}\n"
    text = text.replace("    properties:", f"{AGE}    properties:")
    used: list[Contract] = []

    def judge(contract: Contract, file: Path) -> AuditReport:
        used.append(contract)
        return reporting()

    (file,) = tried(landed((b"1", job.passed)), judge, text).files
    assert [check.metric.value for check in used[0].checks] == ["nullValues"]
    assert "at.freshness measures the age of data when a file lands" in file.unjudged


def test_what_is_hidden_now_stays_hidden() -> None:
    """A contract that declares a confidential column public, or allows samples, shows neither."""
    deployment = landed((b"1", job.passed))
    secret = ORDERS.replace("required: true", "required: true, classification: confidential")
    closed = f"{secret}customProperties: [{{property: allowSamples, value: false}}]\n"
    deployment.lake.put_text(f"contracts/{TABLE}.yaml", closed.encode())
    used: list[Contract] = []

    def judge(contract: Contract, file: Path) -> AuditReport:
        used.append(contract)
        return reporting()

    tried(deployment, judge)

    assert used[0].concealed == {"id"}
    assert not used[0].allow_samples


def test_the_newest_are_judged_and_older_ones_told() -> None:
    """With a limit, the newest ingestions are judged, and the result says that there are more."""
    deployment = landed((b"1", job.passed), (b"2", job.passed))
    found = tried(deployment, limit=1)
    assert ([each.name for each in found.files], found.more) == (["shop/orders/1.csv"], True)
    assert not tried(deployment, limit=0).more


def test_a_batch_brings_the_files_of_the_table() -> None:
    """Of a batch only the files for the contract's table are judged, each with its own verdict."""
    deployment = Deployment()
    deployment.batch("monday", {"a.csv": TABLE, "b.csv": "shop.returns"})
    deployment.settle()

    (file,) = tried(deployment).files

    assert (file.name, file.recorded) == ("batches/monday/a.csv", Verdict.PASSED)
