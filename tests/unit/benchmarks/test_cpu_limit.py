"""A control group gives its programs a part of the CPUs, by either version of control groups."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cpu_limit import limit


@pytest.fixture(params=["1", "2"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a folder like that of the kernel's control groups."""
    (tmp_path / "cpu").mkdir()
    if request.param == "2":
        (tmp_path / "cgroup.controllers").touch()
    return tmp_path


def test_half_a_core_is_half_of_each_period(root: Path) -> None:
    """The group's quota is so much of its period, in the words of its version."""
    with limit(0.5, root) as limited:
        if (root / "cgroup.controllers").exists():
            assert (limited.group / "cpu.max").read_text() == "50000 100000"
        else:
            assert (limited.group / "cpu.cfs_period_us").read_text() == "100000"
            assert (limited.group / "cpu.cfs_quota_us").read_text() == "50000"
        (limited.group / "cpu.stat").write_text("nr_periods 9\nnr_throttled 7\n")
        assert limited.throttled() == 7


def test_a_program_enters_the_group_with_all_its_variables(root: Path) -> None:
    """The command before enters the group; the program keeps a variable with dots in its name."""
    code = "import os; print(os.environ['nessie.version.store.type'], os.getpid())"
    with limit(0.5, root) as limited:
        run = subprocess.run(
            [*limited.before, sys.executable, "-c", code],
            env={**os.environ, "nessie.version.store.type": "JDBC2"},
            capture_output=True,
            text=True,
            check=True,
        )
        entered = (limited.group / "cgroup.procs").read_text()
    assert run.stdout.split() == ["JDBC2", entered]
