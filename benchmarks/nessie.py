"""Measure how many files a second Nessie takes on RocksDB and on PostgreSQL.

`python -m benchmarks.nessie [--rounds N] [--files N]`: two real servers, in turn. For each file
they are asked what Lakegate asks: create a branch, commit one snapshot on it through the Iceberg
REST catalog (metadata alone, no data file), merge it into main, delete it.
"""

import argparse
import secrets
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import boto3

from benchmarks.nessie_client import Client, create_tables
from benchmarks.publish import Bench
from benchmarks.results import told
from functions.adapters.nessie import Catalog
from functions.model.ingestion import Ingestion
from functions.pipeline.publish import publish
from functions.telemetry import logger
from infra.local import parts, processes
from infra.local.parts import free_port
from infra.local.settings import LAKE_BUCKET
from lakegate.errors import Transient
from tests.postgres import postgres
from tests.services import Services, services
from tests.template import ledger_table

_AT_ONCE = (1, 4, 16)
_STEPS = ("create", "commit", "merge", "delete")
_SECONDS_TO_START = 180.0


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nessie")
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds of each")
    parser.add_argument("--files", type=int, default=96, help="files in a round")
    args = parser.parse_args()
    logger.setLevel("CRITICAL")
    tables = [f"bench.t{nth}" for nth in range(args.files)]
    with tempfile.TemporaryDirectory() as home, _servers(Path(home)) as running:
        for server in running.values():
            create_tables(server, tables)
            _round(server, 4, tables)  # warms up
        results = {
            "rounds": args.rounds,
            "files": args.files,
            **_measured(running, tables, args.rounds),
        }
    told("bench-nessie", results)


def _measured(
    running: Mapping[str, Services], tables: Sequence[str], rounds: int
) -> dict[str, dict[str, float]]:
    """Return the medians of rounds that take turns."""
    figures: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    for _ in range(rounds):
        for clients in _AT_ONCE:
            for store, server in running.items():
                figures[f"{store}, {clients} at once"].append(_round(server, clients, tables))
    return {
        name: {each: round(statistics.median(f[each] for f in found), 1) for each in found[0]}
        for name, found in figures.items()
    }


def _round(running: Services, clients: int, tables: Sequence[str]) -> dict[str, float]:
    """Return files a second: each step for all files before the next one; then one table."""
    shares = [tables[nth::clients] for nth in range(clients)]
    made = [Client(own_session(running), share) for share in shares]
    rates = {step: _rate([getattr(c, step) for c in made], len(tables)) for step in _STEPS}
    together = 1 / sum(1 / rate for rate in rates.values())
    busy = sum(client.busy for client in made)
    return {**rates, "all": together, "busy": busy, **_one_table(running, clients, len(tables))}


def _one_table(running: Services, clients: int, files: int) -> dict[str, float]:
    """Return files a second of one table, published by the use case that the Lambdas call."""
    ledger = ledger_table(boto3.resource("dynamodb"), f"ledger-{secrets.token_hex(4)}")
    table = f"bench.t{secrets.token_hex(4)}"
    benches = [Bench(own_session(running), table, ledger) for _ in range(clients)]
    benches[0].create()
    waiting = [benches[0].audited() for _ in range(files)]
    before, again = benches[0].commits(), list[str]()
    rate = _rate(
        [partial(_publish, b, waiting[n::clients], again) for n, b in enumerate(benches)], files
    )
    commits = benches[0].commits() - before
    return {"one_table": rate, "one_table_commits": commits, "one_table_again": len(again)}


def _publish(bench: Bench, waiting: Sequence[Ingestion], again: list[str]) -> None:
    """Publish each file that no other publisher rebased; retry transient failures via `again`."""
    for ingestion in waiting:
        while not (now := bench.adapters.ledger.get(ingestion.id)).ended:
            try:
                publish(bench.adapters, now)
            except Transient:
                again.append(ingestion.id)


def _rate(clients: Sequence[Callable[[], None]], files: int) -> float:
    """Return files a second while all clients work at the same time."""
    with ThreadPoolExecutor(len(clients)) as pool:
        begin = time.perf_counter()
        for done in [pool.submit(client) for client in clients]:
            done.result()
    return files / (time.perf_counter() - begin)


@contextmanager
def _servers(home: Path) -> Iterator[dict[str, Services]]:
    """Yield the same services with a Nessie on each store."""
    with services(home) as running, ExitStack() as stack:
        jdbc = stack.enter_context(postgres(home, free_port(set()), Path(sys.prefix)))
        stores = {
            "rocksdb": {
                "nessie.version.store.type": "ROCKSDB",
                "nessie.version.store.persist.rocks.database-path": str(home / "rocks"),
            },
            "postgresql": of_postgres(jdbc),
        }
        yield {
            name: stack.enter_context(nessie(home, name, running, options))
            for name, options in stores.items()
        }


def of_postgres(jdbc: str) -> dict[str, str]:
    """Return the options of a Nessie whose store is the PostgreSQL at this address."""
    return {
        "nessie.version.store.type": "JDBC2",
        "nessie.version.store.persist.jdbc.datasource": "postgresql",
        "quarkus.datasource.postgresql.jdbc.url": jdbc,
        "quarkus.datasource.postgresql.username": "nessie",
        "quarkus.datasource.postgresql.password": "none",
    }


@contextmanager
def nessie(
    home: Path,
    name: str,
    running: Services,
    options: Mapping[str, str],
    heap: str = "1g",
    before: Sequence[str] = (),
) -> Iterator[Services]:
    """Yield a server like the local stack's, but with a full JVM and another store.

    `before` is a command that runs the server's.
    """
    port, management = free_port(set()), free_port(set())
    storage = running.s3.meta.endpoint_url
    local = parts.nessie_command(home, port, management, storage, f"s3://{LAKE_BUCKET}/warehouse")
    java, *arguments = local.argv
    own = (each for each in arguments if not each.startswith("-X"))
    argv = (*before, java, f"-Xmx{heap}", *own)
    command = replace(local, part=name, argv=argv, env={**local.env, **options})
    address, token = f"http://127.0.0.1:{port}", running.tokens["publisher"]
    processes.start(home, command)
    try:
        processes.wait_until(
            home, name, lambda: parts.nessie_answers(address, token), _SECONDS_TO_START
        )
        Catalog(address, token).begin("ops")
        yield own_session(replace(running, nessie_uri=address))
    finally:
        processes.stop(home, name)


def own_session(running: Services) -> Services:
    """Return the same services with connections of their own to Nessie."""
    return replace(running, catalog=Catalog(running.nessie_uri, running.tokens["publisher"]))


if __name__ == "__main__":
    main()
