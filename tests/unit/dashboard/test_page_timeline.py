"""The timeline of an ingestion, and the other parts of its page."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from dashboard.ingestion import Account, account, facts, rows
from dashboard.timeline import timeline, total
from functions.model.ingestion import Ingestion, State
from lakegate.audit import failing_rows
from lakegate.audit.diagnosis import BadCell
from lakegate.audit.report import AuditReport, Status, Step
from tests.fakes.deployment import Deployment
from tests.fakes.examples import INGESTION, REPORT
from tests.fakes.job import FAILED, passed, rejected

_TIMES = {
    "landed": "2026-03-01T11:59:50.000+00:00",
    "branched": "2026-03-01T11:59:52.000+00:00",
    "submitted": "2026-03-01T11:59:53.000+00:00",
    "audited": "2026-03-01T12:00:09.000+00:00",
    "rejected": "2026-03-01T12:00:10.000+00:00",
    "recorded": "2026-03-01T12:00:20.000+00:00",
}


def ingestion(**times: str) -> Ingestion:
    """Return the rejected example, in flight with these times."""
    return replace(INGESTION, times={**_TIMES, **times})


def test_the_jobs_own_steps_are_reported() -> None:
    """The report adds the job's start and end of writing between submitted and audited."""
    report = replace(REPORT, steps=(Step("open", 1.0), Step("append", 2.5), Step("audit", 4.0)))
    steps = timeline(ingestion(), report)
    assert [(step.name, step.seconds) for step in steps] == [
        ("landed", 0),
        ("branched", 2),
        ("submitted", 1),
        ("started", 7),
        ("written", 3.5),
        ("audited", 5.5),
        ("rejected", 1),
    ]
    assert steps[4].began == "2026-03-01T12:00:00.000+00:00"


def test_the_wait_for_a_shared_run_is_a_phase() -> None:
    """Of a shared run the timeline has the wait until it took the file."""
    times = {n: at for n, at in _TIMES.items() if n not in ("branched", "submitted")}
    shared = replace(INGESTION, is_shared=True, times={**times, "queued": _TIMES["submitted"]})
    steps = timeline(shared, replace(REPORT, steps=(Step("append", 1.5),)))
    assert [(step.name, step.phase, step.seconds) for step in steps][1:4] == [
        ("queued", "in the queue", 3),
        ("taken", "waits for a shared run", 7),
        ("written", "read and written", 1.5),
    ]


def test_a_file_that_waits_has_no_step_of_its_last_attempt() -> None:
    """While a file waits anew, the report of an earlier attempt adds no step."""
    again = ingestion(queued="2026-03-02T12:00:00.000+00:00")
    assert timeline(again, REPORT)[-1].name == "queued"
    assert "taken" not in [step.name for step in timeline(again, REPORT)]


def test_what_has_ended_has_a_total() -> None:
    """The total lasts from the landing to the final state; an ingestion in flight has none."""
    landed = replace(INGESTION.landed, landed_at=_TIMES["landed"])
    ended = replace(ingestion(), landed=landed)
    assert total(ended) == 20
    assert total(replace(ended, state=State.SUBMITTED)) == 0
    assert total(replace(ended, times={})) == 0


@pytest.mark.parametrize(
    "report",
    [None, replace(REPORT, steps=()), replace(REPORT, started_at="2026-02-01T12:00:00+00:00")],
)
def test_what_nobody_knows_is_left_out(report: AuditReport | None) -> None:
    """Without a report of this run the timeline has only the ledger's times."""
    names = [step.name for step in timeline(ingestion(), report)]
    assert names[:3] == ["landed", "branched", "submitted"]
    assert names[-2:] == ["audited", "rejected"]


def test_no_step_takes_less_than_no_time() -> None:
    """No step has a negative duration, even if clocks disagree."""
    assert all(s.seconds >= 0 for s in timeline(ingestion(landed=_TIMES["audited"]), REPORT))


def ended(script: Callable[[AuditReport], AuditReport]) -> Account:
    """Return the known facts of a file that ended as scripted."""
    deployment = Deployment()
    landed = deployment.land("shop/orders/a.csv", script=script)
    deployment.settle()
    return account(deployment.adapters, deployment.ingestion(landed))


def test_what_blocks_comes_first() -> None:
    """Failed checks are shown before passed ones, each with its result in words."""
    told = ended(rejected)
    assert told.checks[0].status is Status.FAIL
    assert rows(told.checks)[0]["result"] == "✗ failed"
    assert told.is_failed
    assert facts(told)["file"] == ("s3://landing/shop/orders/a.csv",)
    assert facts(told)["branch"] == (told.ingestion.branch,)


def test_a_branch_that_is_gone_is_said_to_be() -> None:
    """The page of a published file names the deleted branch and the merge commit."""
    told = facts(ended(passed))
    assert told["branch"][0].endswith("(deleted after its merge)")
    assert told["merge commit"]


def test_the_cells_that_break_a_check_are_known() -> None:
    """Sample rows break a check by its columns, and a cell that cannot be read by its value."""
    assert failing_rows.offending(FAILED) == ("id",)
    cell = BadCell("line 7", "amount", "12,5", "not a number").sample
    assert failing_rows.offending(replace(FAILED, columns=(), samples=(cell,))) == ("value",)
