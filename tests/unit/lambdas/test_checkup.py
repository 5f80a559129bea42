"""An examination runs all checks; one that fails hides no other."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from functions.health.examination import Expected, Probes, examine, examine_access
from functions.health.model import (
    Application,
    Check,
    Finding,
    Notification,
    Queue,
    Status,
    TokenStatus,
    carry_out,
    ok,
)
from functions.pipeline.outcome.seed import seed
from lakegate.errors import Transient
from lakegate.job.jobspec import JOB_FILES
from tests.fakes.catalog import FakeCatalog
from tests.fakes.clock import FakeClock
from tests.fakes.deployment import SETTINGS, Deployment
from tests.fakes.probes import FakeAws, FakeNessie

NOW = datetime(2026, 3, 1, tzinfo=UTC)
STAGE = replace(SETTINGS, stage="dev")
CARRYING = ("uploads", "job-runs", "alerts", "announcements", "work")
DEAD = ("uploads-dead", "job-runs-dead", "alerts-dead")
GOOD = Expected("0.99.0", "label")
ROLES = ("uploader", "job", "reader")
TOKENS = [f"{role}'s token" for role in ROLES]
EMR = [f"EMR application {id_}" for id_ in SETTINGS.emr_applications]
ON_AWS = [
    *(f"queue {name}" for name in (*CARRYING, *DEAD)),
    *(*EMR, "job's code", "clocks"),
]
SECRETS = {STAGE.token_secret(role): f"secret-of-{role}" for role in ROLES}


def deployed() -> FakeAws:
    """Return AWS with all resources that the settings name."""
    notification = Notification("arn:uploads", frozenset({"s3:ObjectCreated:*"}), is_filtered=False)
    return FakeAws(
        NOW,
        notified={"landing": [notification], "lake": []},
        objects={("lake", f"jobs/1/{name}") for name in JOB_FILES},
        tables={"ledger": "ACTIVE"},
        queues={f"http://sqs/{n}": Queue(n, f"arn:{n}", 0, 0) for n in (*CARRYING, *DEAD)},
        applications={
            id_: Application(id_, "STARTED", "label", auto_start=True)
            for id_ in SETTINGS.emr_applications
        },
    )


@pytest.fixture
def probes() -> Probes:
    """Return a seeded deployment without a fault."""
    deployment = Deployment()
    seed(deployment.adapters)
    standings = {f"secret-of-{role}": TokenStatus(200, 403) for role in ROLES}
    parts: dict[str, Any] = {"aws": deployed(), "nessie": FakeNessie(standings)}
    return Probes(
        settings=replace(
            STAGE,
            nessie_uri="https://nessie:19120",
            work_queue="http://sqs/work",
            job_run_queue="http://sqs/job-runs",
            alert_queue="http://sqs/alerts",
            announcement_queue="http://sqs/announcements",
            nessie_token_secret=STAGE.token_secret("publisher"),
            job_token_secret=STAGE.token_secret("job"),
        ),
        catalog=lambda token: deployment.adapters.catalog,
        secret=reading(SECRETS),
        now=lambda: NOW,
        **parts,
    )


def with_(probes: Probes, **others: Any) -> Probes:
    return replace(probes, **others)


def reading(secrets: dict[str, str]) -> Callable[[str], str]:
    def read(name: str) -> str:
        if name not in secrets:
            raise Transient("SECRET_UNAVAILABLE", f"cannot read the secret {name!r}")
        return secrets[name]

    return read


def faults(probes: Probes, expected: Expected | None = None) -> dict[str, str]:
    """Return the checks that found a fault, with their messages."""
    found = examine(probes, expected or GOOD)
    return {each.check: each.message for each in found if each.status is not Status.OK}


def test_a_good_deployment_has_no_fault(probes: Probes) -> None:
    """A good deployment has findings, but no faults and no remedies."""
    found = examine(probes, GOOD)
    assert [each for each in found if each.status is not Status.OK or each.fix] == []
    assert len({each.check for each in found}) == len(found) == 25


def test_a_secret_that_is_gone_hides_no_other(probes: Probes) -> None:
    """A missing secret is named with its remedy, and the other tokens are checked."""
    rest = {k: v for k, v in SECRETS.items() if not k.endswith("/job")}
    found = examine(with_(probes, secret=reading(rest)), Expected())
    (wrong,) = (each for each in found if each.status is Status.FAIL)
    assert (wrong.check, "lakegate/dev/nessie/job" in wrong.message) == ("job's token", True)
    assert "lakegate rotate" in wrong.fix


NO_NESSIE: Any = FakeNessie(reported="")
NO_AWS: Any = FakeAws(NOW)


@pytest.mark.parametrize(
    ("others", "expected", "checks"),
    [
        ({"nessie": NO_NESSIE}, GOOD, {"Nessie", "Nessie's version", "clocks", *TOKENS}),
        ({"aws": NO_AWS}, GOOD, {"landing bucket's events", "ledger", *ON_AWS}),
        ({}, Expected("0.100.0", "other"), {"Nessie's version", *EMR}),
    ],
)
def test_a_fault_hides_no_other(
    probes: Probes, others: dict[str, Any], expected: Expected, checks: set[str]
) -> None:
    """Only the checks of what is wrong fail, each by itself: the others still run."""
    assert faults(with_(probes, **others), expected).keys() == checks


def test_a_bucket_of_others_must_tell_event_bridge(probes: Probes) -> None:
    """A named landing bucket whose events do not come is a fault, which names the remedy."""
    named = replace(probes.settings, landing_bucket_arns="arn:aws:s3:::shop,arn:aws:s3:::till")
    aws = replace(deployed(), told={"shop"})
    aws.notified |= {"shop": [], "till": []}
    found = examine(with_(probes, settings=named, aws=aws), Expected())
    (wrong,) = (each for each in found if each.status is Status.FAIL)
    assert (wrong.check, "EventBridge" in wrong.fix) == ("events of till", True)
    assert "events of shop" in [each.check for each in found]


def test_access_alone_is_examined(probes: Probes) -> None:
    """Whom Nessie lets in, and who may write to main, is examined without anything else."""
    found = examine_access(with_(probes, aws=NO_AWS))
    assert {each.status for each in found} == {Status.OK}
    rules = [f"{role} and main" for role in ROLES]
    assert {each.check for each in found} == {"Nessie", "Nessie's access", *TOKENS, *rules}


def test_plain_http_is_reported(probes: Probes) -> None:
    """A Nessie without TLS is a finding of each examination."""
    found = faults(with_(probes, settings=replace(probes.settings, nessie_uri="http://n:1")))
    assert list(found) == ["Nessie's connection"]


@pytest.mark.parametrize(
    ("virgin", "message"),
    [
        (True, "has no commit yet, so nothing can be merged into it"),
        (False, "lacks ops.audit_results and ops.quarantine"),
    ],
)
def test_a_main_that_was_not_seeded_is_reported(probes: Probes, virgin: bool, message: str) -> None:
    """A main without a commit, or without a table of audit results, is one finding."""
    main = FakeCatalog(FakeClock(), virgin=virgin)
    assert faults(with_(probes, catalog=lambda token: main)) == {"main": message}


def test_each_queue_and_the_job_code_are_checked(probes: Probes) -> None:
    """A backlog, a message in a dead-letter queue, and a missing job file are findings."""
    aws = deployed()
    for name, many in {**dict.fromkeys(CARRYING, 1001), **dict.fromkeys(DEAD, 1)}.items():
        aws.queues[f"http://sqs/{name}"] = Queue(name, f"arn:{name}", many, 0)
    aws.objects.clear()
    expected = {f"queue {name}" for name in (*CARRYING, *DEAD)} | {"job's code"}
    assert faults(with_(probes, aws=aws)).keys() == expected


def test_no_finding_has_a_secret_in_it(probes: Probes) -> None:
    """No finding ever contains a token."""
    for broken in (probes, with_(probes, nessie=FakeNessie()), with_(probes, aws=FakeAws(NOW))):
        answer = str(examine(broken, Expected()))
        assert not any(token in answer for token in SECRETS.values())


def test_a_check_that_breaks_hides_no_other() -> None:
    """An unexpected error is a finding without its message, which might contain a secret."""

    def broken() -> list[Finding]:
        raise ValueError("eyJ-a-token")

    found = carry_out([Check("one", broken, "fix"), Check("two", lambda: [ok("well")], "")])
    assert [each.status for each in found] == [Status.FAIL, Status.OK]
    assert "ValueError" in found[0].message
    assert "eyJ" not in str(found)
