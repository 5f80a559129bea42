"""Compare our readers of text with Spark's own, and ingestions of text with plain appends.

`python -m benchmarks.text [--megabytes N …] [--formats F …] [--runs N] [--only P …]`: in one warm
Spark, in turn, for a file of each format and size: Spark's own reader with the same columns, our
strict reader in Spark, and ours, which has Arrow decode and audit the file first, all up to the
last value of every row. Then Spark's own append to main, and the whole ingestion. Ours also with a
file whose every row has a number that is none. The strict reader of 100 MB takes most of the time:
`--megabytes 10` and `--only ingested` do without it.
"""

import argparse
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame, SparkSession

from benchmarks.costs import Bench, Work, bench
from benchmarks.results import written
from benchmarks.small_files import Kind, readings_contract
from lakegate.audit.report import Verdict
from lakegate.contract.model import parse
from lakegate.limits import DEFAULTS
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.open import open_source
from spark_jobs.files.source import LocalFile
from spark_jobs.one_pass.prepare import prepared
from tests.spark.measuring import reading_session

_FORMATS = {"csv": "csv", "csv.gz": "csv", "jsonl": "json", "json": "json"}
_SCHEMA = "id BIGINT, sensor STRING, value DOUBLE, kind STRING"
_SAMPLE = 1000
_GOOD, _BAD, _STRICT, _SPARK = "ours", "ours, all bad", "ours in Spark", "Spark's reader"
_PARTS = ("read", "ingested")


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 100], help="as plain text")
    parser.add_argument("--formats", nargs="+", choices=_FORMATS, default=list(_FORMATS))
    parser.add_argument("--runs", type=int, default=3, help="counted runs of each")
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=list(_PARTS))
    options = parser.parse_args()
    sizes = [(ending, size) for size in options.megabytes for ending in options.formats]
    with tempfile.TemporaryDirectory() as folder, bench() as started:
        texts = (_Text(started, *each, options.runs) for each in sizes)
        done = [text.measured(Path(folder), options.only) for text in texts]
        written("bench-text", done)


@dataclass(frozen=True)
class _Text:
    """Files whose names have one ending and whose plain text has so many megabytes."""

    bench: Bench
    ending: str
    megabytes: int
    runs: int

    @property
    def table(self) -> str:
        return f"bench.{self.ending.replace('.', '_')}_{self.megabytes}"

    @property
    def contract(self) -> str:
        return readings_contract(self.table, _FORMATS[self.ending])

    def measured(self, folder: Path, parts: Collection[str] = _PARTS) -> dict[str, object]:
        """Return the costs of reading and of ingesting a good file and one of bad rows."""
        sample = Kind(self.table, self.ending.removesuffix(".gz"), _SAMPLE)
        rows = self.megabytes * 1_000_000 * _SAMPLE // len(sample.body(0))
        good = Kind(self.table, self.ending, rows)
        bodies = {_GOOD: good.body(0), _BAD: replace(good, unreadable=True).body(0)}
        print(f"{self.ending} of {self.megabytes} MB, {rows:,} rows")
        found = {"format": self.ending, "megabytes": self.megabytes, "rows": rows}
        each = {
            "read": partial(self._read, folder, bodies),
            "ingested": partial(self._ingested, bodies),
        }
        return {**found, **{name: each[name]() for name in _PARTS if name in parts}}

    def _read(self, folder: Path, bodies: dict[str, bytes]) -> dict[str, object]:
        files = {name: folder / f"{self._stem(name)}.{self.ending}" for name in bodies}
        for name, file in files.items():
            file.write_bytes(bodies[name])
        session = reading_session(self.bench.spark)
        each: dict[str, Work] = {
            _SPARK: lambda: _all_values(self._by_spark(session, str(files[_GOOD]))),
            _STRICT: partial(self._strictly, session, files[_GOOD]),
            **{name: partial(self._by_ours, session, files[name]) for name in (_BAD, _GOOD)},
        }
        return _with_bad(self.bench.compared(each, self.runs))

    def _stem(self, name: str) -> str:
        return f"{self.table}-{'bad' if name == _BAD else 'good'}"

    def _by_spark(self, spark: SparkSession, path: str) -> DataFrame:
        reader = spark.read.schema(_SCHEMA)
        if _FORMATS[self.ending] == "csv":
            return reader.csv(path, header=True)
        return reader.json(path, multiLine=self.ending == "json")

    def _by_ours(self, spark: SparkSession, file: Path) -> None:
        try:
            prepared(LocalFile(file), parse(self.contract, self.table), DEFAULTS).examined()
        except MustRewrite:
            self._strictly(spark, file)

    def _strictly(self, spark: SparkSession, file: Path) -> None:
        contract = parse(self.contract, self.table)
        _all_values(open_source(spark, str(file), contract, LocalFile(file)).rows)

    def _ingested(self, bodies: dict[str, bytes]) -> dict[str, object]:
        running, table = self.bench.running, self.table
        good, bad = (
            running.land(f"bench/{self._stem(name)}.{self.ending}", body)
            for name, body in bodies.items()
        )
        version = running.put_contract(table, self.contract)
        self.bench.publish(good, table, version)  # makes the table
        each: dict[str, Work] = {
            "plain append": partial(self.bench.append, good, table, self._by_spark),
            _BAD: partial(self.bench.ingest, bad, table, version, Verdict.REJECTED),
            _GOOD: partial(self.bench.publish, good, table, version),
        }
        return _with_bad(self.bench.compared(each, self.runs))


def _all_values(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _with_bad(found: dict[str, object]) -> dict[str, object]:
    """Print and add how many times the time of the good file the bad one takes."""
    ratios = cast("dict[str, float]", found["ratios"])
    bad = 1 / ratios[_BAD]
    print(f"{_BAD} / {_GOOD}: {bad:.3f}", flush=True)
    return {**found, "bad_to_good": bad}


if __name__ == "__main__":
    main()
