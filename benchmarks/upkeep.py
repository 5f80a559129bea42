"""Measure upkeep: a table of many small files before and after a compaction, and files beside it.

`python -m benchmarks.upkeep [--files N] [--flow N]` starts a whole local stack in a folder of its
own. A table gets many small data files, registered in groups, and is read. Then files of the same
table land, one a second: first alone, then while a job run compacts the table. At last what nobody
reads is deleted, as if `KeepDays` had passed.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
from pyiceberg.table import Table

from benchmarks import landings
from benchmarks.landings import at_once, check_rows, each_second, measured, percentile, warm
from benchmarks.results import told
from benchmarks.small_files import Kind
from functions.adapters.nessie import MAIN
from functions.adapters.s3 import Lake
from functions.model.ingestion import Ingestion
from functions.operations.compaction import compact as compaction
from functions.operations.compaction.compact import Step
from functions.operations.upkeep import dead_files
from functions.operations.upkeep.dead_files import Accepted
from functions.telemetry import logger
from lakegate import times
from lakegate.job.landing import LandedObject
from tests.e2e.conftest import Gate
from tests.waiting import eventually

_KIND = Kind("bench.kept", "parquet", 20)
_TOGETHER = 250
_READS = 3
_UPLOADERS = 8
_PATIENCE = 1800
_PAUSE = 1.0


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.upkeep")
    parser.add_argument("--files", type=int, default=10_000, help="small files of the table")
    parser.add_argument("--flow", type=int, default=60, help="files that land beside, each time")
    options = parser.parse_args()
    files, flow = options.files, options.flow
    logger.setLevel("CRITICAL")
    with tempfile.TemporaryDirectory() as home, warm(Path(home)) as gate:
        at_once(gate, _KIND, 1)
        _fill(gate, range(1, files))
        before = _state(gate)
        alone, _ = _flow(gate, range(files, files + flow))
        branch, begin = _start(gate), time.perf_counter()
        beside, ended = _flow(gate, range(files + flow, files + 2 * flow))
        _settle(gate, branch)
        seconds = time.perf_counter() - begin
        after = _state(gate)
        deleted = _delete(gate)
        check_rows(gate, _KIND, files + 2 * flow)
    if after["files"] >= files:
        raise SystemExit(f"the table was not compacted: {after}")
    figures = {"before": before, "after": after, "seconds_to_compact": seconds, **deleted}
    ratio = beside["publish_p95"] / alone["publish_p95"]
    again = sum(each.attempt > 1 for each in ended)
    told(
        "bench-upkeep",
        {**figures, "alone": alone, "beside": beside, "p95_ratio": ratio, "again": again},
    )


def _fill(gate: Gate, numbers: range) -> None:
    """Upload these files into the lake, and register them on main as another writer would."""
    table = _table(gate)
    s3, (bucket, _, folder) = boto3.client("s3"), table.location()[5:].partition("/")

    def put(number: int) -> str:
        key = f"{folder}/data/{number:06}.parquet"
        s3.put_object(Bucket=bucket, Key=key, Body=_KIND.body(number))
        return f"s3://{bucket}/{key}"

    with ThreadPoolExecutor(_UPLOADERS) as uploaders:
        for first in range(numbers.start, numbers.stop, _TOGETHER):
            some = range(first, min(first + _TOGETHER, numbers.stop))
            table.add_files(list(uploaders.map(put, some)), check_duplicate_files=False)


def _table(gate: Gate) -> Table:
    """Return the table on main, with the rights of the publisher."""
    token = (gate.home / "keys" / "publisher.token").read_text()
    return landings.main(gate.stack.nessie, token).load_table(_KIND.table)


def _state(gate: Gate) -> dict[str, Any]:
    """Return the table's size, and the median seconds to plan a scan and to read all rows."""
    size = gate.adapters.tables().size(_KIND.table, MAIN)
    return {
        **asdict(size),
        "metadata_bytes": dead_files.find(gate.adapters).metadata[_KIND.table],
        "plan_seconds": _median(lambda: list(_table(gate).scan().plan_files())),
        "scan_seconds": _median(lambda: _table(gate).scan().to_arrow()),
    }


def _delete(gate: Gate) -> dict[str, int]:
    """Delete what nobody reads, as if all commits were old; return the bytes by kind."""
    later = timedelta(days=gate.adapters.settings.keep_days + 1)
    lake: Any = _Ahead(gate.adapters.lake, later)
    adapters = replace(gate.adapters, lake=lake)
    dead_files.delete(adapters)  # the first look deletes nothing
    dead = dead_files.delete(adapters, Accepted(bytes=sys.maxsize))
    left = dead_files.find(gate.adapters).metadata[_KIND.table]
    metadata = dead.metadata[_KIND.table] - left
    return {
        "deleted_bytes": dead.due_bytes,
        "deleted_metadata_bytes": metadata,
        "metadata_bytes_left": left,
    }


class _Ahead:
    """A lake whose clock is ahead."""

    def __init__(self, lake: Lake, by: timedelta) -> None:
        self._lake, self._by = lake, by

    def clock(self) -> datetime:
        """See Lake.clock."""
        return self._lake.clock() + self._by

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lake, name)


def _median(work: Callable[[], object]) -> float:
    def seconds() -> float:
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    return statistics.median(seconds() for _ in range(_READS))


def _flow(gate: Gate, numbers: range) -> tuple[dict[str, float], Sequence[Ingestion]]:
    """Land a file a second; return how long publishing took, and the way from landing to main."""
    bodies = [(_KIND.key(number), _KIND.body(number)) for number in numbers]

    def drop() -> list[LandedObject]:
        return [gate.drop(*bodies[second]) for second in each_second(len(bodies))]

    found, ended = measured(gate, drop)
    published = [times.seconds(i.times["audited"], i.times["published"]) for i in ended]
    shares = {"p50": found.p50, "p95": found.p95}
    return {
        **shares,
        "publish_p50": percentile(published, 0.5),
        "publish_p95": percentile(published, 0.95),
    }, ended


def _start(gate: Gate) -> str:
    """Start the table's compaction; return its branch."""
    (need,) = compaction.needs(gate.adapters, _KIND.table)
    return compaction.start(gate.adapters, need).branch


def _settle(gate: Gate, branch: str) -> None:
    """Publish the compaction as the sweep does, which may be faster."""

    def done() -> bool:
        found = [each for each in compaction.under_way(gate.adapters) if each.branch == branch]
        return all(compaction.settle(gate.adapters, each).step is not Step.WAITS for each in found)

    eventually(done, _PATIENCE, "the compaction does not end", _PAUSE)


if __name__ == "__main__":
    main()
