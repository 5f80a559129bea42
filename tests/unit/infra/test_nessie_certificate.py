"""The certificate of Nessie's address: made once by an authority of the stage, or a public one."""

import os
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pytest
from cryptography import x509
from moto import mock_aws

from infra.aws.certificates import nessie
from infra.aws.site import Site, connect
from infra.stage import Stage
from lakegate.errors import LakegateError

_STAGE = Stage("shop", "123456789012", "eu-central-1")
_PAGE, _LINES = Path(__file__).parents[3] / "docs/platform.md", re.MULTILINE | re.DOTALL
_FACTS = ("nessie-ca", "nessie-certificate")
_PUBLIC = {"CertificateArn": "arn:aws:acm:eu-central-1:1:certificate/a", "NessieName": "n.example"}


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Yield the site of a stage that has nothing."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield connect(_STAGE, boto3.client, lambda _: None)


def test_a_stage_gets_a_certificate_of_its_own(site: Site) -> None:
    """ACM has it, for the stage's name and ten years; clients are told the authority alone."""
    nessie.keep(site, {})

    told, arn = (site.facts.read([name])[name] for name in _FACTS)
    assert nessie.parameters(site, {}) == {
        "CertificateArn": arn,
        "NessieName": "nessie.lakegate-shop.internal",
    }
    (listed,) = site.client("acm").list_certificates()["CertificateSummaryList"]
    assert listed["CertificateArn"] == arn
    found = site.client("acm").get_certificate(CertificateArn=arn)
    leaf, authority = (
        x509.load_pem_x509_certificate(found[part].encode())
        for part in ("Certificate", "CertificateChain")
    )
    leaf.verify_directly_issued_by(authority)
    assert leaf.not_valid_after_utc > datetime.now(UTC) + timedelta(days=3600)
    assert nessie.Certified(b"", b"", authority).fact == told
    assert len(told) <= len(nessie.longest_fact({}))
    assert nessie.longest_fact(_PUBLIC) == ""


def test_it_is_made_once(site: Site) -> None:
    """The next deployment keeps it, so that clients trust it throughout."""
    nessie.keep(site, {})
    before = site.facts.read(_FACTS)
    nessie.keep(site, {})
    assert site.facts.read(_FACTS) == before


def test_a_deployment_in_its_last_months_makes_another(site: Site) -> None:
    """Otherwise it would end, and nothing could reach Nessie; both end on one day."""
    old = nessie.certified("n.example", datetime.now(UTC) - timedelta(days=3650 - 40))
    site.facts.put({"nessie-certificate": "arn:aws:acm:old", "nessie-ca": old.fact})
    nessie.keep(site, {})
    made = site.facts.read(_FACTS)
    assert made["nessie-certificate"] != "arn:aws:acm:old"
    assert made["nessie-ca"] != old.fact
    leaf = x509.load_pem_x509_certificate(old.certificate)
    assert leaf.not_valid_after_utc == old.authority.not_valid_after_utc


def test_a_public_certificate_takes_its_place(site: Site) -> None:
    """Clients are told to trust public authorities; without it again, a new one is made."""
    nessie.keep(site, {})
    nessie.keep(site, _PUBLIC)
    assert site.facts.read(_FACTS)["nessie-ca"] == "public"
    assert nessie.parameters(site, _PUBLIC) == {}
    nessie.keep(site, {})
    assert site.facts.read(_FACTS)["nessie-ca"] != "public"


@pytest.mark.parametrize("given", _PUBLIC)
def test_a_certificate_without_its_name_is_refused(site: Site, given: str) -> None:
    """Name and certificate belong together, also before anything is made."""
    with pytest.raises(LakegateError, match=f"BAD_SETTING.*{given} is set alone"):
        nessie.keep(site, {given: _PUBLIC[given]})
    assert site.facts.read(_FACTS) == {}


def test_a_rehearsal_makes_nothing(site: Site) -> None:
    """Before the first deployment the plan has a certificate's place."""
    assert nessie.parameters(site, {})["CertificateArn"].startswith("arn:aws:acm:")
    assert site.facts.read(_FACTS) == {}


def test_an_own_nessie_has_a_public_authority_or_its_own(site: Site) -> None:
    """A person may note a private authority, which no deployment takes away."""
    nessie.keep_for_own_nessie(site)
    assert site.facts.read(["nessie-ca"]) == {"nessie-ca": "public"}
    site.facts.put({"nessie-ca": "MIIB"})
    nessie.keep_for_own_nessie(site)
    assert site.facts.read(["nessie-ca"]) == {"nessie-ca": "MIIB"}


def test_readers_get_the_authority_by_the_documented_command(tmp_path: Path) -> None:
    """The command of docs/platform.md writes the certificate that clients are told as PEM."""
    (command,) = re.findall(r"^aws ssm get-parameter .*?(?=^```$)", _PAGE.read_text(), _LINES)
    made = nessie.certified("n.example", datetime.now(UTC))
    program = tmp_path / "aws"
    program.write_text(f"#!/bin/sh\n[ $4 = /lakegate/shop/nessie-ca ] && echo {made.fact}\n")
    program.chmod(0o700)

    shell = ["bash", "-euo", "pipefail", "-c", command.replace("<stage>", "shop")]
    paths = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(shell, check=True, cwd=tmp_path, env=paths)
    written = x509.load_pem_x509_certificate((tmp_path / "nessie-ca.pem").read_bytes())
    assert written == made.authority
