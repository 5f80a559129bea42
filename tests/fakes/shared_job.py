"""The scripted shared run: its effects on branches, reports and queues, without Spark."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from functions.adapters.nessie import UnknownBranch
from lakegate.contract.sharing import why_alone
from lakegate.jobspec import JobSpec
from lakegate.landing import branch_name, group_branch, group_reports_key, run_name
from lakegate.report import AuditReport, Verdict, to_lines
from lakegate.shared_run import Judged
from tests.fakes.catalog import FakeCatalog
from tests.fakes.faults import ProcessDied
from tests.fakes.job import Keys, Script, data_file, judge_alone, judge_found, passed_report
from tests.fakes.queues import FakeWorkQueue, Work
from tests.fakes.storage import FakeLake


class FakeVerdicts:
    """The verdict queue of shared runs."""

    def __init__(self, put: Callable[[str], None]) -> None:
        self._put = put

    def send(self, judged: Judged) -> None:
        """Send a message."""
        self._put(judged.to_json())


class SharedJob:
    """One round of a shared run: it takes what waits, judges it and says so."""

    def __init__(
        self,
        catalog: FakeCatalog,
        lake: FakeLake,
        scripts: Mapping[str, Script],
        keys: Keys,
        token: Callable[[], str],
    ) -> None:
        self._catalog = catalog
        self._lake = lake
        self._scripts = scripts
        self._keys = keys
        self._token = token

    def round(self, name: str, work: FakeWorkQueue, verdicts: FakeVerdicts) -> bool:
        """Take waiting files and judge them; return whether there were any.

        Raises ProcessDied where a file kills the run.
        """
        taken = work.take()
        fresh = [each for each in taken if each.received == 1]
        for files in _by_table(fresh).values():
            self._judge_group(name, files, verdicts)
            work.delete(files)
        for each in taken:
            if each.received > 1:
                self._judge_again(name, each.spec, verdicts)
                work.delete([each])
        return bool(taken)

    def _judge_group(self, name: str, files: Sequence[Work], verdicts: FakeVerdicts) -> None:
        specs = list({each.spec.ingestion: each.spec for each in files}.values())
        agreed = self._lake.contract_at(specs[0].contract_key, specs[0].contract_version)
        fit = [spec for spec in specs if self._is_clean(spec) and not why_alone(agreed.contract)]
        keys = self._append_group(fit) if fit else []
        keys += [self._judge_alone(spec) for spec in specs if spec not in fit]
        verdicts.send(Judged(name, tuple(keys)))

    def _is_clean(self, spec: JobSpec) -> bool:
        """Return whether the file passes without a finding."""
        own = replace(spec, base_hash=self._catalog.head("main"))
        found = self._found(own, "not yet")
        if found is None:
            raise ProcessDied(f"{spec.landed.key} kills the run")
        fine = all(check.status.value in ("pass", "skipped") for check in found.checks)
        return found.verdict is Verdict.PASSED and fine and found.rows_written > 0

    def _append_group(self, specs: Sequence[JobSpec]) -> list[str]:
        first = specs[0]
        branch = group_branch(first.table, self._token().zfill(16))
        base = self._catalog.create_branch(branch)
        own = [replace(spec, branch=branch, base_hash=base) for spec in specs]
        self._catalog.append(branch, first.table, *map(data_file, own))
        audited = self._catalog.own_commit(branch, base)
        group = tuple(spec.ingestion for spec in specs) if len(specs) > 1 else ()
        stored = [self._put(spec, self._clean(spec, audited, group)) for spec in own]
        if group:
            keys = {spec.report_key for spec in own}
            repeated = to_lines(each for each in stored if each.key in keys)
            self._lake.put_text(group_reports_key(first.table, branch), repeated)
        return [spec.report_key for spec in own]

    def _clean(self, spec: JobSpec, audited: str, group: tuple[str, ...]) -> AuditReport:
        found = self._found(spec, audited)
        assert found
        return replace(found, group=group)

    def _judge_again(self, name: str, spec: JobSpec, verdicts: FakeVerdicts) -> None:
        """Judge a file that a run had in hand before: that run may have died by it."""
        if self._lake.finished_report(spec.report_key):
            verdicts.send(Judged(name, (spec.report_key,)))
        elif spec.report_key in self._lake.tried:
            verdicts.send(Judged(name, alone=(run_name(spec.ingestion, spec.attempt),)))
        else:
            self._lake.tried.add(spec.report_key)
            verdicts.send(Judged(name, (self._judge_alone(spec),)))

    def _judge_alone(self, spec: JobSpec) -> str:
        branch = branch_name(spec.table, spec.landed.key, spec.ingestion, spec.attempt)
        base = self._fresh(branch)
        own = replace(spec, branch=branch, base_hash=base)
        found = judge_alone(own, self._script(spec), self._catalog, self._lake, self._keys)
        if found is None:
            raise ProcessDied(f"{spec.landed.key} kills the run")
        self._put(own, found)
        return own.report_key

    def _fresh(self, branch: str) -> str:
        """Create the branch off main, or reset one of an earlier taking; return its base."""
        try:
            base = self._catalog.head("main")
            self._catalog.reset(branch, base)
        except UnknownBranch:
            return self._catalog.create_branch(branch)
        return base

    def _found(self, spec: JobSpec, audited: str) -> AuditReport | None:
        report = passed_report(spec, audited)
        return judge_found(spec, self._script(spec), report, self._catalog, self._keys)

    def _script(self, spec: JobSpec) -> Script:
        return self._scripts[spec.ingestion]

    def _put(self, spec: JobSpec, report: AuditReport) -> AuditReport:
        return self._lake.put_report(spec.report_key, report.to_json())


def _by_table(taken: Sequence[Work]) -> Mapping[tuple[str, str], list[Work]]:
    found: defaultdict[tuple[str, str], list[Work]] = defaultdict(list)
    for work in taken:
        found[work.spec.table, work.spec.contract_version].append(work)
    return found
