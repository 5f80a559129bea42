"""Servers that several behaviour suites share."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.services import Services


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Services]":
    """Nessie with its tokens and rules, and S3."""
    from tests.services import services  # brings pyspark, which the quick tests can do without

    with services(tmp_path_factory.mktemp("servers")) as running:
        yield running
