"""Count a file's requests to S3 and Nessie and measure its steps.

`python -m benchmarks.steps [--files N]`: files of one table land one after the other in a local
stack. Steps are read from the ledger's times, requests from the servers' logs.
"""

import argparse
import json
import os
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from access import deployment
from cli import local_stack
from functions.model.ingestion import Ingestion
from infra.local import processes, stack
from lakegate.landing import LandedObject
from tests.e2e.conftest import Gate, contract
from tests.waiting import eventually

_RESULT = Path("build/bench-steps.json")
_TABLE = "bench.steps"
_ROWS = 100_000
_PATIENCE = 300
_STEPS = ("landed", "branched", "submitted", "audited", "published", "cleaned", "recorded")
_LOGS = {"LOG_LEVEL": "DEBUG", "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "true"}
_S3 = re.compile(r"(GET|PUT|POST|HEAD|DELETE) (/[^/ ]+/[^ ]+) -> service=s3 ")
_NESSIE = re.compile(r'"(GET|PUT|POST|HEAD|DELETE) (/api/|/iceberg/)')


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps")
    parser.add_argument("--files", type=int, default=8, help="counted files")
    count = parser.parse_args().files
    with tempfile.TemporaryDirectory() as home, _gate(Path(home)) as gate:
        gate.put_contract(contract(_TABLE, "parquet"))
        _ingest(gate, 2)  # warms up
        before = _requests(gate.home)
        done = _ingest(gate, count)
        asked = _requests(gate.home) - before
    figures = {
        "files": count,
        "seconds": {f"{a} to {b}": _median(done, a, b) for a, b in pairwise(_STEPS)},
        "requests_a_file": {name: round(n / count, 1) for name, n in sorted(asked.items())},
    }
    _RESULT.parent.mkdir(exist_ok=True)
    _RESULT.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


@contextmanager
def _gate(home: Path) -> Iterator[Gate]:
    with mock.patch.dict(os.environ, {**_LOGS, "LAKEGATE_HOME": str(home)}):
        try:
            running = local_stack.start(print)
            yield Gate(home, deployment.of_stack(running).adapters())
        finally:
            stack.down(home, print)


def _ingest(gate: Gate, files: int) -> list[Ingestion]:
    """Land files, each after the one before it is recorded."""
    return [_recorded(gate, gate.end(_land(gate)).id) for _ in range(files)]


def _land(gate: Gate) -> LandedObject:
    amounts = pa.array([float(byte % 100) for byte in os.urandom(_ROWS)])
    body = BytesIO()
    pq.write_table(pa.table({"id": pa.array(range(_ROWS)), "amount": amounts}), body)
    return gate.drop(f"bench/steps/{os.urandom(8).hex()}.parquet", body.getvalue())


def _recorded(gate: Gate, id_: str) -> Ingestion:
    def recorded() -> Ingestion | None:
        now = gate.adapters.ledger.get(id_)
        return None if now.needs_recording else now

    return eventually(recorded, _PATIENCE, f"{id_} was not recorded")


def _requests(home: Path) -> Counter[str]:
    """Return the requests so far, by server and method; for S3 those for an object."""
    s3 = _S3.findall(processes.log_file(home, "ministack").read_text(errors="replace"))
    nessie = _NESSIE.findall(processes.log_file(home, "nessie").read_text(errors="replace"))
    return Counter(
        [f"S3 {method}" for method, _ in s3]
        + [f"Nessie {path} {method}" for method, path in nessie]
    )


def _median(done: Sequence[Ingestion], begin: str, end: str) -> float:
    found = [_at(i, end) - _at(i, begin) for i in done if {begin, end} <= set(i.times)]
    return round(statistics.median(found), 2) if found else float("nan")


def _at(ingestion: Ingestion, step: str) -> float:
    return datetime.fromisoformat(ingestion.times[step]).timestamp()


if __name__ == "__main__":
    main()
