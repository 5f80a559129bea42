"""Files whose rows replace others are published in order: at once, refused, replayed."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from functions.model.ingestion import Ingestion, State
from functions.model.merge_commit import commit_of
from functions.operations.decisions.failed import replay
from functions.pipeline.start.intake import ask, retract
from lakegate.errors import LakegateError
from lakegate.job.change import Change
from lakegate.job.landing import LandedObject, ingestion_id
from tests.e2e.conftest import PAUSE, Gate
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack

_UPSERTED, _OVERWRITTEN = "modes.upserted", "modes.overwritten"
_CONTRACT = """
kind: DataContract
apiVersion: v3.1.0
id: {table}
version: 1.0.0
support: [{{channel: "#shop", tool: slack}}]
customProperties:
  - {{property: format, value: csv}}
{settings}
schema:
  - name: {table}
    properties:
{columns}
"""
_BY_KEY: Mapping[str, str] = {
    "table": _UPSERTED,
    "settings": """
  - {property: writeMode, value: upsert}
  - {property: latestBy, value: version}
  - {property: deleteWhen, value: {column: gone, value: true}}
""",
    "columns": """
      - {name: id, logicalType: integer, primaryKey: true}
      - {name: version, logicalType: integer, required: true}
      - {name: amount, logicalType: integer, logicalTypeOptions: {maximum: 100}}
      - {name: gone, logicalType: boolean}
""",
}
_BY_DAY: Mapping[str, str] = {
    "table": _OVERWRITTEN,
    "settings": "  - {property: writeMode, value: overwrite}",
    "columns": """
      - {name: id, logicalType: integer, required: true}
      - {name: day, logicalType: date, required: true, partitioned: true}
""",
}


def agree(gate: Gate, parts: Mapping[str, str]) -> None:
    gate.put_contract(_CONTRACT.format(**parts))


def drop(gate: Gate, table: str, name: str, header: str, *rows: str) -> LandedObject:
    """Drop a file; return when its event came: one that comes too late is left to a person."""
    body = "\n".join([header, *rows, ""])
    landed = gate.drop(f"{table.replace('.', '/')}/{name}.csv", body.encode())
    known = partial(gate.adapters.ledger.together, [ingestion_id(landed)])
    eventually(known, PATIENCE, f"the event of {landed.key} did not come", PAUSE)
    return landed


def upsert(gate: Gate, name: str, *rows: str) -> LandedObject:
    return drop(gate, _UPSERTED, name, "id,version,amount,gone", *rows)


def overwrite(gate: Gate, name: str, *rows: str) -> LandedObject:
    return drop(gate, _OVERWRITTEN, name, "id,day", *rows)


def effect(ingestion: Ingestion) -> tuple[Any, ...]:
    """Return the state, and the rows that were added, removed and updated."""
    return (
        ingestion.state,
        ingestion.audit.rows,
        ingestion.audit.replaced_rows,
        ingestion.audit.updated_rows,
    )


def test_upserts_at_once_refused_and_replayed(gate: Gate) -> None:
    """Each file is merged once: in order, again after a conflict, and again after a rejection."""
    agree(gate, _BY_KEY)
    files = [
        upsert(gate, "a", "1,1,10,", "2,1,20,", "3,1,30,"),
        upsert(gate, "b", "2,2,22,", "3,2,30,true", "4,1,40,"),
        upsert(gate, "c", "1,2,1000,", "2,1,1000,"),
    ]
    first, second, bad = map(gate.end, files)
    assert effect(first) == (State.PUBLISHED, 3, 0, 0)
    assert effect(second) == (State.PUBLISHED, 2, 2, 1)
    assert bad.state is State.REJECTED
    assert gate.rows(_UPSERTED) == [(1, 1, 10, None), (2, 2, 22, None), (4, 1, 40, None)]
    commit = commit_of(gate.adapters.catalog.log(), second)
    assert commit.message.endswith("1 row inserted, 1 updated, 1 deleted")
    _changed_meanwhile(gate)
    agree(gate, {**_BY_KEY, "columns": _BY_KEY["columns"].replace("100", "1000")})
    replay(gate.adapters, bad)
    again = gate.end(files[2])
    assert effect(again) == (State.PUBLISHED, 1, 1, 1)  # the other row is older than the table's
    assert gate.rows(_UPSERTED)[:2] == [(1, 2, 1000, None), (2, 2, 22, None)]


def _changed_meanwhile(gate: Gate) -> None:
    """Assert that a file and a change at once are both published: main refuses one at first."""
    own = "  - {property: isolation, value: own}\n"  # its run has ended before it is told of
    agree(gate, {**_BY_KEY, "settings": _BY_KEY["settings"] + own})
    statement = f"DELETE FROM {_UPSERTED} WHERE id = 4"
    with gate.untold():  # so that neither is on main before both have their branches
        file = upsert(gate, "d", "5,1,50,")
        submitted = gate.submitted(file)
        asked = ask(gate.adapters, Change(_UPSERTED, statement, "once", "Ann", "why not"))
    gate.tell(submitted, asked)
    ended = [gate.end(file), gate.end(asked.landed)]
    assert [each.state for each in ended] == [State.PUBLISHED] * 2
    assert sum(each.attempt for each in ended) > 2
    assert [row[0] for row in gate.rows(_UPSERTED)] == [1, 2, 5]


def test_overwrites_at_once(gate: Gate) -> None:
    """The day has the rows of the file that landed last; what it replaced cannot be retracted."""
    agree(gate, _BY_DAY)
    files = [
        overwrite(gate, "a", "1,2026-01-01", "2,2026-01-02", "3,2026-01-02"),
        overwrite(gate, "b", "4,2026-01-02", "5,2026-01-03"),
        overwrite(gate, "c", "6,2026-01-03"),
    ]
    ended = [gate.end(each) for each in files]
    assert [effect(each)[:3] for each in ended] == [
        (State.PUBLISHED, 3, 0),
        (State.PUBLISHED, 2, 2),
        (State.PUBLISHED, 1, 1),
    ]
    assert [row[0] for row in gate.rows(_OVERWRITTEN)] == [1, 4, 6]
    with pytest.raises(LakegateError, match=ended[1].merge_hash):
        retract(gate.adapters, ended[1], "Ann", "wrong day")
    left = gate.adapters.catalog.branches
    eventually(lambda: not left(f"ingest/{_OVERWRITTEN}/"), PATIENCE, "a branch is left", PAUSE)
