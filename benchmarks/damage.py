"""Ingest damaged files as the job does and compare their rows.

`python -m benchmarks.damage [--files N] [--seed N] [--only PART] [--lies] [--groups]`:
files of every format, damaged by a seed, or only those with a part in their name, such as nested.
With `--lies` Parquet with one number changed in its footer or in a page's header, each once. With
`--groups` it is ingested in groups, as by a shared run. It says how many files Arrow wrote, and not
Spark.
"""

import argparse
import io
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.costs import Bench, bench
from benchmarks.results import written
from infra.local.contract_test import Landed, LocalBranch, local_session, local_spark, spec_of
from lakegate.audit.report import AuditReport, Verdict
from lakegate.contract.model import parse
from lakegate.errors import LakegateError
from lakegate.job.landing import ingestion_id
from lakegate.limits import DEFAULTS
from spark_jobs.one_pass.examined import WAY
from spark_jobs.run.ingest import ingest
from spark_jobs.spark.jvm import JavaError
from tests.fakes.lies import lies
from tests.fakes.mutations import FLAT, Sample, mutated, samples

_TABLE = "fuzz.rows"
_STALL = 60
_THREADS = 2
_SLICE, _GROUP = 264, 44
_UNREADABLE = "ROWS_UNREADABLE"
_ENDS = ("stopped", "right", "alike", "wrong", "unreadable", "hung")


@dataclass(frozen=True)
class Outcome:
    """The result of one damaged file: one of `_ENDS`, and the code if it was stopped.

    `by_arrow` if Arrow read and wrote it. A file is unreadable if its rows are on the branch, and
    Spark cannot read them.
    """

    sample: str
    number: int
    damage: str
    end: str
    code: str = ""
    by_arrow: bool = False


def main() -> None:
    """Damage, ingest, print the counts, and write each outcome as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.damage")
    parser.add_argument("--files", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of the samples' names")
    parser.add_argument("--lies", action="store_true")
    parser.add_argument("--groups", action="store_true")
    options = parser.parse_args()
    outcomes = _grouped(options) if options.groups else _one_by_one(options)
    written("fuzz-groups" if options.groups else "fuzz-files", [vars(each) for each in outcomes])
    _print(outcomes)


def _one_by_one(options: argparse.Namespace) -> list[Outcome]:
    outcomes: list[Outcome] = []
    if options.lies:
        options.files = min(options.files, len(_lies(options)))
    while len(outcomes) < options.files:  # a reader that hangs takes its Spark with it
        outcomes += _until_one_hangs(options, len(outcomes))
    return outcomes


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


_Lie = tuple[str, str, bytes]  # the sample's name, the lie, and the file


def _lies(options: argparse.Namespace) -> list[_Lie]:
    """Return all files with one lie, in an order by the seed."""
    every = [
        (name, how, body)
        for name, each in samples({}).items()
        if options.only in name and each.format == "parquet"
        for how, body in lies(each.body)
    ]
    return sorted(every, key=lambda lie: crc32(repr((options.seed, *lie[:2])).encode()))


@dataclass(frozen=True)
class _Trial:
    """The undamaged files and the rows that each of them has on its branch."""

    spark: SparkSession
    undamaged: dict[str, Sample]
    rows: dict[str, list[str]]
    options: argparse.Namespace
    lies: list[_Lie]

    @classmethod
    def of(cls, spark: SparkSession, home: Path, options: argparse.Namespace) -> "_Trial":
        every = samples(_avro(spark, home)).items()
        undamaged = {
            name: each
            for name, each in every
            if options.only in name and (each.format == "parquet" or not options.lies)
        }
        rows = {name: _ingested(spark, each, each.body)[1] for name, each in undamaged.items()}
        if empty := [name for name, found in rows.items() if not found]:
            raise SystemExit(f"undamaged files were rejected: {empty}")
        return cls(spark, undamaged, rows, options, _lies(options) if options.lies else [])

    def outcome(self, number: int) -> Outcome:
        name, how, body = self.lies[number] if self.lies else self._damaged(number)
        sample = self.undamaged[name]
        code, found, by_arrow = _ingested(self.spark, sample, body)
        end = _end(code) if code else _compared(sample, body, found, self.rows[name])
        print(f"{number:>5} {name}, {how}: {end} {code}", flush=True)
        return Outcome(name, number, how, end, code, by_arrow)

    def _damaged(self, number: int) -> _Lie:
        name = [*self.undamaged][number % len(self.undamaged)]
        sample = self.undamaged[name]
        others = [each for each in self.undamaged.values() if each.format == sample.format]
        return name, *mutated(sample, others, self.options.seed * 1_000_000 + number)


def _end(code: str) -> str:
    return {"TIMED_OUT": "hung", _UNREADABLE: "unreadable"}.get(code, "stopped")


def _compared(sample: Sample, body: bytes, found: list[str], intact: list[str]) -> str:
    if found == intact:
        return "right"
    return "alike" if found == _by_arrow(sample, body) else "wrong"


def _ingested(spark: SparkSession, sample: Sample, body: bytes) -> tuple[str, list[str], bool]:
    """Return why a file is not published, "" if it is; its rows; and whether Arrow wrote it."""
    limits = replace(DEFAULTS, longest_stall=_STALL)
    contract = parse(sample.contract(_TABLE), "a damaged file")
    with tempfile.TemporaryDirectory() as folder:
        home, file = Path(folder), Path(folder) / f"landed-{sample.name}"
        file.write_bytes(body)
        spec = spec_of(contract, file, limits)
        session = local_session(spark, spec, home)
        try:
            report = ingest(spec, Landed(file, contract, home), session, LocalBranch())
        except LakegateError as error:
            return error.code, [], False
        except Exception as error:  # noqa: BLE001  a fault of the job's, and worth a line
            return f"not translated: {error!r:.100}", [], False
        if report.verdict is not Verdict.PASSED:
            return report.reason.code if report.reason else "REJECTED", [], False
        by_arrow = _is_by_arrow(report)
        try:
            rows = session.table(f"lake.{_TABLE}").withColumns(_numbers(sample)).collect()
        except JavaError:
            return _UNREADABLE, [], by_arrow
        return "", _canonical(row.asDict(True) for row in rows), by_arrow


@dataclass(frozen=True)
class _Damaged:
    """A file of a group."""

    name: str
    sample: Sample
    number: int
    how: str
    body: bytes

    def outcome(self, report: AuditReport | None, rows: Mapping[str, list[str]]) -> Outcome:
        """Return its outcome; without a report it is left to be ingested alone."""
        if report is None:
            end = "stopped"
        elif (found := rows.get(report.files[0].path)) is None:
            end = "unreadable"
        else:
            end = _compared(self.sample, self.body, found, _by_arrow(self.sample, self.sample.body))
        print(f"{self.number:>5} {self.name}, {self.how}: {end}", flush=True)
        by_arrow = report is not None and _is_by_arrow(report)
        code = "" if report else "LEFT_ALONE"
        return Outcome(self.name, self.number, self.how, end, code, by_arrow)


def _grouped(options: argparse.Namespace) -> list[Outcome]:
    """Ingest damaged Parquet files of one contract in groups, by S3 and Nessie."""
    every = samples({}).items()
    flat = {name: each for name, each in every if each.format == "parquet" and each.is_flat}
    files = [_damaged(flat, options.seed, number) for number in range(options.files)]
    outcomes: list[Outcome] = []
    with bench() as started:
        version = started.running.put_contract(_TABLE, files[0].sample.contract(_TABLE))
        for begin in range(0, len(files), _GROUP):
            outcomes += _group(started, version, files[begin : begin + _GROUP])
    return outcomes


def _damaged(flat: Mapping[str, Sample], seed: int, number: int) -> _Damaged:
    name = [*flat][number % len(flat)]
    how, body = mutated(flat[name], [*flat.values()], seed * 1_000_000 + number)
    return _Damaged(name, flat[name], number, how, body)


def _group(bench: Bench, version: str, damaged: Sequence[_Damaged]) -> list[Outcome]:
    landed = [bench.running.land(f"fuzz/{each.number}.parquet", each.body) for each in damaged]
    like = bench.running.spec(landed[0], version, _TABLE)
    like = replace(like, limits=replace(DEFAULTS, longest_stall=_STALL))
    reports = {each.ingestion: each for each in bench.ingest_together(landed, like)}
    rows: dict[str, list[str]] = {}
    for branch in {report.branch for report in reports.values()}:
        rows |= _rows_by_file(bench, branch, damaged[0].sample)
    found = (reports.get(ingestion_id(each)) for each in landed)
    return [each.outcome(report, rows) for each, report in zip(damaged, found, strict=True)]


def _rows_by_file(bench: Bench, branch: str, sample: Sample) -> dict[str, list[str]]:
    """Return the rows of each data file on a branch; none if Spark cannot read it."""
    rows = bench.on(branch).table(f"lake.{_TABLE}").select("*", F.col("_file").alias("file"))
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    try:
        for row in rows.withColumns(_numbers(sample)).collect():
            values = row.asDict(recursive=True)
            found[values.pop("file")].append(values)
    except JavaError as error:
        print(f"the rows on {branch} cannot be read: {error}", flush=True)
        return {}
    return {path: _canonical(each) for path, each in found.items()}


def _is_by_arrow(report: AuditReport) -> bool:
    return report.engine.get("write") == WAY


def _numbers(sample: Sample) -> dict[str, Any]:
    """Return days and times as numbers: Python's have no year before 1 or after 9999."""
    names = {column["name"] for column in sample.columns}
    sql = {"day": "unix_date(day)", "at": "unix_micros(at)"}
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
    columns = (*_ENDS, "by_arrow")
    print(f"{'':29}" + "".join(f"{name:>11}" for name in columns))
    for name in [*dict.fromkeys(outcome.sample for outcome in outcomes), "all"]:
        those = [each for each in outcomes if name in (each.sample, "all")]
        counts = Counter(each.end for each in those)
        counts["by_arrow"] = sum(each.by_arrow for each in those)
        print(f"{name:29}" + "".join(f"{counts[column]:>11}" for column in columns))
    print(f"codes: {dict(Counter(each.code for each in outcomes if each.code).most_common())}")


if __name__ == "__main__":
    main()
