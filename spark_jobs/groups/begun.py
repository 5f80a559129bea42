"""What became of a turn, for those who do not need Spark."""

from dataclasses import dataclass

from lakegate.audit.report import AuditReport
from spark_jobs.lake.storage import Storage


@dataclass(frozen=True)
class Begun:
    """The first files of a turn, none if the very first is to be ingested alone.

    The `reports` are those of files that were merged together. `refused` ones are to be ingested
    alone, so that their reports show why. All files after these wait for a later turn.
    """

    reports: tuple[AuditReport, ...] = ()
    refused: tuple[Storage, ...] = ()
