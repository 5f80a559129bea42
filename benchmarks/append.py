"""Compare a plain Spark append with the complete ingestion of the same file.

`python -m benchmarks.append [--rows N …] [--runs N] [--group N]`: in one warm Spark, in turn:
Spark's own append of a Parquet file to main, that of pyiceberg with pyarrow, and the complete
ingestion of that file: branch, job (read, enter, audit of five checks, report), merge, branch
deleted. Then the ingestion of a group of files of the first size, beside appends of a tenth as
many.
"""

import argparse
from functools import partial
from typing import cast

import numpy as np

from benchmarks.costs import Bench, Work, bench
from benchmarks.landings import main as main_branch
from benchmarks.peers import read
from benchmarks.results import parquet, written
from benchmarks.small_files import readings_contract
from lakegate.landing import LandedObject

_TABLE = "bench.readings"
_CONTRACT = readings_contract(_TABLE, "parquet", unique=False)


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.append")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 5_000_000])
    parser.add_argument("--runs", type=int, default=7, help="counted runs of each")
    parser.add_argument("--group", type=int, default=100, help="files of the group")
    options = parser.parse_args()
    with bench() as started:
        done = [_compared(started, n, options.runs) for n in options.rows]
        group = _group(started, options.rows[0], options.group, options.runs)
        written("bench-append", [*done, group])


def _compared(bench: Bench, rows: int, runs: int) -> dict[str, object]:
    body = _file(rows)
    landed = bench.running.land(f"bench/readings/{rows}.parquet", body)
    version = bench.running.put_contract(_TABLE, _CONTRACT)
    bench.publish(landed, _TABLE, version)  # makes the table
    print(f"{rows:,} rows")
    each: dict[str, Work] = {
        "plain append": partial(bench.append, landed, _TABLE),
        "pyiceberg": _by_pyiceberg(bench, landed),
        "whole ingestion": partial(bench.publish, landed, _TABLE, version),
    }
    return {"rows": rows, "bytes": len(body), **bench.compared(each, runs)}


def _by_pyiceberg(bench: Bench, landed: LandedObject) -> Work:
    """Return what appends the file to a table of its own, without a JVM and without an audit."""
    catalog = main_branch(bench.running.nessie_uri, bench.running.tokens["publisher"])
    schema = read(bench.running.s3, landed).schema
    catalog.create_table(f"{_TABLE}_{landed.size}", schema)
    table = catalog.load_table(f"{_TABLE}_{landed.size}")
    return lambda: table.append(read(bench.running.s3, landed))


def _group(bench: Bench, rows: int, files: int, runs: int) -> dict[str, object]:
    """Return the costs of a group of files, beside those of appends of some of them."""
    body, few = _file(rows), max(1, files // 10)
    version = bench.running.put_contract(_TABLE, _CONTRACT)
    landed = [bench.running.land(f"bench/readings/group/{n}.parquet", body) for n in range(files)]
    print(f"{files} files of {rows:,} rows")
    like = bench.running.spec(landed[0], version, _TABLE)

    def appends() -> None:
        for one in landed[:few]:
            bench.append(one, _TABLE)

    each: dict[str, Work] = {
        f"{few} plain appends": appends,
        f"a group of {files}": partial(bench.publish_together, landed, like),
    }
    found = bench.compared(each, runs)
    (ratio,) = cast("dict[str, float]", found["ratios"]).values()
    print(f"a file of the group / a plain append: {ratio * few / files:.3f}")
    return {"rows": rows, "files": files, "a_file": ratio * few / files, **found}


def _file(rows: int) -> bytes:
    random = np.random.default_rng(1)
    return parquet(
        {
            "id": np.arange(rows),
            "sensor": [f"s{i}" for i in range(rows)],
            "value": random.random(rows) * 1000,
            "kind": random.choice(["a", "b", "c"], rows),
        }
    )


if __name__ == "__main__":
    main()
