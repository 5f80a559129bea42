"""The calls of the service to outside systems, derived from the classes of its adapters."""

import inspect

from functions.adapters.emr import Jobs
from functions.adapters.iceberg.tables import Tables
from functions.adapters.landing import Landing
from functions.adapters.ledger.ledger import Ledger
from functions.adapters.nessie import Catalog
from functions.adapters.s3 import Lake
from functions.adapters.sqs import AlertQueue, AnnouncementQueue, Backlog, DeadLetters, WorkQueue

ADAPTERS: dict[str, type] = {
    "landing": Landing,
    "lake": Lake,
    "ledger": Ledger,
    "catalog": Catalog,
    "tables": Tables,
    "jobs": Jobs,
    "uploads": Backlog,
    "work": WorkQueue,
    "alerts": AlertQueue,
    "announcements": AnnouncementQueue,
    "dead_uploads": DeadLetters,
    "dead_job_runs": DeadLetters,
    "dead_alerts": DeadLetters,
}
METHODS = tuple(
    f"{name}.{method}"
    for name, adapter in ADAPTERS.items()
    for method, _ in inspect.getmembers(adapter, inspect.isfunction)
    if not method.startswith("_")
)
# Only commands call these, the service never does in a story, or only where it connects.
ONLY_COMMANDS = {
    "landing.put",
    "landing.put_over",
    "landing.landed",
    "landing.download",
    "landing.sources",
    "landing.bring",
    "landing.brought",
    "lake.listed_once",  # calls nothing itself
    "lake.put_contract",
    "lake.checkpoint",
    "lake.put_checkpoint",
    "lake.is_gone",
    "ledger.all",
    "ledger.in_state",
    "ledger.landed",
    "ledger.open_failures",
    "ledger.claim",
    "ledger.release",
    "jobs.describe",
    "catalog.begin",
    "catalog.log_of",
    "tables.make",
    "tables.doubled",
    "tables.listed",
    "ledger.was_compacted",
    # and the place of a file in the queue
    "ledger.due_landings",
    # of a backfill
    "ledger.brought",
    "ledger.save_brought",
}
# Reads that change nothing: for the message of a refused retraction, and where the reader stops
# early, so that nothing comes after it.
NOT_STRUCK = {"tables.listed", "catalog.log_of"}
BETWEEN_WRITES = "ledger.save_next"  # of one call
# Every point of the service at which a fault may strike.
POINTS = (*(method for method in METHODS if method not in ONLY_COMMANDS), BETWEEN_WRITES)
