"""Rows with unparseable cells can be left out or published with nulls."""

from dataclasses import replace

import pytest

from dashboard.actions_plan import ActionRequest, Verb, has_unreadable, plan
from functions.model.ingestion import State
from functions.model.messages.action import Seen
from functions.notifications.slack_buttons import buttons, modal
from functions.notifications.unreadable import named
from functions.operations.decisions.failed import must_run_again, publish_anyway, replay
from functions.pipeline.start.landing_order import OUT_OF_ORDER
from lakegate.audit.diagnosis import BadCell
from lakegate.audit.report import READABLE, AuditReport, CheckResult, Reason, Status, Verdict
from tests.fakes.deployment import Known
from tests.fakes.job import PASSED, Script, crashed
from tests.fakes.scenario import Scenario

pytestmark = pytest.mark.usefixtures("quiet")

CELLS = (
    BadCell("line 4", "amount", "x", "not a number").sample,
    BadCell("line 5", "amount", "y", "not a number").sample,
)
CHECK = CheckResult(
    id=READABLE,
    metric="file",
    columns=(),
    severity="error",
    status=Status.FAIL,
    expected="every row has all its cells",
    found="2 of 5 rows could not be read",
    samples=CELLS,
)
WORDS = (
    "2 of 5 rows could not be read: line 4: amount 'x': not a number; "
    "line 5: amount 'y': not a number. They will be"
)


def unreadable(report: AuditReport, *, nulled: bool) -> AuditReport:
    """Return the report of a file with two rows that could not be read."""
    return replace(
        report,
        verdict=Verdict.REJECTED,
        reason=Reason("BAD_ROWS", "1 of 2 checks failed"),
        checks=(PASSED, CHECK),
        rows_read=report.rows_written + (0 if nulled else 2),
        rows_rejected=0 if nulled else 2,
        rows_unreadable=2,
        rows_nulled=2 if nulled else 0,
    )


def as_told(deployment: Scenario) -> Script:
    """Return the run that leaves such rows out, or nulls their cells, as its spec says."""

    def script(report: AuditReport) -> AuditReport:
        wanted = report.ingestion, report.attempt
        specs = [deployment.jobs.spec(run.id) for run in deployment.jobs.runs()]
        run_spec = next(spec for spec in specs if (spec.ingestion, spec.attempt) == wanted)
        return unreadable(report, nulled=run_spec.null_unreadable)

    return script


def failed() -> tuple[Scenario, Known]:
    """Return a deployment with a file of which two rows could not be read."""
    deployment = Scenario()
    landed = deployment.ended("shop/orders/a.csv", script=as_told(deployment))
    deployment.script(landed, as_told(deployment))
    return deployment, landed.landed


@pytest.mark.parametrize(("nulls", "attempts"), [(False, 1), (True, 2)])
def test_such_rows_are_left_out_unless_a_person_wants_them(nulls: bool, attempts: int) -> None:
    """The job runs again only if the branch treats such rows otherwise than the approval."""
    deployment, landed = failed()
    before = deployment.ingestion(landed)
    publish_anyway(deployment.adapters, before, "Ann", "it is known", null_unreadable=nulls)
    deployment.check()
    now = deployment.ingestion(landed)
    assert (now.state, now.attempt) == (State.PUBLISHED, attempts)
    assert now.decisions.approval
    assert now.decisions.approval.by == "Ann"
    assert deployment.lake.report(now.report_key).holds_nulls is nulls


@pytest.mark.parametrize("held", ["LIKELY_DUPLICATE", OUT_OF_ORDER])
def test_their_nulls_are_published_despite_what_held_the_file(held: str) -> None:
    """The run that a person asks for with nulls is not held for the reason that they approved."""
    deployment, landed = held_back(held)
    assert deployment.end(landed) == f"rejected {held}"
    deployment.publish_anyway(landed, null_unreadable=True)
    deployment.check()
    now = deployment.ingestion(landed)
    assert (now.state, now.attempt) == (State.PUBLISHED, 2)
    assert deployment.lake.report(now.report_key).holds_nulls


def held_back(why: str) -> tuple[Scenario, Known]:
    """Return a deployment with a file with such rows that is held for a reason besides them."""
    if why == OUT_OF_ORDER:
        deployment = Scenario()
        deployment.replace_rows("upsert")
        landed = deployment.land("shop/orders/a.csv", script=as_told(deployment))
        deployment.settle()
        deployment.ended("shop/orders/later.csv")
        deployment.publish_anyway(landed)
        deployment.settle()
        return deployment, landed
    deployment = Scenario()
    deployment.ask(onDuplicate="hold")
    deployment.ended("shop/orders/first.csv", b"the same")
    script = as_told(deployment)
    landed = deployment.land(
        "shop/orders/a.csv", b"the same", lambda r: quarantined(script(r) or r)
    )
    deployment.settle()
    return deployment, landed


def quarantined(report: AuditReport) -> AuditReport:
    """Return the report of a file that passes although it has such rows (`unreadable: true`)."""
    return replace(report, verdict=Verdict.PASSED, reason=None, checks=(PASSED,))


def test_a_replay_leaves_them_out_again() -> None:
    """An owner's choice for one attempt does not apply to the next."""
    deployment, landed = failed()
    adapters = deployment.adapters
    publish_anyway(adapters, deployment.ingestion(landed), "Ann", "known", null_unreadable=True)
    assert deployment.ingestion(landed).decisions.null_unreadable
    deployment.script(landed, crashed)
    assert deployment.end_of(landed).state is State.ERRORED
    assert not replay(adapters, deployment.ingestion(landed)).ingestion.decisions.null_unreadable


def test_a_person_reads_of_them_before_the_decision() -> None:
    """Form and page show how many rows and cells are affected before the decision."""
    deployment, landed = failed()
    now = deployment.ingestion(landed)
    (_, alert) = deployment.alerts.posted[0]
    assert alert.unreadable == f"{WORDS} left out (quarantined)."
    notice = replace(alert, token="1:hash:now")
    assert "2 of 5 rows could not be read" in str(buttons(notice))
    words = modal(Seen(now.id, notice.token), "a.csv", notice.unreadable)["blocks"][0]["text"][
        "text"
    ]
    assert alert.unreadable in words
    assert f"lakegate publish {now.id} --by NAME --reason TEXT --null-unreadable" in words
    assert has_unreadable(deployment.adapters, now)
    left_out = plan(deployment.adapters, now, ActionRequest(Verb.PUBLISH)).lines
    assert any(f"{WORDS} left out" in line for line in left_out)
    nulled = plan(deployment.adapters, now, ActionRequest(Verb.PUBLISH, null_unreadable=True)).lines
    assert any(f"{WORDS} published, with null" in line for line in nulled)
    assert any("the job runs once more" in line for line in nulled)


def test_a_file_without_such_rows_needs_no_word() -> None:
    """A file without such rows shows nothing and is not read again."""
    deployment = Scenario()
    landed = deployment.ended("shop/orders/a.csv")
    report = deployment.lake.report(deployment.ingestion(landed).report_key)
    assert (named(report), named(None)) == ("", "")
    assert not must_run_again(report, null_unreadable=True)
