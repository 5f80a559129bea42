"""A job run of EMR Serverless, as a value."""

from dataclasses import dataclass
from enum import StrEnum


class RunState(StrEnum):
    """EMR Serverless's states of a job run (user guide, "Job run states")."""

    SUBMITTED = "SUBMITTED"
    QUEUED = "QUEUED"
    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELLED = "CANCELLED"

    @property
    def terminal(self) -> bool:
        """Whether the run will not change its state again."""
        return self in (RunState.SUCCESS, RunState.FAILED, RunState.CANCELLED)


@dataclass(frozen=True)
class JobRun:
    """One job run; `details` is EMR's own word on its state, at most 256 characters."""

    id: str
    name: str
    state: RunState
    details: str = ""

    @property
    def has_ended(self) -> bool:
        """Return whether the run will not change its state again."""
        return self.state.terminal
