"""Store all job runs on disk, so that answers stay true after a crash."""

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from threading import RLock

from infra.local.emr.runs import JobRun

_FILE = "job_run.json"

# Called for every change, with the run before it (None for a new one) and after it.
Listener = Callable[[JobRun | None, JobRun], None]


def now() -> float:
    """Return the time in seconds since 1970, in microseconds as AWS's times."""
    return round(time.time(), 6)


class TokenUsed(Exception):
    """The client token has started a job run with other parameters."""


class JobRuns:
    """An application's job runs in a home directory, each in `runs/<job run id>/job_run.json`.

    A change is on disk before the listener is called. Threads may share this object.
    """

    def __init__(self, home: Path, application: str, listener: Listener) -> None:
        self._directory = home / "runs"
        self._listener = listener
        self._lock = RLock()
        files = sorted(self._directory.glob(f"*/{_FILE}"))
        loaded = [JobRun(**json.loads(file.read_text("utf-8"))) for file in files]
        self._runs = {run.id: run for run in loaded if run.application == application}

    def all(self) -> list[JobRun]:
        """Return every job run, the newest first."""
        with self._lock:
            return sorted(self._runs.values(), key=lambda run: (-run.created_at, run.id))

    def get(self, run_id: str) -> JobRun:
        """Return a job run. Raises KeyError."""
        return self._runs[run_id]

    def start(self, new: JobRun) -> JobRun:
        """Return the run that the client token started: this one or an earlier one.

        Raises TokenUsed if the token has started a run with other parameters.
        """
        token = new.request["clientToken"]
        with self._lock:
            for run in self._runs.values():
                if run.request["clientToken"] == token:
                    return _the_same(run, new)
            self._keep(None, new)
            return new

    def change(self, run_id: str, step: Callable[[JobRun], JobRun]) -> JobRun:
        """Replace a run by `step`'s result; if `step` raises, the run stays as it was."""
        with self._lock:
            before = self._runs[run_id]
            after = step(before)
            self._keep(before, after)
            return after

    def output(self, run_id: str, stream: str) -> Path:
        """Return the file of a run's `stdout` or `stderr`."""
        return self._directory / run_id / stream

    def _keep(self, before: JobRun | None, after: JobRun) -> None:
        file = self._directory / after.id / _FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps(dataclasses.asdict(after)), encoding="utf-8")
        fresh.replace(file)
        self._runs[after.id] = after
        self._listener(before, after)


def _the_same(known: JobRun, new: JobRun) -> JobRun:
    if known.request != new.request:
        token = new.request["clientToken"]
        raise TokenUsed(f"client token {token} started job run {known.id} with other parameters")
    return known
