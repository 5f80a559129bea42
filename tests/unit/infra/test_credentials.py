"""Tokens for a Nessie that Lakegate did not deploy."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from infra.aws.secrets import for_own_nessie
from infra.local.ministack import KeyFiles
from infra.stage import Stage
from lakegate.errors import LakegateError
from lakegate.nessie_tokens import ROLES, SIGNING_KEY, keep

_STAGE = Stage("shop", "123456789012", "eu-central-1")
_NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def keyring(tmp_path: Path) -> KeyFiles:
    return KeyFiles(tmp_path)


def test_foreign_tokens_are_left_alone(keyring: KeyFiles) -> None:
    """Lakegate neither replaces tokens that it did not sign nor makes a key."""
    for role in ROLES:
        keyring.write(role, f"token of {role}")

    for_own_nessie(keyring, _STAGE, _NOW)

    assert keyring.read() == {role: f"token of {role}" for role in ROLES}


def test_a_missing_token_is_asked_for(keyring: KeyFiles) -> None:
    """The error names each missing secret with the command that puts it; none is created."""
    keyring.write("reader", "token")

    with pytest.raises(LakegateError, match="create-secret") as refused:
        for_own_nessie(keyring, _STAGE, _NOW)

    asked = {name for name in ("reader", *ROLES) if f"nessie/{name}\n" in refused.value.message}
    assert asked == {"uploader", "job", "publisher"}
    assert "lakegate/shop/nessie/signing-key" in refused.value.message
    assert set(keyring.read()) == {"reader"}


def test_where_the_signing_key_is_known_tokens_are_made(keyring: KeyFiles, tmp_path: Path) -> None:
    """Lakegate signs the tokens if it has the key of the other Nessie."""
    theirs = keep(KeyFiles(tmp_path / "theirs"), _NOW).signing_key
    keyring.write(SIGNING_KEY, theirs)

    for_own_nessie(keyring, _STAGE, _NOW)

    assert set(keyring.read()) == {SIGNING_KEY, *ROLES}
    assert keyring.read()[SIGNING_KEY] == theirs
