"""Measure publishing: merges with and without a conflict, one and many at a time.

`python -m benchmarks.publish [--runs N]`, over a real Nessie, S3 and ledger, without Spark: audited
branches of one table are published by the use case that the Lambdas call.
"""

import argparse
import secrets
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import boto3
import numpy as np
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from benchmarks.results import contract, parquet, told
from functions.adapters.iceberg.tables import Tables
from functions.adapters.landing import Landing
from functions.adapters.ledger.ledger import Ledger
from functions.adapters.nessie import Catalog
from functions.adapters.s3 import Lake, contract_key
from functions.model.ingestion import Ingestion, State
from functions.pipeline.publication.publish import publish
from functions.telemetry import logger
from infra.local.settings import LAKE_BUCKET
from lakegate import times
from lakegate.job.landing import LandedObject, branch_name, group_branch, ingestion_id
from lakegate.job.shared_run import MOST_FILES
from tests.fakes.deployment import Deployment
from tests.services import LANDING, Services, services
from tests.template import ledger_table

_PROPERTIES = {"format-version": "2", "commit.manifest-merge.enabled": "true"}
_SMALL, _LARGE = 1_000, 5_000_000
_AT_ONCE = (1, 16, 64)
_GROUPS = (2, 6)  # of which the first is merged, and the others join
_FEW_FILES, _MANY_FILES = 10, 10_000


@dataclass
class _Traffic:
    """The traffic with S3 in requests and bytes, and how much of it was rows."""

    requests: int = 0
    read: int = 0
    written: int = 0
    of_data_files: int = 0


class _Merges:
    """A catalog that notes when it last merged a branch into main."""

    def __init__(self, catalog: Any) -> None:
        self._catalog, self.last = catalog, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def merge(self, *of: Any) -> Any:
        done = self._catalog.merge(*of)
        self.last = time.perf_counter()
        return done


class Bench:
    """One table on a real lake, and the publisher's adapters."""

    def __init__(self, running: Services, table: str, ledger: Any) -> None:
        s3 = self._watched(boto3.client("s3"))
        self.running, self.table, self.traffic = replace(running, s3=s3), table, _Traffic()
        self._files: dict[int, DataFile] = {}
        text = contract(table, {"id": "integer"})
        running.put_contract(table, text)
        self._number = 0
        tables = Tables(running.nessie_uri, running.tokens["publisher"], s3)
        self.merges = _Merges(running.catalog)
        self.adapters = replace(
            Deployment().adapters,
            landing=Landing(s3, LANDING),
            lake=Lake(s3, LAKE_BUCKET),
            ledger=Ledger(ledger, _now),
            catalog=cast(Catalog, self.merges),
            tables=lambda: tables,
            now=_now,
            token=lambda: secrets.token_hex(3),
        )

    def create(self) -> None:
        """Make the table on main, with one file of one row."""
        catalog = self.running.at("main")
        catalog.create_namespace_if_not_exists(self.table.split(".")[0])
        columns = Schema(NestedField(1, "id", LongType()))
        self._enter(catalog.create_table(self.table, columns, properties=_PROPERTIES), 1, 1)

    def fill(self, files: int) -> None:
        """Give main's table as many files, registered 100 at a time as publishing does."""
        table = self.running.at("main").load_table(self.table)
        for _ in range(0, files, 100):
            self._enter(table, 1, min(100, files))

    def audited(self, rows: int = _SMALL) -> Ingestion:
        """Return an ingestion whose file was written to a branch from main's head, and audited."""
        landed = self._landed(rows)
        name = branch_name(self.table, landed.key, ingestion_id(landed), 1)
        return self.adapters.ledger.save(self._on_branch(name, [landed])[0])

    def group(self) -> list[Ingestion]:
        """Return the audited members of a group of files of one row."""
        name = group_branch(self.table, secrets.token_hex(8))
        members = self._on_branch(name, [self._landed(1) for _ in range(MOST_FILES)])
        group = tuple(each.id for each in members)
        return self.adapters.ledger.save_each([each.but(group=group) for each in members])

    def _landed(self, rows: int) -> LandedObject:
        self._number += 1
        key = f"{self.table.replace('.', '/')}/{self._number}.parquet"
        return LandedObject(LANDING, key, "v1", "e", rows, landed_at=_now())

    def _on_branch(self, branch: str, landed: Sequence[LandedObject]) -> list[Ingestion]:
        """Return ingestions of files, of as many rows as bytes, that were written to a branch."""
        base = self.adapters.catalog.create_branch(branch)
        rows = sum(each.size for each in landed)
        self._enter(self.running.at(branch).load_table(self.table), rows, 1)
        head = self.adapters.catalog.head(branch)
        terms = self.adapters.lake.contract_at(contract_key(self.table), "").terms(is_change=False)
        known = (Ingestion(ingestion_id(each), each).but(terms=terms) for each in landed)
        return [
            each.step(
                "audited",
                _now(),
                state=State.AUDITED,
                rows=each.landed.size,
                branch=branch,
                base_hash=base,
                audited_hash=head,
            )
            for each in known
        ]

    def publish(self, ingestion: Ingestion) -> float:
        """Publish one and return the seconds; `traffic` then has the traffic with S3."""
        self.traffic = _Traffic()
        begin = time.perf_counter()
        done = publish(self.adapters, ingestion)
        seconds = time.perf_counter() - begin
        if done.state is not State.PUBLISHED:
            raise SystemExit(f"it was not published: {done}")
        return seconds

    def publish_refused(self, rows: int) -> float:
        """Publish one whose branch conflicts with main and return the seconds."""
        waiting, quicker = self.audited(rows), self.audited(1)
        self.publish(quicker)
        return self.publish(waiting)

    def rows_on_main(self) -> int:
        """Return how many records main's table has."""
        snapshot = self.running.at("main").load_table(self.table).current_snapshot()
        return int(snapshot.summary["total-records"]) if snapshot and snapshot.summary else 0

    def commits(self) -> int:
        """Return how many commits main has."""
        return sum(1 for _ in self.adapters.catalog.log())

    def _file(self, table: Table, rows: int) -> DataFile:
        """Return a Parquet file of so many rows under the table; each size is written once."""
        if rows not in self._files:
            path, body = f"{table.location()}/data/{rows}.parquet", parquet({"id": np.arange(rows)})
            bucket, _, key = path.removeprefix("s3://").partition("/")
            self.running.s3.put_object(Bucket=bucket, Key=key, Body=body)
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=path,
                file_format=FileFormat.PARQUET,
                partition=Record(),
                record_count=rows,
                file_size_in_bytes=len(body),
            )
            file.spec_id = 0
            self._files[rows] = file
        return self._files[rows]

    def _enter(self, table: Table, rows: int, times: int) -> None:
        file = self._file(table, rows)
        with table.transaction() as change, change.update_snapshot().merge_append() as append:
            for _ in range(times):
                append.append_data_file(file)

    def _watched(self, client: Any) -> Any:
        client.meta.events.register("before-call.s3", self._sent)
        client.meta.events.register("after-call.s3.GetObject", self._received)
        return client

    def _sent(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        self.traffic.requests += 1
        if params["method"] == "PUT":
            body = params["body"]
            self.traffic.written += len(body.getvalue() if hasattr(body, "getvalue") else body)
        if "/data/" in params["url_path"]:
            self.traffic.of_data_files += 1

    def _received(self, parsed: dict[str, Any], **_: Any) -> None:
        self.traffic.read += parsed.get("ContentLength", 0)


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.publish")
    parser.add_argument("--runs", type=int, default=9, help="counted runs of each")
    runs = parser.parse_args().runs
    logger.setLevel("CRITICAL")
    with tempfile.TemporaryDirectory() as home, services(Path(home)) as running:
        tables = iter(range(1000))
        ledger = ledger_table(boto3.resource("dynamodb"), "ledger")

        def bench() -> Bench:
            made = Bench(running, f"bench.t{next(tables)}", ledger)
            made.create()
            return made

        bench().publish_refused(_SMALL)  # warms up
        results = {
            "one": _one(bench(), runs),
            "at_once": [_at_once(bench(), files) for files in _AT_ONCE],
            "groups": [_groups(bench(), groups) for groups in _GROUPS],
            "by_size_of_table": _by_table(bench(), bench(), runs),
        }
    told("bench-publish", results)


def _one(bench: Bench, runs: int) -> dict[str, object]:
    """Compare a branch without a conflict with conflicting ones of a small and a large file."""
    taken, small, large, traffic = [], [], [], _Traffic()
    for _ in range(runs):
        taken.append(bench.publish(bench.audited()))
        small.append(bench.publish_refused(_SMALL))
        large.append(bench.publish_refused(_LARGE))
        traffic = bench.traffic
    return {
        "runs": runs,
        "taken_seconds": statistics.median(taken),
        "refused_small_seconds": statistics.median(small),
        "refused_large_seconds": statistics.median(large),
        "rebase_seconds": statistics.median(s - t for s, t in zip(small, taken, strict=True)),
        "large_to_small": statistics.median(x / s for x, s in zip(large, small, strict=True)),
        "rows": [_SMALL, _LARGE],
        "traffic_of_a_large_one": asdict(traffic),
    }


def _at_once(bench: Bench, files: int) -> dict[str, object]:
    """Publish files whose branches were all created from one head of main, by many publishers."""
    waiting = [bench.audited() for _ in range(files)]
    before, log = bench.rows_on_main(), bench.commits()
    begin = time.perf_counter()
    for ingestion in waiting:
        now = bench.adapters.ledger.get(ingestion.id)
        if not now.ended:
            publish(bench.adapters, now)
    seconds = time.perf_counter() - begin
    if bench.rows_on_main() != before + files * _SMALL:
        raise SystemExit(f"rows are missing, or there are too many, after {files} at once")
    return {"files": files, "seconds": seconds, "commits": bench.commits() - log}


def _groups(bench: Bench, number: int) -> dict[str, object]:
    """Publish groups of a hundred files: the first alone, then all others, which it refused."""
    first, *others = [bench.group() for _ in range(number)]
    before, log = bench.rows_on_main(), bench.commits()
    alone = bench.publish(first[0])
    begin = time.perf_counter()
    bench.publish(others[-1][0])
    seconds = time.perf_counter() - begin
    files = sum(map(len, (first, *others)))
    if bench.rows_on_main() != before + files:
        raise SystemExit(f"rows are missing, or there are too many, after {number} groups")
    return {
        "files": files - len(first),
        "alone_seconds": alone,
        "seconds": seconds,
        "to_the_merge_seconds": bench.merges.last - begin,
        "commits": bench.commits() - log,
    }


def _by_table(few: Bench, many: Bench, runs: int) -> dict[str, object]:
    """Compare a conflicting branch of a table of few files with one of a table of many."""
    few.fill(_FEW_FILES)
    many.fill(_MANY_FILES)
    pairs = [(few.publish_refused(_SMALL), many.publish_refused(_SMALL)) for _ in range(runs)]
    return {
        "files": [_FEW_FILES, _MANY_FILES],
        "runs": runs,
        "few_seconds": statistics.median(f for f, _ in pairs),
        "many_seconds": statistics.median(m for _, m in pairs),
        "ratio": statistics.median(m / f for f, m in pairs),
        "ratios": [round(m / f, 2) for f, m in pairs],
    }


def _now() -> str:
    return times.text(datetime.now(UTC))


if __name__ == "__main__":
    main()
