"""Whom Nessie's clients trust, as the environment says."""

import ssl
from base64 import b64encode
from pathlib import Path

import pytest

from lakegate import trust
from tests.certificates import Authority


def test_a_private_authority_is_trusted_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its certificate is in the file for `requests` and in the context for `urllib`."""
    pem = Authority("Nessie").pem
    der = ssl.PEM_cert_to_DER_cert(pem)
    monkeypatch.setenv("LAKEGATE_NESSIE_CA", b64encode(der).decode())
    assert trust.authority() == der
    assert ssl.PEM_cert_to_DER_cert(Path(str(trust.bundle())).read_text()) == der
    assert trust.context(der).get_ca_certs(binary_form=True) == [der]


@pytest.mark.parametrize("told", ["", "public"])
def test_a_public_certificate_needs_nothing(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a private authority the libraries' own ones are trusted."""
    monkeypatch.setenv("LAKEGATE_NESSIE_CA", told)
    assert (trust.authority(), trust.bundle()) == (b"", True)


def test_only_a_certificates_refusal_is_told_as_one() -> None:
    """A server that is down is not said to be a stranger."""
    said = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: expired (_ssl.c:1006)"
    what, then = trust.refusal("https://n", OSError(said)).splitlines()
    assert what == "Nessie's certificate at https://n is not trusted: expired"
    assert "`lakegate deploy`" in then
    assert trust.refusal("https://n", OSError("Connection refused")) == ""
