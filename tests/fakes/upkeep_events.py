"""The events of a story in which upkeep works beside files that land."""

from contextlib import suppress
from dataclasses import dataclass

from functions.operations.compaction import start_due
from lakegate.errors import LakegateError
from tests.fakes.faults import ProcessDied
from tests.fakes.stage import Stage


@dataclass(frozen=True)
class Compact:
    """The daily schedule starts the compaction of each table with two small data files.

    From now on the jobs that rewrite lose the rows of so many data files.
    """

    loses: int = 0

    def happen(self, stage: Stage) -> None:
        """Start them; sweeps do the rest."""
        stage.deployment.compactions_lose = self.loses
        stage.deployment.tables.fewest = 2
        stage.deployment.journal.part()
        with suppress(LakegateError, ProcessDied):
            list(start_due(stage.deployment.adapters))
        stage.excused |= {"errored ROWS_SCATTERED", "rejected CANNOT_REPLACE"}
