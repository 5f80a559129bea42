"""One account for all suites that deploy, and one stage in it, deployed as docs/aws.md says."""

from collections.abc import Iterator

import pytest

from tests.deploy import bare
from tests.deploy.account import Account, running
from tests.deploy.bare import Cloud
from tests.deploy.tools import FIRST, Checkout


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """An AWS account; each suite has stages of its own in it."""
    with running(tmp_path_factory.mktemp("account")) as made:
        yield made


@pytest.fixture(scope="session")
def cloud(account: Account) -> Iterator[Cloud]:
    """A cloud with nothing of its stage but what who has a platform puts there."""
    with bare.cloud(account) as cloud:
        yield cloud


@pytest.fixture(scope="session")
def checkout(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout from which the cloud's stage was deployed by osls."""
    with cloud.entered():
        checkout = Checkout.of(cloud, tmp_path_factory.mktemp("checkout"))
        checkout.run(FIRST)
    return checkout
