"""The rotation renews tokens long before they end, and reports how long they last."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from functions.adapters.keyring import SecretKeyring
from functions.rotate import handler, rotate
from lakegate.errors import LakegateError
from lakegate.nessie_tokens import ROLES, SIGNING_KEY, Keys, keep
from tests.fakes.lambda_context import Context
from tests.unit.lakegate.test_nessie_tokens import Memory, made

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def whole(left: dict[str, float]) -> dict[str, int]:
    """Return the days left, rounded."""
    return {role: round(days) for role, days in left.items()}


@pytest.mark.parametrize(("passed", "left"), [(0, 90), (59, 31), (61, 90), (95, 90)])
def test_a_token_is_renewed_after_two_thirds_of_its_time(passed: int, left: int) -> None:
    """Each token has at least a month left, whenever the function runs."""
    memory = Memory({})
    keep(memory, NOW)
    key = memory.read()[SIGNING_KEY]
    assert whole(rotate(memory, NOW + timedelta(days=passed))) == dict.fromkeys(ROLES, left)
    assert memory.read()[SIGNING_KEY] == key


def test_tokens_of_the_owners_nessie_are_only_watched() -> None:
    """Without a signing key nothing is written; opaque tokens are left out, missing ones have 0."""
    before = {
        "reader": keep(Memory({}), NOW).tokens["reader"],
        "job": "opaque",
        "uploader": "a.b.c",
    }
    memory = Memory(before)
    left = rotate(memory, NOW + timedelta(days=80))
    assert whole(left) == {"reader": 10, "publisher": 0}
    assert memory.read() == before


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield Secrets Manager in the environment of stage `prod`."""
    for name in [n for n in os.environ if n.startswith(("LAKEGATE_", "AWS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("LAKEGATE_STAGE", "prod")
    with mock_aws():
        yield boto3.client("secretsmanager")


def test_the_function_renews_secrets_and_emits_the_fewest_days(
    stage: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The secrets hold new tokens of the same key; the metric has the stage as its dimension."""
    keyring, now = SecretKeyring(stage, "prod"), datetime.now(UTC)
    old = keep(keyring, now - timedelta(days=70))
    context: Any = Context()

    left = handler({}, context)

    new = Keys.of(keyring.read())
    assert new.signing_key == old.signing_key
    assert all(new.tokens[role] != old.tokens[role] for role in ROLES)
    printed = capsys.readouterr().out
    (metric,) = [line for line in printed.splitlines() if "TokenDaysLeft" in line]
    told = json.loads(metric)
    assert told["TokenDaysLeft"] == [min(left.values())]
    assert whole(left) == dict.fromkeys(ROLES, 90)
    (dimensions,) = told["_aws"]["CloudWatchMetrics"][0]["Dimensions"]
    assert sorted(dimensions) == ["service", "stage"]
    assert (told["service"], told["stage"]) == ("lakegate", "prod")
    assert not any(text in printed for text in (new.signing_key, *new.tokens.values()))


class Denying:
    """Secrets Manager that denies what does not exist, as it does by a policy with names."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.exceptions = client.exceptions

    def get_secret_value(self, **request: str) -> Any:
        try:
            return self._client.get_secret_value(**request)
        except self.exceptions.ResourceNotFoundException as error:
            error.response["Error"]["Code"] = "AccessDeniedException"
            raise


def test_a_denied_key_is_no_key_for_the_function_alone(stage: Any) -> None:
    """AWS does not tell a role by name whether a secret exists; a person's denial is an error."""
    SecretKeyring(stage, "prod").write("reader", made()["reader"])
    denying = Denying(stage)
    assert set(SecretKeyring(denying, "prod", denied_is_absent=True).read()) == {"reader"}
    with pytest.raises(LakegateError, match="signing-key") as refused:
        SecretKeyring(denying, "prod").read()
    assert refused.value.code == "SECRET_UNAVAILABLE"
