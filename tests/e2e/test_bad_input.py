"""Bad input is alerted with its reason, however it ends, and the stack goes on without loss."""

import gzip
import html
import io
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from functions.model.ingestion import State
from lakegate.job.landing import LandedObject
from lakegate.text import one_line
from tests.e2e.conftest import Gate, contract
from tests.fakes.lying_parquet import TERA, promising

pytestmark = pytest.mark.stack


def parquet(**columns: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


@dataclass(frozen=True)
class Bad:
    """A bad file, and its expected final state."""

    name: str
    format: str
    body: bytes
    state: State
    code: str

    @property
    def key(self) -> str:
        folder = self.format.replace("none", "nobody/knows")
        return f"bad/{folder}/{self.name}"


GOOD = parquet(id=[1, 2], amount=[1.0, 2.0])
# Of each way to an end one or two: refused before a job, by its reader, by its columns, by checks,
# by its rows. What else is no file of its format is told in tests/spark/test_reading_*.py.
BAD = [
    Bad("unclaimed.parquet", "none", GOOD, State.ERRORED, "NO_CONTRACT"),
    Bad("empty.parquet", "parquet", b"", State.ERRORED, "EMPTY_OBJECT"),
    Bad("text.parquet", "parquet", b"id,amount\n1,2\n", State.ERRORED, "NOT_PARQUET"),
    Bad("missing.parquet", "parquet", parquet(id=[1]), State.REJECTED, "MISSING_COLUMN"),
    Bad(
        "values.parquet",
        "parquet",
        parquet(id=[1], amount=[101.0]),
        State.REJECTED,
        "CHECKS_FAILED",
    ),
    Bad("few.csv", "csv", b"id,amount\n1,1.5\n2\n", State.REJECTED, "BAD_ROWS"),
    Bad("rows.parquet", "parquet", promising(TERA, 3), State.ERRORED, "CORRUPT_FILE"),
    Bad("bomb.csv.gz", "csv", gzip.compress(bytes(70 << 20)), State.ERRORED, "ZIP_BOMB"),
]


ODD = ["two words + a plus.csv", "Grüße/äöü ß €.csv", "a%20b&c=d?.csv"]


def odd_table(name: str) -> str:
    """Return the table of a file with an odd name."""
    return f"bad.keys_{name.encode().hex()[-12:]}"


@pytest.fixture(scope="module")
def dropped(gate: Gate) -> dict[str, LandedObject]:
    """Drop all bad files at once, and the good ones after them."""
    for format_ in ("parquet", "csv"):
        gate.put_contract(contract(f"bad.{format_}", format_, "shared"))
    for name in ODD:
        gate.put_contract(contract(odd_table(name), "csv", "shared"))
    landed = {bad.name: gate.drop(bad.key, bad.body) for bad in BAD}
    landed["good"] = gate.drop("bad/parquet/good.parquet", GOOD)
    for name in ODD:
        key = f"{odd_table(name).replace('.', '/')}/{name}"
        landed[name] = gate.drop(key, b"id,amount\n7,1.5\n")
    return landed


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_file_ends_with_its_reason_and_one_alert(
    gate: Gate, dropped: dict[str, LandedObject], bad: Bad
) -> None:
    """A bad file ends as expected, and one alert names its file, branch and reason."""
    ended = gate.end(dropped[bad.name])
    assert (ended.state, ended.reason.code if ended.reason else "") == (bad.state, bad.code)
    name = html.escape(one_line(bad.name))
    alerts = [alert for alert in gate.alerts(ended) if name in str(alert)]
    assert len(alerts) == 1
    assert bad.code in str(alerts[0])
    assert ended.branch in str(alerts[0])


def test_the_stack_goes_on_after_bad_files(gate: Gate, dropped: dict[str, LandedObject]) -> None:
    """A good file among bad ones is published, and main has no row of the bad ones."""
    assert gate.end(dropped["good"]).state is State.PUBLISHED
    for bad in BAD:
        gate.end(dropped[bad.name])
    assert gate.rows("bad.parquet") == [(1, 1.0), (2, 2.0)]


def test_rejected_rows_stay_on_their_branch(gate: Gate, dropped: dict[str, LandedObject]) -> None:
    """The branch that the alert names shows the rows that broke the contract."""
    ended = gate.end(dropped["values.parquet"])
    assert (1, 101.0) in gate.rows("bad.parquet", ended.branch)


@pytest.mark.parametrize("name", ODD)
def test_any_key_simply_works(gate: Gate, dropped: dict[str, LandedObject], name: str) -> None:
    """A key with spaces, plus signs, umlauts and percent signs is ingested like any other."""
    assert gate.end(dropped[name]).state is State.PUBLISHED
    assert gate.rows(odd_table(name)) == [(7, 1.5)]
