"""A contract that grows while files are being ingested: all are published with correct rows."""

from functools import partial

import pytest

from functions.adapters.ledger.reads import UnknownIngestion
from functions.model.ingestion import State
from lakegate.job.landing import LandedObject, ingestion_id
from tests.e2e.conftest import Gate, contract
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack

_TABLE = "growing.orders"
_NOTE = "      - {name: note, logicalType: string}\n"
_NULL = "customProperties:\n  - {property: missingColumns, value: null}\n"


def older() -> str:
    """Return the contract over id, and amount as float."""
    return contract(_TABLE, "csv", "own").replace("physicalType: double", "physicalType: float")


def newer() -> str:
    """Return the contract with amount as double, and a note that older files may lack."""
    return contract(_TABLE, "csv", "own").replace("customProperties:\n", _NULL) + _NOTE


def is_submitted(gate: Gate, landed: LandedObject) -> bool:
    """Return whether the file's job was submitted, with the contract in force then."""
    try:
        return bool(gate.adapters.ledger.get(ingestion_id(landed)).job_run)
    except UnknownIngestion:
        return False


def test_files_of_two_versions_of_a_contract_are_all_published(gate: Gate) -> None:
    """In any order of publishing, old rows have null in the new column."""
    gate.put_contract(older())
    gate.end(gate.drop("growing/orders/0.csv", b"id,amount\n0,0.5\n"))
    older_bodies = {n: f"id,amount\n{n},1.5\n".encode() for n in (1, 2)}
    landed = [gate.drop(f"growing/orders/{n}.csv", body) for n, body in older_bodies.items()]
    for each in landed:
        eventually(partial(is_submitted, gate, each), PATIENCE, f"{each.key} has no job")
    gate.put_contract(newer())
    for n in (3, 4):
        body = f"id,amount,note\n{n},0.1,new\n".encode()
        landed.append(gate.drop(f"growing/orders/{n}.csv", body))
    assert {gate.end(each).state for each in landed} == {State.PUBLISHED}
    assert gate.rows(_TABLE) == [
        (0, 0.5, None),
        *[(n, 1.5, None) for n in (1, 2)],
        *[(n, 0.1, "new") for n in (3, 4)],
    ]
