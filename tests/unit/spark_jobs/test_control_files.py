"""Control files that nobody can read, or that would take for ever to compare."""

from typing import Any

import pytest

from lakegate.contract.rules import Control
from lakegate.errors import Permanent
from spark_jobs.audit.control_files import control_differences

UNUSED: Any = None  # none of these is compared with the file's rows


@pytest.mark.parametrize("number", ["1e999999999", "1e-999999999", "0e999999999", "7" * 401])
@pytest.mark.parametrize("format_", ["json", "csv"])
def test_a_number_that_would_fill_the_memory_is_refused(number: str, format_: str) -> None:
    """A stated number beyond 400 digits is refused, written out or by its power of ten."""
    stated = {"json": f'{{"rows": 1, "sum(a)": {number}}}', "csv": f"rows,sum(a)\n1,{number}\n"}
    with pytest.raises(Permanent, match="a stated number has more than 400 digits") as refused:
        control_differences(UNUSED, Control(format_, ("a",)), stated[format_])
    assert refused.value.code == "BAD_CONTROL"


def test_lines_may_end_in_any_way() -> None:
    """A CSV control file of an old Mac or of Windows has its two lines."""
    for end in ("\r", "\r\n", "\n"):
        with pytest.raises(Permanent, match="exactly rows, but states 1 other and lacks rows"):
            control_differences(UNUSED, Control("csv", ()), f"lines{end}3{end}")


def test_a_number_that_is_lacking_is_named() -> None:
    """The sender is told which number a control file lacks."""
    with pytest.raises(Permanent, match=r"exactly rows, sum\(a\), but lacks sum\(a\)$"):
        control_differences(UNUSED, Control("json", ("a",)), '{"rows": 3}')


def test_text_that_is_no_csv_is_refused() -> None:
    """A cell that no CSV reader takes ends as any other invalid control file."""
    with pytest.raises(Permanent, match="it is not CSV: ',' expected after") as refused:
        control_differences(UNUSED, Control("csv", ()), 'rows\n"3"4\n')
    assert refused.value.code == "BAD_CONTROL"


@pytest.mark.parametrize(
    ("format_", "text"),
    [("csv", "Jane Doe,DE11,Jane Doe\n1,2,3\n"), ("json", '{"Jane Doe": 1, "Jane Doe": 2}')],
)
def test_a_name_that_comes_twice_is_not_repeated(format_: str, text: str) -> None:
    """A data file with the name of a control file may have a value twice, which stays hidden."""
    with pytest.raises(Permanent, match="states another name twice") as refused:
        control_differences(UNUSED, Control(format_, ()), text)
    assert "Jane" not in str(refused.value)
