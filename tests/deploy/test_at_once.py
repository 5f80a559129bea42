"""Many files for one table at once: a new table, and one that other writers change.

`make test-long` lands 64 of them; fewer show the same, and each has a job run of its own.
"""

from collections.abc import Iterator
from io import BytesIO
from itertools import takewhile
from typing import Any
from urllib.parse import quote, urlsplit

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests
from pyiceberg.table import Table

from functions.adapters.nessie import MAIN
from functions.model import merge_commit
from functions.model.ingestion import Ingestion, State
from lakegate.job.landing import LandedObject, ingestion_id
from tests.deploy.bare import Cloud
from tests.deploy.tools import Checkout
from tests.e2e.conftest import PAUSE, Gate, contract
from tests.e2e.killing import sweep_grace
from tests.fakes.amounts import WHOLE_MATRIX
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]  # on a busy machine

_FILES = 64 if WHOLE_MATRIX else 8
_ROWS = 1000
_TABLE, _NEW_TABLE = "many.orders", "new.orders"
_SMALL = 10.0  # amounts below it are deleted from main
_PATIENCE = 1500


@pytest.fixture
def gate(cloud: Cloud, checkout: Checkout) -> Iterator[Gate]:
    """Yield the stack deployed by osls, so that the other test lane keeps the local stack."""
    with cloud.entered():
        yield cloud.gate()


@pytest.fixture(autouse=True)
def slow_sweep(gate: Gate) -> Iterator[None]:
    with sweep_grace(gate, 3600):
        yield


def test_files_at_once(gate: Gate) -> None:
    """All files are published once, though main is altered, deleted from and compacted."""
    gate.put_contract(contract(_TABLE, "parquet", "own"))
    old = [gate.end(_drop(gate, number)) for number in (0, 1)]
    eventually(lambda: all(gate.adapters.ledger.get(each.id).recorded for each in old))
    eventually(
        lambda: not any(gate.adapters.ledger.needs_recording())
    )  # other tests' would move main too
    base = gate.adapters.catalog.head(MAIN)
    with gate.untold():
        landed = [_drop(gate, number) for number in range(2, 2 + _FILES)]
        submitted = _all(gate, landed, State.SUBMITTED)
        assert {each.base_hash for each in submitted} == {base}
        kept = _change_main(gate)
        _wait_for_jobs(gate, submitted)
    written = {path: etag for each in submitted for path, etag in _new_files(gate, each).items()}
    gate.tell(*submitted)
    ended = [gate.end(each) for each in landed]

    assert {(each.state, each.attempt) for each in ended} == {(State.PUBLISHED, 1)}
    assert not any(gate.alerts(each) for each in [*old, *ended])
    rows = [(*row, None) for row in _inputs(range(2, 2 + _FILES))]
    assert gate.rows(_TABLE) == sorted(kept + rows)
    assert _etags(gate, _files(_load(gate, MAIN))).items() >= written.items()
    assert len(written) == _FILES
    merges = _merges(gate, base)
    assert sorted(id_ for ids in merges for id_ in ids) == sorted(each.id for each in ended)
    assert len(merges) < _FILES
    own = (f"ingest/{_TABLE}/", f"publish/{_TABLE}/")
    eventually(lambda: not gate.adapters.catalog.branches(*own))  # who came too late tidies up


def test_first_files_at_once(gate: Gate) -> None:
    """All first files of a new table are published by one job run each, none of them twice."""
    gate.put_contract(contract(_NEW_TABLE, "parquet", "own"))
    base = gate.adapters.catalog.head(MAIN)
    with gate.untold():
        landed = [_drop(gate, number, "new/orders") for number in range(_FILES)]
        submitted = _all(gate, landed, State.SUBMITTED)
        _wait_for_jobs(gate, submitted)
    gate.tell(*submitted)
    ended = [gate.end(each) for each in landed]

    assert {(each.state, each.attempt) for each in ended} == {(State.PUBLISHED, 1)}
    assert {each.job_run for each in ended} == {each.job_run for each in submitted}
    assert gate.rows(_NEW_TABLE) == sorted(_inputs(range(_FILES)))
    merges = _merges(gate, base)
    assert sorted(id_ for ids in merges for id_ in ids) == sorted(each.id for each in ended)
    assert len(merges) < _FILES


def _rows(number: int) -> pa.Table:
    ids = range(number * _ROWS, (number + 1) * _ROWS)
    return pa.table({"id": ids, "amount": [(7 * i + number) % 400 / 4 for i in ids]})


def _inputs(numbers: range) -> list[tuple[int, float]]:
    return [tuple(row.values()) for n in numbers for row in _rows(n).to_pylist()]


def _drop(gate: Gate, number: int, folder: str = "many/orders") -> LandedObject:
    body = BytesIO()
    pq.write_table(_rows(number), body)
    return gate.drop(f"{folder}/{number}.parquet", body.getvalue())


def _all(gate: Gate, landed: list[LandedObject], state: State) -> list[Ingestion]:
    """Return all these files' ingestions, once they are in that state."""
    wanted = {ingestion_id(each) for each in landed}

    def there() -> list[Ingestion] | None:
        found = [i for i in gate.adapters.ledger.in_state(state) if i.id in wanted]
        return found if len(found) == len(wanted) else None

    return eventually(there, _PATIENCE, f"not all are {state}", PAUSE)


def _change_main(gate: Gate) -> list[tuple[Any, ...]]:
    """Add a column, delete the small amounts, compact the table; return the remaining rows."""
    _add_column(gate, "note")
    _load(gate, MAIN).delete(f"amount < {_SMALL}")
    left = _load(gate, MAIN).scan().to_arrow()
    _load(gate, MAIN).overwrite(left)
    assert len(_files(_load(gate, MAIN))) == 1
    kept = [(id_, amount, None) for id_, amount in _inputs(range(2)) if amount >= _SMALL]
    assert 0 < len(kept) < 2 * _ROWS
    return kept


def _add_column(gate: Gate, name: str) -> None:
    """Add a column by a request of its own: Nessie 0.99 refuses pyiceberg's."""
    schema = _load(gate, MAIN).schema().model_dump(by_alias=True)
    last = max(column["id"] for column in schema["fields"]) + 1
    added = {"id": last, "name": name, "type": "string", "required": False}
    schema |= {"fields": [*schema["fields"], added], "schema-id": schema["schema-id"] + 1}
    updates = [
        {"action": "add-schema", "schema": schema, "last-column-id": last},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    namespace, _, table = _TABLE.partition(".")
    prefix = quote(f"{MAIN}|lake", safe="")
    requests.post(
        f"{gate.stack.iceberg}/v1/{prefix}/namespaces/{namespace}/tables/{table}",
        headers={"Authorization": f"Bearer {_token(gate)}"},
        json={"requirements": [], "updates": updates},
        timeout=_PATIENCE,
    ).raise_for_status()


def _wait_for_jobs(gate: Gate, submitted: list[Ingestion]) -> None:
    emr = gate.adapters.jobs

    def ended() -> bool:
        return all(emr.get(each.job_run).has_ended for each in submitted)

    eventually(ended, _PATIENCE, "jobs still run", PAUSE)


def _merges(gate: Gate, base: str) -> list[list[str]]:
    """Return the ingestions' ids that each of our commits on main since then published."""
    since = takewhile(lambda commit: commit.hash != base, gate.adapters.catalog.log())
    found = ([each.id for each in merge_commit.published(commit)] for commit in since)
    return [ids for ids in found if ids]


def _new_files(gate: Gate, ingestion: Ingestion) -> dict[str, str]:
    """Return the data files that a branch has and its base lacks, with their etags."""
    before = _files(_load(gate, f"{MAIN}@{ingestion.base_hash}"))
    return _etags(gate, _files(_load(gate, ingestion.branch)) - before)


def _etags(gate: Gate, paths: set[str]) -> dict[str, str]:
    s3 = boto3.client("s3")
    found = {path: urlsplit(path) for path in paths}
    heads = {
        path: s3.head_object(Bucket=url.netloc, Key=url.path.lstrip("/"))
        for path, url in found.items()
    }
    return {path: f"{head['ETag']} {head['LastModified']}" for path, head in heads.items()}


def _files(table: Table) -> set[str]:
    return {task.file.file_path for task in table.scan().plan_files()}


def _load(gate: Gate, ref: str) -> Table:
    """Return the table on a branch, opened by the publisher, who may change main."""
    return gate.catalog(ref, _token(gate)).load_table(_TABLE)


def _token(gate: Gate) -> str:
    return (gate.home / "keys" / "publisher.token").read_text()
