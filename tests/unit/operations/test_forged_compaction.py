"""Nobody who holds the job's token and may write reports has a table's rows replaced."""

import json
from dataclasses import replace

from functions.adapters.nessie import MAIN
from tests.fakes.deployment import TABLE
from tests.fakes.scenario import Scenario

ID = "upkeep-20261123T120000-0123456789abcdef"
BRANCH = f"upkeep/{TABLE}/{ID}"


def test_a_compaction_that_nobody_began_never_reaches_main() -> None:
    """A branch of the right name, with a report of equal rows, is no reason to merge."""
    lake = Scenario()
    for number in range(3):
        lake.ended(f"shop/orders/{number}.parquet")
    base, before = lake.catalog.create_branch(BRANCH), lake.catalog.table(MAIN, TABLE)
    assert before
    evil = tuple(f"evil-{number}.parquet" for number in range(3))
    lake.catalog.commit(BRANCH, TABLE, replace(before, files=()).append(*evil))
    at, rows = lake.catalog.head(BRANCH), {"rows": 9, "hashes": "1"}
    report = {
        "table": TABLE,
        "branch": BRANCH,
        "base_hash": base,
        "audited_hash": at,
        "before": rows,
        "after": rows,
    }
    for key in (f"staging/{ID}/compaction.json", f"upkeep/{ID}.json"):
        lake.lake.put_text(key, json.dumps(report).encode())
    lake.sweep()
    assert lake.catalog.table(MAIN, TABLE) == before
