"""The authority's certificate for PostgreSQL: AWS's own, the deployed one, or a person's."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.stub import Stubber

from infra.aws.certificates import database
from infra.aws.site import Site
from lakegate.errors import LakegateError
from tests.certificates import Authority
from tests.fakes import wire
from tests.unit.infra.test_emr import Account

_NAME = "Amazon RDS eu-central-1 Root CA RSA2048 G1"
_FOUND = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Return the region's authority."""
    return Authority(_NAME)


def site(deployed: str | None = None) -> Site:
    """Return a site whose platform has this certificate; None is no platform."""
    account = Account("eu-central-1")
    stubber = Stubber(account.client("cloudformation"))
    if deployed is None:
        stubber.add_client_error("describe_stacks", "ValidationError", "x does not exist")
    else:
        found = {
            "StackName": "lakegate-dev-platform",
            "CreationTime": datetime.now(UTC),
            "StackStatus": "CREATE_COMPLETE",
            "Parameters": [{"ParameterKey": "DatabaseCa", "ParameterValue": deployed}],
        }
        for _ in range(2):
            stubber.add_response("describe_stacks", {"Stacks": [found]})
    stubber.activate()
    return account.site


def test_the_regions_authority_is_taken_from_awss_bundle(authority: Authority) -> None:
    """Of several authorities the one of the database is taken, and not an expired one."""
    expired = Authority(_NAME, datetime.now(UTC) - timedelta(hours=1))
    another = Authority("Amazon RDS eu-central-1 Root CA RSA4096 G1")
    bundle = "".join(each.pem for each in (another, expired, authority)).encode()
    for deployed in (None, ""):
        with wire.answering(_FOUND + bundle) as bundles:
            found = database.parameter(site(deployed), {}, bundles)
        assert found == {"DatabaseCa": authority.pem}


def test_a_deployed_certificate_stays(authority: Authority) -> None:
    """A platform with a certificate is deployed again without AWS's address."""
    found = database.parameter(site(authority.pem), {}, wire.nobody())
    assert found == {"DatabaseCa": authority.pem}


def test_a_person_may_give_a_certificate(authority: Authority, tmp_path: Path) -> None:
    """The setting is a file with one certificate, or its text."""
    file = tmp_path / "ca.pem"
    file.write_text(f"a comment\n{authority.pem}")
    for given in (str(file), authority.pem):
        found = database.parameter(site(), {"DatabaseCa": given}, wire.nobody())
        assert found == {"DatabaseCa": authority.pem}
    file.write_text(authority.pem * 2)
    for given in (str(file), str(tmp_path / "none.pem"), "-----BEGIN CERTIFICATE-----"):
        with pytest.raises(LakegateError, match=r"NO_DATABASE_CA.*one certificate"):
            database.parameter(site(), {"DatabaseCa": given}, wire.nobody())


def test_a_stage_without_postgres_needs_none() -> None:
    """A stage with DynamoDB gets no certificate."""
    assert database.parameter(site(), {"NessieStore": "DYNAMODB2"}, wire.nobody()) == {}


@pytest.mark.parametrize("answer", [b"HTTP/1.1 403 Forbidden\r\n\r\n", _FOUND + b"<html>", _FOUND])
def test_a_missing_bundle_is_reported_with_what_to_do(answer: bytes) -> None:
    """Without the bundle, or without the authority in it, the error names the setting."""
    with (
        wire.answering(answer) as bundles,
        pytest.raises(LakegateError, match=r"NO_DATABASE_CA.*bundle\.pem") as refusal,
    ):
        database.parameter(site(), {}, bundles)
    assert "`DatabaseCa: FILE`" in refusal.value.message
    with pytest.raises(LakegateError, match="NO_DATABASE_CA"):
        database.parameter(site(), {}, wire.nobody())


def test_another_regions_authority_is_not_taken() -> None:
    """A bundle without the region's own authority is refused."""
    bundle = Authority("Amazon RDS us-east-1 Root CA RSA2048 G1").pem.encode()
    with (
        wire.answering(_FOUND + bundle) as bundles,
        pytest.raises(LakegateError, match="no valid certificate of Amazon RDS eu-central-1"),
    ):
        database.parameter(site(), {}, bundles)
