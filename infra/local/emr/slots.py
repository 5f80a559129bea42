"""Room for job runs, one run in each slot, and the drivers in it."""

import threading
import time
from collections.abc import Callable
from functools import partial

from infra.local.emr.drivers import Driver


class Slot:
    """Room for one run at a time, and the driver in it."""

    def __init__(self, new_driver: Callable[[], Driver]) -> None:
        self._new_driver = new_driver
        self.driver: Driver | None = None
        self.used_at = time.monotonic()

    @property
    def is_ready(self) -> bool:
        """Return whether a living driver is in it."""
        return bool(self.driver and self.driver.is_alive)

    def ready_driver(self) -> Driver:
        """Return a driver that can take a run: the last one if it lives."""
        if not self.driver or not self.driver.is_alive:
            self.drop()
            self.driver = self._new_driver()
        return self.driver

    def drop(self) -> None:
        """Kill the driver."""
        if self.driver:
            self.driver.kill()
        self.driver = None


class Slots:
    """All slots. The first driver is kept; another one is started for a run and ended when idle.

    A driver is a JVM that takes memory and seconds to start, so a run waits `patience` seconds for
    one that lives before it gets a slot without.
    """

    def __init__(
        self, new_driver: Callable[[int], Driver], number: int, patience: float, *, prewarm: bool
    ) -> None:
        """Start the first slot's driver before any run with `prewarm`, and again when it dies."""
        self._all = tuple(Slot(partial(new_driver, each)) for each in range(number))
        self._free = list(self._all)
        self._patience = patience
        self._kept = self._all[:1] if prewarm else ()
        self._changed = threading.Condition()
        for slot in self._kept:
            slot.ready_driver()

    def drivers(self) -> list[Driver]:
        """Return the drivers that were started, the first slot's first."""
        return [driver for slot in self._all if (driver := slot.driver)]

    def take(self) -> Slot:
        """Wait for a free slot and return it."""
        with self._changed:
            self._changed.wait_for(self._is_good, self._patience)
            self._changed.wait_for(lambda: self._free)
            slot = max(self._free, key=lambda slot: slot.is_ready)
            self._free.remove(slot)
            return slot

    def give(self, slot: Slot) -> None:
        """Make a slot free again."""
        if slot in self._kept:
            slot.ready_driver()
        slot.used_at = time.monotonic()
        with self._changed:
            self._free.append(slot)
            self._changed.notify_all()

    def drop_idle(self, seconds: float) -> None:
        """End the drivers without a run for so long, except a kept one."""
        since = time.monotonic() - seconds
        with self._changed:
            for slot in self._free:
                if slot not in self._kept and slot.used_at < since:
                    slot.drop()

    def _is_good(self) -> bool:
        """Return whether a slot is free and there is no better one to wait for."""
        ready = [slot for slot in self._all if slot.is_ready]
        return any(slot in self._free for slot in ready or self._all)
