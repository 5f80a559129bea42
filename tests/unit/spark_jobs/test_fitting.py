"""What only Spark can judge is left to it, although Arrow has decoded the rest of the file."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakegate.contract.model import Contract, parse
from lakegate.drift import Baselines
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.files.arrow import MustRewrite
from spark_jobs.fitting import Fitting, examine
from spark_jobs.group_register import sort_out
from tests.fakes.parquet_files import declared, written
from tests.spark.measuring import NO_RUN, Landing, contract_of, custom, options

_SOME: dict[str, Any] = {"metric": "rowCount", "mustBeGreaterThan": 0}
_APART = options(onBadRow="quarantine")
_MANY: Any = {"maxRows": 9}


class Landed(Landing):
    """A landed file of a run without history."""

    spec = NO_RUN

    def baselines(self) -> Baselines:
        """Return the measures of earlier files: none."""
        return Baselines("")


def contract(format_: str, *quality: dict[str, Any], **of_name: Any) -> Contract:
    """Return the contract of a number and a name, with these rules of the whole object."""
    columns = [declared("id", "bigint"), {**declared("name", "string"), **of_name}]
    text = contract_of(columns, [_SOME, *quality], format=format_, quarantine=_MANY)
    return parse(text, "a test")


def parquet(*names: str | bytes) -> bytes:
    """Return a file with these names, of which none need be UTF-8."""
    text = pa.array([each.encode() if isinstance(each, str) else each for each in names])
    ids = pa.array(range(len(names)), pa.int64())
    return written(pa.table({"id": ids, "name": text.view(pa.string())}))


@pytest.fixture
def landed(tmp_path: Path) -> Any:
    """Return a function that lands a file with a body."""

    def land(body: bytes, name: str = "file") -> Landed:
        (tmp_path / name).write_bytes(body)
        return Landed(tmp_path / name)

    return land


def why_left(landed: Landed, asked: Contract, limits: Limits = DEFAULTS) -> str:
    """Return why a file is left to Spark, "" if it is not."""
    try:
        examine(landed, asked, limits)
    except MustRewrite as why:
        return str(why)
    return ""


def test_rows_are_kept_out_by_spark_alone(landed: Any) -> None:
    """A file fits as it is only if no check that quarantines rows finds one, or is unmeasured."""
    short = {"logicalTypeOptions": {"maxLength": 3}, **_APART}
    unsure = {"logicalTypeOptions": {"pattern": "(?=a)"}, **_APART}
    file = landed(parquet("a", "abc"))
    assert why_left(file, contract("parquet", **short)) == ""
    assert "may quarantine" in why_left(landed(parquet("abcd")), contract("parquet", **short))
    assert "may quarantine" in why_left(file, contract("parquet", **unsure))


def test_rows_are_kept_out_for_one_reason_at_once(landed: Any) -> None:
    """A text with unreadable rows is left if others could be quarantined by a check, too."""
    short = {"logicalTypeOptions": {"maxLength": 3}, **_APART}
    text, good = landed(b"id,name\n1,a\nx,b\n"), landed(b"id,name\n1,a\n", "good")
    assert why_left(good, contract("csv", **short)) == ""
    assert why_left(text, contract("csv")) == ""
    assert "other reasons" in why_left(text, contract("csv", **short))


def test_a_text_that_is_no_text_is_left(landed: Any) -> None:
    """A Parquet file with a name that is not UTF-8 is not entered, as readers would differ."""
    asked = contract("parquet")
    assert why_left(landed(parquet("a", "é")), asked) == ""
    assert why_left(landed(parquet("a", b"\xff\xfe")), asked) == "name is not UTF-8"


def test_what_unpacks_to_too_much_is_left(landed: Any) -> None:
    """A small gzip file is left once more than the limit came out of it, not decoded to its end."""
    body = b"id,name\n" + b"1,a\n" * 200
    file, most = landed(gzip.compress(body)), len(body)
    asked = contract("csv")
    assert why_left(file, asked, Limits(largest_unpacked=most)) == ""
    assert "too large" in why_left(file, asked, Limits(largest_unpacked=most - 1))


def test_files_of_a_group_are_sorted_out(landed: Any) -> None:
    """A file without an answer for each check is for Spark; one that failed is for nobody here."""
    asked = contract("csv", custom("stddev", column="id", mustBeLessThan=5))
    assert isinstance(examine(landed(b"id,name\n1,a\n"), asked, DEFAULTS), Fitting)
    unanswered = landed(b"id,name\n1,a\n2,b\n")
    assert sort_out([unanswered], asked) == ([], [unanswered])
    good, bad = landed(b"id,name\n1,a\n", "good"), landed(b"id,name\n1,a\nx,b\n", "bad")
    clean, left = sort_out([good, bad], contract("csv"))
    assert ([each.storage for each in clean], left) == ([good], [])
