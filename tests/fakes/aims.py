"""Events of schedules that aim at one step, which few random faults would strike."""

from dataclasses import dataclass
from enum import Enum

from tests.fakes.faults import Fault, unavailable
from tests.fakes.promises import check_all_ended
from tests.fakes.schedule import Begin, Trouble, Work, strike
from tests.fakes.stage import Stage

_RECORDING = "ledger.needs_recording"
_EVER = float("inf")


class Step(Enum):
    """A step, by how the calls begin that lead to it: the last of them is about to be made."""

    WRITTEN = ("job_lake.store", "job_catalog.")  # a job's data files, which it is to commit
    LISTED = ("ledger.brought", "ledger.save_brought")  # a file that a backfill is to copy
    BEGUN = ("ledger.save_brought", "landing.bring")
    COPIED = ("landing.bring", "ledger.save_brought")
    TO_RECORD = (_RECORDING, "catalog.create_branch")
    ENTERED = (_RECORDING, "tables.enter")
    RECORDED = (_RECORDING, "tables.enter", "catalog.merge")
    MEASURED = (_RECORDING, "lake.put_baselines")
    NOTED = (_RECORDING, "lake.baselines", "ledger.save_each")


BRINGING = [Step.LISTED, Step.BEGUN, Step.COPIED]
RECORDING = [step for step in Step if step not in (Step.WRITTEN, *BRINGING)]


@dataclass(frozen=True)
class Aim:
    """A process begins and goes on to a step, where a fault strikes it, or it hangs."""

    step: Step
    work: Work
    nth: int = 0
    trouble: Trouble | None = None

    def happen(self, stage: Stage) -> None:
        """Bring it there; it may end earlier."""
        Begin(self.work, self.nth).happen(stage)
        process = stage.processes[-1]
        if process.reach(*self.step.value):
            stage.aimed[self.step.name] += 1
            if self.trouble:
                strike(stage, process, self.trouble)


class Ops(Enum):
    """A change of what the tables of results take."""

    REFUSED = "from now on nothing can be recorded"
    TAKEN = "from now on it can be again"

    def happen(self, stage: Stage) -> None:
        """Refuse it; or see that all files have ended with their verdicts, and take it."""
        deployment = stage.deployment
        if self is Ops.REFUSED:
            deployment.journal.strike("tables.enter", Fault(unavailable, times=_EVER))
        elif not deployment.takes_results:
            deployment.settle()
            check_all_ended(deployment)
            deployment.journal.repair("tables.enter")
        deployment.takes_results = self is Ops.TAKEN
