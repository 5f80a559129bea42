"""A right that a role lacks ends no file: people are told, and once it is given all goes on."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from access.ingestions.outcomes import attempt
from functions.model.ingestion import State
from functions.model.messages.action import ActionRequest, Seen, Verb
from functions.notifications.missing_rights import telling
from functions.on_press import act
from lakegate.audit.report import AuditReport, Reason
from lakegate.refusals import RightMissing, unavailable
from spark_jobs.spark.errors import explain
from tests.fakes.deployment import SETTINGS
from tests.fakes.faults import Fault
from tests.fakes.job import errored
from tests.fakes.scenario import Scenario
from tests.unit.spark_jobs.test_unforeseen import thrown

RIGHT = "the role lakegate-dev-role lacks the right a:Deed"
LACKING = f"{RIGHT} on arn:aws:a:::thing"
MANY = SETTINGS.max_branches + 2


def refuse() -> None:
    raise RightMissing(LACKING)


def lacking_until(attempt: int) -> Callable[[AuditReport], AuditReport]:
    """Return the script of runs whose role lacks a right until this attempt."""

    def script(report: AuditReport) -> AuditReport:
        if report.attempt >= attempt:
            return report
        return replace(
            errored(report), reason=Reason("RIGHT_MISSING", RightMissing(LACKING).message)
        )

    return script


@pytest.mark.parametrize(
    "point",
    ["jobs.start", "ledger.save", "lake.contracts", "catalog.create_branch", "catalog.merge"],
)
def test_a_function_that_lacks_a_right_is_told_and_goes_on(
    deployment: Scenario, point: str
) -> None:
    """Whatever call is refused, the channel is told once, and the file is published later."""
    deployment.journal.strike(point, Fault(refuse, times=3))
    ended = deployment.ended()
    assert ended.state is State.PUBLISHED
    (told,) = deployment.told()
    assert LACKING in told


def test_a_job_that_lacks_a_right_is_told_and_runs_until_it_has_it(deployment: Scenario) -> None:
    """More runs than a file may have do not end it; people are told once that day."""
    ended = deployment.ended(script=lacking_until(MANY))
    assert (ended.state, ended.attempt, ended.failures) == (State.PUBLISHED, MANY, 0)
    (told,) = deployment.told()
    assert LACKING in told


def test_runs_without_a_right_leave_a_file_its_attempts(deployment: Scenario) -> None:
    """Where main changes once the right is there, the job may still run again."""
    deployment.ended()
    landed = deployment.change(script=lacking_until(MANY))
    deployment.journal.strike("catalog.merge", Fault(deployment.move_main))
    ended = deployment.end_of(landed)
    assert (ended.state, ended.attempt) == (State.PUBLISHED, MANY + 1)
    assert attempt(ended).endswith("(main or its contract changed, or a right was missing)")


def test_a_job_that_lacks_a_right_is_not_run_at_once_again(deployment: Scenario) -> None:
    """A run costs money, so the next one waits for the grace time."""
    landed = deployment.run(script=lacking_until(2))
    deployment.deliver()
    assert deployment.ingestion(landed).attempt == 1
    assert len(deployment.told()) == 1


def test_people_are_told_and_the_message_comes_again(deployment: Scenario) -> None:
    """The error goes on to the queue, which delivers again what could not be done."""
    with pytest.raises(RightMissing), telling(deployment.adapters):
        refuse()
    assert len(deployment.told()) == 1


def test_a_right_that_many_files_miss_is_told_once(deployment: Scenario) -> None:
    """Role and right are what people have to mend; another file's resource is no news."""
    for thing in ("arn:aws:a:::one", "arn:aws:a:::two"):
        with suppress(RightMissing), telling(deployment.adapters):
            raise RightMissing(f"{RIGHT} on {thing}")
    assert len(deployment.told()) == 1


@pytest.mark.parametrize(
    "code", ["403", "AccessDenied"], ids=["without a body", "in another account"]
)
def test_a_refusal_that_names_no_right_is_told_once(deployment: Scenario, code: str) -> None:
    """S3 may say no more than that: then the call stands for the right, whatever its file."""
    refused = ClientError({"Error": {"Code": code, "Message": "Access Denied"}}, "GetObject")
    for key in ("a.csv", "b.csv"):
        with suppress(RightMissing), telling(deployment.adapters):
            raise unavailable(refused, "STORAGE_UNAVAILABLE", f"S3 refused ({key}): {refused}")
    (told,) = deployment.told()
    assert "lacks the right for GetObject on what it asked for: S3 refused (a.csv)" in told


def test_a_refused_job_is_told_once(deployment: Scenario) -> None:
    """Spark's words have the file and the request, which another file's have not."""
    for name in ("a", "b"):
        denied = f"java.nio.file.AccessDeniedException: s3a://landing/{name}: Request ID: {name}"
        with suppress(RightMissing), telling(deployment.adapters):
            raise explain(thrown(denied), f"{name} cannot be read", "CORRUPT_FILE")
    assert len(deployment.told()) == 1


@pytest.mark.parametrize("point", ["ledger.unfinished", "ledger.search"])
def test_a_sweep_that_may_not_look_is_told(deployment: Scenario, point: str) -> None:
    """A right to find work is as needed as one to do it."""
    deployment.journal.strike(point, Fault(refuse))
    deployment.sweep()
    (told,) = deployment.told()
    assert LACKING in told


def test_a_pressed_button_that_lacks_a_right_is_told(deployment: Scenario) -> None:
    """The press comes again, and people hear why nothing happened."""
    pressed = ActionRequest(Verb.REPLAY, Seen(deployment.ended().id, "1:"), "ada (U1)")
    deployment.journal.strike("ledger.get", Fault(refuse))
    with pytest.raises(RightMissing):
        act(deployment.adapters, pressed.text())
    (told,) = deployment.told()
    assert LACKING in told
