"""What a shared run's report names is no reason to touch anything that is not the file's own.

A shared run may write any report and any message of the verdict queue, except reports of tables
that are kept apart from it.
"""

from dataclasses import replace
from typing import Any

import pytest

from functions.adapters.emr import RunState
from functions.model.ingestion import Ingestion, State
from functions.operations.decisions.failed import branches
from functions.operations.recovery.rebuild_ledger import rebuild
from functions.pipeline.verdict.judged import conclude_judged
from lakegate.audit.report import AuditReport, Reason, Verdict
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject, branch_name, group_branch, report_key
from lakegate.job.shared_run import Judged
from tests.fakes.deployment import OTHER_TABLE, SETTINGS, TABLE
from tests.fakes.job import passed_report, rejected
from tests.fakes.scenario import Scenario

ELSEWHERE = "ingest/finance.payroll/evidence-0123456789ab"


@pytest.fixture
def deployment() -> Scenario:
    made = Scenario(replace(SETTINGS, shared_runs=1))
    made.catalog.create_branch(ELSEWHERE)
    return made


def waiting(deployment: Scenario) -> Ingestion:
    """Return a file that waits for a shared run."""
    landed = deployment.land("shop/orders/a.parquet")
    deployment.deliver_one(-1)
    found = deployment.ingestion(landed)
    assert found.awaits_shared_run
    return found


def report(deployment: Scenario, found: Ingestion, **forged: Any) -> AuditReport:
    """Return the report of a shared run on the file, which passed, with what is forged in it."""
    (taken,) = deployment.queues.take(0)
    branch = branch_name(TABLE, found.landed.key, found.id, 1)
    base = deployment.catalog.create_branch(branch)
    spec = replace(JobSpec.from_argument(taken.body), branch=branch, base_hash=base)
    plain = replace(
        passed_report(spec, spec.base_hash), contract_sha256=found.terms.contract_sha256
    )
    return replace(plain, **forged)


def tell(deployment: Scenario, told: AuditReport, key: str = "") -> None:
    """Put a report, and name it in a message, as a shared run may."""
    key = key or report_key(TABLE, told.ingestion, told.attempt)
    deployment.lake.put_text(key, told.to_json().encode())
    conclude_judged(deployment.adapters, Judged("shared-0", (key,)))


@pytest.mark.parametrize(
    "branch",
    [
        ELSEWHERE,
        f"ingest/{TABLE}/evidence-0123456789ab",
        f"ingest/{TABLE}/group-csv-0123456789ab",  # of a file, which is called group.csv
    ],
)
@pytest.mark.parametrize("member", [True, False])
def test_no_branch_is_deleted_because_a_report_names_it(
    deployment: Scenario, branch: str, member: bool
) -> None:
    """Only a branch that a shared run made for a group of the file's own table is deleted."""
    deployment.catalog.create_branch(branch)
    found = waiting(deployment)
    group = (found.id, 32 * "f") if member else (32 * "f",)
    tell(deployment, report(deployment, found, branch=branch, group=group))
    assert branch in deployment.catalog.references()


def test_the_branch_of_a_group_that_failed_is_deleted(deployment: Scenario) -> None:
    """The branch of a group with a member that is unknown is deleted, as nobody may merge it."""
    found = waiting(deployment)
    branch = group_branch(TABLE, 16 * "a")
    deployment.catalog.create_branch(branch)
    tell(deployment, report(deployment, found, branch=branch, group=(found.id, 32 * "f")))
    assert branch not in deployment.catalog.references()


@pytest.mark.parametrize("branch", ["ingest/", f"ingest/{TABLE}/", "another file's"])
def test_discarding_deletes_no_branch_of_another_file(deployment: Scenario, branch: str) -> None:
    """A rejected file has its own branch, whatever its report names."""
    other = deployment.land("shop/orders/other.parquet", script=rejected)
    deployment.settle()
    evidence = deployment.ingestion(other).branch
    branch = evidence if branch == "another file's" else branch
    found = waiting(deployment)
    why = Reason("CHECK_FAILED", "no")
    told = report(deployment, found, branch=branch, verdict=Verdict.REJECTED, reason=why)
    tell(deployment, told)
    assert deployment.ledger.get(found.id).state in (State.REJECTED, State.ERRORED)
    deployment.discard(found.landed)
    assert {evidence, ELSEWHERE} <= deployment.catalog.references().keys()


def test_a_report_under_another_tables_name_is_none(deployment: Scenario) -> None:
    """A run that may not write the file's report cannot put another in its place."""
    found = waiting(deployment)
    told = report(deployment, found)
    tell(deployment, told, report_key(OTHER_TABLE, found.id, 1))
    assert deployment.ledger.get(found.id).awaits_shared_run


@pytest.mark.parametrize("other", ["bucket", "key", "version"])
def test_a_report_on_another_object_is_none(deployment: Scenario, other: str) -> None:
    """A forged message of the work queue has a run ingest another object: it is not published."""
    found = waiting(deployment)
    forged: Any = {other: "another"}
    tell(deployment, report(deployment, found, source=replace(found.landed, **forged)))
    assert deployment.end(found.landed) == "errored FOREIGN_REPORT"


def test_a_report_by_another_contract_is_none(deployment: Scenario) -> None:
    """A forged message of the work queue names an older version of the contract."""
    found = waiting(deployment)
    tell(deployment, report(deployment, found, contract_sha256="e" * 64))
    assert deployment.end(found.landed) == "errored FOREIGN_REPORT"


@pytest.mark.parametrize("branch", ["ingest/", ELSEWHERE, f"ingest/{TABLE}/evidence-0123"])
def test_a_restored_file_takes_no_branch_from_a_report(deployment: Scenario, branch: str) -> None:
    """After the ledger was lost, a report gives a file no branch that is not its own."""
    landed: LandedObject = deployment.land("shop/orders/a.parquet", script=rejected)
    found = deployment.end_of(landed)
    told = replace(deployment.lake.report(found.report_key), branch=branch)
    deployment.lake.put_text(found.report_key, told.to_json().encode())
    for run in deployment.jobs.runs():
        deployment.jobs.end(run.id, RunState.SUCCESS)
        deployment.jobs.lose(run.id)
    deployment.ledger.lose()
    list(rebuild(deployment.adapters))
    assert deployment.ingestion(landed).branch in ("", found.branch)
    deployment.discard(landed)
    assert ELSEWHERE in deployment.catalog.references()


def test_a_branchs_name_stands_for_itself(deployment: Scenario) -> None:
    """A file's branch is the one of exactly this name, whatever else begins like it."""
    found = waiting(deployment).but(branch="ingest/")
    assert branches(found, {ELSEWHERE: "a" * 64, "ingest/": "b" * 64}) == {"ingest/": "b" * 64}
