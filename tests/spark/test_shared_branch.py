"""A run reports only its own writes, even if another writer commits on its branch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

import pytest
import requests

from lakegate.audit.report import AuditReport, Verdict
from lakegate.errors import Transient
from lakegate.job.jobspec import JobSpec
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.lake.storage import Storage
from spark_jobs.run.batch import ingest_batch
from spark_jobs.run.ingest import ingest
from spark_jobs.spark.session import open_session
from tests.services import fresh_session
from tests.spark.conftest import GOOD, Job, changed, parquet
from tests.spark.test_batch import Batch, batch

pytestmark = pytest.mark.spark
Contract = Callable[..., str]
__all__ = ["batch"]  # a fixture

# The access to the branch at which a run must detect the other writer's commit.
OPENED, APPENDED = 1, 2


@dataclass(frozen=True)
class Watched(Branch):
    """The run's branch, on which another writer commits around one access of the run.

    The commit comes before the access where `before` is set, and right after it otherwise.
    """

    at: int = 0
    before: bool = False
    looks: list[str] = field(default_factory=list)

    def head(self) -> str:
        """See Branch.head."""
        return self._look(super().head)

    def own_commit(self, before: str) -> str:
        """See Branch.own_commit."""
        return self._look(lambda: super(Watched, self).own_commit(before))

    def _look(self, read: Callable[[], str]) -> str:
        self.looks.append("look")
        now = len(self.looks) == self.at
        if now and self.before:
            self.commit()
        found = read()
        if now and not self.before:
            self.commit()
        return found

    def commit(self) -> None:
        """Commit a namespace, as another holder of the job's token could."""
        name = {"elements": [f"other{len(self.looks)}"]}
        answer = requests.post(
            f"{self.nessie_uri}/api/v2/trees/{quote(self.name, safe='')}@{super().head()}"
            "/history/commit",
            json={
                "commitMeta": {"message": "another writer"},
                "operations": [
                    {"type": "PUT", "key": name, "content": {"type": "NAMESPACE", **name}}
                ],
            },
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=30,
        )
        answer.raise_for_status()


def run(job: Job, spec: JobSpec, at: int = 0, *, before: bool = False) -> AuditReport:
    """Return the run's report, while another writer commits at its access number `at`."""
    fresh_session(job.warm_spark)
    storage, token = Storage.connect(spec), job.services.tokens["job"]
    branch = Watched(spec.nessie_uri, spec.branch, token, at, before)
    spark = open_session(spec, token)
    if spec.parts:
        return ingest_batch(spec, storage, spark, branch)
    return ingest(spec, storage, spark, branch)


def test_commits_of_others_on_the_branch_are_never_reported(
    job: Job, contract: Contract, table: str
) -> None:
    """Rows of another writer, at any moment of the run, fail the run."""
    services = job.services
    job.publish(job.ingest(parquet(GOOD), contract(), table))
    landed = services.land("tests/shared", changed(id=[7, 8, 9]))
    spec = job.spec(landed, contract(), table)
    own = Branch(spec.nessie_uri, spec.branch, services.tokens["job"])
    for at, before in ((OPENED, False), (APPENDED, True)):
        own.reset(spec.base_hash)
        with pytest.raises(Transient, match="another writer committed"):
            run(job, spec, at, before=before)

    own.reset(spec.base_hash)
    report = run(job, spec, APPENDED)
    assert report.verdict is Verdict.PASSED
    assert services.catalog.head(spec.branch) != report.audited_hash  # which leads to the run alone

    with pytest.raises(Transient, match="another writer committed"):
        run(job, spec)  # the rows of the run before are on the branch now


def test_commits_of_others_between_two_files_of_a_batch_fail_it(
    job: Job, batch: Batch, table: str
) -> None:
    """A commit of another writer between two files of a batch fails it."""
    spec = batch((table, parquet(GOOD)), (table, changed(id=[7, 8, 9])))
    run(job, spec)
    Branch(spec.nessie_uri, spec.branch, job.services.tokens["job"]).reset(spec.base_hash)
    with pytest.raises(Transient, match="another writer committed"):
        run(job, spec, APPENDED)
