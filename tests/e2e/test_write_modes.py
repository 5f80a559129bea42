"""Files at once whose rows replace others are published in the order in which they landed."""

from functools import partial

import pytest

from functions.model.ingestion import State
from functions.pipeline.start.intake import retract
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject, ingestion_id
from tests.e2e.conftest import PAUSE, Gate
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack

_TABLE = "modes.overwritten"
_CONTRACT = f"""
kind: DataContract
apiVersion: v3.1.0
id: {_TABLE}
version: 1.0.0
support: [{{channel: "#shop", tool: slack}}]
customProperties:
  - {{property: format, value: csv}}
  - {{property: writeMode, value: overwrite}}
schema:
  - name: {_TABLE}
    properties:
      - {{name: id, logicalType: integer, required: true}}
      - {{name: day, logicalType: date, required: true, partitioned: true}}
"""


def drop(gate: Gate, name: str, *rows: str) -> LandedObject:
    """Drop a file; return when its event came: one that comes too late is left to a person."""
    body = "\n".join(["id,day", *rows, ""])
    landed = gate.drop(f"modes/overwritten/{name}.csv", body.encode())
    known = partial(gate.adapters.ledger.together, [ingestion_id(landed)])
    eventually(known, PATIENCE, f"the event of {landed.key} did not come", PAUSE)
    return landed


def test_overwrites_at_once(gate: Gate) -> None:
    """The day has the rows of the file that landed last; what it replaced cannot be retracted."""
    gate.put_contract(_CONTRACT)
    files = [
        drop(gate, "a", "1,2026-01-01", "2,2026-01-02", "3,2026-01-02"),
        drop(gate, "b", "4,2026-01-02", "5,2026-01-03"),
        drop(gate, "c", "6,2026-01-03"),
    ]
    ended = [gate.end(each) for each in files]
    assert [(each.state, each.audit.rows, each.audit.replaced_rows) for each in ended] == [
        (State.PUBLISHED, 3, 0),
        (State.PUBLISHED, 2, 2),
        (State.PUBLISHED, 1, 1),
    ]
    assert [row[0] for row in gate.rows(_TABLE)] == [1, 4, 6]
    with pytest.raises(LakegateError, match=ended[1].merge_hash):
        retract(gate.adapters, ended[1], "Ann", "wrong day")
    left = gate.adapters.catalog.branches
    eventually(lambda: not left(f"ingest/{_TABLE}/"), PATIENCE, "a branch is left", PAUSE)
