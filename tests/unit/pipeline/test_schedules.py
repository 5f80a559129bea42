"""However the processes of a deployment take turns, call by call, every promise is kept.

A run is a story (tests/fakes/schedule.py) in which Lambdas, sweeps, job drivers and people's
commands are under way at once; each goes on when the story says so. Indexes lag, EMR declares runs
over whose drivers go on, and any call fails, or seems to. `play` plays a failing story again. To
try others, or more: `LAKEGATE_SEED=7 LAKEGATE_SCHEDULES=2000 .venv/bin/python -m pytest
tests/unit/pipeline/test_schedules.py`; `make test-long` does.
"""

import os
from collections import Counter

import pytest

from tests.fakes.machine import Stage, Story
from tests.fakes.schedules import OPENINGS, explore

SEED = int(os.environ.get("LAKEGATE_SEED", "0"))
RUNS = int(os.environ.get("LAKEGATE_SCHEDULES", "30"))


@pytest.mark.timeout(3600)  # cutting a failing story down takes its time
@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS)
def test_every_promise_is_kept_in_any_order(opening: Story) -> None:
    """As many stories as were asked for come to rest with every promise kept."""
    print(f"again: LAKEGATE_SEED={SEED} LAKEGATE_SCHEDULES={RUNS}")
    told: Counter[str] = Counter()

    def count(stage: Stage) -> None:
        told["stories"] += 1
        told["processes"] += len(stage.processes)

    explore(RUNS, SEED, count, openings=[opening])
    assert told["stories"] >= RUNS
    assert told["processes"] > RUNS
