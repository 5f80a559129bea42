"""An examination runs all checks; one that fails hides no other."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from functions.checkup import Expected, Probes, examine
from functions.health import aws_checks
from functions.health.model import (
    Application,
    Bucket,
    Check,
    Finding,
    Keys,
    Notification,
    Queue,
    Status,
    Table,
    TokenStatus,
    carry_out,
    ok,
)
from functions.pipeline.seed import seed
from functions.settings import CheckupSettings
from lakegate.errors import Transient
from lakegate.jobspec import JOB_FILES
from tests.fakes.catalog import FakeCatalog
from tests.fakes.clock import FakeClock
from tests.fakes.deployment import SETTINGS, Deployment
from tests.fakes.probes import FakeAws, FakeNessie
from tests.unit.health.test_aws_checks import LAKE

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OWN = CheckupSettings(
    stage="dev",
    upload_queue="http://sqs/uploads",
    job_run_queue="http://sqs/job-runs",
)
ROLES = ("uploader", "job", "publisher", "reader")
SECRETS = {OWN.token_secret(role): f"secret-of-{role}" for role in ROLES}


def deployed() -> FakeAws:
    """Return AWS with all resources that the settings name."""
    names = (
        *("uploads", "job-runs", "alerts", "announcements"),
        *("uploads-dead", "job-runs-dead", "alerts-dead"),
    )
    notification = Notification("arn:uploads", frozenset({"s3:ObjectCreated:*"}), is_filtered=False)
    return FakeAws(
        NOW,
        buckets={"landing": replace(LAKE, name="landing"), "lake": LAKE},
        notified={"landing": [notification]},
        objects={("lake", f"jobs/1/{name}") for name in JOB_FILES},
        tables={
            "ledger": Table(Keys(("id",)), {n: Keys(k) for n, k in aws_checks.INDEXES.items()})
        },
        queues={f"http://sqs/{n}": Queue(n, f"arn:{n}", 0, 0, f"arn:{n}-dead") for n in names},
        applications={"00application": Application("00application", "STARTED", "label", True)},
    )


@pytest.fixture
def probes() -> Probes:
    """Return a seeded deployment without a fault."""
    deployment = Deployment()
    seed(deployment.adapters)
    standings = {f"secret-of-{role}": TokenStatus(200, 403) for role in ROLES}
    standings["secret-of-publisher"] = TokenStatus(200, 200)
    parts: dict[str, Any] = {"aws": deployed(), "nessie": FakeNessie(standings)}
    return Probes(
        settings=replace(
            SETTINGS,
            alert_queue="http://sqs/alerts",
            announcement_queue="http://sqs/announcements",
            nessie_token_secret=OWN.token_secret("publisher"),
            job_token_secret=OWN.token_secret("job"),
        ),
        own=OWN,
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
    found = examine(probes, expected or Expected("0.99.0", "label"))
    return {each.check: each.message for each in found if each.status is not Status.OK}


def test_a_good_deployment_has_no_fault(probes: Probes) -> None:
    """A good deployment has findings, but no faults and no remedies."""
    found = examine(probes, Expected("0.99.0", "label"))
    assert [each for each in found if each.status is not Status.OK or each.fix] == []
    assert len({each.check for each in found}) == len(found) == 27


def test_a_secret_that_is_gone_hides_no_other(probes: Probes) -> None:
    """A missing secret is named with its remedy, and the other tokens are checked."""
    rest = {k: v for k, v in SECRETS.items() if not k.endswith("/job")}
    found = examine(with_(probes, secret=reading(rest)), Expected())
    (wrong,) = (each for each in found if each.status is Status.FAIL)
    assert (wrong.check, "lakegate/dev/nessie/job" in wrong.message) == ("job's token", True)
    assert "lakegate rotate" in wrong.fix


def test_a_nessie_that_is_away_hides_nothing_on_aws(probes: Probes) -> None:
    """If Nessie is unreachable its checks fail, and those of AWS run."""
    found = faults(with_(probes, nessie=FakeNessie(reported="")))
    tokens = {f"{role}'s token" for role in ROLES}
    assert found.keys() == {"Nessie", "Nessie's version", "clocks"} | tokens


def test_an_aws_that_refuses_hides_nothing_on_nessie(probes: Probes) -> None:
    """If AWS refuses a check it fails, and those of Nessie run."""
    found = faults(with_(probes, aws=FakeAws(NOW)))
    assert len(found) == 14
    assert not any("token" in name or "Nessie" in name for name in found)


def test_a_virgin_main_is_reported(probes: Probes) -> None:
    """A main that was never seeded is one finding, with the remedy."""
    virgin = FakeCatalog(FakeClock(), virgin=True)
    assert "no commit" in faults(with_(probes, catalog=lambda token: virgin))["main"]


def test_tables_that_main_lacks_are_reported(probes: Probes) -> None:
    """Both tables of audit results must exist."""
    bare = FakeCatalog(FakeClock())
    found = faults(with_(probes, catalog=lambda token: bare))
    assert found == {"main": "lacks ops.audit_results and ops.quarantine"}


def test_versions_are_compared_with_those_of_the_request(probes: Probes) -> None:
    """An older Nessie and another EMR release than expected are faults."""
    found = faults(probes, Expected("0.100.0", "other"))
    assert found.keys() == {"Nessie's version", "EMR application"}


def test_a_queue_that_loses_what_fails_is_found(probes: Probes) -> None:
    """Each queue must have a dead-letter queue."""
    aws = deployed()
    carrying = ("uploads", "job-runs", "alerts", "announcements")
    for name in carrying:
        aws.queues[f"http://sqs/{name}"] = Queue(name, f"arn:{name}", 0, 0, "")
    found = faults(with_(probes, aws=aws))
    assert found.keys() == {f"queue {name}" for name in carrying}


def test_dead_messages_and_job_code_are_checked(probes: Probes) -> None:
    """Messages in a dead-letter queue, and a missing job file, are findings."""
    aws = deployed()
    for name in ("uploads-dead", "job-runs-dead", "alerts-dead"):
        aws.queues[f"http://sqs/{name}"] = Queue(name, name, 1, 0, "")
    aws.objects.clear()
    assert faults(with_(probes, aws=aws)).keys() == {
        *("queue uploads-dead", "queue job-runs-dead", "queue alerts-dead", "job's code")
    }


def test_a_landing_bucket_is_not_held_to_the_lakes_rule(probes: Probes) -> None:
    """Only the lake bucket must refuse deletes."""
    aws = deployed()
    tls = json.dumps({"Statement": json.loads(LAKE.policy)["Statement"][:1]})
    aws.buckets = {name: Bucket(name, "Enabled", "AES256", tls, True) for name in aws.buckets}
    assert faults(with_(probes, aws=aws)).keys() == {"lake bucket"}


def test_no_finding_has_a_secret_in_it(probes: Probes) -> None:
    """No finding ever contains a token."""
    for broken in (probes, with_(probes, nessie=FakeNessie()), with_(probes, aws=FakeAws(NOW))):
        answer = str(examine(broken, Expected()))
        assert not any(token in answer for token in SECRETS.values())


def test_a_check_that_breaks_hides_no_other() -> None:
    """An unexpected error is a finding without its message, which might contain a secret."""

    def broken() -> list[Finding]:
        raise ValueError("eyJ-a-token")

    found = carry_out([Check("one", broken, "fix"), Check("two", lambda: [ok("two", "well")], "")])
    assert [each.status for each in found] == [Status.FAIL, Status.OK]
    assert "ValueError" in found[0].message
    assert "eyJ" not in str(found)
