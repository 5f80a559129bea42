"""Each guard that keeps the promises is needed: without it, the machine finds what then breaks."""

import importlib

import pytest

from tests.fakes.guards import GUARDS, Guard
from tests.fakes.sabotage import Cut, sabotaged

RUNS = 3000


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_without_the_guard_a_promise_is_broken(guard: Guard) -> None:
    """The machine, let loose on a copy of Lakegate that lacks one guard, finds the breach."""
    with sabotaged(guard.cuts):
        stories = importlib.import_module("tests.fakes.stories")
        openings = [getattr(stories, guard.opening)] if guard.opening else stories.OPENINGS
        with pytest.raises(AssertionError, match=guard.breach):
            stories.explore(RUNS, 0, lambda _: None, openings=openings, shrinks=False)


def test_a_cut_that_is_not_there_is_told() -> None:
    """A guard whose text has moved is an error, not a guard that was tried."""
    cut = Cut("functions.pipeline.complete", "no such text", "")
    with sabotaged([cut]), pytest.raises(ImportError, match="exactly once: no such text"):
        importlib.import_module("functions.pipeline.complete")
