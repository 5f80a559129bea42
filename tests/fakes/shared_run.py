"""What a shared run works with, without Spark: branches and texts in memory, scripted verdicts.

The loop over the queue and the way of each file are the product's: spark_jobs.shared.serve and
spark_jobs.shared.taken_files.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, cast

from functions.adapters.nessie import UnknownBranch
from lakegate.audit.report import AuditReport, Verdict, to_lines
from lakegate.contract.reading.write_mode import WriteMode
from lakegate.contract.sharing import comes_in_turns, why_alone
from lakegate.errors import Transient
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import group_branch, group_reports_key
from spark_jobs.groups.begun import Begun
from spark_jobs.shared.taken_files import Means
from tests.fakes.catalog import FakeCatalog
from tests.fakes.faults import ProcessDied
from tests.fakes.job import (
    Keys,
    Script,
    append,
    commit_state,
    data_file,
    judge_alone,
    judge_found,
    keys_of,
    merge_in_order,
    passed_report,
    write_records,
)
from tests.fakes.storage import FakeLake


@dataclass(frozen=True)
class FakeBranch:
    """See spark_jobs.lake.nessie_branch.Branch."""

    catalog: FakeCatalog
    name: str

    def create(self) -> str:
        """Create it at main's head; raise BranchExists."""
        return self.catalog.make_branch(self.name)

    def reset_to_main(self) -> str:
        """Reset it to main's head."""
        with _as_nessie_answers():
            head = self.catalog.head("main")
            self.catalog.reset(self.name, head)
            return head


@dataclass(frozen=True)
class FakeStorage:
    """See spark_jobs.lake.storage.Storage."""

    spec: JobSpec
    lake: FakeLake

    def finished_report(self) -> AuditReport | None:
        """Return the attempt's report, or None."""
        return self.lake.finished_report(self.spec.report_key)

    def stored(self, key: str) -> int:
        """Return the size of an object."""
        return self.lake.size(key)

    def put(self, key: str, body: bytes) -> None:
        """Put an object."""
        self.lake.put_text(key, body)


@dataclass(frozen=True)
class Judges:
    """The scripted verdicts of a shared run's files; `token` makes a token for a group's branch."""

    catalog: FakeCatalog
    lake: FakeLake
    scripts: Mapping[str, Script]
    keys: Keys
    token: Callable[[], str]

    @property
    def means(self) -> Means:
        """Return them as a shared run knows them."""
        return Means(
            lake=lambda spec: cast(Any, FakeStorage(spec, self.lake)),
            branch=lambda uri, name, token: cast(Any, FakeBranch(self.catalog, name)),
            token=lambda spec: "",
            together=self._together,
            in_order=self._in_order,
            alone=self._alone,
        )

    def _together(self, files: Sequence[Any], token: str) -> Sequence[AuditReport]:
        """See spark_jobs.groups.group.ingest_group."""
        specs = list({file.spec.ingestion: file.spec for file in files}.values())
        agreed = self.lake.contract_at(specs[0].contract_key, specs[0].contract_version)
        with _as_nessie_answers():
            alone = why_alone(agreed.contract) or comes_in_turns(agreed.contract)
            fit = [spec for spec in specs if not alone and self._is_clean(spec)]
            return self._append(fit, agreed.contract.write_mode) if fit else ()

    def _is_clean(self, spec: JobSpec) -> bool:
        """Return whether the file passes without a finding."""
        found = self._found(replace(spec, base_hash=self.catalog.head("main")), "not yet")
        if found is None:
            raise ProcessDied(f"{spec.landed.key} kills the run")
        fine = all(check.status.value in ("pass", "skipped") for check in found.checks)
        return found.verdict is Verdict.PASSED and fine and found.rows_written > 0

    def _append(self, specs: Sequence[JobSpec], mode: WriteMode) -> Sequence[AuditReport]:
        """See spark_jobs.groups.group_arrow and spark_jobs.groups.keyed."""
        assert not mode.merges
        own = self._on_one_branch(specs)
        branch, table = own[0].branch, own[0].table
        append(self.catalog, self.lake, branch, table, *map(data_file, own))
        return self._stored(own, [passed_report(spec, "") for spec in own])

    def _in_order(self, files: Sequence[Any], token: str) -> Begun:
        """See spark_jobs.groups.in_order.ingest_in_order."""
        first = files[0].spec
        agreed = self.lake.contract_at(first.contract_key, first.contract_version).contract
        if not comes_in_turns(agreed):
            return Begun()
        alike = takewhile(lambda each: each.spec.kind == first.kind, files)
        with _as_nessie_answers():
            mode = agreed.write_mode
            clean, refused = self._first_of(list(alike), compared=not mode.merges)
            entered = self._merge if mode.merges else self._append
            return Begun(tuple(entered(clean, mode) if clean else ()), tuple(refused))

    def _first_of(self, files: Sequence[Any], *, compared: bool) -> tuple[list[JobSpec], list[Any]]:
        """Return the files that pass cleanly and those that are refused, before any other.

        Any other is also one that must be `compared`, and has a key of main or an earlier file.
        """
        clean: list[JobSpec] = []
        refused: list[Any] = []
        keys: set[str] = set()
        for file in files:
            own = set(keys_of(file.spec, self.keys)) if compared else set()
            if self._is_clean(file.spec) and not own & keys:
                clean.append(file.spec)
                keys |= own
            elif self._is_refused(file.spec, self.keys if not compared else {}):
                refused.append(file)
            else:
                break
        return clean, refused

    def _is_refused(self, spec: JobSpec, keys: Keys) -> bool:
        """Return whether its own rows are refused, or one has a key among `keys` that main has."""
        at = replace(spec, base_hash=self.catalog.head("main"))
        plain = passed_report(at, "not yet")
        found = judge_found(at, self._script(at), plain, self.catalog, self.lake, keys)
        return found is not None and found.verdict is not Verdict.PASSED

    def _merge(self, specs: Sequence[JobSpec], mode: WriteMode) -> Sequence[AuditReport]:
        """Merge the files one after the other, and make one commit of that."""
        own = self._on_one_branch(specs)
        reports, table = merge_in_order(own, self.catalog, mode)
        commit_state(own[0], self.catalog, self.lake, table)
        return self._stored(own, reports)

    def _on_one_branch(self, specs: Sequence[JobSpec]) -> list[JobSpec]:
        """Return the files on a new branch. See spark_jobs.groups.group_commit.GroupTable."""
        branch = group_branch(specs[0].table, self.token().zfill(16))
        base = FakeBranch(self.catalog, branch).create()
        return [replace(spec, branch=branch, base_hash=base) for spec in specs]

    def _stored(
        self, own: Sequence[JobSpec], reports: Sequence[AuditReport]
    ) -> Sequence[AuditReport]:
        """Store the reports of a group; return what the run knows of them, whatever is stored.

        See spark_jobs.groups.group_commit.Group.
        """
        branch, table = own[0].branch, own[0].table
        audited = self.catalog.made_commit(branch, own[0].base_hash)
        group = tuple(spec.ingestion for spec in own)
        known = [replace(each, audited_hash=audited, group=group) for each in reports]
        stored = []
        for spec, report in zip(own, known, strict=True):
            found = self._judged(spec, report)
            assert found
            stored.append(self._put(spec, found))
        if len(stored) > 1:
            keys = {spec.report_key for spec in own}
            repeated = to_lines(each for each in stored if each.key in keys)
            self.lake.put_text(group_reports_key(table, branch), repeated)
        return known

    def _alone(self, spec: JobSpec, storage: object, token: str) -> AuditReport:
        """See spark_jobs.run.attempt.carry_out."""
        with _as_nessie_answers():
            found = judge_alone(spec, self._script(spec), self.catalog, self.lake, self.keys)
        if found is None:
            raise ProcessDied(f"{spec.landed.key} kills the run")
        return self._put(spec, found)

    def _found(self, spec: JobSpec, audited: str) -> AuditReport | None:
        return self._judged(spec, passed_report(spec, audited))

    def _judged(self, spec: JobSpec, report: AuditReport) -> AuditReport | None:
        return judge_found(spec, self._script(spec), report, self.catalog, self.lake, self.keys)

    def _script(self, spec: JobSpec) -> Script:
        return self.scripts[spec.ingestion]

    def _put(self, spec: JobSpec, report: AuditReport) -> AuditReport:
        write_records(self.lake, report)
        return self.lake.put_report(spec.report_key, report.to_json(indent=None))


@contextmanager
def _as_nessie_answers() -> Iterator[None]:
    """Raise what the job raises for a branch that is gone."""
    try:
        yield
    except UnknownBranch as error:
        raise Transient("CATALOG_UNAVAILABLE", error.message) from error
