"""A person discards by the stage's function, without the publisher's token."""

import io
import json
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError

from access.deployment import discarding
from functions.expire import answer
from functions.model.ingestion import Ingestion
from functions.operations.decisions.failed import Outcome
from lakegate.errors import LakegateError
from tests.fakes import wire
from tests.fakes.job import rejected
from tests.fakes.scenario import FIRST, Scenario

pytestmark = pytest.mark.usefixtures("quiet")


@dataclass
class InvokedExpire:
    """Lambda with the function `expire` of a deployment."""

    deployment: Scenario

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803
        assert FunctionName == "lakegate-dev-expire"
        found = json.dumps(answer(self.deployment.adapters, json.loads(Payload)))
        return {"Payload": io.BytesIO(found.encode())}


class Refused:
    """A Lambda that the caller may not use."""

    def invoke(self, **request: Any) -> dict[str, Any]:
        raise NoCredentialsError


def discarded(deployment: Scenario, client: Any, ingestion: Ingestion) -> Outcome:
    """Return the outcome of Ann's request."""
    ledger: Any = deployment.ledger
    return discarding.discard(client, "lakegate-dev-expire", ledger, ingestion, "Ann")


def test_the_outcome_is_that_of_ones_own_discard(deployment: Scenario) -> None:
    """The ingestion afterwards comes back as a value, and its branch is deleted."""
    deployment.ended(FIRST)
    bad = deployment.ended(script=rejected)
    outcome = discarded(deployment, InvokedExpire(deployment), bad)
    assert outcome.ingestion == deployment.ingestion(bad)
    assert outcome.ingestion.decisions.discarded
    assert not deployment.catalog.branches("ingest/")


def test_a_refusal_keeps_its_code(deployment: Scenario) -> None:
    """The function's refusal is raised with its own code and message."""
    published = deployment.ended(FIRST)
    with pytest.raises(LakegateError, match="NOT_FAILED"):
        discarded(deployment, InvokedExpire(deployment), published)


def test_another_attempt_than_was_seen_is_not_discarded(deployment: Scenario) -> None:
    """What somebody replayed meanwhile, and failed again, is refused as by one's own rights."""
    deployment.ended(FIRST)
    seen = deployment.ended(script=rejected)
    deployment.replay(seen, by="Bob")
    deployment.settle()
    with pytest.raises(LakegateError, match="rejected, attempt 2, replayed by Bob"):
        discarded(deployment, InvokedExpire(deployment), seen)
    assert not deployment.ingestion(seen).decisions.discarded


def test_a_function_that_cannot_be_invoked_is_named(deployment: Scenario) -> None:
    """Without the right to invoke it nothing changes, and the error names the function."""
    bad = deployment.ended(script=rejected)
    with pytest.raises(LakegateError, match="lakegate-dev-expire cannot be invoked"):
        discarded(deployment, Refused(), bad)
    assert deployment.ingestion(bad) == bad


def test_who_may_not_take_the_role_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the role and the missing right."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", wire.nobody())
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    role = "arn:aws:iam::123456789012:role/CleanUpRole"
    with pytest.raises(LakegateError, match=f"(?s){role}.*sts:AssumeRole") as refusal:
        discarding.client_of(role)
    assert refusal.value.code == "NO_CLEAN_UP_ROLE"
