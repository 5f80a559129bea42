"""The log, as the tests of one process see it, or do not."""

import io
from collections.abc import Iterator
from typing import Any

import pytest

from functions.telemetry import logger


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What is logged."""
    handler: Any = logger.registered_handler
    written = io.StringIO()
    before = handler.setStream(written)
    yield written
    handler.setStream(before)


@pytest.fixture(scope="module")
def quiet() -> Iterator[None]:
    """Keep thousands of log lines out of the way."""
    level = logger.log_level
    logger.setLevel("CRITICAL")
    yield
    logger.setLevel(level)
