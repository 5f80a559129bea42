"""Measure what a Nessie with little CPU takes: files a second, the wait for each file, errors.

`python -m benchmarks.nessie_size [--cores 0.5] [--heap 1600m] [--clients 4 16 64]`: one real server
on PostgreSQL, limited by a control group. Each client brings its files one after the other through
all steps of benchmarks/nessie_client.py. Clients, PostgreSQL and S3 are not limited.
"""

import argparse
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.cpu_limit import Limit, limit
from benchmarks.nessie import nessie, of_postgres, own_session
from benchmarks.nessie_client import Client, create_tables
from benchmarks.results import told
from functions.telemetry import logger
from infra.local import processes
from infra.local.parts import free_port
from lakegate.errors import LakegateError
from tests.postgres import postgres
from tests.services import Services, services

_NAME = "nessie-limited"


@dataclass(frozen=True)
class Brought:
    """One file: the seconds it took, and the error that ended it, "" for none."""

    seconds: float
    error: str
    busy: int  # merges that main was too busy for, which were tried again


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nessie_size")
    parser.add_argument("--cores", type=float, default=0.5, help="CPUs of the server")
    parser.add_argument("--heap", default="1600m", help="its heap: 80 percent of 2 GB")
    parser.add_argument("--clients", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--files", type=int, default=4, help="files of each client")
    args = parser.parse_args()
    logger.setLevel("CRITICAL")
    with (
        tempfile.TemporaryDirectory() as name,
        services(Path(name)) as running,
        postgres(Path(name), free_port(set()), Path(sys.prefix)) as jdbc,
        limit(args.cores) as limited,
        nessie(Path(name), _NAME, running, of_postgres(jdbc), args.heap, limited.before) as server,
    ):
        process = psutil.Process(_server_pid(Path(name)))
        create_tables(server, [f"bench.t{nth}" for nth in range(max(args.clients))])
        _together(server, 4, 8)  # warms up
        figures = {
            f"{n} clients": _measured(server, process, limited, n, args.files) for n in args.clients
        }
    told("bench-nessie-size", {"cores": args.cores, "heap": args.heap, **figures})


def _server_pid(home: Path) -> int:
    """Return the server's process id. Raises LakegateError if it has ended."""
    found = processes.running(home, _NAME)
    if found is None:
        raise LakegateError("SERVER_ENDED", f"see {processes.log_file(home, _NAME)}")
    return found.pid


def _measured(
    server: Services, process: psutil.Process, limited: Limit, clients: int, files: int
) -> dict[str, Any]:
    """Return the figures of so many clients at once, each with so many files."""
    throttled, used, begin = limited.throttled(), _cpu(process), time.perf_counter()
    brought = _together(server, clients, files)
    took = time.perf_counter() - begin
    done = sorted(each.seconds for each in brought if not each.error)
    cuts = statistics.quantiles(done, n=20, method="inclusive")
    return {
        "files": len(brought),
        "files_a_second": round(len(done) / took, 2),
        "median_seconds": round(cuts[9], 2),
        "p95_seconds": round(cuts[18], 2),
        "errors": dict(Counter(each.error for each in brought if each.error)),
        "busy": sum(each.busy for each in brought),
        "cores_used": round((_cpu(process) - used) / took, 2),
        "throttled_share": round((limited.throttled() - throttled) / (took * 10), 2),
        "memory_mb": process.memory_info().rss // 2**20,
    }


def _together(server: Services, clients: int, files: int) -> list[Brought]:
    """Bring the files of all clients, each client's one after the other."""
    with ThreadPoolExecutor(clients) as pool:
        each = [pool.submit(_bring_all, server, f"bench.t{n}", files) for n in range(clients)]
        return [brought for done in each for brought in done.result()]


def _bring_all(server: Services, table: str, files: int) -> Sequence[Brought]:
    own = own_session(server)
    return [_bring(own, table) for _ in range(files)]


def _bring(server: Services, table: str) -> Brought:
    """Create a branch, commit on it, merge it and delete it; time all of it."""
    client, begin, error = Client(server, [table]), time.perf_counter(), ""
    try:
        for step in (client.create, client.commit, client.merge, client.delete):
            step()
    except Exception as failure:  # noqa: BLE001 - each error is a figure
        error = _kind(failure)
    return Brought(time.perf_counter() - begin, error, client.busy)


def _kind(failure: Exception) -> str:
    """Return the error's code, with Nessie's own exception if it names one."""
    code = getattr(failure, "code", type(failure).__name__)
    named = re.search(r"\.(\w+Exception): ", str(failure).partition("RuntimeException: ")[2])
    return f"{code} {named[1]}" if named else f"{code}"


def _cpu(process: psutil.Process) -> float:
    """Return the CPU seconds that the process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
