"""One account for all suites that deploy, and one stage in it, deployed as docs/aws.md says."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infra.lambda_python import local_stack_python
from infra.local.ministack import KeyFiles
from infra.setup import deploy_environment
from infra.versions import LAMBDA_PYTHON
from lakegate.nessie_tokens import Keys, keep
from tests.deploy import bare, deployer
from tests.deploy.account import Account, running
from tests.deploy.bare import ROOT, Cloud
from tests.deploy.platform import Platforms
from tests.deploy.tools import FIRST, Checkout


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """Yield an AWS account; each suite has its own stages in it."""
    with running(tmp_path_factory.mktemp("account")) as made:
        yield made


@pytest.fixture(scope="session")
def cloud(account: Account) -> Iterator[Cloud]:
    """Yield a cloud that has only the facts and secrets of a platform for its stage."""
    with bare.cloud(account) as cloud:
        yield cloud


@pytest.fixture(scope="session")
def lambda_python() -> None:
    """Skip what needs functions that run on AWS's own Python, where it is not here."""
    if local_stack_python() != LAMBDA_PYTHON:
        pytest.skip(f"the account here runs no function of Python {LAMBDA_PYTHON}")


@pytest.fixture(scope="session")
def ann(cloud: Cloud) -> dict[str, str]:
    """Return the session of a person with the deployer's policies alone."""
    return deployer.session(cloud)


@pytest.fixture(scope="session")
def checkout(
    lambda_python: None,
    cloud: Cloud,
    ann: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Checkout:
    """Return a checkout from which the deployer deployed the cloud's stage by osls."""
    assert deploy_environment(ROOT).is_current(), "run `make deploy-tools`"
    with cloud.entered():
        checkout = Checkout.of(cloud, tmp_path_factory.mktemp("checkout"))
        checkout.run(FIRST, caller=ann)
    return checkout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home directory of a suite's servers."""
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="module")
def keys(home: Path) -> Keys:
    """Return the signing key and each role's token."""
    return keep(KeyFiles(home / "keys"), datetime.now(UTC))


@pytest.fixture(scope="module")
def aws(account: Account) -> Platforms:
    """Return the AWS account, with the platforms of each suite."""
    return Platforms(account)
