"""The events of a story in which the catalog is restored to a backup."""

from contextlib import suppress
from enum import Enum

from functions.operations.recovery.realign import realign
from functions.operations.recovery.realign_plan import Kind
from lakegate.errors import LakegateError
from tests.fakes.backups import Backup, forget_the_lost, realigned
from tests.fakes.faults import ProcessDied
from tests.fakes.stage import Stage


class Restoration(Enum):
    """A step of a restoration."""

    BACKUP = "the catalog is backed up"
    RESTORE = "the catalog is restored to the backup"
    REALIGN = "the command runs once, and may fail"
    REALIGNED = "the command runs until it succeeds"
    SETTLED = "a further run changes nothing"

    def happen(self, stage: Stage) -> None:
        """Apply the event; only a backup is restored whose files are all there."""
        deployment, backup = stage.deployment, stage.backup
        if self is Restoration.BACKUP and not stage.lost_entries:
            stage.backup = Backup.of(deployment)
        elif self is Restoration.RESTORE and backup and backup.is_whole(deployment):
            backup.restore(deployment)
            stage.forgotten += 1  # the attempts whose branches are lost look like others
        elif self is Restoration.REALIGN:
            deployment.journal.part()
            with suppress(LakegateError, ProcessDied):
                realign(deployment.adapters)
        elif self is Restoration.REALIGNED:
            realigned(deployment)
        elif self is Restoration.SETTLED:
            deployment.settle()
            forget_the_lost(deployment)  # the sweep may have announced them before the command
            # A process that hung may have created its branch after the first run, and a shared run
            # may have stored reports of attempts that were over by then: their message came twice.
            late = {Kind.RECORD_AGAIN} if deployment.was_doubled else set[Kind]()
            changed = set(realigned(deployment)) - {Kind.DELETE_BRANCHES} - late
            assert not changed, f"a second run does {changed}"
