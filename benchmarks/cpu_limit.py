"""Limit a program to a part of the CPUs by a control group of Linux, as Fargate limits a task.

It needs the right to make control groups, which root has.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PERIOD = 100_000  # microseconds
# No shell: it would drop Nessie's variables, whose names have dots.
_ENTER = """
import os, sys
with open(sys.argv[1], "w") as members:
    members.write(str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Limit:
    """A control group whose programs get `cores` CPUs, for example 0.5."""

    group: Path
    cores: float

    @property
    def before(self) -> Sequence[str]:
        """Return the command that enters the group and runs the command after it."""
        return (sys.executable, "-c", _ENTER, str(self.group / "cgroup.procs"))

    def throttled(self) -> int:
        """Return in how many periods of 0.1 s its programs had to wait for the next one."""
        lines = (self.group / "cpu.stat").read_text().splitlines()
        return int(dict(line.split() for line in lines)["nr_throttled"])


@contextmanager
def limit(cores: float, root: Path = _ROOT) -> Iterator[Limit]:
    """Yield a new control group, of version 1 or 2; remove it when its programs have ended."""
    is_newer = (root / "cgroup.controllers").exists()
    group = (root if is_newer else root / "cpu") / f"lakegate-{os.getpid()}"
    quota = round(cores * _PERIOD)
    if is_newer:
        (root / "cgroup.subtree_control").write_text("+cpu")
    group.mkdir()
    try:
        if is_newer:
            (group / "cpu.max").write_text(f"{quota} {_PERIOD}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        yield Limit(group, cores)
    finally:
        with suppress(OSError):  # an empty group that stays does no harm
            group.rmdir()
