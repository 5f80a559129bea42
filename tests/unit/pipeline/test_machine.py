"""Anything may happen to a deployment, in any order, thousands of times: every promise is kept.

A run is a story (tests/fakes/machine.py): files land, messages come in any order, twice, late or
never, other people change main, and any call to an outside system fails, dies or hangs. A failing
story is cut down by hypothesis and printed, and `tell` tells it again. To try others, or more:
`LAKEGATE_SEED=7 LAKEGATE_RUNS=100000 .venv/bin/python -m pytest \
    tests/unit/pipeline/test_machine.py`
"""

import inspect
import os
from collections import Counter
from dataclasses import dataclass, field

import pytest

from functions.adapters.emr import Jobs
from functions.adapters.iceberg import Tables
from functions.adapters.ledger import Ledger
from functions.adapters.nessie import Catalog
from functions.adapters.s3 import Lake, Landing
from functions.adapters.sqs import (
    AlertQueue,
    AnnouncementQueue,
    DeadLetters,
)
from tests.fakes.machine import POINTS, Kind, Stage
from tests.fakes.stories import explore

SEED = int(os.environ.get("LAKEGATE_SEED", "0"))
RUNS = int(os.environ.get("LAKEGATE_RUNS", "5000"))
ADAPTERS = {
    "landing": Landing,
    "lake": Lake,
    "ledger": Ledger,
    "catalog": Catalog,
    "tables": Tables,
    "jobs": Jobs,
    "alerts": AlertQueue,
    "announcements": AnnouncementQueue,
    "dead_uploads": DeadLetters,
    "dead_job_runs": DeadLetters,
    "dead_alerts": DeadLetters,
}
OF_COMMANDS = {
    "landing.put",
    "lake.put_contract",
    "lake.contract_at",
    "lake.delete_objects",
    "lake.checkpoint",
    "lake.put_checkpoint",
    "lake.is_gone",
    "ledger.landed",
    "ledger.open_failures",
    "ledger.all",
    "catalog.begin",
    "catalog.begun",
    "catalog.references",
    "catalog.changes",
    "catalog.history",
    "tables.files",
    "tables.make",
    "tables.doubled",
    "tables.change",
    "tables.listed",
}


@dataclass
class Tally:
    """What was really told: how many stories, which faults struck, which calls were made."""

    runs: int = 0
    struck: Counter[tuple[str, Kind]] = field(default_factory=Counter)
    called: set[str] = field(default_factory=set)

    def add(self, stage: Stage) -> None:
        """One more story was told to its end."""
        self.runs += 1
        self.struck += stage.struck
        self.called |= set(stage.deployment.journal.calls)


@pytest.fixture(scope="module")
def check_counts() -> Tally:
    """As many stories as CI has time for; a broken promise shows here."""
    print(f"again: LAKEGATE_SEED={SEED} LAKEGATE_RUNS={RUNS}")
    check_counts = Tally()
    explore(RUNS, SEED, check_counts.add)
    return check_counts


@pytest.mark.timeout(1800)  # cutting a failing story down takes its time
def test_every_promise_is_kept_thousands_of_times(check_counts: Tally) -> None:
    """As many different stories as were asked for came to rest with every promise kept."""
    assert check_counts.runs >= RUNS


def test_faults_struck_at_every_call_of_the_service(check_counts: Tally) -> None:
    """Each method of each adapter that the service calls was struck, and most in every way."""
    for point in POINTS:
        kinds = (f"{kind.name.lower()} {check_counts.struck[point, kind]}" for kind in Kind)
        print(f"{point:22}", *kinds, sep="  ")
    assert check_counts.called == {point for point, _ in check_counts.struck} == set(POINTS)
    assert len(check_counts.struck) > 0.8 * len(POINTS) * len(Kind) > 30


def test_every_method_of_every_adapter_is_a_point() -> None:
    """An adapter has no method that the machine does not strike, but for those of commands."""
    methods = {
        f"{name}.{method}"
        for name, adapter in ADAPTERS.items()
        for method, _ in inspect.getmembers(adapter, inspect.isfunction)
        if not method.startswith("_")
    }
    assert methods - OF_COMMANDS == set(POINTS)
