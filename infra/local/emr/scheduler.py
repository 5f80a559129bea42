"""The queue of job runs, the drivers that execute them, and time-outs."""

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
    """The pace of time: the API's `minute` and the `grace` of a stopped run, in seconds."""

    minute: float = 60
    grace: float = 2


class _Failed(Exception):
    """The run failed; the message says why."""


class _Lost(Exception):
    """The driver died; the message says why."""


class _Slot:
    """Room for one run at a time, and the driver in it."""

    def __init__(self, new_driver: Callable[[], Driver]) -> None:
        self._new_driver = new_driver
        self.driver: Driver | None = None

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


class Scheduler:
    """The scheduler of job runs: first come, first served, in as many drivers as are allowed."""

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
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._slots = [
            _Slot(partial(new_driver, number)) for number in range(application.max_concurrent_runs)
        ]

    def begin(self, prewarm: bool) -> None:
        """Continue what an earlier process left and start to work.

        With `prewarm` drivers wait for runs, otherwise the first run starts one.
        """
        for run in reversed(self._runs.all()):
            self._take_up(run)
        for slot in self._slots:
            threading.Thread(target=self._work, args=(slot, prewarm), daemon=True).start()
        threading.Thread(target=self._end_long_waits, daemon=True).start()

    def health(self) -> dict[str, Any]:
        """Return the drivers and how many runs are in each state."""
        drivers = [slot.driver for slot in self._slots if slot.driver]
        return {
            "drivers": [{"pid": driver.pid, "warm": driver.is_warm} for driver in drivers],
            "runs": Counter(run.state for run in self._runs.all()),
        }

    def submit(self, run_id: str) -> None:
        """Put a SUBMITTED run in the queue; it is QUEUED if it has to wait for another."""
        with self._lock:
            unfinished = sum(run.state not in runs.FINAL for run in self._runs.all())
            if unfinished > self._application.max_concurrent_runs:
                self._move(run_id, "QUEUED")
            self._queue.put(run_id)

    def _move(self, run_id: str, state: str, details: str = "") -> None:
        self._runs.change(run_id, lambda run: runs.moved(run, state, now(), details))

    def _fail(self, run_id: str, details: str) -> None:
        self._runs.change(run_id, lambda run: runs.failed(run, now(), details))

    def _take_up(self, run: JobRun) -> None:
        """Continue a run that an earlier process of this service did not finish."""
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
                if run.state == "QUEUED" and run.updated_at < latest:
                    details = f"Job run was QUEUED for more than {minutes} minutes."
                    with contextlib.suppress(WrongState):  # it began meanwhile
                        self._expire(run.id, details)

    def _expire(self, run_id: str, details: str) -> None:
        self._runs.change(run_id, lambda run: runs.expired(run, now(), details))
        self._move(run_id, "CANCELLED", details)

    def _work(self, slot: _Slot, prewarm: bool) -> None:
        while True:
            if prewarm:
                slot.ready_driver()
            run_id = self._queue.get()
            try:
                failure = self._execute(run_id, slot)
            except Exception as error:  # noqa: BLE001  a bug must not end the slot
                _LOG.exception("job run %s", run_id)
                slot.drop()
                failure = f"Internal error: {error!r}"
            if failure:
                self._fail(run_id, failure)

    def _execute(self, run_id: str, slot: _Slot) -> str:
        """Execute a run and return why it failed, "" if it did not."""
        try:
            self._move(run_id, "PENDING")
        except WrongState:
            return ""  # its time in the queue is over
        try:
            self._run_in(self._runs.get(run_id), slot)
        except (CannotSubmit, _Failed) as failure:
            return str(failure)
        except WrongState:
            self._move(run_id, "CANCELLED", self._runs.get(run_id).details)
        return ""

    def _run_in(self, run: JobRun, slot: _Slot) -> None:
        """Execute a run until it is SUCCESS.

        Raises CannotSubmit and _Failed, and WrongState if it was stopped: it is CANCELLING.
        """
        environment = self._credentials(run, self._application)
        submitted = order(run.spark_submit, self._artefacts, environment)
        outputs = {name: str(self._runs.output(run.id, name)) for name in ("stdout", "stderr")}
        driver = slot.ready_driver()
        self._move(run.id, "SCHEDULED")
        try:
            driver.tell({"run": run.id, **submitted, **outputs})
            self._follow(run, driver)
        except _Lost as lost:
            slot.drop()
            raise _Failed(str(lost)) from lost
        except WrongState:
            slot.drop()  # a cancelled run must write no more
            raise

    def _follow(self, run: JobRun, driver: Driver) -> None:
        """Change the run from SCHEDULED to SUCCESS, as the driver reports."""
        until = time.monotonic() + run.timeout_minutes * self._pace.minute
        try:
            _check(driver.answer(run.id, until))
            self._move(run.id, "RUNNING")
            _check(driver.answer(run.id, until))
            self._move(run.id, "SUCCESS")
        except TimeoutError:
            details = f"Job run timed out after {run.timeout_minutes} minutes."
            self._move(run.id, "CANCELLING", details)
            driver.tell({"cancel": run.id})
            with contextlib.suppress(TimeoutError):
                driver.answer(run.id, time.monotonic() + self._pace.grace)
            raise WrongState(f"job run {run.id} was stopped") from None


def _check(reply: dict[str, Any]) -> None:
    """Raise _Lost or _Failed if the driver reports that."""
    if "lost" in reply:
        raise _Lost(reply["lost"])
    if reply.get("exit"):
        raise _Failed(
            "Job execution failed, please check complete logs in configured logging destination."
            f" ExitCode: {reply['exit']}. Last few exceptions: {reply['details']}"
        )
