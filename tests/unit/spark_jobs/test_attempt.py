"""An attempt that lacks a right says so in its report, so that people hear of it."""

from dataclasses import replace
from typing import Any

from lakegate.audit.report import AuditReport, Reason, Verdict
from lakegate.job.jobspec import JobSpec
from lakegate.refusals import RightMissing
from spark_jobs.lake.storage import Storage
from spark_jobs.run.attempt import carry_out
from tests.unit.lakegate.test_jobspec import SPEC


class Bucket:
    """A bucket that keeps what is put, by key."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put_object(self, Key: str, Body: bytes, **_: Any) -> None:  # noqa: N803 - S3's names
        self.objects[Key] = Body


def refuse(_spec: JobSpec, _token: str) -> Any:
    raise RightMissing("the role job lacks the right s3:GetObject on arn:aws:s3:::lake/a")


def test_a_missing_right_is_reported() -> None:
    """The report is errored with the sentence; whoever reads it runs the job again."""
    spec, bucket = replace(SPEC, reaudit_base="base", audited_hash="audited"), Bucket()
    report = carry_out(spec, Storage(spec, bucket, None), "token", refuse)
    assert AuditReport.from_json(bucket.objects[spec.report_key], spec.report_key) == report
    assert report.verdict is Verdict.ERRORED
    assert report.reason == Reason(
        "RIGHT_MISSING",
        "the role job lacks the right s3:GetObject on arn:aws:s3:::lake/a\n"
        "Grant it: functions and job runs try again by themselves; give a command again",
    )
