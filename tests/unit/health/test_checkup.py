"""The checkup function does what is requested, and reports failures to its caller."""

import io
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from functions import checkup as function
from infra import checkup
from lakegate.errors import LakegateError, Permanent
from tests.fakes.lambda_context import Context


@dataclass
class Invoked:
    """Lambda with one function and a prepared answer."""

    payload: bytes
    error: str = ""
    asked: list[Any] = field(default_factory=list)

    def invoke(self, **request: Any) -> dict[str, Any]:
        self.asked.append(json.loads(request["Payload"]))
        failed = {"FunctionError": self.error} if self.error else {}
        return {"Payload": io.BytesIO(self.payload), **failed}


class Away:
    """An unreachable Lambda."""

    def invoke(self, **request: Any) -> dict[str, Any]:
        raise EndpointConnectionError(endpoint_url="https://lambda")


def context() -> Any:
    return Context()


def test_it_is_asked_to_seed() -> None:
    """The answer names what was seeded."""
    client = Invoked(b'{"first_commit": true, "tables": []}')
    assert checkup.seed(client, "f") == {"first_commit": True, "tables": []}
    assert client.asked == [{"do": "seed"}]


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        (Away(), "f cannot be invoked: Could not connect"),
        (
            Invoked(b'{"errorMessage": "no route", "errorType": "E"}', "Unhandled"),
            "f failed: no route",
        ),
        (Invoked(b'"timed out"', "Unhandled"), "f failed: timed out"),
        (Invoked(b"<html>"), "f cannot be invoked"),
    ],
)
def test_why_it_does_not_answer_is_reported(client: Any, reason: str) -> None:
    """An unreachable function, a failure, or an invalid answer names the function."""
    with pytest.raises(LakegateError, match=reason) as refusal:
        checkup.ask(client, "f", {"do": "examine"})
    assert refusal.value.code == "CHECKUP_FAILED"


@pytest.mark.parametrize("request_", ["examine", "access"])
def test_settings_that_are_missing_are_a_finding(
    monkeypatch: pytest.MonkeyPatch, request_: str
) -> None:
    """A function without settings reports those that are missing."""
    monkeypatch.delenv("LAKEGATE_LAKE_BUCKET", raising=False)
    (found,) = function.handler({"do": request_}, context())
    assert (found["check"], found["status"]) == ("settings", "fail")
    assert "LAKEGATE_LAKE_BUCKET" in found["message"]
    assert found["fix"]


@pytest.mark.parametrize("event", [{}, {"do": "delete"}, {"do": "seed"}, {"Records": []}])
def test_it_does_nothing_else(event: dict[str, Any]) -> None:
    """Any other request is refused."""
    with pytest.raises(Permanent, match="UNKNOWN_REQUEST"):
        function.handler(event, context())
