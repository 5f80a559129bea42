"""One plain append for each landed file, by pyiceberg and by a warm Spark, without an audit."""

import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.rest import RestCatalog

from benchmarks.costs import Bench
from benchmarks.landings import main, rows_on_main
from benchmarks.small_files import Kind
from functions.adapters.nessie import Catalog
from lakegate.job.landing import LandedObject
from tests.e2e.conftest import Gate
from tests.services import Services, warm_spark

Append = Callable[[LandedObject], object]


def read(s3: Any, landed: LandedObject) -> pa.Table:
    """Return a landed Parquet file's rows, as pyarrow reads them."""
    answer = s3.get_object(Bucket=landed.bucket, Key=landed.key)
    return pq.read_table(io.BytesIO(answer["Body"].read()))


@dataclass(frozen=True)
class Files:
    """Landed files, and the catalog and storage by which a peer appends them."""

    gate: Gate
    landed: Sequence[LandedObject]
    token: str
    catalog: RestCatalog
    s3: Any

    @classmethod
    def of(cls, gate: Gate, kind: Kind, files: int) -> "Files":
        """Return the first landed files of a kind, with the publisher's rights."""
        token = (gate.home / "keys" / "publisher.token").read_text()
        newest = gate.adapters.landing.newest(f"{kind.table.replace('.', '/')}/")
        landed = [newest[kind.key(number)] for number in range(files)]
        return cls(gate, landed, token, main(gate.stack.nessie, token), boto3.client("s3"))

    def create(self, table: str) -> None:
        """Make an empty table on main for these files."""
        self.catalog.create_table(table, read(self.s3, self.landed[0]).schema)

    def seconds(self, table: str, append: Append) -> float:
        """Return the seconds to append all, one by one. Raises SystemExit if rows are missing."""
        begin = time.perf_counter()
        for each in self.landed:
            append(each)
        seconds = time.perf_counter() - begin
        wanted = sum(read(self.s3, each).num_rows for each in self.landed)
        if (found := rows_on_main(self.gate, table)) != wanted:
            raise SystemExit(f"{table} has {found} rows on main instead of {wanted}")
        return seconds


def beside_plain_appends(gate: Gate, kind: Kind, files: int, seconds: float) -> dict[str, object]:
    """Append landed files of a kind one by one to tables of the same Nessie.

    Return for each peer its seconds, and how many times those Lakegate's `seconds` are.
    """
    given = Files.of(gate, kind, files)
    peers = {"pyiceberg": _by_pyiceberg, "spark": _by_spark}
    theirs = {name: append(given, f"{kind.table}_{name}") for name, append in peers.items()}
    for name, each in theirs.items():
        print(f"   {name}: {each:.3f} s; Lakegate takes {seconds / each:.2f} times as long")
    return {
        name: {"seconds": each, "lakegate_to_it": seconds / each} for name, each in theirs.items()
    }


def _by_pyiceberg(files: Files, name: str) -> float:
    files.create(name)
    table = files.catalog.load_table(name)
    return files.seconds(name, lambda each: table.append(read(files.s3, each)))


def _by_spark(files: Files, name: str) -> float:
    warm_up = f"{name}_warm_up"
    for table in (warm_up, name):
        files.create(table)
    with _spark(files) as bench:
        bench.append(files.landed[0], warm_up)
        return files.seconds(name, lambda each: bench.append(each, name))


@contextmanager
def _spark(files: Files) -> Iterator[Bench]:
    """Yield a warm Spark of this process; it ends afterwards."""
    catalog = Catalog(files.gate.stack.nessie, files.token)
    tokens = {"publisher": files.token}
    running = Services(files.gate.stack.nessie, tokens, files.s3, catalog)
    spark = warm_spark(running)
    try:
        yield Bench(running, spark)
    finally:
        spark.stop()
