"""The guards of the promises, without each of which a story breaks a promise.

The stories are found and stored by `.venv/bin/python -m tests.fakes.find_stories`.
"""

import importlib
from collections.abc import Iterator

import pytest

from functions.telemetry import metrics
from tests.fakes.guards.guards import GUARDS
from tests.fakes.guards.stories import STORIES
from tests.fakes.machine import tell
from tests.fakes.sabotage import Patch, patched, second_copy

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture(autouse=True)
def _no_metrics() -> Iterator[None]:
    yield
    metrics.clear_metrics()


def test_each_guard_has_a_story() -> None:
    """The stored stories are those of the guards, each of which has a name of its own."""
    assert list(STORIES) == list(GUARDS)


@pytest.mark.parametrize("name", GUARDS)
def test_with_the_guard_every_promise_is_kept(name: str) -> None:
    """With the guard, its story breaks no promise."""
    tell(STORIES[name])


@pytest.mark.parametrize("name", GUARDS)
def test_without_the_guard_a_promise_is_broken(name: str) -> None:
    """The story breaks the guard's promise in a copy of Lakegate without the guard."""
    with second_copy():
        guard = importlib.import_module("tests.fakes.guards.guards").GUARDS[name]
        story = importlib.import_module("tests.fakes.guards.stories").STORIES[name]
        tell_it = importlib.import_module("tests.fakes.machine").tell
        with patched(guard.patches), pytest.raises(AssertionError, match=guard.breach):
            tell_it(story)


@pytest.mark.parametrize("name", ["no_such_function", "FakeLedger.no_such_method"])
def test_an_unknown_name_is_refused(name: str) -> None:
    """A guard whose function got another name is an error."""
    with second_copy():
        ledger = importlib.import_module("tests.fakes.ledger")
        with (
            pytest.raises(LookupError, match="no_such"),
            patched([Patch(ledger, name, lambda *_: None)]),
        ):
            pass


def test_a_function_is_replaced_wherever_it_is_bound() -> None:
    """Modules that import a function get its replacement, and the original back afterwards."""
    with second_copy():
        intake, sweeping = map(
            importlib.import_module, ("functions.pipeline.start.intake", "functions.sweep")
        )
        original = sweeping.take_in
        with patched([Patch(intake, "take_in", lambda take_in, *_: take_in)]):
            assert sweeping.take_in() is original
            assert intake.take_in() is original
        assert sweeping.take_in is intake.take_in is original


def test_an_imported_name_is_replaced_in_its_module_alone() -> None:
    """Other modules keep a function where a patch names a module that only imports it."""
    with second_copy():
        intake, sweeping = map(
            importlib.import_module, ("functions.pipeline.start.intake", "functions.sweep")
        )
        with patched([Patch(sweeping, "take_in", lambda *_: "replaced")]):
            assert sweeping.take_in() == "replaced"
            assert intake.take_in is not sweeping.take_in


def test_the_copy_leaves_the_first_one_alone() -> None:
    """Classes of the second copy are other ones, and later imports find the first copy."""
    first = importlib.import_module("functions.model.ingestion")
    with second_copy():
        second = importlib.import_module("functions.model.ingestion")
    assert second.Ingestion is not first.Ingestion
    assert importlib.import_module("functions.model.ingestion") is first
