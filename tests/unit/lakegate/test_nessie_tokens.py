from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import boto3
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_der_public_key,
)
from moto import mock_aws

from functions.adapters.keyring import SecretKeyring
from infra.local.ministack import KeyFiles
from lakegate import nessie_tokens
from lakegate.errors import LakegateError, Transient
from lakegate.nessie_tokens import Keyring, Keys

_NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@cache
def made() -> Mapping[str, str]:
    """Return keys that are made once, because an RSA key takes long."""
    memory = Memory({})
    nessie_tokens.keep(memory, _NOW)
    return memory.read()


class Memory:
    """A keyring that holds `texts`; `disturb` is called with the number of each write before it."""

    def __init__(
        self, texts: Mapping[str, str], disturb: Callable[[int], None] = lambda nth: None
    ) -> None:
        self._texts = dict(texts)
        self._writes = 0
        self._disturb = disturb

    def read(self) -> Mapping[str, str]:
        return dict(self._texts)

    def write(self, name: str, text: str) -> None:
        self._writes += 1
        self._disturb(self._writes)
        self._texts[name] = text


class Killed(Exception):
    """A kill of the process."""


@pytest.fixture(params=["files", "secrets"])
def keyring(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Keyring]:
    if request.param == "files":
        yield KeyFiles(tmp_path / "keys")
        return
    with mock_aws():
        yield SecretKeyring(boto3.client("secretsmanager", region_name="us-east-1"), "test")


def verified(token: str, held: Keys) -> dict[str, str]:
    """Return the claims of a token as a server with the public key reads them."""
    key = load_der_public_key(b64decode(held.public_key))
    assert isinstance(key, RSAPublicKey)
    claims: dict[str, str] = jwt.decode(
        token, key, algorithms=["RS256"], options={"verify_exp": False, "verify_iat": False}
    )
    return claims


def assert_whole(held: Keys) -> None:
    assert {role: verified(t, held)["sub"] for role, t in held.tokens.items()} == {
        role: role for role in nessie_tokens.ROLES
    }


def test_a_token_names_its_role_and_ends(keyring: Keyring) -> None:
    """Each role's token fits the public key and names the role."""
    held = nessie_tokens.keep(keyring, _NOW)

    claims = verified(held.tokens["job"], held)

    assert claims["iss"] == nessie_tokens.ISSUER
    assert claims["upn"] == "lakegate-job"
    assert held.until == _NOW + nessie_tokens.LIFE


@pytest.mark.parametrize(("days", "same"), [(59, True), (61, False), (400, False)])
def test_a_token_is_kept_until_two_thirds_of_its_life_have_passed(days: int, same: bool) -> None:
    """A token lasts over many starts and is replaced before it expires."""
    memory = Memory(made())
    first = Keys.of(memory.read())

    later = nessie_tokens.keep(memory, _NOW + timedelta(days=days))

    assert (later.tokens == first.tokens) is same
    assert later.signing_key == first.signing_key


@pytest.mark.parametrize("lost", [nessie_tokens.SIGNING_KEY, "reader"])
def test_what_does_not_fit_the_key_is_replaced(lost: str) -> None:
    """Tokens of a lost key, which a server would refuse, and texts that are no token."""
    held = {name: text for name, text in made().items() if name != nessie_tokens.SIGNING_KEY}
    other = held if lost == nessie_tokens.SIGNING_KEY else {**made(), lost: "none"}

    assert_whole(nessie_tokens.keep(Memory(other), _NOW))


@pytest.mark.parametrize("new_key", [False, True])
def test_a_rotation_replaces_every_token(keyring: Keyring, new_key: bool) -> None:
    """A rotation replaces each token, and the key on request."""
    before = nessie_tokens.keep(keyring, _NOW)

    after = nessie_tokens.rotate(keyring, _NOW + timedelta(days=1), new_key=new_key)

    assert not set(before.tokens.values()) & set(after.tokens.values())
    assert (after.signing_key != before.signing_key) is new_key
    assert after == nessie_tokens.keep(keyring, _NOW + timedelta(days=1))
    assert_whole(after)


def test_tokens_live_as_long_as_asked() -> None:
    """Tokens have the life that was asked for and are not replaced too early."""
    assert nessie_tokens.rotate(Memory(made()), _NOW, timedelta(days=2)).until == _NOW + timedelta(
        days=2
    )


@pytest.mark.parametrize("nth", range(1, 6))
def test_a_killed_rotation_is_completed_later(nth: int) -> None:
    """A rotation that was killed before any write is completed by `up`, `deploy` or `rotate`."""

    def kill(write: int) -> None:
        if write == nth:
            raise Killed

    memory = Memory(made(), kill)
    with pytest.raises(Killed):
        nessie_tokens.rotate(memory, _NOW, new_key=True)

    assert_whole(nessie_tokens.keep(memory, _NOW))


@pytest.mark.parametrize(("new_key", "nth"), [(False, 2), *((True, n) for n in range(1, 6))])
def test_two_rotations_at_once_leave_one_key_and_its_tokens(nth: int, new_key: bool) -> None:
    """Two concurrent rotations leave tokens that fit the key."""

    def another(write: int) -> None:
        if write == nth:
            nessie_tokens.rotate(memory, _NOW, new_key=True)

    memory = Memory(made(), another)

    after = nessie_tokens.rotate(memory, _NOW, new_key=new_key)

    assert_whole(after)
    assert after == Keys.of(memory.read())


def test_keys_that_are_not_there_are_named() -> None:
    """The error names the missing keys and the command that makes them."""
    with pytest.raises(LakegateError, match=r"signing-key.*lakegate deploy"):
        Keys.of({})


def test_a_secret_that_is_being_deleted_is_restored() -> None:
    """A stage that is deployed again after `destroy` gets new keys and no error."""
    with mock_aws():
        client = boto3.client("secretsmanager", region_name="us-east-1")
        keyring = SecretKeyring(client, "test")
        before = nessie_tokens.keep(keyring, _NOW)
        for name in nessie_tokens.NAMES:
            client.delete_secret(SecretId=f"lakegate/test/nessie/{name}")
        assert not keyring.read()

        after = nessie_tokens.keep(keyring, _NOW)

        assert after.signing_key != before.signing_key
        assert_whole(after)


def test_secrets_come_under_the_stages_key() -> None:
    """A stage that gets a key has its old secrets and the new ones encrypted by it."""
    with mock_aws():
        client = boto3.client("secretsmanager", region_name="us-east-1")
        SecretKeyring(client, "test").write("job", "old")
        key = boto3.client("kms", region_name="us-east-1").create_key()["KeyMetadata"]["Arn"]
        keyring = SecretKeyring(client, "test", key)
        keyring.write("reader", "new")
        keyring.encrypt_by_its_key()
        for name in ("job", "reader"):
            found = client.describe_secret(SecretId=f"lakegate/test/nessie/{name}")
            assert found["KmsKeyId"] == key
        assert keyring.read() == {"job": "old", "reader": "new"}


def test_a_keyring_that_keeps_changing_is_an_error() -> None:
    """A keyring that changes at every read ends the command with an error."""

    class Leaking(Memory):
        def read(self) -> Mapping[str, str]:
            return {nessie_tokens.SIGNING_KEY: made()[nessie_tokens.SIGNING_KEY]}

    with pytest.raises(Transient, match="changed elsewhere"):
        nessie_tokens.keep(Leaking({}), _NOW)


def test_only_their_owner_can_read_the_keys(tmp_path: Path) -> None:
    """Only the owner may open the files with key and tokens."""
    nessie_tokens.keep(KeyFiles(tmp_path), _NOW)

    assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}


def test_the_keys_are_not_in_their_own_description() -> None:
    """The text of a Keys value contains neither key nor token."""
    held = Keys.of(made())

    assert not [text for text in (held.signing_key, *held.tokens.values()) if text in repr(held)]


@pytest.mark.parametrize("stored", ["", "other text", "-----BEGIN PRIVATE KEY-----\nAA"])
def test_a_text_that_is_no_key_is_refused_without_showing_it(stored: str) -> None:
    """A person may store anything as the key of an own Nessie; the error does not repeat it."""
    with pytest.raises(LakegateError, match="BAD_KEY: the signing key is no RSA key") as refused:
        nessie_tokens.loaded(stored)
    assert "other text" not in str(refused.value)
    assert "PRIVATE" not in str(refused.value)


def test_a_key_under_a_password_is_refused() -> None:
    """Nobody types a password for the functions, so a key must be stored without one."""
    locked = nessie_tokens.loaded(made()["signing-key"]).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    with pytest.raises(LakegateError, match="BAD_KEY"):
        nessie_tokens.loaded(locked.decode())
