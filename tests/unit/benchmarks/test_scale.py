"""The figures of docs/scale.md agree with what is counted, set and computed."""

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks import scale, schedule_costs
from benchmarks.ledger_writes import units_a_file
from benchmarks.parameters import ITEM, Aws, Settings
from benchmarks.scale import (
    ALARMS,
    ENDPOINTS,
    QUEUE_MINUTES,
    REQUESTS,
    Line,
    bill,
    run_dollars,
    shared_bill,
    total,
)
from functions.adapters.landing import Landing
from functions.adapters.ledger.items import to_item
from functions.model.ingestion import State
from functions.operations.recovery.forgotten import forgotten
from infra.local.emr import limits
from lakegate.job.landing import LandedObject
from tests.fakes.deployment import Deployment
from tests.fakes.write_units import Index, Item, size, units
from tests.template import defaults, resource, resources

_DOCUMENT = scale.DOCUMENT.read_text()

# Read units of an item below 4 KB: consistent reads one, queries of an index a half at least.
_READS = {
    "ledger.get": 1.0,
    "ledger.together": 1.0,
    "ledger.read": 0.0,  # of others in flight, and there is none
    "ledger.same_content": 0.5,
    "ledger.waiting": 1.0,
    "ledger.needs_recording": 0.5,
    "ledger.versions": 1.5,
}


@cache
def story() -> tuple[list[str], list[dict[str, Any]]]:
    """Return the calls of one good file, and its item in the ledger after each write."""
    deployment = Deployment()
    landed = deployment.land("shop/orders/2026/11/21/orders-0001.parquet")
    deployment.settle()
    history = deployment.ledger.history(deployment.ingestion(landed).id)
    return deployment.journal.calls, [to_item(each) for each in history]


def written() -> Counter[str]:
    """Return the write units of a file, by index; alone in its batch it needs no transaction."""
    calls, items = story()
    names = ("ledger.begin", "ledger.save", "ledger.save_all", "ledger.save_each")
    writes = [c for c in calls if c in names]
    table = resource("LedgerTable")["GlobalSecondaryIndexes"]
    indexes = [Index.of(described) for described in table]
    taken: Counter[str] = Counter()
    for before, after in pairwise([None, *items]):
        taken.update(units(before, cast(Item, after), indexes))
    assert len(writes) == len(items)
    return taken


def test_a_files_writes_are_those_of_the_arithmetic() -> None:
    """The arithmetic's write units are those of a story, with indexes.

    Roughly: a longer name or one more field may begin another kilobyte.
    """
    assert written().total() == pytest.approx(REQUESTS.writes, rel=0.1)
    shared = max(written()[index] for index in ("due", "unrecorded", "by_day"))  # keys of all files
    assert shared == pytest.approx(REQUESTS.hottest, rel=0.1)
    submitted = next(item for item in story()[1] if item["state"] == State.SUBMITTED)
    assert size(submitted) == pytest.approx(ITEM, rel=0.2)


def test_a_files_reads_are_those_of_the_arithmetic() -> None:
    """The arithmetic's reads are those of a story in which nothing else is in flight."""
    calls = Counter(call for call in story()[0] if call.startswith("ledger."))
    reads = {call: n for call, n in calls.items() if "save" not in call and call != "ledger.begin"}
    assert ceil(sum(_READS[call] * n for call, n in reads.items())) == REQUESTS.reads


class Listing:
    """A landing bucket with many versions that landed long ago; it counts the requests."""

    def __init__(self, versions: int) -> None:
        self._pages = ceil(versions / schedule_costs.VERSIONS_A_PAGE)
        landed = LandedObject("landing", "a", "v1", "e1", 1, landed_at="2020-01-01")
        self._page = [landed] * min(versions, schedule_costs.VERSIONS_A_PAGE)
        self.requests = 0

    def page(self, position: str) -> tuple[list[LandedObject], str]:
        """See Landing.page."""
        self.requests += 1
        following = int(position or 0) + 1
        return self._page, str(following) if following < self._pages else ""


@pytest.mark.parametrize("kept", [10, 10_000, 1_000_000])
def test_a_sweeps_requests_are_those_of_the_arithmetic(kept: int) -> None:
    """A round takes as many sweeps and requests as computed, and looks up no old version."""
    deployment, bucket = Deployment(), Listing(kept)
    adapters = replace(deployment.adapters, landing=cast(Landing, bucket))
    now = deployment.clock.now()
    search = replace(deployment.ledger.begin_search(now), since="2020-01-02")
    deployment.ledger.save_search(search)
    requests: list[int] = []
    while not requests or search.position:
        before = bucket.requests
        assert list(forgotten(adapters, now)) == []
        requests.append(bucket.requests - before)
        search = deployment.ledger.search() or search
    assert requests == [schedule_costs.pages_listed(kept)] * schedule_costs.sweeps_a_round(kept)
    assert "ledger.known" not in deployment.journal.calls


def test_a_publish_asks_for_its_tables_queue_alone() -> None:
    """The reads of a publish are independent of what else is kept or in flight."""
    assert story()[0].count("ledger.waiting") == 1


def test_write_units_follow_the_rules() -> None:
    """Each started kilobyte is a unit, and a changed key costs an index two writes."""
    index = Index("by_state", ("state",), has_all=True)
    keys = Index("by_key", ("key",), has_all=False)
    old = {"id": "a", "state": "landed", "key": "k", "text": "x" * 1000}
    new = {**old, "state": "done", "text": "x" * 3000}
    assert units(None, old, [index, keys]) == {"": 1, "by_state": 1, "by_key": 1}
    assert units(old, new, [index, keys]) == {"": 3, "by_state": 4, "by_key": 0}
    assert units(old, {"id": "a", "key": "k"}, [index]) == {"": 1, "by_state": 1}
    assert size({"name": "é", "flag": True, "list": ["a"]}) == 4 + 2 + 4 + 1 + 4 + 3 + 2


def test_the_settings_are_the_templates() -> None:
    """The default settings of the cost model are the templates'."""
    settings, template = Settings(), defaults()
    assert template["UploadConcurrency"] == settings.upload_lambdas
    assert template["GraceSeconds"] == settings.grace
    assert template["RunIdleSeconds"] == settings.idle
    assert template["ConcurrentRuns"] == settings.runs
    assert template["MaximumCpu"] == settings.vcpus
    assert template["QueueTimeoutMinutes"] == QUEUE_MINUTES


def test_runs_start_as_fast_as_in_the_local_stack() -> None:
    """The arithmetic's rate of StartJobRun is that of the stand-in for EMR Serverless."""
    assert (Aws().starts, Aws().starts_at_once) == (limits.RATE, limits.BURST)


def test_what_costs_by_the_hour_is_in_the_templates() -> None:
    """The bill has as many alarms and endpoints as the templates."""
    endpoints = resources("AWS::EC2::VPCEndpoint")
    assert len(resources("AWS::CloudWatch::Alarm")) == ALARMS
    assert sum(each["VpcEndpointType"] == "Interface" for each in endpoints) == ENDPOINTS


def test_the_idle_price_is_written_once() -> None:
    """The price of a month without a file is in docs/scale.md, and other pages refer to it."""
    for page in ("aws.md", "platform.md"):
        text = (scale.DOCUMENT.parent / page).read_text()
        assert "scale.md#the-bill" in text
        assert not re.search(r"\b1[01]\d(\.\d\d)? dollars|about 1[01]\d", text)


def test_a_bill_is_the_sum_of_its_lines() -> None:
    """Twice the files cost twice as much; files of a group share a run's waiting."""
    assert Line("x", 3, "hours", 0.5).dollars == 1.5
    assert total(bill(2)) == 2 * total(bill(1))
    assert run_dollars(1) == run_dollars(60) == run_dollars(120) / 2
    alone, together = (total(shared_bill(1_000, group)) for group in (1, 100))
    assert together < alone < total(bill(1_000))


def test_a_shared_runs_writes_are_those_that_are_counted() -> None:
    """The bill of shared runs has the ledger's write units of a file alone and in a group."""
    assert round(units_a_file(1)) == scale.SHARED.requests_alone.writes
    assert round(units_a_file(100)) == scale.SHARED.requests_together.writes


def test_the_document_shows_what_is_computed() -> None:
    """Each block of docs/scale.md is what the code computes.

    If it is not, run `python -m benchmarks.scale`.
    """
    assert all(f"<!-- {name} -->" in _DOCUMENT for name in scale.BLOCKS)
    assert scale.filled(_DOCUMENT, scale.BLOCKS) == _DOCUMENT


def test_only_named_blocks_of_the_document_are_written() -> None:
    """The text around the blocks stays, and so does a block that is not given."""
    text = "a\n<!-- one -->\nold\n<!-- end -->\nb\n<!-- two -->\nkept\n<!-- end -->\n"
    written = scale.filled(text, {"one": lambda: iter(("new", "lines"))})
    assert written == text.replace("old", "new\nlines")


def test_a_probes_times_replace_assumptions(tmp_path: Path) -> None:
    """The measured time until a job's first line replaces the assumed one."""
    file = tmp_path / "probe-1.json"
    assert Aws.known(file) == Aws()
    file.write_text(json.dumps({"runs": [{"seconds": {"created_to_first_line": 41.5}}]}))
    assert Aws.known(file) == Aws(cold=41.5)
