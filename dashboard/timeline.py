"""An ingestion's way in time: its steps, and what each of its phases took."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from functions.ingestion import Ingestion
from lakegate import times
from lakegate.report import AuditReport

# What the ledger notes that is nothing to whoever follows a file.
_ASIDE = ("recorded", "removed", "reported late")
# What comes first of what is done in the same millisecond.
_ORDER = ("landed", "branched", "submitted", "started", "written", "audited")
# How a phase is called, by the step that ends it.
_PHASES = {
    "branched": "in the queue",
    "submitted": "handed to a job",
    "started": "job waits to start",
    "written": "read and written",
    "audited": "audited",
    "published": "merged into main",
    "rejected": "judged",
    "errored": "judged",
    "alerted": "people told",
    "cleaned": "branch deleted",
    "approved": "a person decided",
    "discarded": "a person decided",
    "replayed": "a person decided",
    "superseded": "a newer version was published",
}
_WRITES = ("append", "change")


@dataclass(frozen=True)
class Step:
    """One step of the way: its name, when it was done, and the seconds since the one before."""

    name: str
    at: str
    seconds: float

    @property
    def phase(self) -> str:
        """What the time before it was spent on."""
        return _PHASES.get(self.name, self.name)

    @property
    def began(self) -> str:
        """When that time began."""
        return times.text(datetime.fromisoformat(self.at) - timedelta(seconds=self.seconds))


def timeline(ingestion: Ingestion, report: AuditReport | None) -> tuple[Step, ...]:
    """The steps that were done, in the order of their times; of a step done again, the last."""
    noted = {name: at for name, at in ingestion.times.items() if name not in _ASIDE}
    noted = _in_job(report, noted) | noted if report else noted
    ordered = sorted(noted.items(), key=lambda step: (step[1], _rank(step[0])))
    first = [Step(name, at, 0.0) for name, at in ordered[:1]]
    return (*first, *(Step(name, at, _between(a, at)) for (_, a), (name, at) in pairwise(ordered)))


def total(ingestion: Ingestion) -> float:
    """The seconds from landing to the end; none while it is on its way, be it once more."""
    end = ingestion.ended_at
    return _between(ingestion.landed.landed_at, end) if end else 0.0


def _in_job(report: AuditReport, noted: Mapping[str, str]) -> dict[str, str]:
    """What the job did between its submission and its report."""
    if report.started_at < noted.get("submitted", ""):
        return {}  # of an earlier attempt
    job = {"started": report.started_at, "audited": report.finished_at}
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


def _between(begin: str, end: str) -> float:
    gone = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    return max(0.0, gone.total_seconds())
