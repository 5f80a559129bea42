"""Fixtures of the unit tests: a deployment, and its log."""

import io
from collections.abc import Iterator
from typing import Any

import pytest

from functions.telemetry import logger
from tests.fakes.scenario import Scenario


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Yield the text of the log."""
    handler: Any = logger.registered_handler
    written = io.StringIO()
    before = handler.setStream(written)
    yield written
    handler.setStream(before)


@pytest.fixture(scope="module")
def quiet() -> Iterator[None]:
    """Suppress log lines below critical."""
    level = logger.log_level
    logger.setLevel("CRITICAL")
    yield
    logger.setLevel(level)


@pytest.fixture
def deployment() -> Iterator[Scenario]:
    """Yield a deployment where nothing has landed; at rest it must keep every promise."""
    deployment = Scenario()
    yield deployment
    deployment.check()
