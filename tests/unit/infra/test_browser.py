"""The Chromium of the tests, found or installed."""

from collections.abc import Callable, Sequence

import pytest

from infra.browser import ensure, found
from infra.setup import Failed


class Machine:
    """A machine with these commands; `gives` maps a command to the program that it installs."""

    def __init__(self, *commands: str, gives: dict[str, str | None] | None = None) -> None:
        self.commands = set(commands)
        self.gives = gives or {}
        self.ran: list[str] = []

    def which(self, name: str) -> str | None:
        return f"/usr/bin/{name}" if name in self.commands else None

    @property
    def run(self) -> Callable[[Sequence[str]], bool]:
        def run(command: Sequence[str]) -> bool:
            said = " ".join(command)
            self.ran.append(said)
            for part, brought in self.gives.items():
                if part in said:
                    self.commands |= {brought} if brought else set()
                    return True
            return False

        return run


def test_the_machines_own_is_used() -> None:
    """A Chromium of any name is used and nothing is installed."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        machine = Machine(name, "apt-get")
        assert ensure(machine.run, machine.which, is_root=True) == f"/usr/bin/{name}"
        assert machine.ran == []
    assert found(Machine().which) == ""


def test_root_installs_one() -> None:
    """Root installs Chromium by apt-get and updates the lists if needed; the error names both."""
    machine = Machine("apt-get", gives={"install": "chromium"})
    assert ensure(machine.run, machine.which, is_root=True) == "/usr/bin/chromium"
    stale = Machine("apt-get", gives={"update": None})
    with pytest.raises(Failed, match="apt-get install chromium"):
        ensure(stale.run, stale.which, is_root=True)
    assert [said.split()[1] for said in stale.ran[:3]] == ["install", "update", "install"]


def test_others_get_playwrights() -> None:
    """Without root or apt-get playwright downloads its own browser."""
    for machine, is_root in ((Machine("apt-get"), False), (Machine(), True)):
        machine.gives = {"playwright install chromium": None}
        assert ensure(machine.run, machine.which, is_root=is_root) == ""
        assert not any("apt-get" in said for said in machine.ran)
