"""Only a successful run, with a passed report of its own, leads to main."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.adapters.emr import JobRun, RunState
from functions.model.ingestion import State
from functions.pipeline.verdict.decision import (
    AwaitRight,
    Publish,
    Refuse,
    RunAgain,
    decide,
    with_findings,
)
from lakegate.audit.report import AuditReport, CheckResult, Reason, Status, Verdict
from lakegate.job.landing import run_name
from tests.fakes import examples

ENDS = [RunState.SUCCESS, RunState.FAILED, RunState.CANCELLED]
INGESTION = replace(
    examples.INGESTION, state=State.SUBMITTED, base_hash="base", audited_hash="", reason=None
)
WHY = Reason("CHECKS_FAILED", "1 of 2 checks failed")


def check(status: Status) -> CheckResult:
    """Return a check with that outcome."""
    return replace(examples.FAILED, status=status)


PASSED = replace(
    examples.REPORT,
    verdict=Verdict.PASSED,
    reason=None,
    base_hash="base",
    audited_hash="audited",
    checks=(check(Status.PASS), check(Status.WARN)),
)


def run(state: RunState, details: str = "ExitCode: 3.") -> JobRun:
    """Return the ingestion's job run, ended like this."""
    return JobRun("00run", run_name(INGESTION.id, 1), state, details)


def refusal(state: RunState, report: AuditReport | None) -> tuple[State, str]:
    """Return the state that the decision leads to, and the reason's code."""
    decision = decide(INGESTION, run(state), report, tries=1)
    assert isinstance(decision, Refuse)
    return decision.state, decision.reason.code


def test_a_run_out_of_memory_is_repeated_once_with_larger_workers() -> None:
    """A small run that lacked memory runs again; a second failure is the file's own."""
    why = Reason("OUT_OF_MEMORY", "a cell does not fit into memory")
    report = replace(PASSED, verdict=Verdict.ERRORED, reason=why, audited_hash="")
    ended = run(RunState.FAILED)
    assert decide(INGESTION, ended, report, tries=2) == RunAgain(why)
    again = replace(INGESTION, failures=1)
    assert decide(again, ended, report, tries=9) == Refuse(State.ERRORED, why)


LACKING = "the role lakegate-dev-JobRole lacks the right s3:GetObject on arn:aws:s3:::lake/a"


@pytest.mark.parametrize("failures", [0, 99])
def test_a_run_that_lacked_a_right_is_repeated_for_ever(failures: int) -> None:
    """No number of runs without a right ends a file, whether a report or EMR names the right."""
    why = Reason("RIGHT_MISSING", LACKING)
    report = replace(PASSED, verdict=Verdict.ERRORED, reason=why, audited_hash="")
    often = replace(INGESTION, failures=failures)
    assert decide(often, run(RunState.FAILED), report, tries=2) == AwaitRight(why)
    said = f"ExitCode: 1. Last few exceptions: RightMissing: RIGHT_MISSING: {LACKING} Grant it: …"
    assert decide(often, run(RunState.FAILED, said), None, tries=2) == AwaitRight(why)


def test_a_foreign_report_of_a_missing_right_is_refused() -> None:
    """Another run's report repeats nothing."""
    why = Reason("RIGHT_MISSING", LACKING)
    other = replace(PASSED, verdict=Verdict.ERRORED, reason=why, ingestion="f" * 32)
    assert refusal(RunState.FAILED, other) == (State.ERRORED, "FOREIGN_REPORT")


@pytest.mark.parametrize("found", ["audited", "something else"])
def test_a_reaudit_passes_for_its_hash_alone(found: str) -> None:
    """A re-audit passes only for the hash at which the files were registered."""
    again = replace(INGESTION, reaudit_base="earlier", audited_hash="audited")
    report = replace(PASSED, audited_hash=found)
    decision = decide(with_findings(again, report), run(RunState.SUCCESS), report, tries=1)
    assert isinstance(decision, Publish) == (found == "audited")


def test_success_and_a_passed_report_publish() -> None:
    """A run that succeeded and a report that passed lead to main; warnings do not block."""
    assert decide(INGESTION, run(RunState.SUCCESS), PASSED, tries=2) == Publish(PASSED)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (RunState.SUCCESS, "NO_REPORT"),
        (RunState.FAILED, "JOB_FAILED"),
        (RunState.CANCELLED, "JOB_CANCELLED"),
    ],
)
def test_without_a_report_nothing_passes(state: RunState, code: str) -> None:
    """A run without a report is an error in any state that EMR reports."""
    assert refusal(state, None) == (State.ERRORED, code)


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.CANCELLED])
def test_the_reason_of_a_failed_run_has_emrs_details(state: RunState) -> None:
    """The reason of a run without a report carries EMR's own details."""
    decision = decide(INGESTION, run(state, "Out of memory"), None, tries=1)
    assert isinstance(decision, Refuse)
    assert "Out of memory" in decision.reason.message


@pytest.mark.parametrize(("failures", "is_enough"), [(0, False), (1, False), (2, True), (3, True)])
def test_a_run_that_failed_without_a_report_runs_again(failures: int, is_enough: bool) -> None:
    """A run that failed without a report runs again, within the settings' limit."""
    ingestion = replace(INGESTION, failures=failures)
    decision = decide(ingestion, run(RunState.FAILED), None, tries=3)
    assert isinstance(decision, Refuse if is_enough else RunAgain)
    assert decision.reason.code == "JOB_FAILED"


@pytest.mark.parametrize("state", [RunState.SUCCESS, RunState.CANCELLED])
def test_only_a_crash_is_tried_again(state: RunState) -> None:
    """A run that was cancelled, timed out or left no report is reported at once."""
    assert isinstance(decide(INGESTION, run(state), None, tries=9), Refuse)


@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize(
    ("verdict", "end"), [(Verdict.REJECTED, State.REJECTED), (Verdict.ERRORED, State.ERRORED)]
)
def test_a_refusing_report_decides(state: RunState, verdict: Verdict, end: State) -> None:
    """A failed report decides with its reason, for any exit code."""
    report = replace(PASSED, verdict=verdict, reason=WHY)
    assert decide(INGESTION, run(state), report, tries=2) == Refuse(end, WHY)


@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("verdict", [Verdict.REJECTED, Verdict.ERRORED])
def test_a_refusal_without_a_reason_is_no_pass(state: RunState, verdict: Verdict) -> None:
    """A report that failed without a reason keeps its rows off main."""
    assert refusal(state, replace(PASSED, verdict=verdict)) == (State.ERRORED, "CONTRADICTION")


@pytest.mark.parametrize(
    "changed",
    [
        replace(PASSED, checks=(check(Status.PASS), check(Status.FAIL))),
        replace(PASSED, checks=(check(Status.ERROR),)),
        replace(PASSED, checks=()),
        replace(PASSED, audited_hash=""),
        replace(PASSED, audited_hash="base"),
        replace(PASSED, rows_written=1),
    ],
    ids=[
        "failed check",
        "check not evaluated",
        "no check",
        "no hash",
        "nothing written",
        "other rows in the files",
    ],
)
def test_a_pass_that_contradicts_itself_is_an_error(changed: AuditReport) -> None:
    """A passed report that contradicts itself is an error."""
    assert refusal(RunState.SUCCESS, changed) == (State.ERRORED, "CONTRADICTION")


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.CANCELLED])
def test_a_pass_of_a_failed_run_is_an_error(state: RunState) -> None:
    """A passed report of a run that did not succeed is an error."""
    assert refusal(state, PASSED) == (State.ERRORED, "CONTRADICTION")


@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize(
    "other",
    [
        replace(PASSED, ingestion="b" * 32),
        replace(PASSED, attempt=2),
        replace(PASSED, branch="ingest/shop.orders/b"),
    ],
    ids=["ingestion", "attempt", "branch"],
)
def test_another_runs_report_is_an_error(state: RunState, other: AuditReport) -> None:
    """A report about another ingestion, attempt or branch is an error."""
    assert refusal(state, other) == (State.ERRORED, "FOREIGN_REPORT")


@given(
    state=st.sampled_from(ENDS),
    verdict=st.sampled_from(Verdict),
    reason=st.sampled_from([None, WHY]),
    statuses=st.lists(st.sampled_from(Status), max_size=3),
    audited_hash=st.sampled_from(["", "base", "audited"]),
    attempt=st.sampled_from([1, 2]),
    tries=st.sampled_from([1, 3]),
)
def test_run_and_report_must_agree_in_everything(
    state: RunState,
    verdict: Verdict,
    reason: Reason | None,
    statuses: list[Status],
    audited_hash: str,
    attempt: int,
    tries: int,
) -> None:
    """An ingestion is published if, and only if, run and report agree in every field."""
    report = replace(
        PASSED,
        verdict=verdict,
        reason=reason,
        checks=tuple(map(check, statuses)),
        audited_hash=audited_hash,
        attempt=attempt,
    )
    agrees = (
        state is RunState.SUCCESS
        and verdict is Verdict.PASSED
        and not set(statuses) <= {Status.SKIPPED}
        and set(statuses) <= {Status.PASS, Status.WARN, Status.SKIPPED}
        and audited_hash == "audited"
        and attempt == 1
    )
    decision = decide(INGESTION, run(state), report, tries)
    assert isinstance(decision, Publish) == agrees
    assert not isinstance(decision, RunAgain)
