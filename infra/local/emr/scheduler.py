"""The queue of job runs, the drivers that execute them, and time-outs."""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.local.emr import runs
from infra.local.emr.drivers import Driver
from infra.local.emr.runs import Application, JobRun, WrongState
from infra.local.emr.slots import Slot, Slots
from infra.local.emr.store import JobRuns, now
from infra.local.emr.submit import CannotSubmit, order

_LOG = logging.getLogger(__name__)
_PAUSE = 0.2  # between two looks whether a waiting run was cancelled


@dataclass(frozen=True)
class Pace:
    """The pace of time, in seconds.

    `minute` is the API's minute, `grace` the time of a stopped run to end, `patience` how long a
    run waits for a driver that lives before another driver is started.
    """

    minute: float = 60
    grace: float = 2
    patience: float = 0


class _Failed(Exception):
    """The run failed; the message says why."""


class _Lost(Exception):
    """The driver died; the message says why."""


class _Capacity:
    """The vCPUs of the application. A run takes them for its driver, then for its executors."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._changed = threading.Condition()

    def take(self, cpus: int, until: float) -> None:
        """Take vCPUs once they are free. Raises TimeoutError after `until`, in monotonic time."""
        with self._changed:
            while self._free < cpus:
                if not self._changed.wait(max(0, until - time.monotonic())):
                    raise TimeoutError
            self._free -= cpus

    def give(self, cpus: int) -> None:
        """Free vCPUs."""
        with self._changed:
            self._free += cpus
            self._changed.notify_all()


class Scheduler:
    """The scheduler of an application's job runs, in as many drivers as are allowed.

    First come, first served. A run is admitted when its driver fits into the capacity; then it
    waits for an executor.
    """

    def __init__(
        self,
        application: Application,
        job_runs: JobRuns,
        new_driver: Callable[[int], Driver],
        artefacts: Path,
        credentials: Callable[[JobRun, Application], Mapping[str, str]],
        pace: Pace,
        *,
        prewarm: bool,
        is_shared: bool = False,
    ) -> None:
        """Use these drivers; with `prewarm` one waits for runs, else the first run starts one.

        A shared run waits for files when people stop the stack: it is no failure.
        """
        self._is_shared = is_shared
        self._application = application
        self._runs = job_runs
        self._artefacts = artefacts
        self._credentials = credentials
        self._pace = pace
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stopped_at = 0.0
        self._capacity = _Capacity(application.maximum_cpu)
        self._slots = Slots(
            new_driver, application.max_concurrent_runs, pace.patience, prewarm=prewarm
        )

    def begin(self) -> None:
        """Continue what an earlier process left and start to work."""
        for run in reversed(self._runs.all()):
            self._take_up(run)
        for work in (self._work, self._end_long_waits):
            threading.Thread(target=work, daemon=True).start()

    def state(self) -> str:
        """Return the application's state: STARTED until it is idle for long, or stopped."""
        return runs.application_state(self._runs.all(), now(), self._stopped_at, self._idle_seconds)

    def stop(self) -> bool:
        """Stop the application; return False while runs are not complete."""
        with self._lock:
            if any(run.state not in runs.FINAL for run in self._runs.all()):
                return False
            self._stopped_at = now()
            return True

    @property
    def _idle_seconds(self) -> float:
        return self._application.idle_minutes * self._pace.minute

    def drivers(self) -> list[dict[str, Any]]:
        """Return the drivers' processes, and whether they are warm."""
        return [{"pid": each.pid, "warm": each.is_warm} for each in self._slots.drivers()]

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
            details = f"The service died while the job run was {run.state}."
            if self._is_shared and run.state != "CANCELLING":
                self._move(run.id, "CANCELLING", details)
            self._fail(run.id, details)

    def _end_long_waits(self) -> None:
        minutes = self._application.queue_timeout_minutes
        while True:
            time.sleep(min(1, self._pace.minute / 10))
            self._slots.drop_idle(self._idle_seconds)
            latest = now() - minutes * self._pace.minute
            for run in self._runs.all():
                if run.state == "QUEUED" and run.updated_at < latest:
                    details = f"Job run was QUEUED for more than {minutes} minutes."
                    with contextlib.suppress(WrongState):  # it began meanwhile
                        self._expire(run.id, details)

    def _expire(self, run_id: str, details: str) -> None:
        self._runs.change(run_id, lambda run: runs.expired(run, now(), details))
        self._move(run_id, "CANCELLED", details)

    def _work(self) -> None:
        """Give each run a slot, in their order."""
        while True:
            given = (self._queue.get(), self._slots.take())
            threading.Thread(target=self._work_in, args=given, daemon=True).start()

    def _work_in(self, run_id: str, slot: Slot) -> None:
        try:
            if failure := self._execute(run_id, slot):
                self._fail(run_id, failure)
        except Exception as error:  # noqa: BLE001  a bug must not end the slot
            _LOG.exception("job run %s", run_id)
            slot.drop()
            self._fail(run_id, f"Internal error: {error!r}")
        finally:
            self._slots.give(slot)

    def _execute(self, run_id: str, slot: Slot) -> str:
        """Execute a run and return why it failed, "" if it did not."""
        try:
            run = self._runs.get(run_id)
            with self._admitted(run):
                self._run_in(run, slot)
        except (CannotSubmit, _Failed) as failure:
            return str(failure)
        except WrongState:
            if self._runs.get(run_id).state == "CANCELLING":
                self._move(run_id, "CANCELLED", self._runs.get(run_id).details)
        return ""

    @contextlib.contextmanager
    def _admitted(self, run: JobRun) -> Iterator[None]:
        """Make the run PENDING once its driver fits. Raises WrongState if its wait is over."""
        cpus = run.workers.driver
        while True:
            try:
                self._capacity.take(cpus, time.monotonic() + _PAUSE)
                break
            except TimeoutError:
                if self._runs.get(run.id).state == "SUBMITTED":
                    self._move(run.id, "QUEUED")
                elif self._runs.get(run.id).state != "QUEUED":
                    raise WrongState(f"job run {run.id} does not wait any more") from None
        try:
            self._move(run.id, "PENDING")
            yield
        finally:
            self._capacity.give(cpus)

    def _run_in(self, run: JobRun, slot: Slot) -> None:
        """Execute a run until it is SUCCESS.

        Raises CannotSubmit and _Failed, and WrongState if it was stopped: it is CANCELLING.
        """
        environment = self._credentials(run, self._application)
        submitted = order(run.spark_submit, self._artefacts, environment)
        outputs = {name: str(self._runs.output(run.id, name)) for name in ("stdout", "stderr")}
        driver = slot.ready_driver()
        self._move(run.id, "SCHEDULED")
        until = time.monotonic() + run.timeout_minutes * self._pace.minute
        try:
            with self._executors(run, until):
                driver.tell({"run": run.id, **submitted, **outputs})
                self._follow(run, driver, until)
        except _Lost as lost:
            slot.drop()
            raise _Failed(str(lost)) from lost
        except TimeoutError:
            details = f"Job run timed out after {run.timeout_minutes} minutes."
            self._move(run.id, "CANCELLING", details)
            driver.tell({"cancel": run.id})
            with contextlib.suppress(TimeoutError):
                driver.answer(run.id, time.monotonic() + self._pace.grace)
            slot.drop()  # a cancelled run must write no more
            raise WrongState(f"job run {run.id} was stopped") from None

    @contextlib.contextmanager
    def _executors(self, run: JobRun, until: float) -> Iterator[None]:
        """Take the capacity of the run's first executor; RUNNING, it waits for that.

        Raises TimeoutError at that time of the monotonic clock.
        """
        cpus = run.workers.executor
        try:
            self._capacity.take(cpus, time.monotonic())
        except TimeoutError:
            self._move(run.id, "RUNNING")
            self._capacity.take(cpus, until)
        try:
            yield
        finally:
            self._capacity.give(cpus)

    def _follow(self, run: JobRun, driver: Driver, until: float) -> None:
        """Change the run from SCHEDULED to SUCCESS, as the driver reports. Raises TimeoutError."""
        _check(driver.answer(run.id, until))
        if self._runs.get(run.id).state != "RUNNING":
            self._move(run.id, "RUNNING")
        _check(driver.answer(run.id, until))
        self._move(run.id, "SUCCESS")


def _check(reply: dict[str, Any]) -> None:
    """Raise _Lost or _Failed if the driver reports that."""
    if "lost" in reply:
        raise _Lost(reply["lost"])
    if reply.get("exit"):
        raise _Failed(
            "Job execution failed, please check complete logs in configured logging destination."
            f" ExitCode: {reply['exit']}. Last few exceptions: {reply['details']}"
        )
