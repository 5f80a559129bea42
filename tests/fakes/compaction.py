"""The job runs of a compaction in memory: one data file takes the place of all small ones."""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256

from functions.adapters.emr import RunState
from functions.adapters.nessie import UnknownBranch
from lakegate.errors import Permanent, Transient
from lakegate.job.jobspec import JobSpec
from lakegate.job.upkeep import Comparison, Fingerprint
from tests.fakes.catalog import FakeCatalog
from tests.fakes.job import write_files
from tests.fakes.jobs import FakeJobs
from tests.fakes.rows import AND, ROWS_A_FILE, rewritten, rows_in, sources_in
from tests.fakes.storage import FakeLake


def run_compaction(
    run: str, catalog: FakeCatalog, lake: FakeLake, jobs: FakeJobs, *, loses: int = 0
) -> None:
    """Carry out a job run of a compaction, the one that rewrites or the one that compares.

    `loses` is of how many data files the rows are not written.
    """
    spec = jobs.spec(run)
    try:
        if spec.audited_hash:
            lake.put_text(spec.report_key, _compared(spec, catalog).to_json().encode())
        elif catalog.head(spec.branch) == spec.base_hash:
            _rewrite(spec, catalog, lake, loses)
    except (UnknownBranch, Transient, Permanent) as error:
        jobs.end(run, RunState.FAILED, error.message)
    else:
        jobs.end(run, RunState.SUCCESS)


def is_small(file: str) -> bool:
    """Return whether it is rewritten: not what may still move to another partition."""
    return rows_in(file) == ROWS_A_FILE and not file.endswith("|False")


def _rewrite(spec: JobSpec, catalog: FakeCatalog, lake: FakeLake, loses: int) -> None:
    table = catalog.table(spec.branch, spec.table)
    if table is None:
        raise Permanent("TABLE_GONE", f"there is no table {spec.table} to compact")
    small = tuple(file for file in table.files if is_small(file))
    if not small:
        return
    kept = tuple(file for file in table.files if file not in small)
    new = rewritten(small[: len(small) - loses], spec.ingestion)
    compacted = replace(table, files=kept).append(new)
    write_files(lake, spec.table, compacted, compacted.added)
    catalog.commit(spec.branch, spec.table, compacted, registers=True)


def _compared(spec: JobSpec, catalog: FakeCatalog) -> Comparison:
    states = [catalog.table(at, spec.table) for at in (spec.base_hash, spec.audited_hash)]
    old, new = (state.files if state else () for state in states)
    before = _fingerprint(file for file in old if file not in new)
    after = _fingerprint(file for file in new if file not in old)
    return Comparison(spec.table, spec.branch, spec.base_hash, spec.audited_hash, before, after)


def _fingerprint(files: Iterable[str]) -> Fingerprint:
    # A line without a source makes a table count rows that are not there.
    found = sorted(line for file in files for line in sources_in(file) if line)
    digest = sha256(AND.join(found).encode()).hexdigest()
    return Fingerprint(sum(map(rows_in, found)), digest)
