"""Files that a shared run ingests together, compared with the same files alone."""

import gzip
import io
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import boto3
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from lakegate.audit.report import AuditReport, Verdict, from_lines
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import WRITTEN_BY_JOBS, group_reports_key
from lakegate.job.shared_run import Judged, SharedRun
from spark_jobs import main
from spark_jobs.lake.storage import Storage
from spark_jobs.shared.serve import serve
from spark_jobs.shared.serving import means
from spark_jobs.shared.taken_files import TakenFiles
from spark_jobs.shared.work_queue import SqsQueues
from spark_jobs.spark.jvm import java
from tests.fakes.schema import validate_report
from tests.services import fresh_session
from tests.spark.conftest import Job, parquet
from tests.spark.measuring import contract_of, custom, options

pytestmark = pytest.mark.spark
Columns = Mapping[str, Sequence[Any]]
_RUN = SharedRun("run", "work", "verdicts", "", "", "", 60, 60)
_ROWS = 40


def _good(seed: int) -> dict[str, list[Any]]:
    return {
        "id": [seed * 1000 + n for n in range(_ROWS)],
        "name": [f"n{seed}" if n % 7 else None for n in range(_ROWS)],
        "amount": [float((seed * n) % 90) + 0.5 if n % 5 else None for n in range(_ROWS)],
        "day": [date(2013, 1, 1 + n % 28) for n in range(_ROWS)],
    }


def _last(seed: int, column: str, value: Any) -> dict[str, list[Any]]:
    rows = _good(seed)
    return {**rows, column: [*rows[column][:-1], value]}


def _csv(columns: Columns) -> bytes:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(map(_cell, row)) for row in rows]
    return "\n".join([",".join(columns), *lines, ""]).encode()


def _cell(value: Any) -> str:
    return "" if value is None else f'"{value}"' if value == "n3" else str(value)


def _json(columns: Columns) -> bytes:
    rows = zip(*columns.values(), strict=True)
    found = ({k: v for k, v in zip(columns, row, strict=True) if v is not None} for row in rows)
    return "\n".join([*(json.dumps(row, default=str) for row in found), ""]).encode()


_WRITERS: dict[str, Callable[[Columns], bytes]] = {"parquet": parquet, "csv": _csv, "json": _json}
# Once they are decoded, rows of every format are checked alike: Parquet has each kind of bad value.
_BAD_VALUES: dict[str, Columns] = {
    "a key twice": _last(12, "id", 12000),
    "a bad name": _last(13, "name", "x"),
    "out of range": _last(14, "amount", 101.0),
}
_BAD: dict[str, Columns] = {
    "a null": _last(11, "id", None),
    "a column more": {**_good(15), "more": [1] * _ROWS},
    "a column less": {k: v for k, v in _good(16).items() if k != "id"},
    "no rows": {name: [] for name in _good(17)},
}


def _damaged(format_: str) -> dict[str, bytes]:
    """Return files that cannot be read, or with rows that cannot."""
    if format_ == "parquet":
        plain = parquet(_good(21), compression="none", write_page_checksum=True)
        return {"empty": b"", "cut": plain[:-50], "bits": _flipped(plain), "text": b"id\n1\n"}
    good = _WRITERS[format_](_good(22))
    cell = {"csv": b"x,n1,1,2013-01-01\n", "json": b'{"id": "x"}\n'}[format_]
    odd = {"csv": b'1,"n1,1,2013-01-01\n', "json": b'{"id": 1\n'}[format_]
    return {"empty": b"", "a cell": good + cell, "a row": good + odd, "binary": b"\0\1\2" * 99}


def _flipped(body: bytes) -> bytes:
    at = len(body) // 3
    return body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :]


def _files(job: Job, specs: Sequence[JobSpec], s3: Any = None) -> TakenFiles:
    first = specs[0]
    run = replace(
        _RUN,
        lake_bucket=first.lake_bucket,
        nessie_uri=first.nessie_uri,
        token_secret=first.token_secret,
    )
    given = means(job.warm_spark, s3 or job.services.s3, boto3.client("secretsmanager"))
    return TakenFiles(run, given, job.services.tokens["job"])


def _ingest(job: Job, specs: Sequence[JobSpec]) -> list[AuditReport]:
    """Return the reports of files that one group takes, as the loop ingests them."""
    for spec in specs:
        job.services.catalog.delete_branch(spec.branch)  # the run makes its own
    taken = [replace(spec, branch="", base_hash="") for spec in specs]
    files = _files(job, taken)
    done = files.ingest_together(taken)
    for spec in taken:
        if spec.name not in done:
            files.ingest_alone(spec)
    return [_report(spec) for spec in taken]


def _report(spec: JobSpec) -> AuditReport:
    report = Storage.connect(spec).finished_report()
    assert report is not None
    validate_report(report.to_json())
    return report


def _specs(
    job: Job, bodies: Mapping[str, bytes], contract: str, table: str, folder: str = "group"
) -> list[JobSpec]:
    """Land files and return their job specs, without branches."""
    version = job.services.put_contract(table, contract)
    keys = (f"{table}/{folder}/{n}-{name.replace(' ', '-')}" for n, name in enumerate(bodies))
    landed = [job.services.land(key, body) for key, body in zip(keys, bodies.values(), strict=True)]
    return [job.services.spec(each, version, table) for each in landed]


def _essence(report: AuditReport) -> dict[str, Any]:
    """Return what must not depend on the company that a file had."""
    checks = {
        c.id: (c.status, c.severity, c.expected, c.found, c.message, c.counted, c.value, c.query)
        for c in report.checks
    }
    samples = {
        c.id: [{k: v for k, v in row.items() if not k.startswith("_")} for row in c.samples]
        for c in report.checks
    }
    rows = (report.rows_read, report.rows_written, report.rows_rejected, report.rows_unreadable)
    reason = report.reason and report.reason.code
    held = sum(file.rows for file in report.files)
    return {
        "verdict": report.verdict,
        "reason": reason,
        "checks": checks,
        "samples": samples,
        "rows": rows,
        "held": held,
        "changes": report.schema_changes,
        "records": len(report.records),
    }


def _is_together(report: AuditReport) -> bool:
    return report.branch.startswith(f"{WRITTEN_BY_JOBS}{report.table}/group-")


def _ids(job: Job, path: str) -> list[int]:
    bucket, _, key = path.removeprefix("s3://").partition("/")
    table = pq.read_table(io.BytesIO(_body(job, bucket, key)))
    return sorted(table.column("id").to_pylist())


def _body(job: Job, bucket: str, key: str) -> bytes:
    return bytes(job.services.s3.get_object(Bucket=bucket, Key=key)["Body"].read())


@pytest.mark.parametrize("format_", list(_WRITERS))
def test_each_file_of_a_group_is_judged_as_if_alone(
    job: Job, contract: Callable[..., str], table: str, format_: str
) -> None:
    """Whatever is wrong with some files, each report is that of the file alone.

    The group's branch has the rows of exactly the files that passed, each in a data file of its
    own, and every report of the group names them all. One object repeats these reports.
    """
    write = _WRITERS[format_]
    good = {f"good {n}": write(_good(n)) for n in range(1, 3)}
    bad = {**_BAD, **(_BAD_VALUES if format_ == "parquet" else {})}
    bodies = {**good, **{name: write(rows) for name, rows in bad.items()}, **_damaged(format_)}
    text = contract(format_, {"metric": "rowCount", "mustBeBetween": [1, 1000]})
    alone = [job.run(spec) for spec in _specs(job, bodies, text, table, "alone")]
    specs = _specs(job, bodies, text, table)
    reports = _ingest(job, specs)
    for name, one, other in zip(bodies, alone, reports, strict=True):
        assert _essence(other) == _essence(one), name
    assert [_is_together(report) for report in reports] == [name in good for name in bodies]
    passed = [report for report in reports if _is_together(report)]
    assert {report.group for report in passed} == {tuple(r.ingestion for r in passed)}
    assert len({(r.branch, r.base_hash, r.audited_hash) for r in passed}) == 1
    together = group_reports_key(table, passed[0].branch)
    assert from_lines(_body(job, specs[0].lake_bucket, together), together) == passed
    for n, report in enumerate(passed, 1):
        (file,) = report.files
        assert _ids(job, file.path) == _good(n)["id"]
        assert (file.rows, report.rows_written) == (_ROWS, _ROWS)
    there = [row["id"] for row in job.rows(table, passed[0].branch)]
    assert sorted(there) == [id_ for n in range(1, 3) for id_ in _good(n)["id"]]
    assert job.services.catalog.head(passed[0].branch) == passed[0].audited_hash


_VALUES = {"name": "v", "logicalType": "integer"}
_CHECKS: dict[str, dict[str, Any]] = {
    "aggregates, a warning": {
        "quality": [
            custom("sum", mustBeGreaterThan=0),
            custom("mean", mustBeBetween=[0, 1000]),
            custom("stddev", mustBeGreaterThan=0),
            custom("quantile", share=0.5, mustBeLessThan=1000),
            custom("distinctCount", mustBe=10),
            {"metric": "duplicateValues", "mustBeLessThan": 50, "unit": "percent"},
            custom("drift", of="mean"),
            {"metric": "nullValues", "mustBe": 0, "severity": "warning"},
        ]
    },
    "own SQL": {"quality": [custom("rowExpression", expression="100 / v > 0")]},
    "quarantine": {"logicalTypeOptions": {"maximum": 9000}, **options(onBadRow="quarantine")},
}
_CASES = {
    "fine": list(range(1, 11)),
    "fine too": list(range(21, 31)),
    "null, repeated": [7, None, 7, 8],
    "zero": [0, 5],
    "large": [9001, 9002],
}


@pytest.mark.parametrize("kind", list(_CHECKS))
def test_each_kind_of_check_finds_the_same(job: Job, table: str, kind: str) -> None:
    """A check's measure for a file in a group is the file's own, also where its SQL fails."""
    text = contract_of(
        [{**_VALUES, **_CHECKS[kind]}],
        [{"metric": "rowCount", "mustBeGreaterThan": 0}],
        table,
        **({"quarantine": {"maxRows": 1}} if kind == "quarantine" else {}),
    )
    bodies = {name: parquet({"v": pa.array(v, pa.int64())}) for name, v in _CASES.items()}
    alone = [job.run(spec) for spec in _specs(job, bodies, text, table, "alone")]
    reports = _ingest(job, _specs(job, bodies, text, table))
    for name, one, other in zip(bodies, alone, reports, strict=True):
        assert _essence(other) == _essence(one), name
    assert [_is_together(report) for report in reports[:2]] == [True, True]


def _turned(columns: dict[str, list[Any]]) -> Columns:
    return dict(reversed(columns.items()))


_SHARING = {
    "parquet": {
        "plain": parquet(_good(1)),
        "turned": parquet(_turned(_good(2))),
        "older": parquet(_good(3), version="1.0"),
        "packed": parquet(_good(4), compression="gzip"),
    },
    "csv": {
        "a.csv": _csv(_good(1)),
        "b.csv.gz": gzip.compress(_csv(_good(2))),
        "ü {x}*.csv": _csv(_turned(_good(3))),
        "c.json": _csv(_good(4)),
    },
}


@pytest.mark.parametrize("format_", _SHARING)
def test_files_of_several_writers_share_a_group(
    job: Job, contract: Any, table: str, format_: str
) -> None:
    """Neither another order of columns, writer or packing parts them, nor any key."""
    reports = _ingest(job, _specs(job, _SHARING[format_], contract(format_), table))
    assert len({report.branch for report in reports}) == 1
    assert [_ids(job, r.files[0].path) for r in reports] == [_good(n)["id"] for n in range(1, 5)]


def test_an_earlier_tries_branch_is_used_again(job: Job, contract: Any, table: str) -> None:
    """A branch without a report is reset to main's head; with a report it stays as it is."""
    (spec,) = _specs(job, {"a": parquet(_good(1))}, contract(), table)
    files = _files(job, [spec])
    files.ingest_alone(replace(spec, branch="", base_hash=""))
    first = _report(spec)
    files.ingest_alone(replace(spec, branch="", base_hash=""))
    assert job.services.catalog.head(spec.branch) == first.audited_hash
    other = _specs(job, {"b": parquet(_good(2))}, contract(), table)[0]
    job.publish(job.run(other))
    job.services.s3.delete_object(Bucket=spec.lake_bucket, Key=spec.report_key)
    files.ingest_alone(replace(spec, branch="", base_hash=""))
    second = _report(spec)
    assert second.base_hash == job.services.catalog.head("main") != first.base_hash
    assert len(job.rows(table, spec.branch)) == 2 * _ROWS


def test_a_run_remembers_the_scans_of_one_file_alone(job: Job, contract: Any, table: str) -> None:
    """What Iceberg keeps for a file does not add up in a run that takes files for days."""
    queried = contract("parquet", write="spark")
    specs = _specs(job, {str(n): parquet(_good(n)) for n in range(3)}, queried, table)
    kept = java(job.warm_spark).org.apache.iceberg.spark.SparkTableCache.get()
    sizes = []
    for spec in specs:
        files = _files(job, [spec])
        files.ingest_alone(replace(spec, branch="", base_hash=""))
        assert _report(spec).verdict is Verdict.PASSED
        sizes.append(kept.size())
    assert sizes[0] > 0
    assert sizes == sizes[:1] * 3


def test_a_group_whose_files_all_fail_writes_nothing(job: Job, contract: Any, table: str) -> None:
    """No branch is made for a group of which no file passes."""
    before = set(job.services.catalog.references())
    bad = {"a null": _BAD["a null"], "out of range": _BAD_VALUES["out of range"]}
    specs = _specs(job, {n: parquet(rows) for n, rows in bad.items()}, contract(), table)
    reports = _ingest(job, specs)
    assert {report.verdict for report in reports} == {Verdict.REJECTED}
    made = set(job.services.catalog.references()) - before
    assert made == {spec.branch for spec in specs}


def _queued(specs: Sequence[JobSpec]) -> tuple[Any, str, str]:
    """Return a client, a work queue in which files wait, and an empty queue of verdicts."""
    sqs = boto3.client("sqs")
    work, verdicts = (
        sqs.create_queue(QueueName=f"{name}-{uuid.uuid4().hex}")["QueueUrl"] for name in "wv"
    )
    for spec in specs:
        body = replace(spec, branch="", base_hash="").to_argument()
        sqs.send_message(QueueUrl=work, MessageBody=body)
    return sqs, work, verdicts


def _named(verdicts: str) -> list[str]:
    """Return the keys of the reports that a queue of verdicts names."""
    found = boto3.client("sqs").receive_message(QueueUrl=verdicts, MaxNumberOfMessages=10)
    judged = [Judged.from_message(json.loads(each["Body"])) for each in found["Messages"]]
    return sorted(key for each in judged if each for key in each.reports)


def _unforeseen(params: Mapping[str, Any], **_: object) -> None:
    if "odd" in params.get("Key", ""):
        raise RecursionError("nobody foresaw this")


def test_an_exception_that_nobody_foresaw_ends_one_file(
    job: Job, contract: Any, table: str
) -> None:
    """The others are ingested, one by one; the file is named, too, with its reason."""
    bodies = {"one": parquet(_good(1)), "odd": parquet(_good(2)), "two": parquet(_good(3))}
    specs = _specs(job, bodies, contract(), table)
    for spec in specs:
        job.services.catalog.delete_branch(spec.branch)  # the run makes its own
    sqs, work, verdicts = _queued(specs)
    s3 = boto3.client("s3")
    s3.meta.events.register("before-parameter-build.s3", _unforeseen)
    files = _files(job, specs, s3)
    serve(replace(files.run, idle_seconds=2), SqsQueues(sqs, work, verdicts), files)
    assert _named(verdicts) == sorted(spec.report_key for spec in specs)
    one, odd, two = map(_report, specs)
    assert (one.verdict, two.verdict) == (Verdict.PASSED, Verdict.PASSED)
    assert odd.verdict is Verdict.ERRORED
    assert odd.reason is not None
    assert "RecursionError" in odd.reason.message
    assert [len(job.rows(table, each.branch)) for each in (one, two)] == [_ROWS, _ROWS]


def test_a_shared_run_takes_names_and_ends(job: Job, contract: Any, table: str) -> None:
    """A shared run ingests what waits in its queue, names each report once, and ends with 0."""
    bodies = {"one": parquet(_good(1)), "two": parquet(_good(2)), "bad": parquet(_BAD["a null"])}
    specs = _specs(job, bodies, contract(), table)
    sqs, work, verdicts = _queued(specs)
    run = SharedRun(
        "run-1", work, verdicts, specs[0].lake_bucket, specs[0].nessie_uri, "job-token", 60, 2
    )
    fresh_session(job.warm_spark)
    assert main.main(run.to_argument()) == 0
    assert _named(verdicts) == sorted(spec.report_key for spec in specs)
    assert [_report(spec).verdict for spec in specs] == [
        *(Verdict.PASSED, Verdict.PASSED, Verdict.REJECTED)
    ]
    left = sqs.get_queue_attributes(QueueUrl=work, AttributeNames=["All"])["Attributes"]
    counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    assert [left[count] for count in counts] == ["0", "0"]
