"""The calls of the service to outside systems, derived from the classes of its adapters."""

import inspect

from functions.catalog import Catalog
from functions.jobs import Jobs
from functions.lake import Lake
from functions.landing_bucket import Landing
from functions.ledger import Ledger
from functions.queues import AlertQueue, DeadLetters
from functions.readers.queues import AnnouncementQueue
from functions.tables import Tables

ADAPTERS: dict[str, type] = {
    "landing": Landing,
    "lake": Lake,
    "ledger": Ledger,
    "catalog": Catalog,
    "tables": Tables,
    "jobs": Jobs,
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
# Only commands call these, the service never does.
ONLY_COMMANDS = {
    "landing.put",
    "lake.put_contract",
    "lake.contract_at",
    "lake.delete_objects",
    "lake.checkpoint",
    "lake.put_checkpoint",
    "lake.is_gone",
    "ledger.landed",
    "ledger.open_failures",
    "ledger.all",
    "catalog.begin",
    "catalog.begun",
    "catalog.references",
    "catalog.changes",
    "catalog.history",
    "tables.files",
    "tables.make",
    "tables.doubled",
    "tables.change",
    "tables.listed",
}
# Every call of the service at which a fault may strike.
POINTS = tuple(method for method in METHODS if method not in ONLY_COMMANDS)
