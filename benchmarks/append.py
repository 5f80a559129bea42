"""Compare a plain Spark append with the complete ingestion of the same file.

`python -m benchmarks.append [--rows N …] [--runs N] [--group N] [--tables T …]`: in one warm Spark,
in turn: Spark's own append of a Parquet file to main, that of pyiceberg with pyarrow, and the
complete ingestion of that file: branch, job (read, write, audit of five checks, report), merge,
branch deleted. Then the ingestion of a group of files of the first size, beside appends of a tenth
as many. All this into a plain table, and into one with partitions by day, an order, provenance and
a `rowExpression`, of whose columns Spark's append gets those of provenance as nulls; if asked,
into one whose id is unique in each file. Large files are asked for, too: `--rows 40000000 --runs 1
--group 0 --tables plain keyed`.
"""

import argparse
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.costs import Bench, Work, bench
from benchmarks.landings import main as main_branch
from benchmarks.peers import read
from benchmarks.results import parquet, written
from benchmarks.small_files import readings_contract, real_contract
from lakegate.job.landing import LandedObject

_DAYS = 30
_MOST_OF_PYICEBERG = 10_000_000  # rows; the local S3 is too slow for its larger uploads


@dataclass(frozen=True)
class _Table:
    """A table of the benchmark, and the contract of its files."""

    name: str
    contract: str
    has_days: bool = False

    def file(self, rows: int) -> bytes:
        random = np.random.default_rng(1)
        columns = {
            "id": np.arange(rows),
            "sensor": [f"s{i}" for i in range(rows)],
            "value": random.random(rows) * 1000,
            "kind": random.choice(["a", "b", "c"], rows),
        }
        first = np.datetime64("2026-01-01")
        days = {"day": first + np.arange(rows) * _DAYS // rows} if self.has_days else {}
        return parquet(columns | days)


_TABLES = {
    "plain": _Table("bench.readings", readings_contract("bench.readings", "parquet")),
    "real": _Table("bench.real", real_contract("bench.real"), has_days=True),
    "keyed": _Table("bench.keyed", readings_contract("bench.keyed", "parquet", key="unique: true")),
}


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.append")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 5_000_000])
    parser.add_argument("--runs", type=int, default=7, help="counted runs of each")
    parser.add_argument("--group", type=int, default=100, help="files of the group, or 0")
    parser.add_argument("--tables", nargs="+", choices=_TABLES, default=["plain", "real"])
    options = parser.parse_args()
    done: list[dict[str, object]] = []
    with bench() as started:
        for each in (_TABLES[name] for name in options.tables):
            done += [_compared(started, each, rows, options.runs) for rows in options.rows]
            if options.group:
                done.append(_group(started, each, options.rows[0], options.group, options.runs))
        written("bench-append", done)


def _compared(bench: Bench, table: _Table, rows: int, runs: int) -> dict[str, object]:
    body = table.file(rows)
    landed = bench.running.land(f"{table.name.replace('.', '/')}/{rows}.parquet", body)
    version = bench.running.put_contract(table.name, table.contract)
    bench.publish(landed, table.name, version)  # makes the table
    print(f"{rows:,} rows into {table.name}")
    peers: dict[str, Work] = {"plain append": partial(_append, bench, landed, table)}
    if not table.has_days and rows <= _MOST_OF_PYICEBERG:
        peers["pyiceberg"] = _by_pyiceberg(bench, landed, table)
    ours = {"whole ingestion": partial(bench.publish, landed, table.name, version)}
    found = bench.compared(peers | ours, runs)
    return {"table": table.name, "rows": rows, "bytes": len(body), **found}


def _append(bench: Bench, landed: LandedObject, table: _Table) -> None:
    """Append the file to main by Spark alone, with nulls as its provenance."""
    if table.has_days:
        bench.append(landed, table.name, partial(_read, table.name))
    else:
        bench.append(landed, table.name)


def _read(table: str, spark: SparkSession, path: str) -> DataFrame:
    """Return the rows of a file with all columns of a table; those that it lacks are null."""
    rows = spark.read.parquet(path)
    wanted = spark.table(f"lake.{table}").schema
    more = {f.name: F.lit(None).cast(f.dataType) for f in wanted if f.name not in rows.columns}
    return rows.withColumns(more)


def _by_pyiceberg(bench: Bench, landed: LandedObject, table: _Table) -> Work:
    """Return what appends the file to a table of its own, without a JVM and without an audit."""
    catalog = main_branch(bench.running.nessie_uri, bench.running.tokens["publisher"])
    schema = read(bench.running.s3, landed).schema
    catalog.create_table(f"{table.name}_{landed.size}", schema)
    own = catalog.load_table(f"{table.name}_{landed.size}")
    return lambda: own.append(read(bench.running.s3, landed))


def _group(bench: Bench, table: _Table, rows: int, files: int, runs: int) -> dict[str, object]:
    """Return the costs of a group of files, beside those of appends of some of them."""
    body, few = table.file(rows), max(1, files // 10)
    version = bench.running.put_contract(table.name, table.contract)
    folder = f"{table.name.replace('.', '/')}/group"
    landed = [bench.running.land(f"{folder}/{n}.parquet", body) for n in range(files)]
    print(f"{files} files of {rows:,} rows into {table.name}")
    like = bench.running.spec(landed[0], version, table.name)

    def appends() -> None:
        for one in landed[:few]:
            _append(bench, one, table)

    each: dict[str, Work] = {
        f"{few} plain appends": appends,
        f"a group of {files}": partial(bench.publish_together, landed, like),
    }
    found = bench.compared(each, runs)
    (ratio,) = cast("dict[str, float]", found["ratios"]).values()
    print(f"a file of the group / a plain append: {ratio * few / files:.3f}")
    of_file = ratio * few / files
    return {"table": table.name, "rows": rows, "files": files, "a_file": of_file, **found}


if __name__ == "__main__":
    main()
