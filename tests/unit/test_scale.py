"""What docs/scale.md says is what is counted, set and computed."""

from collections import Counter
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from benchmarks import scale, simulate
from benchmarks.arithmetic import REQUESTS, Line, bill, run_dollars, total
from benchmarks.parameters import ITEM, Settings
from benchmarks.write_units import Index, size, units
from functions.ingestion import State
from functions.ledger_items import to_item
from tests.fakes.deployment import Deployment
from tests.template import resource

_DOCUMENT = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
_QUICK = 3_000  # files: what is simulated in a moment

# Read units of an item below 4 KB: consistent reads one, queries of an index a half at least.
_READS = {
    "ledger.get": 1.0,
    "ledger.together": 1.0,
    "ledger.same_content": 0.5,
    "ledger.going_first": 1.0,
    "ledger.waiting": 0.5,
    "ledger.unrecorded": 0.5,
}


@cache
def asked() -> tuple[list[str], list[dict[str, Any]]]:
    """What one good file calls, and its item in the ledger after each write."""
    deployment = Deployment()
    landed = deployment.land("shop/orders/2026/11/21/orders-0001.parquet")
    deployment.settle()
    history = deployment.ledger.history(deployment.ingestion(landed).id)
    return deployment.journal.calls, [to_item(each) for each in history]


def written() -> Counter[str]:
    """The write units of a file, by index; a transaction takes the table's twice."""
    calls, items = asked()
    writes = [c for c in calls if c in ("ledger.begin", "ledger.save", "ledger.save_all")]
    table = resource("LedgerTable")["GlobalSecondaryIndexes"]
    indexes = [Index.of(described) for described in table]
    taken: Counter[str] = Counter()
    for call, before, after in zip(writes, [None, *items], items, strict=False):
        each = units(before, after, indexes)
        taken.update(each)
        taken[""] += each[""] * (call == "ledger.save_all")
    assert len(writes) == len(items)
    return taken


def test_a_files_writes_are_those_of_the_arithmetic() -> None:
    """The write units of a file are counted over a whole story, indexes and transactions too."""
    assert written().total() == REQUESTS.writes
    assert written()["unfinished"] == REQUESTS.hottest
    submitted = next(item for item in asked()[1] if item["state"] == State.SUBMITTED)
    assert size(submitted) == pytest.approx(ITEM, rel=0.2)


def test_a_files_reads_are_those_of_the_arithmetic() -> None:
    """So are its reads, in a ledger where nothing else is on its way."""
    calls = Counter(call for call in asked()[0] if call.startswith("ledger."))
    reads = {call: n for call, n in calls.items() if "save" not in call and call != "ledger.begin"}
    assert ceil(sum(_READS[call] * n for call, n in reads.items())) == REQUESTS.reads


def test_write_units_follow_the_rules() -> None:
    """A kilobyte begun is a unit; a changed key costs an index two writes, no change none."""
    index = Index("by_state", ("state",), whole=True)
    keys = Index("by_key", ("key",), whole=False)
    old = {"id": "a", "state": "landed", "key": "k", "text": "x" * 1000}
    new = {**old, "state": "done", "text": "x" * 3000}
    assert units(None, old, [index, keys]) == {"": 1, "by_state": 1, "by_key": 1}
    assert units(old, new, [index, keys]) == {"": 3, "by_state": 4, "by_key": 0}
    assert units(old, {"id": "a", "key": "k"}, [index]) == {"": 1, "by_state": 1}
    assert size({"name": "é", "flag": True, "list": ["a"]}) == 4 + 2 + 4 + 1 + 4 + 3 + 2


def test_the_settings_are_the_templates() -> None:
    """What is simulated as shipped is what the template says."""
    settings = Settings()
    mappings = {name: resource(name) for name in ("UploadMapping", "JobRunMapping")}
    batches = [each["BatchSize"] for each in mappings.values()]
    at_once = [each["ScalingConfig"]["MaximumConcurrency"] for each in mappings.values()]
    assert batches == [settings.upload_batch, settings.run_batch]
    assert at_once == [settings.upload_lambdas, settings.run_lambdas]


def test_a_bill_is_the_sum_of_its_lines() -> None:
    """Twice the files cost twice; who shares a run shares its minute."""
    assert Line("x", 3, "hours", 0.5).dollars == 1.5
    assert total(bill(2)) == 2 * total(bill(1))
    assert run_dollars(1) == run_dollars(60) == run_dollars(120) / 2
    assert total(bill(50, files_a_run=50)) < total(bill(50)) / 20


def test_the_document_shows_the_computed_tables() -> None:
    """Each line of each table is in docs/scale.md as the code computes it."""
    missing = [line for line in scale.tables() if line not in _DOCUMENT]
    assert not missing, "put these into docs/scale.md:\n" + "\n".join(missing)


def test_the_document_shows_what_was_simulated() -> None:
    """What `make simulate` prints is in docs/scale.md; checked for what takes a moment."""
    quick = [s for s in simulate.SCENARIOS if s.load.rate * s.load.minutes <= _QUICK]
    lines = [simulate.line(scenario, simulate.run(scenario, seed=1)) for scenario in quick]
    missing = [line for line in lines if line not in _DOCUMENT]
    assert len(lines) >= 4
    assert not missing, "put these into docs/scale.md:\n" + "\n".join(missing)
