"""The timeline of an ingestion: its steps, and the duration of each phase."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from functions.model.ingestion import Ingestion
from lakegate import times
from lakegate.audit.report import AuditReport
from lakegate.times import seconds

# Steps of the ledger that the timeline leaves out.
_ASIDE = ("recorded", "removed", "reported late")
# The order of steps in the same millisecond.
_ORDER = ("landed", "queued", "branched", "submitted", "taken", "started", "written", "audited")
# The name of each phase, by the step that ends it.
_PHASES = {
    "queued": "in the queue",
    "branched": "in the queue",
    "submitted": "handed to a job",
    "taken": "waits for a shared run",
    "started": "job waits to start",
    "written": "read and written",
    "audited": "audited",
    "published": "merged into main",
    "rejected": "judged",
    "errored": "judged",
    "alerted": "alerted",
    "cleaned": "branch deleted",
    "approved": "waited for a decision",
    "discarded": "waited for a decision",
    "replayed": "waited for a decision",
    "superseded": "a newer version was published",
}
_WRITES = ("append", "change")


@dataclass(frozen=True)
class Step:
    """One step: its name, its time, and the seconds since the step before."""

    name: str
    at: str
    seconds: float

    @property
    def phase(self) -> str:
        """Return the name of the phase before it."""
        return _PHASES.get(self.name, self.name)

    @property
    def began(self) -> str:
        """Return the start of that phase."""
        return times.text(datetime.fromisoformat(self.at) - timedelta(seconds=self.seconds))


def timeline(ingestion: Ingestion, report: AuditReport | None) -> tuple[Step, ...]:
    """Return the steps in the order of their times; for a repeated step, the last."""
    noted = {name: at for name, at in ingestion.times.items() if name not in _ASIDE}
    noted = _in_job(report, noted) | noted if report else noted
    ordered = sorted(noted.items(), key=lambda step: (step[1], _rank(step[0])))
    first = [Step(name, at, 0.0) for name, at in ordered[:1]]
    return (*first, *(Step(name, at, seconds(a, at)) for (_, a), (name, at) in pairwise(ordered)))


def total(ingestion: Ingestion) -> float:
    """Return the seconds from landing to the final state; None before it."""
    end = ingestion.ended_at
    return seconds(ingestion.landed.landed_at, end) if end else 0.0


def _in_job(report: AuditReport, noted: Mapping[str, str]) -> dict[str, str]:
    """Return the job's own steps between its submission, or its queueing, and its report."""
    submitted, queued = noted.get("submitted", ""), noted.get("queued", "")
    if report.started_at < max(submitted, queued):
        return {}  # of an earlier attempt
    begun = "taken" if queued > submitted else "started"
    job = {begun: report.started_at, "audited": report.finished_at}
    return {**job, **dict(_until_written(report))}


def _until_written(report: AuditReport) -> Iterator[tuple[str, str]]:
    names = [step.name for step in report.steps]
    if last := next((name for name in _WRITES if name in names), ""):
        spent = sum(step.seconds for step in report.steps[: names.index(last) + 1])
        began = datetime.fromisoformat(report.started_at)
        written = times.text(began + timedelta(seconds=spent))
        yield "written", min(written, report.finished_at)


def _rank(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)
