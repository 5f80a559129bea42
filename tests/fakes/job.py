"""The scripted job: the effects of a run on its branch and its report, without Spark."""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace

from functions.adapters.emr import RunState
from functions.adapters.nessie import UnknownBranch
from functions.adapters.s3 import Missing
from lakegate.audit.audit_tables import TABLES, run_id
from lakegate.audit.batch_report import together
from lakegate.audit.report import (
    AuditReport,
    Baseline,
    CheckResult,
    DataFile,
    Reason,
    Status,
    Verdict,
)
from lakegate.contract.reading.write_mode import WriteMode
from lakegate.errors import Transient
from lakegate.job.change import Effect, Takeover
from lakegate.job.jobspec import JobSpec
from tests.fakes.catalog import FakeCatalog, FakeTable, data_address
from tests.fakes.jobs import FakeJobs
from tests.fakes.rows import ROWS_A_FILE, merge, rewritten, rows_in
from tests.fakes.schema import validate_report
from tests.fakes.storage import FakeLake

ROWS = ROWS_A_FILE
PASSED = CheckResult("rows", "rowCount", (), "error", Status.PASS, "at least 1 row", "3 rows")
USUAL = CheckResult(
    id="rows.drift",
    metric="drift",
    columns=(),
    severity="warning",
    status=Status.SKIPPED,
    expected="at most 4",
    found="skipped",
    baseline=Baseline("rule", 3.0, 0),
)
FAILED = CheckResult(
    id="id.required",
    metric="nullValues",
    columns=("id",),
    severity="error",
    status=Status.FAIL,
    expected="0 rows",
    found="1 row",
    samples=({"id": None},),
)
WARNED = CheckResult(
    id="few_late",
    metric="invalidValues",
    columns=("id",),
    severity="error",
    status=Status.WARN,
    expected="less than 10 rows, warns unless less than 5 rows",
    found="7 rows",
)
NOTED = replace(WARNED, id="few_early", severity="info")
REPEATED = CheckResult(
    id="id.duplicateValuesInTable",
    metric="duplicateValues",
    columns=("id",),
    severity="error",
    status=Status.FAIL,
    expected="0 rows in the whole table",
    found="1 row in the whole table",
)
Keys = Mapping[str, Set[str]]
Script = Callable[[AuditReport], AuditReport | None]


def passed(report: AuditReport) -> AuditReport:
    """Return the report of a run that finds no fault."""
    return report


def warned(report: AuditReport) -> AuditReport:
    """Return the report of a run whose audit passes with a warning."""
    return replace(report, checks=(PASSED, WARNED, NOTED))


def rejected(report: AuditReport) -> AuditReport:
    """Return the report of a run whose audit fails."""
    reason = Reason("CHECKS_FAILED", "1 of 2 checks failed: id.required")
    return replace(report, verdict=Verdict.REJECTED, reason=reason, checks=(PASSED, FAILED))


def errored(report: AuditReport) -> AuditReport:
    """Return the report of a run that cannot read its file."""
    reason = Reason("CORRUPT_FILE", "the file's rows cannot be read")
    return replace(
        report,
        verdict=Verdict.ERRORED,
        reason=reason,
        checks=(),
        audited_hash="",
        rows_written=0,
        files=(),
    )


def crashed(report: AuditReport) -> None:
    """Leave no report, as a run that dies early."""


def crashed_once(report: AuditReport) -> AuditReport | None:
    """Leave no report the first time; the next run finds no fault."""
    return report if report.attempt > 1 else None


def silent(report: AuditReport) -> None:
    """Leave no report of a run that EMR calls a success."""


def cancelled(report: AuditReport) -> None:
    """Leave no report, as a run that exceeded its time limit."""


def contradicted(report: AuditReport) -> AuditReport:
    """Return a report that says passed, of a run that then failed."""
    return report


def careless(report: AuditReport) -> AuditReport:
    """Return a rejecting report of a run that records its failed audit nowhere else."""
    return rejected(report)


def idle(report: AuditReport) -> AuditReport:
    """Return a passing report of a run that wrote no row."""
    return replace(report, audited_hash=report.base_hash, rows_written=0, files=())


def hollow(report: AuditReport) -> AuditReport:
    """Return a report that says passed although one of its checks failed."""
    return replace(report, checks=(PASSED, FAILED))


def foreign(report: AuditReport) -> AuditReport:
    """Return the report of another attempt, in place of the run's own."""
    return replace(report, attempt=report.attempt + 1)


# The ends that EMR reports, where they do not follow from the report's verdict.
_EXITS: dict[Script, RunState] = {
    silent: RunState.SUCCESS,
    careless: RunState.SUCCESS,
    cancelled: RunState.CANCELLED,
    contradicted: RunState.FAILED,
}


def run_job(
    run: str,
    script: Script,
    catalog: FakeCatalog,
    lake: FakeLake,
    jobs: FakeJobs,
    keys: Keys | None = None,
    finished_at: str = "",
) -> None:
    """Carry out a job run to its end, as spark_jobs.main does.

    `keys` are those of each landed object: no two of them may share one. `finished_at` is the
    driver's clock at the end, where that clock is wrong.
    """
    spec = jobs.spec(run)
    try:
        report = judge_alone(spec, script, catalog, lake, keys or {})
    except (UnknownBranch, Transient):
        report = None
        script = crashed
    if report is None:
        jobs.end(run, _EXITS.get(script, RunState.FAILED), "Job execution failed. ExitCode: 1.")
        return
    text = replace(report, finished_at=finished_at or report.finished_at).to_json(indent=None)
    validate_report(text)
    write_records(lake, report)
    report = lake.put_report(spec.report_key, text)
    passed = report.verdict is Verdict.PASSED
    state = _EXITS.get(script, RunState.SUCCESS if passed else RunState.FAILED)
    jobs.end(run, state, "" if state is RunState.SUCCESS else "ExitCode: 3.")


def judge_alone(
    spec: JobSpec, script: Script, catalog: FakeCatalog, lake: FakeLake, keys: Keys
) -> AuditReport | None:
    """Return the report of a run; a batch's first file ends as scripted, the others well."""
    if catalog.head(spec.branch) != spec.base_hash and not spec.reaudit_base:
        if finished := lake.finished_report(spec.report_key):
            return finished
        catalog.reset(spec.branch, spec.base_hash)
    if not spec.parts:
        return judge_found(spec, script, _found(spec, catalog, lake), catalog, lake, keys)
    parts: list[AuditReport] = []
    at = spec.base_hash
    for nth, part in enumerate(spec.parts, 1):
        own = spec.part_spec(part, at)
        found = _found(own, catalog, lake)
        at = found.audited_hash
        report = judge_found(own, passed if parts else script, found, catalog, lake, keys)
        if report is None:
            return None
        parts.append(replace(report, records=_records(report, nth)))
    return together(spec.landed, parts)


def judge_found(
    spec: JobSpec,
    script: Script,
    found: AuditReport,
    catalog: FakeCatalog,
    lake: FakeLake,
    keys: Keys,
) -> AuditReport | None:
    """Return the report of what was found, as scripted; None if the run leaves none."""
    agreed = lake.contract_at(spec.contract_key, spec.contract_version).contract
    found = replace(found, contract_sha256=agreed.sha256)
    report = script(found)
    if report and _meets_others(spec, catalog, keys):
        reason = Reason("CHECKS_FAILED", f"1 of 2 checks failed: {REPEATED.id}")
        checks = (*report.checks, REPEATED)
        report = replace(report, verdict=Verdict.REJECTED, reason=reason, checks=checks)
    return report and replace(report, records=_records(report))


def data_file(spec: JobSpec) -> str:
    """Return the name of the data file that this attempt writes for a landed object's rows."""
    return f"{spec.landed.uri}@{spec.landed.version}#{spec.attempt}"


def _records(report: AuditReport, nth: int = 1) -> tuple[DataFile, ...]:
    """Return a run's records for the tables of history; a failed check adds quarantined rows."""
    run = run_id(report.ingestion, report.attempt)
    tables = TABLES if report.failed else TABLES[:1]
    return tuple(DataFile(f"{table.files('lake')}{run}-{nth}.parquet", 2, 200) for table in tables)


def _found(spec: JobSpec, catalog: FakeCatalog, lake: FakeLake) -> AuditReport:
    if spec.change:
        return _change(spec, catalog, lake)
    if spec.reaudit_base:
        return _look_again(spec, catalog, lake)
    agreed = lake.contract_at(spec.contract_key, spec.contract_version).contract
    mode = agreed.write_mode
    return _replaced(spec, catalog, lake, mode) if mode else _append(spec, catalog, lake)


def _look_again(spec: JobSpec, catalog: FakeCatalog, lake: FakeLake) -> AuditReport:
    earlier = lake.report(spec.earlier_report)
    entered = catalog.table(spec.audited_hash, spec.table)
    assert catalog.head(spec.branch) == spec.audited_hash
    assert entered is not None
    assert [_object(file) for file in entered.added] == [_object(data_file(spec))]
    assert earlier.base_hash == spec.reaudit_base
    return replace(
        earlier,
        attempt=spec.attempt,
        branch=spec.branch,
        base_hash=spec.base_hash,
        audited_hash=spec.audited_hash,
    )


def _meets_others(spec: JobSpec, catalog: FakeCatalog, keys: Keys) -> bool:
    """Return whether main has a key of the file, or gained one since the earlier audit."""
    base = catalog.table(spec.base_hash, spec.table)
    earlier = catalog.table(spec.reaudit_base, spec.table) if spec.reaudit_base else None
    gained = set(base.files if base else ()) - set(earlier.files if earlier else ())
    own = keys_of(spec, keys)
    return any(own & keys.get(_object(file), set()) for file in gained)


def keys_of(spec: JobSpec, keys: Keys) -> Set[str]:
    """Return those of the `keys` that the landed object has."""
    return keys.get(_object(data_file(spec)), set())


def _object(file: str) -> str:
    """Return the landed object whose rows a data file holds."""
    return file.rpartition("#")[0] or file


def _change(spec: JobSpec, catalog: FakeCatalog, lake: FakeLake) -> AuditReport:
    """Rewrite every file of the table, and add a row that counts these rewrites."""
    change = lake.change(spec.landed.key)
    assert change.table == spec.table
    table = catalog.table(spec.branch, spec.table)
    if table is None:
        return replace(
            errored(passed_report(spec, "")),
            reason=Reason("TABLE_GONE", "there is no table to change"),
        )
    if change.retracts:
        return _retract(spec, catalog, lake, table)
    if change.restores:
        then = catalog.table(change.restores, spec.table)
        assert then
        return _exchanged(spec, catalog, lake, table, then)
    if change.takeover:
        return _take_over(spec, catalog, lake, table, change.takeover)
    mark = f"{spec.ingestion}-{spec.attempt}"
    written = (rewritten([file], mark) for file in table.files)
    changed = replace(table, files=()).append(*written, data_file(spec))
    rows = _rows(table)
    effect = Effect(rows, rows + ROWS, added=ROWS, removed=0)
    _commit(spec, catalog, lake, table, changed)
    audited = catalog.own_commit(spec.branch, spec.base_hash)
    return replace(passed_report(spec, audited), effect=effect, files=())


def _retract(spec: JobSpec, catalog: FakeCatalog, lake: FakeLake, table: FakeTable) -> AuditReport:
    """Remove the data files of another file, which its report names."""
    try:
        gone = {file.path for file in lake.report(spec.earlier_report).files}
    except Missing as error:  # main lost the file, and it is published again
        reason = Reason("OBJECT_GONE", error.message)
        return replace(errored(passed_report(spec, "")), reason=reason)
    if not gone <= set(table.files):
        reason = Reason("ROWS_SCATTERED", "its data files are no longer in the table")
        return replace(errored(passed_report(spec, "")), reason=reason)
    left = tuple(file for file in table.files if file not in gone)
    catalog.commit(spec.branch, spec.table, replace(table, files=left, added=()))
    audited = catalog.own_commit(spec.branch, spec.base_hash)
    before, after = _rows(table), sum(map(rows_in, left))
    effect = Effect(before, after, added=0, removed=before - after)
    passed = passed_report(spec, audited)
    return replace(passed, effect=effect, files=(), rows_written=0)


def _take_over(
    spec: JobSpec, catalog: FakeCatalog, lake: FakeLake, table: FakeTable, taken: Takeover
) -> AuditReport:
    """Do to the table what another writer's branch did to it."""
    both = (at for at in (taken.since, taken.head) if catalog.knows(at))
    begun, ended = (*(catalog.table(at, spec.table) for at in both), None, None)[:2]
    if not (begun and ended):
        reason = Reason("TABLE_GONE", "a commit of the branch is gone")
        return replace(errored(passed_report(spec, "")), reason=reason)
    if len({each.uuid for each in (begun, ended, table)}) > 1:
        reason = Reason("TABLE_REPLACED", "the table was dropped and made again")
        return replace(errored(passed_report(spec, "")), reason=reason)
    lost = set(begun.files) - set(ended.files)
    if lost - set(table.files):
        reason = Reason("TABLE_MOVED", "both changed the same rows")
        return replace(errored(passed_report(spec, "")), reason=reason)
    gained = tuple(file for file in ended.files if file not in begun.files)
    kept = tuple(file for file in table.files if file not in lost)
    return _exchanged(spec, catalog, lake, table, replace(table, files=(*kept, *gained)))


def _exchanged(
    spec: JobSpec, catalog: FakeCatalog, lake: FakeLake, table: FakeTable, then: FakeTable
) -> AuditReport:
    """Keep the data files of both states, and write again those that only the other one has."""
    kept = tuple(file for file in table.files if file in then.files)
    mark = f"{spec.ingestion}-{spec.attempt}"
    back = [rewritten([file], mark) for file in then.files if file not in table.files]
    _commit(spec, catalog, lake, table, replace(table, files=kept).append(*back))
    audited = catalog.own_commit(spec.branch, spec.base_hash)
    before, added = _rows(table), sum(map(rows_in, back))
    after = sum(map(rows_in, kept)) + added
    effect = Effect(before, after, added=added, removed=before + added - after)
    return replace(passed_report(spec, audited), effect=effect, files=(), rows_written=added)


def _append(spec: JobSpec, catalog: FakeCatalog, lake: FakeLake) -> AuditReport:
    """Append in the steps of `spark_jobs.write.append`; others may write between them."""
    _require_unshared(spec, catalog)
    append(catalog, lake, spec.branch, spec.table, data_file(spec))
    return passed_report(spec, catalog.made_commit(spec.branch, spec.base_hash))


def append(catalog: FakeCatalog, lake: FakeLake, branch: str, name: str, *files: str) -> None:
    """Write data files, and then append them to a table on a branch."""
    table = catalog.table(branch, name) or FakeTable(f"uuid of {branch}")
    write_files(lake, name, table, files)
    catalog.append(branch, name, *files, registers=True)


def write_files(lake: FakeLake, name: str, table: FakeTable, files: Iterable[str]) -> None:
    """Write data files of a table into the lake; nothing names them before the commit."""
    lake.store([data_address(name, table, file) for file in files])


def write_records(lake: FakeLake, report: AuditReport) -> None:
    """Write the files for the tables of history into the lake, before the report names them."""
    lake.store([file.path for single in report.singles for file in single.records])


def _commit(
    spec: JobSpec, catalog: FakeCatalog, lake: FakeLake, before: FakeTable, table: FakeTable
) -> None:
    """Write the data files that a state of the table has more than before, and then commit it."""
    new = [file for file in table.files if file not in before.files]
    write_files(lake, spec.table, table, new)
    catalog.commit(spec.branch, spec.table, table, registers=True)


def _replaced(spec: JobSpec, catalog: FakeCatalog, lake: FakeLake, mode: WriteMode) -> AuditReport:
    _require_unshared(spec, catalog)
    (report,), table = merge_in_order([spec], catalog, mode)
    commit_state(spec, catalog, lake, table)
    return replace(report, audited_hash=catalog.own_commit(spec.branch, spec.base_hash))


def merge_in_order(
    specs: Iterable[JobSpec], catalog: FakeCatalog, mode: WriteMode
) -> tuple[list[AuditReport], FakeTable]:
    """Put the rows of each file in the place of others, one file after the other.

    Return their reports, without the hash of the commit, and the table after that.
    """
    table, reports = None, []
    for spec in specs:
        table = table or _table(spec, catalog)
        step = _upserted if mode.merges else _overwritten
        report, table = step(spec, table, mode)
        reports.append(report)
    assert table
    return reports, table


def _table(spec: JobSpec, catalog: FakeCatalog) -> FakeTable:
    return catalog.table(spec.branch, spec.table) or FakeTable(f"uuid of {spec.branch}")


def commit_state(spec: JobSpec, catalog: FakeCatalog, lake: FakeLake, table: FakeTable) -> None:
    """Write the new data files of a state of the table, and commit it on the branch."""
    _commit(spec, catalog, lake, _table(spec, catalog), table)


def _overwritten(spec: JobSpec, table: FakeTable, mode: WriteMode) -> tuple[AuditReport, FakeTable]:
    """Put the file's rows in the place of all others: each file has the same partition."""
    before = _rows(table)
    effect = Effect(before, ROWS, added=ROWS, removed=before)
    after = replace(table, files=()).append(data_file(spec))
    return replace(passed_report(spec, ""), effect=effect), after


def _upserted(spec: JobSpec, table: FakeTable, mode: WriteMode) -> tuple[AuditReport, FakeTable]:
    """Put the file's rows in the place of those with the same keys."""
    mark = f"{spec.ingestion}-{spec.attempt}"
    done = merge(table.files, data_file(spec), mark, latest=bool(mode.latest_by))
    merged = replace(table, files=done.left).append(*done.new)
    added = done.inserted + done.updated
    effect = Effect(_rows(table), _rows(merged), added, done.updated, done.updated)
    report = replace(passed_report(spec, ""), effect=effect, rows_written=added, files=())
    return report, merged


def _rows(table: FakeTable) -> int:
    return sum(map(rows_in, table.files))


def _require_unshared(spec: JobSpec, catalog: FakeCatalog) -> None:
    """Raise Transient if another writer committed on the branch."""
    if catalog.head(spec.branch) != spec.base_hash:
        raise Transient("BRANCH_SHARED", f"another writer committed on the branch {spec.branch}")


def passed_report(spec: JobSpec, audited: str) -> AuditReport:
    """Return the report of a run that found no fault."""
    return AuditReport(
        ingestion=spec.ingestion,
        attempt=spec.attempt,
        verdict=Verdict.PASSED,
        reason=None,
        table=spec.table,
        branch=spec.branch,
        base_hash=spec.base_hash,
        audited_hash=audited,
        source=spec.landed,
        format="parquet",
        contract_id="shop-orders",
        contract_version="1.0.0",
        contract_sha256="0" * 64,
        rows_written=ROWS,
        checks=(PASSED, USUAL),
        started_at="2026-03-01T12:00:00.000+00:00",
        finished_at="2026-03-01T12:00:00.001+00:00",
        files=(DataFile(data_file(spec), ROWS, spec.landed.size),),
    )
