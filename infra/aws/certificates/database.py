"""The certificate of RDS's authority, by which Nessie verifies its database."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import requests
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from infra.aws.site import Site
from lakegate.errors import LakegateError

PARAMETER = "DatabaseCa"
# The addresses and the authority's name are those of the RDS User Guide, "Using SSL/TLS to encrypt
# a connection to a DB instance". infra/platform.yml gives the database this authority.
BUNDLES = "https://truststore.pki.rds.amazonaws.com"
_SUBJECT = "Amazon RDS {} Root CA RSA2048 G1"
_SECONDS = 30
_BEGIN = "-----BEGIN CERTIFICATE-----"


def parameter(site: Site, chosen: Mapping[str, str], bundles: str = BUNDLES) -> dict[str, str]:
    """Return the parameter DatabaseCa, as PEM; nothing if Nessie's store is not PostgreSQL.

    It is the chosen one (a file or a text), or else the deployed one, or else AWS's own at the
    address `bundles`. Raises LakegateError NO_DATABASE_CA.
    """
    if chosen.get("NessieStore", "JDBC2") != "JDBC2":
        return {}
    if given := chosen.get(PARAMETER):
        return {PARAMETER: _text(given)}
    if site.stacks.exists(site.stage.platform_stack):
        deployed = site.stacks.parameters(site.stage.platform_stack).get(PARAMETER)
        if deployed:
            return {PARAMETER: deployed}
    return {PARAMETER: _fetched(bundles, site.stage.region)}


def _text(given: str) -> str:
    """Return the one certificate in a text or in the file that it names."""
    try:
        text = given if _BEGIN in given else Path(given).expanduser().read_text()
        (certificate,) = x509.load_pem_x509_certificates(text.encode())
    except (OSError, ValueError) as error:
        message = f"{PARAMETER} must be one certificate (PEM), or a file with one: {error}"
        raise LakegateError("NO_DATABASE_CA", message) from error
    return _pem(certificate)


def _fetched(bundles: str, region: str) -> str:
    address, subject = f"{bundles}/{region}/{region}-bundle.pem", _SUBJECT.format(region)
    try:
        answer = requests.get(address, timeout=_SECONDS)
        answer.raise_for_status()
        every = x509.load_pem_x509_certificates(answer.content)
    except (requests.RequestException, ValueError) as error:
        raise _missing(f"cannot be read: {error}", address) from error
    now = datetime.now(UTC)
    fit = [each for each in every if subject in _names(each) and each.not_valid_after_utc > now]
    if not fit:
        raise _missing(f"has no valid certificate of {subject}", address)
    return _pem(fit[0])


def _missing(why: str, address: str) -> LakegateError:
    message = (
        f"AWS's certificates for RDS at {address}: the address {why}\n"
        "Save the region's certificate of rds-ca-rsa2048-g1 and name the file in the stage's"
        f" settings: `{PARAMETER}: FILE`."
    )
    return LakegateError("NO_DATABASE_CA", message)


def _names(certificate: x509.Certificate) -> list[str]:
    attributes = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return [str(each.value) for each in attributes]


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
