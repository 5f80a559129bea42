"""Count a file's requests to S3 and Nessie and measure its steps.

`python -m benchmarks.steps [--files N] [--group N]`: files of one table land one after the other in
a local stack, then small files of another table at once. Steps are read from the ledger's times,
requests from the servers' logs; the ledger's write units are counted over the fakes.
"""

import argparse
import os
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from benchmarks.landings import dropped_at_once, measured
from benchmarks.ledger_writes import units_a_file
from benchmarks.results import parquet, told
from benchmarks.small_files import Kind
from functions.model import steps
from functions.model.ingestion import Ingestion
from functions.telemetry import logger
from infra.local import processes
from lakegate.job.landing import LandedObject
from lakegate.job.shared_run import MOST_FILES
from tests.e2e.conftest import Gate, contract, started
from tests.waiting import eventually

_TABLE = "bench.steps"
_ROWS = 100_000
_SMALL = Kind("bench.group", "parquet", 900)
_PATIENCE = 300
_STEPS = ("landed", "queued", "audited", "published", "cleaned", "recorded")
_LOGS = {"LOG_LEVEL": "DEBUG", "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "true"}
_S3 = re.compile(r"(GET|PUT|POST|HEAD|DELETE) (/[^/ ]+/[^ ]+) -> service=s3 ")
_LIST = re.compile(r"GET /[^/ ]+/?(?:\?[^ ]*)? -> service=s3 ")
_NESSIE = re.compile(r'"(GET|PUT|POST|HEAD|DELETE) (/api/|/iceberg/)')


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps")
    parser.add_argument("--files", type=int, default=8, help="counted files")
    parser.add_argument("--group", type=int, default=MOST_FILES, help="files at once")
    options = parser.parse_args()
    count = options.files
    logger.setLevel("CRITICAL")
    with tempfile.TemporaryDirectory() as home, started(Path(home), **_LOGS) as gate:
        gate.put_contract(contract(_TABLE, "parquet", "shared"))
        _ingest(gate, 2)  # warms up
        before = _requests(gate.home)
        done = _ingest(gate, count)
        asked = _requests(gate.home) - before
        group = _group(gate, options.group)
    figures = {
        "files": count,
        "seconds": {f"{a} to {b}": _median(done, a, b) for a, b in pairwise(_STEPS)},
        "requests_a_file": _each(asked, count),
        "group": group,
    }
    told("bench-steps", figures)


def _ingest(gate: Gate, files: int) -> list[Ingestion]:
    """Land files, each after the one before it is recorded."""
    return [_recorded(gate, gate.end(_land(gate)).id) for _ in range(files)]


def _land(gate: Gate) -> LandedObject:
    amounts = [float(byte % 100) for byte in os.urandom(_ROWS)]
    body = parquet({"id": range(_ROWS), "amount": amounts})
    return gate.drop(f"bench/steps/{os.urandom(8).hex()}.parquet", body)


def _group(gate: Gate, files: int) -> dict[str, object]:
    """Land small files at once; return the requests and write units of each."""
    gate.put_contract(_SMALL.contract)
    drop = dropped_at_once(gate, _SMALL, range(files))
    _all_recorded(gate)
    before = _requests(gate.home)
    found, _ = measured(gate, drop)
    _all_recorded(gate)
    asked = _requests(gate.home) - before
    return {
        "files": files,
        "commits": found.commits,
        "requests_a_file": _each(asked, files),
        "write_units_a_file": units_a_file(files),
    }


def _all_recorded(gate: Gate) -> None:
    ledger = gate.adapters.ledger
    eventually(lambda: not any(ledger.needs_recording()), _PATIENCE, "not all are recorded")


def _each(asked: Counter[str], files: int) -> dict[str, float]:
    return {name: round(n / files, 2) for name, n in sorted(asked.items())}


def _recorded(gate: Gate, id_: str) -> Ingestion:
    def recorded() -> Ingestion | None:
        now = gate.adapters.ledger.get(id_)
        return None if steps.needs_recording(now) else now

    return eventually(recorded, _PATIENCE, f"{id_} was not recorded")


def _requests(home: Path) -> Counter[str]:
    """Return the requests so far, by server and method; for S3 those for an object, and lists."""
    log = processes.log_file(home, "ministack").read_text(errors="replace")
    s3 = _S3.findall(log)
    nessie = _NESSIE.findall(processes.log_file(home, "nessie").read_text(errors="replace"))
    return Counter(
        [f"S3 {method}" for method, _ in s3]
        + ["S3 LIST"] * len(_LIST.findall(log))
        + [f"Nessie {path} {method}" for method, path in nessie]
    )


def _median(done: Sequence[Ingestion], begin: str, end: str) -> float:
    found = [_at(i, end) - _at(i, begin) for i in done if {begin, end} <= set(i.times)]
    return round(statistics.median(found), 2) if found else float("nan")


def _at(ingestion: Ingestion, step: str) -> float:
    return datetime.fromisoformat(ingestion.times[step]).timestamp()


if __name__ == "__main__":
    main()
