"""All adapters as one value."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a second to import: whoever only passes adapters on need not wait for it
    from functions.adapters.emr import Jobs
    from functions.adapters.iceberg.tables import Tables
    from functions.adapters.landing import Landing
    from functions.adapters.ledger.ledger import Ledger
    from functions.adapters.nessie import Catalog
    from functions.adapters.s3 import Lake
    from functions.adapters.sqs import (
        ActionQueue,
        AlertQueue,
        AnnouncementQueue,
        Backlog,
        DeadLetters,
        WorkQueue,
    )
    from functions.settings import Settings


@dataclass(frozen=True)
class Adapters:
    """Every adapter and the settings.

    `tables` creates its adapter on the first call: pyiceberg takes two seconds to import, and only
    a refused merge needs it. `now` returns the time (ISO 8601 in UTC with milliseconds), `token` a
    few random letters that make a branch's name unique.
    """

    settings: "Settings"
    landing: "Landing"
    lake: "Lake"
    ledger: "Ledger"
    catalog: "Catalog"
    tables: "Callable[[], Tables]"
    jobs: "Jobs"
    uploads: "Backlog"
    work: "WorkQueue"
    alerts: "AlertQueue"
    announcements: "AnnouncementQueue"
    actions: "ActionQueue"
    upload_dead_letters: "DeadLetters"
    job_run_dead_letters: "DeadLetters"
    alert_dead_letters: "DeadLetters"
    now: Callable[[], str]
    token: Callable[[], str]
