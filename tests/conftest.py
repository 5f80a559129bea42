"""What all tests share."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from infra.local.jars import SPARK

if TYPE_CHECKING:
    from tests.deploy.account import Account

pytest.register_assert_rewrite("tests.fakes.promises")

# A busy machine is no failure.
settings.register_profile("lakegate", deadline=None)
settings.load_profile("lakegate")


def pytest_configure() -> None:
    """Have every Java that a test starts compile as the local Spark's does."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", " ".join(SPARK))


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one worker run all tests that share a server; any other file is a group of its own.

    Raises UsageError for a test that none of the Makefile's lanes would run where it is.
    """
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
        package = item.nodeid.removeprefix("tests/").partition("/")[0]
        marks = {mark.name for mark in item.iter_markers()} & {"deploy", "spark", "stack"}
        if (package == "unit" and marks) or ((package == "spark") is not (marks == {"spark"})):
            raise pytest.UsageError(f"no lane of `make test` runs {item.nodeid}: move it")


def _group(item: pytest.Item) -> str:
    fixtures = getattr(item, "fixturenames", ())
    shared = (name for name in ("account", "gate", "servers") if name in fixtures)
    return next(shared, item.nodeid.partition("::")[0])


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Account"]:
    """The AWS account of all suites that deploy."""
    from tests.deploy.account import running

    with running(tmp_path_factory.mktemp("account")) as made:
        yield made
