"""The job of a compaction in memory: one data file takes the place of all small ones."""

from dataclasses import replace

from functions.adapters.emr import RunState
from lakegate.upkeep import Compaction, Fingerprint
from tests.fakes.catalog import ROWS_A_FILE, FakeCatalog, rows_in
from tests.fakes.jobs import FakeJobs
from tests.fakes.storage import FakeLake


def run_compaction(
    run: str, catalog: FakeCatalog, lake: FakeLake, jobs: FakeJobs, *, loses: int = 0
) -> None:
    """Carry out the job run of a compaction; `loses` is how many rows it fails to write."""
    spec = jobs.spec(run)
    catalog.reset(spec.branch, spec.base_hash)
    table = catalog.table(spec.branch, spec.table)
    assert table
    small = [file for file in table.files if rows_in(file) == ROWS_A_FILE]
    rows = sum(map(rows_in, small))
    kept = tuple(file for file in table.files if file not in small)
    new = f"{spec.ingestion}.parquet*{len(small)}"
    catalog.commit(spec.branch, spec.table, replace(table, files=kept).append(new))
    before, after = Fingerprint(rows, "1"), Fingerprint(rows - loses, "1")
    at = catalog.own_commit(spec.branch, spec.base_hash)
    report = Compaction(spec.table, spec.branch, spec.base_hash, at, before, after)
    lake.put_text(spec.report_key, report.to_json().encode())
    jobs.end(run, RunState.SUCCESS)
