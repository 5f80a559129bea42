"""What all tests share."""

import os

import pytest
from hypothesis import settings

from infra.local.jars import SPARK

pytest.register_assert_rewrite("tests.fakes.promises")

# A busy machine is no failure.
settings.register_profile("lakegate", deadline=None)
settings.load_profile("lakegate")


def pytest_configure() -> None:
    """Have every Java that a test starts compile as the local Spark's does."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", " ".join(SPARK))
