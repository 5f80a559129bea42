"""Ingest damaged files as the job does and compare their rows.

`python -m benchmarks.damage [--files N] [--seed N] [--batches]`: files of every format, damaged by
a seed. With `--batches` Parquet is read like large files.
"""

import argparse
import io
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.results import written
from infra.local.contract_test import Landed, LocalBranch, local_session, local_spark, spec_of
from lakegate.contract.model import parse
from lakegate.errors import LakegateError
from lakegate.limits import DEFAULTS
from lakegate.report import Verdict
from spark_jobs.ingest import ingest
from tests.fakes.mutations import FLAT, Sample, mutated, samples

_TABLE = "fuzz.rows"
_STALL = 60
_THREADS = 2
_SLICE = 264
_ENDS = ("stopped", "right", "alike", "wrong", "hung")


@dataclass(frozen=True)
class Outcome:
    """The result of one damaged file: one of `_ENDS`, and the code if it was stopped."""

    sample: str
    number: int
    damage: str
    end: str
    code: str = ""


def main() -> None:
    """Damage, ingest, print the counts, and write each outcome as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.damage")
    parser.add_argument("--files", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", action="store_true")
    options = parser.parse_args()
    outcomes: list[Outcome] = []
    while len(outcomes) < options.files:  # a reader that hangs takes its Spark with it
        outcomes += _until_one_hangs(options, len(outcomes))
    written("fuzz-files", [vars(outcome) for outcome in outcomes])
    _print(outcomes)


def _until_one_hangs(options: argparse.Namespace, done: int) -> list[Outcome]:
    outcomes: list[Outcome] = []
    with local_spark() as spark, tempfile.TemporaryDirectory() as home:
        trial = _Trial.of(spark, Path(home), options)
        with ThreadPoolExecutor(_THREADS) as pool:
            for begin in range(done, options.files, _SLICE):
                numbers = range(begin, min(begin + _SLICE, options.files))
                outcomes += pool.map(trial.outcome, numbers)
                if any(outcome.end == "hung" for outcome in outcomes):
                    break
    return outcomes


@dataclass(frozen=True)
class _Trial:
    """The undamaged files and the rows that each of them has on its branch."""

    spark: SparkSession
    undamaged: dict[str, Sample]
    rows: dict[str, list[str]]
    options: argparse.Namespace

    @classmethod
    def of(cls, spark: SparkSession, home: Path, options: argparse.Namespace) -> "_Trial":
        every = samples(_avro(spark, home)).items()
        undamaged = {
            n: each for n, each in every if not options.batches or each.format == "parquet"
        }
        rows = {name: _ingested(spark, each, each.body)[1] for name, each in undamaged.items()}
        if empty := [name for name, found in rows.items() if not found]:
            raise SystemExit(f"undamaged files were rejected: {empty}")
        return cls(spark, undamaged, rows, options)

    def outcome(self, number: int) -> Outcome:
        name = [*self.undamaged][number % len(self.undamaged)]
        sample = self.undamaged[name]
        others = [each for each in self.undamaged.values() if each.format == sample.format]
        how, body = mutated(sample, others, self.options.seed * 1_000_000 + number)
        intact, batches = self.rows[name], self.options.batches
        end, code = _judged(self.spark, sample, body, intact, batches=batches)
        print(f"{number:>5} {name}, {how}: {end} {code}", flush=True)
        return Outcome(name, number, how, end, code)


def _judged(
    spark: SparkSession, sample: Sample, body: bytes, intact: list[str], *, batches: bool
) -> tuple[str, str]:
    code, found = _ingested(spark, sample, body, batches=batches)
    if code:
        return "hung" if code == "TIMED_OUT" else "stopped", code
    if found == intact:
        return "right", ""
    return "alike" if found == _by_arrow(sample, body) else "wrong", ""


def _ingested(
    spark: SparkSession, sample: Sample, body: bytes, *, batches: bool = False
) -> tuple[str, list[str]]:
    """Return why a file is not published, "" if it is, and the rows that are on its branch."""
    limits = replace(DEFAULTS, longest_stall=_STALL)
    limits = replace(limits, largest_by_rows=1) if batches else limits
    contract = parse(sample.contract(_TABLE), "a damaged file")
    with tempfile.TemporaryDirectory() as folder:
        home, file = Path(folder), Path(folder) / f"landed-{sample.name}"
        file.write_bytes(body)
        spec = replace(spec_of(contract, file), limits=limits)
        session = local_session(spark, spec, home)
        try:
            report = ingest(spec, Landed(file, contract, home), session, LocalBranch())
        except LakegateError as error:
            return error.code, []
        except Exception as error:  # noqa: BLE001  a fault of the job's, and worth a line
            return f"not translated: {error!r:.100}", []
        if report.verdict is not Verdict.PASSED:
            return report.reason.code if report.reason else "REJECTED", []
        rows = session.table(f"lake.{_TABLE}").withColumns(_numbers(sample)).collect()
        return "", _canonical(row.asDict(True) for row in rows)


def _numbers(sample: Sample) -> dict[str, Any]:
    """Return days and times as numbers: Python's have no year before 1 or after 9999."""
    sql = {"day": "unix_date(day)", "at": "unix_micros(at)"}
    names = {column["name"] for column in sample.columns}
    return {name: F.expr(text) for name, text in sql.items() if name in names}


def _by_arrow(sample: Sample, body: bytes) -> list[str]:
    file, columns = io.BytesIO(body), [column["name"] for column in sample.columns]
    try:
        if sample.format == "parquet":
            table = pq.ParquetFile(file).read(columns)
        elif sample.format == "orc":
            table = orc.ORCFile(file).read(columns)
        else:
            return []
        if "at" in columns:
            day, at = (table[name] for name in ("day", "at"))
            micros = at.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
            table = table.set_column(columns.index("day"), "day", day.cast(pa.int32()))
            table = table.set_column(columns.index("at"), "at", micros)
        return _canonical(table.to_pylist())
    except (OSError, ValueError, pa.ArrowException):
        return []


def _canonical(rows: Any) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def _avro(spark: SparkSession, home: Path) -> dict[str, bytes]:
    """Return the flat rows as Avro, which nothing but Spark writes here."""
    pq.write_table(FLAT, home / "flat.parquet")
    rows = spark.read.parquet(str(home / "flat.parquet")).coalesce(1)
    found = {}
    for codec in ("uncompressed", "deflate", "snappy"):
        out = home / codec
        rows.write.format("avro").option("compression", codec).save(str(out))
        (file,) = out.glob("*.avro")
        found[codec] = file.read_bytes()
    return found


def _print(outcomes: list[Outcome]) -> None:
    print(f"{'':22}" + "".join(f"{end:>9}" for end in _ENDS))
    for name in [*dict.fromkeys(outcome.sample for outcome in outcomes), "all"]:
        ends = Counter(each.end for each in outcomes if name in (each.sample, "all"))
        print(f"{name:22}" + "".join(f"{ends[end]:>9}" for end in _ENDS))
    print(f"codes: {dict(Counter(each.code for each in outcomes if each.code).most_common())}")


if __name__ == "__main__":
    main()
