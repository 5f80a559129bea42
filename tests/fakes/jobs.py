"""EMR Serverless in memory: a client token starts one run, which ends at the test's command."""

from dataclasses import dataclass, replace
from typing import Any

from functions.adapters.emr import JobRun, RunState, UnknownRun
from functions.model.budget import Use
from infra.local.emr.limits import Limits
from lakegate.errors import Permanent, Transient
from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import SharedRun
from tests.fakes.clock import FakeClock


@dataclass(frozen=True)
class _Started:
    told: JobSpec | SharedRun
    run: JobRun
    at: str


class FakeJobs:
    """Job runs in the order in which they were started; each is billed `bill` once it ended.

    `listed` counts the runs that lists named.
    """

    def __init__(self, clock: FakeClock | None = None) -> None:
        self._clock = clock or FakeClock()
        self._runs: dict[str, _Started] = {}
        self._started = 0
        self.listed = 0
        self.bill: Use | None = Use(1.0)
        self._limits: Limits | None = None

    def limit(self) -> None:
        """Take calls from now on only as fast as EMR Serverless."""
        self._limits = Limits(clock=lambda: self._clock.at)

    def _require_pace(self, operation: str) -> None:
        if self._limits and not self._limits.take(operation):
            message = f"EMR Serverless refused: ThrottlingException, {operation}: Rate exceeded"
            raise Transient("JOBS_UNAVAILABLE", message)

    def start(self, told: JobSpec | SharedRun) -> str:
        self._require_pace("StartJobRun")
        if known := self._started_by(told.name):
            return _the_same(known, told)
        self._started += 1
        run = f"00run{self._started:011}"
        running = JobRun(run, told.name, RunState.RUNNING)
        self._runs[run] = _Started(told, running, self._clock.now())
        return run

    def shared_runs(self) -> list[str]:
        """Return the shared runs that are up."""
        told = ((each.told, each.run) for each in self._runs.values())
        return [run.id for of, run in told if isinstance(of, SharedRun) and not run.has_ended]

    def compactions(self) -> set[str]:
        """Return the ids of the compactions whose runs were started."""
        told = (each.told for each in self._runs.values())
        return {of.ingestion for of in told if isinstance(of, JobSpec) and of.compact}

    def shared_run(self, run: str) -> SharedRun:
        """Return the input of a shared run."""
        told = self._runs[run].told
        assert isinstance(told, SharedRun)
        return told

    def get(self, run: str) -> JobRun:
        if run not in self._runs:
            raise UnknownRun("UNKNOWN_JOB_RUN", f"there is no job run {run}")
        found = self._runs[run].run
        return replace(found, use=self.bill if found.has_ended else None)

    def describe(self, run: str) -> dict[str, Any]:
        found = self.get(run)
        return {"jobRunId": found.id, "name": found.name, "state": found.state.value}

    def spec(self, run: str) -> JobSpec:
        self.get(run)
        told = self._runs[run].told
        if isinstance(told, SharedRun):
            raise Permanent("BAD_JOB_SPEC", f"job run {run} is a shared run")
        return told

    def runs(self, since: str = "") -> list[JobRun]:
        for _ in ("own", "shared"):  # the applications
            self._require_pace("ListJobRuns")
        found = [known.run for known in self._runs.values() if known.at >= since]
        self.listed += len(found)
        return found

    def _started_by(self, token: str) -> _Started | None:
        """Return the run that the client token started, if any."""
        return next((each for each in self._runs.values() if each.run.name == token), None)

    def end(self, run: str, state: RunState, details: str = "") -> None:
        """End a run; a run that EMR declared over keeps its declared state."""
        known = self._runs.get(run)
        if known and not known.run.state.terminal:
            self._runs[run] = replace(known, run=replace(known.run, state=state, details=details))

    def lose(self, run: str) -> None:
        """Delete a run without a trace."""
        del self._runs[run]


def _the_same(known: _Started, told: JobSpec | SharedRun) -> str:
    if known.told != told:
        message = f"the client token started {known.run.id} with other parameters"
        raise Transient("JOBS_UNAVAILABLE", message)
    return known.run.id
