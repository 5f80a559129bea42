"""Errors of Lakegate."""

import pickle

import pytest

from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.refusals import RightMissing
from spark_jobs.spark.errors import Quoting


@pytest.mark.parametrize(
    "error",
    [
        Transient("STORAGE_UNAVAILABLE", "S3 does not answer"),
        Permanent("CORRUPT_FILE", "the file ends early"),
        RightMissing("a role lacks a right"),
        Quoting("CORRUPT_FILE", "the file is damaged", "the file is damaged: a cell"),
    ],
)
def test_an_error_survives_the_way_from_a_task(error: LakegateError) -> None:
    """What a task of Spark's returns has the same type, code and words in the driver."""
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))
