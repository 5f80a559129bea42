from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from infra.local import keys

_NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_a_token_names_its_role_and_ends_after_thirty_days(tmp_path: Path) -> None:
    """Each role's token is signed with the public key's other half and says who holds it."""
    token = keys.tokens(tmp_path, ["job"], _NOW)["job"]
    key = load_der_public_key(b64decode(keys.public_key(tmp_path)))
    assert isinstance(key, RSAPublicKey)

    claims = jwt.decode(token, key, algorithms=["RS256"], options={"verify_exp": False})

    assert claims["iss"] == keys.ISSUER
    assert claims["upn"] == "lakegate-job"
    assert claims["exp"] == int((_NOW + timedelta(days=30)).timestamp())


@pytest.mark.parametrize(("days", "same"), [(22, True), (24, False), (400, False)])
def test_a_token_is_kept_until_its_end_is_near(tmp_path: Path, days: int, same: bool) -> None:
    """A token lasts over many starts, and no stack comes up with one that ends within a week."""
    first = keys.tokens(tmp_path, ["job"], _NOW)["job"]

    later = keys.tokens(tmp_path, ["job"], _NOW + timedelta(days=days))["job"]

    assert (later == first) is same


def test_tokens_of_a_lost_key_are_made_anew(tmp_path: Path) -> None:
    """When the key is gone its tokens are too: a server with a new key would refuse them."""
    first = keys.tokens(tmp_path, ["job"], _NOW)["job"]
    (tmp_path / "nessie.pem").unlink()
    keys.public_key(tmp_path)

    assert keys.tokens(tmp_path, ["job"], _NOW)["job"] != first


def test_only_their_owner_can_read_the_keys(tmp_path: Path) -> None:
    """Key and tokens are files that nobody else on the machine may open."""
    keys.tokens(tmp_path, ["job"], _NOW)

    assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}
