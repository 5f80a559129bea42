"""Who runs when: the queue, the drivers, retries, cancellations and time-outs."""

import contextlib
import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from infra.local.emr import runs
from infra.local.emr.drivers import Driver
from infra.local.emr.faults import Environment
from infra.local.emr.runs import Application, JobRun, WrongState
from infra.local.emr.store import JobRuns, now
from infra.local.emr.submit import CannotSubmit, order

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pace:
    """How time passes: `minute` is how many seconds one of the API's minutes takes.

    `grace` is how many seconds a run that is stopped has to end by itself.
    """

    minute: float = 60
    grace: float = 2


class _Failed(Exception):
    """The attempt failed, for the reason given."""


class _Lost(Exception):
    """The driver died, for the reason given."""


class _Interrupted(Exception):
    """The attempt is to be stopped within `grace` seconds."""

    def __init__(self, grace: float) -> None:
        super().__init__(grace)
        self.grace = grace


class _Slot:
    """Room for one run at a time, and the driver in it."""

    def __init__(self, new_driver: Callable[[], Driver]) -> None:
        self._new_driver = new_driver
        self.driver: Driver | None = None

    def ready_driver(self) -> Driver:
        """A driver that can take a run: the one from before where it lives."""
        if not self.driver or not self.driver.is_alive:
            self.drop()
            self.driver = self._new_driver()
        return self.driver

    def drop(self) -> None:
        """End the driver, whatever it does."""
        if self.driver:
            self.driver.kill()
        self.driver = None


class Scheduler:
    """Runs job runs, first come first served, in as many drivers as the application may use."""

    def __init__(
        self,
        application: Application,
        job_runs: JobRuns,
        new_driver: Callable[[int], Driver],
        artefacts: Path,
        credentials: Callable[[JobRun, Application], Environment],
        pace: Pace,
    ) -> None:
        self._application = application
        self._runs = job_runs
        self._artefacts = artefacts
        self._credentials = credentials
        self._pace = pace
        self._lock = threading.RLock()
        self._queue: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._busy: dict[str, Driver] = {}
        self._slots = [
            _Slot(partial(new_driver, number)) for number in range(application.max_concurrent_runs)
        ]

    def begin(self, prewarm: bool) -> None:
        """Take up what an earlier process left, and start to work.

        With `prewarm` drivers are kept waiting for runs, otherwise the first run starts one.
        """
        for run in reversed(self._runs.all()):
            self._take_up(run)
        for slot in self._slots:
            threading.Thread(target=self._work, args=(slot, prewarm), daemon=True).start()
        threading.Thread(target=self._end_long_waits, daemon=True).start()

    def health(self) -> dict[str, Any]:
        """The drivers, and how many runs are in which state."""
        drivers = [slot.driver for slot in self._slots if slot.driver]
        return {
            "drivers": [{"pid": driver.pid, "warm": driver.is_warm} for driver in drivers],
            "runs": Counter(run.state for run in self._runs.all()),
        }

    def submit(self, run_id: str) -> None:
        """Put a SUBMITTED run in the queue; it is QUEUED where it has to wait for another."""
        with self._lock:
            unfinished = sum(run.state not in runs.FINAL for run in self._runs.all())
            if unfinished > self._application.max_concurrent_runs:
                with contextlib.suppress(WrongState):  # cancelled already
                    self._move(run_id, "QUEUED")
            self._queue.put(run_id)

    def cancel(self, run_id: str, details: str, grace: float | None = None) -> None:
        """End a run, within `grace` seconds where it runs. Raises WrongState where it ended."""
        with self._lock:
            waited = self._runs.get(run_id).state in runs.WAITING
            self._move(run_id, "CANCELLING", details)
            if waited:
                self._move(run_id, "CANCELLED", details)
            elif run_id in self._busy:
                grace = self._pace.grace if grace is None else grace
                self._busy[run_id].interrupt(run_id, grace)

    def _move(self, run_id: str, state: str, details: str = "") -> None:
        self._runs.change(run_id, lambda run: runs.moved(run, state, now(), details))

    def _fail(self, run_id: str, details: str) -> None:
        run = self._runs.change(run_id, lambda run: runs.failed(run, now(), details))
        if run.state == "SUBMITTED":
            self.submit(run_id)

    def _take_up(self, run: JobRun) -> None:
        """Go on with a run that an earlier process of this service had not finished."""
        if run.state in runs.WAITING:
            self._queue.put(run.id)
        elif run.state not in runs.FINAL:
            self._fail(run.id, f"The service died while the job run was {run.state}.")

    def _end_long_waits(self) -> None:
        minutes = self._application.queue_timeout_minutes
        while True:
            time.sleep(min(1, self._pace.minute / 10))
            latest = now() - minutes * self._pace.minute
            for run in self._runs.all():
                if run.state == "QUEUED" and run.last.updated_at < latest:
                    with contextlib.suppress(WrongState):
                        self.cancel(run.id, f"Job run was QUEUED for more than {minutes} minutes.")

    def _work(self, slot: _Slot, prewarm: bool) -> None:
        while True:
            if prewarm:
                slot.ready_driver()
            run_id = self._queue.get()
            try:
                failure = self._carry_out(run_id, slot)
            except Exception as error:  # noqa: BLE001  a slot outlives a bug
                _LOG.exception("job run %s", run_id)
                slot.drop()
                failure = f"Internal error: {error!r}"
            if failure:
                self._fail(run_id, failure)

    def _carry_out(self, run_id: str, slot: _Slot) -> str:
        """Make one attempt at a run; the answer is why it failed, where it did."""
        try:
            self._move(run_id, "PENDING")
        except WrongState:
            return ""  # it was cancelled while it waited
        try:
            self._attempt(self._runs.get(run_id), slot)
        except (CannotSubmit, _Failed) as failure:
            return str(failure)
        except WrongState:
            self._move(run_id, "CANCELLED", self._runs.get(run_id).last.details)
        return ""

    def _attempt(self, run: JobRun, slot: _Slot) -> None:
        """Run it until it is SUCCESS.

        Raises CannotSubmit and _Failed, and WrongState where it was stopped: it is CANCELLING.
        """
        environment = self._credentials(run, self._application)
        told = order(run.spark_submit, self._artefacts, environment)
        outputs = {name: str(self._runs.output(run.id, name)) for name in ("stdout", "stderr")}
        driver = slot.ready_driver()
        with self._lock:
            self._move(run.id, "SCHEDULED")
            self._busy[run.id] = driver
        try:
            driver.tell({"run": run.id, **told, **outputs})
            self._follow(run, driver)
        except _Lost as lost:
            slot.drop()
            raise _Failed(str(lost)) from lost
        except WrongState:
            slot.drop()  # a cancelled run must not write any more
            raise
        finally:
            del self._busy[run.id]

    def _follow(self, run: JobRun, driver: Driver) -> None:
        """Take the run from SCHEDULED to SUCCESS as the driver says how it goes."""
        until = time.monotonic() + run.timeout_minutes * self._pace.minute
        try:
            _heed(driver.answer(run.id, until))
            self._move(run.id, "RUNNING")
            _heed(driver.answer(run.id, until))
            self._move(run.id, "SUCCESS")
        except TimeoutError:
            details = f"Job run timed out after {run.timeout_minutes} minutes."
            self._move(run.id, "CANCELLING", details)
            self._stop(run.id, driver, self._pace.grace)
        except _Interrupted as interrupted:
            self._stop(run.id, driver, interrupted.grace)

    def _stop(self, run_id: str, driver: Driver, grace: float) -> None:
        """Give a run the time to end in order, then raise WrongState: it is CANCELLING."""
        driver.tell({"cancel": run_id})
        with contextlib.suppress(TimeoutError):
            driver.answer(run_id, time.monotonic() + grace)
        raise WrongState(f"job run {run_id} was stopped")


def _heed(said: dict[str, Any]) -> None:
    """Raise what the driver's word means, unless it is good."""
    if "interrupted" in said:
        raise _Interrupted(said["interrupted"])
    if "lost" in said:
        raise _Lost(said["lost"])
    if said.get("exit"):
        raise _Failed(
            "Job execution failed, please check complete logs in configured logging destination."
            f" ExitCode: {said['exit']}. Last few exceptions: {said['details']}"
        )
