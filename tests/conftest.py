"""Configuration of all tests."""

import gc
import os

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from infra.local.java import SPARK

# Most of the tests' code runs too seldom to be worth a second compilation. One compiler alone would
# have a fifth of the room for code.
_COMPILED_ONCE = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
_ALONE = ("tests/contract/", "tests/e2e/test_kill.py")

pytest.register_assert_rewrite("tests.fakes.promises")

# Slowness of a busy machine is no failure.
settings.register_profile("lakegate", deadline=None)
settings.load_profile("lakegate")


def pytest_configure() -> None:
    """Give every Java that a test starts the local Spark's options, but compile its code once."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", " ".join((*SPARK, *_COMPILED_ONCE)))


def pytest_collection_finish() -> None:
    """Look for garbage less often, and never among what was imported: tests drop what they make."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


def pytest_unconfigure() -> None:
    """Let libraries that count what is left at the end find nothing."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Make one worker run all tests that share a stack with `--dist loadscope`."""
    return Folders(config, log) if config.getvalue("dist") == "loadscope" else None


class Folders(LoadScopeScheduling):
    """A scheduler that gives a worker a whole folder of tests, or a file that shares no stack."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if file.startswith(_ALONE) else file.rpartition("/")[0]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Raise UsageError for a test that no lane of the Makefile would run in its place."""
    package = item.nodeid.removeprefix("tests/").partition("/")[0]
    marks = {mark.name for mark in item.iter_markers()} & {"deploy", "spark", "stack"}
    if (package == "unit" and marks) or ((package == "spark") is not (marks == {"spark"})):
        raise pytest.UsageError(f"no lane of `make test` runs {item.nodeid}: move it")
