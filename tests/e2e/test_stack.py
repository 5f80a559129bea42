"""The local stack is started again, whole and in parts, interrupted, and stopped."""

import os
import signal
from pathlib import Path

import pytest

from access.deployment.checkout import ROOT
from cli.local import stack as local_stack
from infra.local import processes, stack, stack_file
from infra.local.parts import NAMES
from lakegate.errors import LakegateError
from tests.e2e.conftest import Gate
from tests.waiting import eventually

pytestmark = pytest.mark.stack

_UP = dict.fromkeys(NAMES, "up")


def pids(home: Path) -> dict[str, int]:
    """Return the processes of the parts that run."""
    found = {name: processes.running(home, name) for name in NAMES}
    return {name: record.pid for name, record in found.items() if record}


def test_a_second_up_leaves_what_runs_alone(gate: Gate) -> None:
    """`up` on a running stack reports that it runs, and restarts no part."""
    before, told = pids(gate.home), list[str]()

    local_stack.start(told.append)

    assert pids(gate.home) == before
    assert [each for each in told if each.startswith("starting")] == []
    assert len([each for each in told if each.endswith("is running already")]) == len(NAMES)


def test_a_part_that_died_is_started_again(gate: Gate) -> None:
    """`up` restarts a dead part at its old address and leaves the others unchanged."""
    before, known = pids(gate.home), gate.stack
    os.kill(before["slack"], signal.SIGKILL)
    eventually(lambda: local_stack.health()["slack"] == "down")

    assert local_stack.start(print) == known

    after = pids(gate.home)
    assert local_stack.health() == _UP
    assert after.pop("slack") != before.pop("slack")
    assert after == before


def test_an_interrupted_up_leaves_nothing_running(tmp_path: Path, gate: Gate) -> None:
    """Ctrl-C during `up` stops every part that it started, and no part of another stack."""

    def interrupt(told: str) -> None:
        if told.startswith("deploying"):
            assert set(pids(tmp_path)) == set(NAMES)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stack.up(tmp_path, ROOT, lambda _: None, interrupt)

    assert pids(tmp_path) == {}
    assert set(pids(gate.home)) == set(NAMES)


def test_a_checkout_or_a_home_that_is_not_set_up_is_reported(tmp_path: Path) -> None:
    """No part is started, and the error names the command to run."""
    with pytest.raises(LakegateError, match="make setup"):
        stack.up(tmp_path / "home", tmp_path, lambda _: None, lambda _: None)
    with pytest.raises(LakegateError, match="lakegate up"):
        stack_file.read(tmp_path)


def test_down_stops_everything_and_up_brings_it_back(gate: Gate) -> None:
    """`down` stops every part, a second one has no effect, and `up` finds main unchanged."""
    before, told = gate.adapters.catalog.head("main"), list[str]()
    local_stack.stop(told.append)
    assert local_stack.health() == dict.fromkeys(NAMES, "down")
    local_stack.stop(told.append)
    assert told[-1] == "nothing was running"

    local_stack.start(print)

    assert gate.adapters.catalog.head("main") == before
