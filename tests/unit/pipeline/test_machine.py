"""Random stories of a deployment, with any events in any order, which keep every promise.

A run is a story (tests/fakes/events.py): files land, messages come in any order, twice, late or
never, other writers change main, and any call to an outside system fails, dies or hangs. Hypothesis
shortens a failing story and prints it, and `tell` repeats it. To try others, or more:
`LAKEGATE_SEED=7 LAKEGATE_RUNS=9000 .venv/bin/python -m pytest pipeline/test_machine.py`
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import cache

import pytest

from tests.fakes.amounts import RUNS, SEED, WHOLE_MATRIX, some
from tests.fakes.events import Strike, Time
from tests.fakes.machine import tell
from tests.fakes.openings import DAYS
from tests.fakes.points import BETWEEN_WRITES, METHODS, NOT_STRUCK, ONLY_COMMANDS, POINTS
from tests.fakes.stage import Kind, Stage, Story
from tests.fakes.stories import explore


@dataclass
class Tally:
    """The numbers of stories, of faults that struck, and of calls."""

    runs: int = 0
    struck: Counter[tuple[str, Kind]] = field(default_factory=Counter)
    called: set[str] = field(default_factory=set)

    def add(self, stage: Stage) -> None:
        """Count one more story."""
        self.runs += 1
        self.struck += stage.struck
        self.called |= set(stage.deployment.journal.calls)


@pytest.mark.timeout(1800)  # it takes long to shorten a failing story
def test_every_promise_is_kept_in_every_story() -> None:
    """Every story comes to rest with every promise kept.

    There are as many different stories as requested. They make no calls but those of the service.
    In the whole matrix faults strike all of these.
    """
    print(f"again: LAKEGATE_SEED={SEED} LAKEGATE_RUNS={RUNS}")
    tally = Tally()
    explore(RUNS, SEED, tally.add)
    assert tally.runs >= RUNS
    assert tally.called <= {*POINTS, *NOT_STRUCK}
    if WHOLE_MATRIX:
        _faults_struck_at_every_call(tally)


def _faults_struck_at_every_call(tally: Tally) -> None:
    """Raise AssertionError unless faults struck every call, and most calls in every way."""
    for point in POINTS:
        kinds = (f"{kind.name.lower()} {tally.struck[point, kind]}" for kind in Kind)
        print(f"{point:22}", *kinds, sep="  ")
    assert tally.called == {point for point, _ in tally.struck} == set(POINTS)
    assert len(tally.struck) > 0.8 * len(POINTS) * len(Kind) > 30


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("point", POINTS)
def test_a_fault_at_each_call_breaks_no_promise(point: str) -> None:
    """A fault at any call of the service keeps every promise.

    Each call is struck in one way, and in every way by `make test-long`.
    """
    for kind in some(list(Kind), point):
        strike = Strike(point, kind, meanwhile=(Time.SWEEP,))
        days = [day for day in DAYS if point in _calls(day)] or DAYS
        struck = [tell((strike, *day)).struck[point, kind] for day in days]
        assert sum(struck), f"{point} was not struck by {kind}"


@cache
def _calls(day: Story) -> frozenset[str]:
    """Return the calls of a day without a fault; a strike may add those that delete letters."""
    return frozenset(tell(day).deployment.journal.calls)


def test_the_methods_for_commands_exist() -> None:
    """Every adapter method that no story strikes is called only by commands."""
    assert set(METHODS) >= ONLY_COMMANDS
    assert set(METHODS) - ONLY_COMMANDS == set(POINTS) - {BETWEEN_WRITES}
