"""The certificate of Nessie's address: a public one, or one of an authority made for the stage.

The authority signs this one certificate; then its key is gone, so it can sign no other.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from infra.aws.facts import CERTIFICATE, NESSIE_CA
from infra.aws.site import Site
from infra.cloudformation import translated
from infra.stage import Stage
from lakegate.errors import LakegateError
from lakegate.trust import PUBLIC

_ARN, _NAME = "CertificateArn", "NessieName"
_LIFE = timedelta(days=3650)  # ACM renews no imported certificate
RENEWED_WITH_LEFT = timedelta(days=90)
_MOST = 500  # characters of an authority as base64; its numbers differ by some bytes
_NOT_YET = "arn:aws:acm:::certificate/not-yet"
_SIGNS = x509.KeyUsage(False, False, False, False, False, True, False, False, False)


@dataclass(frozen=True)
class Certified:
    """A server's certificate and key (PEM), and its authority's certificate."""

    certificate: bytes
    key: bytes
    authority: x509.Certificate

    @property
    def fact(self) -> str:
        """Return whom clients of the server trust, as they are told."""
        return b64encode(self.authority.public_bytes(Encoding.DER)).decode()


def keep(site: Site, chosen: Mapping[str, str]) -> None:
    """Note whom Nessie's clients trust; make authority and certificate if none last for long.

    Raises LakegateError BAD_SETTING, CERTIFICATE_UNAVAILABLE.
    """
    if _is_public(chosen):
        site.facts.put({NESSIE_CA: PUBLIC})
    elif not _lasts(_held(site), now := datetime.now(UTC)):
        name = _name(site.stage)
        made = certified(name, now)
        site.facts.put({CERTIFICATE: _imported(site, made), NESSIE_CA: made.fact})
        site.tell(f"made a private authority, and by it a certificate for {name}")


def keep_for_own_nessie(site: Site) -> None:
    """Note that clients of a Nessie that Lakegate did not deploy trust public authorities.

    A person may have noted another one.
    """
    if not site.facts.read([NESSIE_CA]):
        site.facts.put({NESSIE_CA: PUBLIC})


def longest_fact(chosen: Mapping[str, str]) -> str:
    """Return as many characters as clients are told at most. Raises LakegateError BAD_SETTING."""
    return "" if _is_public(chosen) else _MOST * "A"


def parameters(site: Site, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the platform's parameters of the certificate that `keep` made, if none is chosen."""
    if _is_public(chosen):
        return {}
    return {_ARN: _held(site).get(CERTIFICATE, _NOT_YET), _NAME: _name(site.stage)}


def _is_public(chosen: Mapping[str, str]) -> bool:
    given = [name for name in (_ARN, _NAME) if chosen.get(name)]
    if len(given) == 1:
        message = f"{given[0]} is set alone: {_ARN} needs {_NAME}, its DNS name"
        raise LakegateError("BAD_SETTING", message)
    return bool(given)


def _held(site: Site) -> dict[str, str]:
    """Return the facts of the stage's own certificate, none if there is none in use."""
    facts = site.facts.read((CERTIFICATE, NESSIE_CA))
    return facts if len(facts) == 2 and facts[NESSIE_CA] != PUBLIC else {}


def _lasts(held: Mapping[str, str], now: datetime) -> bool:
    """Return whether there is a certificate that ends in months; its authority ends with it."""
    if not held:
        return False
    authority = x509.load_der_x509_certificate(b64decode(held[NESSIE_CA]))
    return authority.not_valid_after_utc > now + RENEWED_WITH_LEFT


def _name(stage: Stage) -> str:
    return f"nessie.lakegate-{stage.name}.internal"


def _imported(site: Site, made: Certified) -> str:
    """Return the ARN of the certificate in ACM, the only place that has its key."""
    with translated("CERTIFICATE_UNAVAILABLE", "cannot import Nessie's certificate into ACM"):
        answer = site.client("acm").import_certificate(
            Certificate=made.certificate,
            PrivateKey=made.key,
            CertificateChain=made.authority.public_bytes(Encoding.PEM),
            Tags=[{"Key": key, "Value": value} for key, value in site.stage.tags.items()],
        )
    return str(answer["CertificateArn"])


def certified(host: str, now: datetime) -> Certified:
    """Return a key for a host, with the certificate of an authority that signs no other."""
    signer, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    by = x509.SubjectKeyIdentifier.from_public_key(signer.public_key())
    authority = (
        _unsigned("lakegate", signer.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_SIGNS, critical=True)
        .add_extension(by, critical=False)
        .sign(signer, SHA256())
    )
    known = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(by)
    certificate = (
        _unsigned(host, key.public_key(), now)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([x509.OID_SERVER_AUTH]), critical=False)
        .add_extension(known, critical=False)
        .sign(signer, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Certified(certificate.public_bytes(Encoding.PEM), private, authority)


def _unsigned(
    subject: str, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    issuer, named = (
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        for name in ("lakegate", subject)
    )
    serial, begin = x509.random_serial_number(), now - timedelta(hours=1)
    return x509.CertificateBuilder(issuer, named, key, serial, begin, now + _LIFE)
