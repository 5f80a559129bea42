"""Events of schedules that no process causes: indexes lag, EMR and clocks err, main is set back."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from functions.adapters.emr import RunState
from tests.fakes.deployment import Deployment
from tests.fakes.stage import File, Stage


@dataclass(frozen=True)
class Lag:
    """The ledger's indexes do not show the last writes of an ingestion."""

    nth: int = 0
    writes: int = 1

    def happen(self, stage: Stage) -> None:
        """Delay the indexes until nothing is left to do."""
        if known := list(stage.deployment.ledger.all()):
            stage.deployment.ledger.behind[known[self.nth % len(known)].id] = self.writes


@dataclass(frozen=True)
class Declare:
    """EMR declares a job run over, although its driver continues."""

    nth: int = 0
    state: RunState = RunState.FAILED

    def happen(self, stage: Stage) -> None:
        """Send the event; everything that the driver does and reports afterwards is too late."""
        stage.deployment.declare(self.nth, self.state)
        stage.excused |= {File.CRASHING.end, File.CANCELLED.end, File.CONTRADICTED.end}


class Skew(Enum):
    """From now on the clocks of all drivers are wrong."""

    AHEAD = "2026-03-02T12:00:00.000+00:00"
    BEHIND = "2026-02-28T12:00:00.000+00:00"

    def happen(self, stage: Stage) -> None:
        """Set the clocks."""
        stage.deployment.drivers_time = self.value


@dataclass(frozen=True)
class Undo:
    """An administrator sets main, or one of its tables, back by some commits.

    It does not happen where versions replace each other, because the rows are then unknown, nor to
    a state that upkeep does not keep. Beside a restoration, the command would bring back what was
    taken.
    """

    commits: int = 1
    table: str = ""

    def happen(self, stage: Stage) -> None:
        """Set it back."""
        if stage.replaces_versions or not _keeps(stage.deployment, self.commits):
            return
        if self.table:
            stage.deployment.others.put_back(self.table, self.commits)
        else:
            stage.deployment.others.set_back(self.commits)


def _keeps(deployment: Deployment, commits: int) -> bool:
    """Return whether main was as before so many commits within the days that are kept."""
    log = list(deployment.catalog.log())
    next_ = log[max(commits % len(log) - 1, 0)]  # which ended that state
    kept = timedelta(days=deployment.settings.keep_days)
    return datetime.fromisoformat(next_.time) > deployment.clock.moment - kept
