"""A right that the job lacks is told from a file that cannot be read."""

import pytest

from lakegate.errors import LakegateError
from lakegate.refusals import RightMissing
from spark_jobs.spark.errors import explain
from tests.unit.spark_jobs.test_unforeseen import thrown


def explained(*chain: str) -> LakegateError:
    return explain(thrown(*chain), "the file cannot be read", "CORRUPT_FILE")


WRAPPED = "org.apache.spark.SparkException: [FAILED_READ_FILE] cannot read s3a://landing/a"


@pytest.mark.parametrize(
    "denied",
    [
        "java.nio.file.AccessDeniedException: s3a://landing/a: getFileStatus: 403",
        "org.apache.iceberg.exceptions.ForbiddenException: Forbidden: not allowed",
        "software.amazon.awssdk.services.s3.model.S3Exception: no (Service: S3, Status Code: 403)",
    ],
)
def test_a_refused_request_is_a_missing_right(denied: str) -> None:
    """Spark's own words about the file do not count."""
    error = explained(WRAPPED, denied)
    assert isinstance(error, RightMissing)
    assert denied in error.message


def test_a_file_that_quotes_a_refusal_is_still_at_fault() -> None:
    """Only the exception's class counts, as its message may have what is in the file."""
    error = explained(WRAPPED, "java.io.EOFException: 'AccessDeniedException: 403' in row 1")
    assert error.code == "CORRUPT_FILE"


def test_a_message_of_any_length_is_understood_at_once() -> None:
    """A name of a column may repeat what conditions look like, a million times."""
    strange = f"[PARQUET_TYPE_UNRECOGNIZED] int96 {'[A]' * 1_000_000}. SQLSTATE: "
    assert explained(f"AnalysisException: {strange}42846").code == "UNREADABLE_TYPE"
    assert explained(f"AnalysisException: {strange}22018").code == "UNREADABLE_TYPE"
    cast = "SparkException: [CAST_INVALID_INPUT] '[B] SQLSTATE: 22' is no INT. SQLSTATE: 22018"
    error = explained(cast)
    assert (error.code, "CAST_INVALID_INPUT" in error.message) == ("BAD_VALUE", True)
