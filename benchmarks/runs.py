"""Measure many small files: bursts, a steady flow in which the run is killed, and plain appends.

`python -m benchmarks.runs [--only PART …] [--files N] …` starts a whole local stack in a folder of
its own, whose shared run is warm. Its parts, each with tables of its own:

    a  Parquet files of 20 KB at once for one table, one in a hundred bad
    b  CSV files of 20 KB at once
    c  files at once for a table that does not exist
    d  gzipped CSV files of 10,000 rows at once
    e  one file a second for several tables that exist; in the middle the run is killed once
    f  the files of c, and some of a, beside one append for each by pyiceberg and by a warm Spark
    g  Parquet files at once, by default of 2,000 rows, upserted into a table of a million rows
    h  such files, whose keys must be new in a table of a million rows
    i  Parquet files of 2,000 rows and a day each at once, for a plain table, and for one with
       partitions by day, an order, provenance, a key and a condition in SQL

After each burst, main must have exactly the good files' rows.
"""

import argparse
import os
import signal
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.landings import (
    Figures,
    at_once,
    check_rows,
    each_second,
    measured,
    percentile,
    waits,
    warm,
)
from benchmarks.peers import beside_plain_appends
from benchmarks.results import written
from benchmarks.small_files import Keyed, Kind, Real, Upserts
from functions.model.ingestion import Ingestion, State
from lakegate.job.landing import LandedObject
from tests.e2e.conftest import Gate
from tests.e2e.killing import spark
from tests.waiting import eventually

_SMALL_PARQUET, _SMALL_CSV = 900, 450  # rows of 20 KB
_MANY = Kind("bench.many", "parquet", _SMALL_PARQUET, some_bad=True)
_CSV = Kind("bench.text", "csv", _SMALL_CSV)
_FIRST = Kind("bench.first", "parquet", _SMALL_PARQUET)
_REAL_ROWS = 2_000
_GZIP = Kind("bench.zipped", "csv.gz", 10_000)
_COLUMNS = (
    *("files", "judged", "again", "job_runs", "commits"),
    *("dropping", "seconds", "seconds_to_end", "seconds_a_file", "p50", "p95"),
)


def main() -> None:
    """Measure, print a table, and write the figures as JSON after each part."""
    options = _options()
    done: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as home, warm(Path(home)) as gate:
        print(" " * 34, *(f"{name:>14}" for name in _COLUMNS))
        for name in options.only:
            done[name] = _PARTS[name](gate, options)
            written("bench-runs", done)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runs")
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=list(_PARTS))
    parser.add_argument("--files", type=int, default=10_000, help="files of part a")
    parser.add_argument("--csv-files", type=int, default=2_000, help="files of part b")
    parser.add_argument("--first-files", type=int, default=64, help="files of parts c and f")
    parser.add_argument("--gzip-files", type=int, default=36, help="files of part d")
    parser.add_argument("--seconds", type=int, default=300, help="duration of part e")
    parser.add_argument("--tables", type=int, default=20, help="tables of part e")
    parser.add_argument("--keyed", type=int, default=256, help="files of parts g and h")
    parser.add_argument("--keyed-rows", type=int, default=2_000, help="rows of each of these")
    parser.add_argument("--real-files", type=int, default=256, help="files of part i, twice")
    parser.add_argument("--peer-files", type=int, default=300, help="files of a in part f")
    return parser.parse_args()


def _burst(kind: Kind, size: str, what: str) -> Callable[[Gate, argparse.Namespace], object]:
    """Return a part that lands so many files of a kind at once; an option has their number."""

    def part(gate: Gate, options: argparse.Namespace) -> object:
        return _shown(what, at_once(gate, kind, getattr(options, size)))

    return part


def _flow(gate: Gate, options: argparse.Namespace) -> object:
    """Land a file each second, table by table; kill the run once in the middle."""
    tables = [Kind(f"bench.flow{n}", "parquet", _SMALL_PARQUET) for n in range(options.tables)]
    for kind in tables:
        at_once(gate, kind, 1)  # creates the table
    killed_at: list[datetime] = []

    def drop() -> list[LandedObject]:
        landed = list[LandedObject]()
        for second in each_second(options.seconds):
            if second == options.seconds // 2:
                killed_at.append(_kill_run(gate))
            kind, number = tables[second % len(tables)], 1 + second // len(tables)
            landed.append(gate.drop(kind.key(number), kind.body(number)))
        return landed

    found, ended = measured(gate, drop)
    for nth, kind in enumerate(tables):
        check_rows(gate, kind, 1 + len(range(nth, options.seconds, len(tables))))
    shown, early = _shown("e  a file a second, run killed", found), before(killed_at[0], ended)
    print("   ", *(f"{name}: {_cell(value)};" for name, value in early.items()))
    return {**shown, **early}


def before(killed_at: datetime, ended: list[Ingestion]) -> dict[str, float]:
    """Return the median and the 95th percentile of files on main before the run was killed."""
    published = [each for each in ended if each.state is State.PUBLISHED]
    early = [i for i in published if datetime.fromisoformat(i.times["published"]) < killed_at]
    latencies = waits(early)
    return {
        "published_before_the_kill": len(early),
        "p50_before_the_kill": percentile(latencies, 0.5),
        "p95_before_the_kill": percentile(latencies, 0.95),
    }


def _kill_run(gate: Gate) -> datetime:
    """Kill the process of the shared run, not its warm Spark; return when."""
    process = eventually(lambda: spark(gate).get("run"), message="no run is up")
    os.kill(process, signal.SIGKILL)
    return datetime.now(UTC)


def _by_key(of: type[Keyed], table: str, what: str) -> Callable[[Gate, argparse.Namespace], object]:
    """Return a part that lands files of a kind at once, for a table that has many rows."""

    def part(gate: Gate, options: argparse.Namespace) -> object:
        kind = of(table, "parquet", options.keyed_rows)
        gate.put_contract(kind.contract)
        measured(gate, lambda: [gate.drop(kind.key(kind.known), kind.before())])
        return _shown(f"{what} {kind.known:,} rows", at_once(gate, kind, options.keyed))

    return part


def _real(gate: Gate, options: argparse.Namespace) -> object:
    """Land files at once for a plain table, and then for one as people have them."""
    kinds = {
        "plain": Kind("bench.plain", "parquet", _REAL_ROWS),
        "real": Real("bench.real", "parquet", _REAL_ROWS),
    }
    found = {}
    for name, kind in kinds.items():
        at_once(gate, kind, 1)  # creates the table
        figures = at_once(gate, kind, options.real_files, first=1)
        found[name] = _shown(f"i  {name} table", figures)
    return found


def _peers(gate: Gate, options: argparse.Namespace) -> object:
    """Compare with one append for each file, by others."""
    sizes = {"c": options.first_files, "a": options.peer_files}
    found = {}
    for name, files in sizes.items():
        kind = Kind(f"bench.beside_{name}", "parquet", _SMALL_PARQUET)
        ours = at_once(gate, kind, files)
        shown = _shown(f"f  files of {name}, Lakegate", ours)
        found[name] = {**shown, **beside_plain_appends(gate, kind, files, ours.seconds)}
    return found


def _shown(what: str, figures: Figures) -> dict[str, Any]:
    """Print a row of the table; return the figures."""
    told = figures.told()
    row = [_cell(told[name]) for name in _COLUMNS]
    print(f"{what:34}", *(f"{cell:>14}" for cell in row), flush=True)
    return told


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


_PARTS: Mapping[str, Callable[[Gate, argparse.Namespace], object]] = {
    "a": _burst(_MANY, "files", "a  Parquet, 1 % bad"),
    "b": _burst(_CSV, "csv_files", "b  CSV"),
    "c": _burst(_FIRST, "first_files", "c  a new table"),
    "d": _burst(_GZIP, "gzip_files", "d  gzipped CSV, 10,000 rows"),
    "e": _flow,
    "f": _peers,
    "g": _by_key(Upserts, "bench.upserts", "g  upserts into"),
    "h": _by_key(Keyed, "bench.keyed", "h  new keys into"),
    "i": _real,
}


if __name__ == "__main__":
    main()
