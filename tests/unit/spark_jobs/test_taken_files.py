"""A file that a shared run ingests alone: an earlier try may have left its branch and report."""

from dataclasses import dataclass

import pytest

from lakegate.audit.report import AuditReport
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import branch_name
from lakegate.job.shared_run import SharedRun
from spark_jobs.shared.taken_files import TakenFiles
from tests.fakes.deployment import TABLE
from tests.fakes.job import passed
from tests.fakes.scenario import FIRST, KEY, Scenario
from tests.fakes.shared_run import Judges

RUN = SharedRun("shared-0", "work", "verdicts", "lake", "", "", 60, 60)


@dataclass(frozen=True)
class Alone:
    """A file that waits, and a shared run that ingests it alone."""

    deployment: Scenario
    spec: JobSpec
    files: TakenFiles

    @property
    def branch(self) -> str:
        return branch_name(TABLE, self.spec.landed.key, self.spec.ingestion, 1)

    @property
    def report(self) -> AuditReport:
        return self.deployment.lake.report(self.spec.report_key)


@pytest.fixture
def alone() -> Alone:
    deployment = Scenario()
    deployment.ended(FIRST)
    deployment.share(1)
    deployment.land(KEY)
    deployment.deliver()
    (taken,) = deployment.queues.take(0)
    spec = JobSpec.from_argument(taken.body)
    scripts = {spec.ingestion: passed}
    judges = Judges(deployment.catalog, deployment.lake, scripts, deployment.keys, lambda: "")
    made = Alone(deployment, spec, TakenFiles(RUN, judges.means))
    made.files.ingest_alone(spec)
    return made


def test_a_file_with_a_report_keeps_its_branch(alone: Alone) -> None:
    """The report names the branch as it is: a run that comes later changes neither."""
    before, head = alone.report, alone.deployment.catalog.head(alone.branch)
    alone.deployment.move_main()
    alone.files.ingest_alone(alone.spec)
    assert (alone.report, alone.deployment.catalog.head(alone.branch)) == (before, head)


def test_a_branch_without_a_report_begins_again_at_main(alone: Alone) -> None:
    """What a run that died had committed there is gone, and the file's rows are there once."""
    alone.deployment.lake.lose(alone.spec.report_key)
    alone.deployment.move_main()
    alone.files.ingest_alone(alone.spec)
    main, table = (alone.deployment.catalog.table(at, TABLE) for at in ("main", alone.branch))
    assert main
    assert table
    assert alone.report.base_hash == alone.deployment.catalog.head("main")
    assert table.files[:-1] == main.files
