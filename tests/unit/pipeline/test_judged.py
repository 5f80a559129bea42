"""Reports of shared runs are believed only as far as they agree with the ledger and each other."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest

from functions.model.ingestion import Ingestion, State
from functions.pipeline.verdict.judged import record_judged
from lakegate.audit.report import AuditReport
from lakegate.job.landing import LandedObject, group_reports_key, run_name
from lakegate.job.shared_run import Judged
from tests.fakes.deployment import OTHER_TABLE, TABLE
from tests.fakes.faults import Fault, die
from tests.fakes.job import rejected
from tests.fakes.scenario import FIRST, FOREVER, Scenario

pytestmark = pytest.mark.usefixtures("quiet")
Edit = Callable[[AuditReport], AuditReport]


def judged(deployment: Scenario, files: int = 2) -> list[LandedObject]:
    """Return files that a shared run has judged, whose verdicts no function knows yet."""
    deployment.share(1)
    deployment.others.append(TABLE)
    landed = [deployment.land(f"shop/orders/{n}.parquet") for n in range(files)]
    deployment.go()
    return landed


def edit(deployment: Scenario, landed: LandedObject, how: Edit) -> AuditReport:
    """Write another report over that of a file, as code in a job could; return the first one."""
    key = deployment.ingestion(landed).report_key
    first = deployment.lake.report(key)
    deployment.lake.put_text(key, how(first).to_json().encode())
    if first.group:
        deployment.lake.lose(group_reports_key(TABLE, first.branch))
    return first


def tried_again(deployment: Scenario, *landed: LandedObject) -> None:
    """Check that the files' first branch was not merged, and that each is on main once."""
    deployment.settle()
    known = [deployment.ingestion(each) for each in landed]
    assert [(each.state, each.attempt) for each in known] == [(State.PUBLISHED, 2)] * len(known)
    assert deployment.on_main(*landed) == [True] * len(landed)


def waiting(deployment: Scenario, files: int) -> list[Ingestion]:
    """Return files that passed together, and were run again as their branch was dropped."""
    landed = judged(deployment, files)
    deployment.fail("catalog.merge", times=FOREVER)
    deployment.deliver()
    deployment.journal.repair("catalog.merge")
    first = [deployment.ingestion(each) for each in landed]
    assert {each.state for each in first} == {State.AUDITED}
    deployment.others.drop_branch(first[0].branch)
    deployment.publish(landed[0])
    assert {deployment.ingestion(each).attempt for each in landed} == {2}
    return first


@pytest.mark.parametrize("files", [1, 2])
def test_an_earlier_attempt_on_main_is_not_doubled(deployment: Scenario, files: int) -> None:
    """If main took the first branch after all, the next attempt's rows do not come beside it."""
    first = waiting(deployment, files)
    deployment.merge_late(first)
    deployment.settle()
    main = deployment.published_files()
    assert [main.count(f"{each.landed.uri}@{each.landed.version}") for each in first] == [1] * files
    assert set(deployment.states(*first)) == {State.PUBLISHED}


def forge_a_row(deployment: Scenario, landed: Sequence[LandedObject]) -> str:
    """Write on a group's branch, have its reports say that this was audited; return the branch."""
    (branch,) = deployment.catalog.branches("ingest/")
    deployment.others.write_on_branch(branch, TABLE)
    written = deployment.catalog.head(branch)
    for each in landed:
        edit(deployment, each, lambda report: replace(report, audited_hash=written))
    return branch


@pytest.mark.parametrize("dies_after", [0, 1, 2])
def test_a_group_with_other_rows_keeps_its_branch_as_evidence(
    deployment: Scenario, dies_after: int
) -> None:
    """One member names the branch that holds other rows than reported; the others run again.

    So it is where the process dies after some of them are saved.
    """
    landed = judged(deployment, 3)
    branch = forge_a_row(deployment, landed)
    written = deployment.catalog.head(branch)
    if dies_after:
        deployment.journal.strike_later("ledger.save", Fault(die, "after"), dies_after - 1)
    deployment.settle()
    strange, *others = sorted(map(deployment.ingestion, landed), key=lambda each: each.attempt)
    assert deployment.end(strange) == "errored UNAUDITED_ROWS"
    assert f"branch {branch} holds more" in deployment.message(strange)
    assert deployment.catalog.head(branch) == written
    assert [(each.state, each.attempt) for each in others] == [(State.PUBLISHED, 2)] * 2
    deployment.discard(strange)
    assert deployment.catalog.branches("ingest/") == []


def test_a_group_whose_evidence_expired_runs_again(deployment: Scenario) -> None:
    """Without the branch nothing shows its other rows, so no member ends by naming it."""
    landed = judged(deployment, 3)
    branch = forge_a_row(deployment, landed)
    deployment.catalog.delete_branch(branch)
    deployment.settle()
    assert {deployment.end(each) for each in landed} == {"published"}
    assert {deployment.ingestion(each).attempt for each in landed} == {2}


def test_a_group_that_another_process_recorded_keeps_its_branch(deployment: Scenario) -> None:
    """If the same message is handled twice at once, the second one changes nothing."""
    landed = judged(deployment)
    keys = tuple(deployment.ingestion(each).report_key for each in landed)
    other = partial(record_judged, deployment.adapters, Judged("", keys))
    deployment.journal.strike("lake.report", Fault(other))
    record_judged(deployment.adapters, Judged("", keys))
    known = [deployment.ingestion(each) for each in landed]
    assert {each.state for each in known} == {State.AUDITED}
    assert known[0].branch in deployment.catalog.branches("ingest/")
    deployment.settle()
    assert {deployment.ingestion(each).attempt for each in landed} == {1}


@pytest.mark.parametrize("branch", [f"ingest/{OTHER_TABLE}/a", "publish/shop.orders/a", "main"])
def test_a_report_names_a_branch_of_its_own_table(branch: str) -> None:
    """A report that names any other branch ends the file errored, and nothing of it is kept."""
    deployment = Scenario()
    (landed,) = judged(deployment, 1)
    edit(deployment, landed, lambda report: replace(report, branch=branch))
    deployment.settle()
    assert deployment.end(landed) == "errored FOREIGN_REPORT"
    ended = deployment.ingestion(landed)
    assert (ended.branch, ended.audited_hash, ended.audit.rows, ended.audit.checks) == (
        "",
        "",
        0,
        (),
    )


def test_a_report_about_another_attempt_keeps_no_branch_of_a_group(deployment: Scenario) -> None:
    """The branch holds rows of other files, too: it is no evidence, and nobody can merge it."""
    good, foreign = judged(deployment)
    first = edit(deployment, foreign, lambda report: replace(report, attempt=report.attempt + 1))
    deployment.deliver()
    deployment.settle()
    assert deployment.end(foreign) == "errored FOREIGN_REPORT"
    assert deployment.ingestion(foreign).branch == ""
    assert first.branch not in deployment.catalog.branches("ingest/")
    assert deployment.on_main(good, foreign) == [True, False]


@pytest.mark.parametrize(
    "how",
    [
        lambda report: replace(report, group=(*report.group, 32 * "0")),
        lambda report: replace(report, audited_hash=f"{report.audited_hash[:-1]}f"),
        rejected,
    ],
    ids=["members", "hash", "verdict"],
)
def test_all_reports_of_a_group_must_agree(deployment: Scenario, how: Edit) -> None:
    """If one names other members or another hash, or fails, all members run again."""
    one, other = judged(deployment)
    first = edit(deployment, other, how)
    keys = tuple(deployment.ingestion(each).report_key for each in (one, other))
    record_judged(deployment.adapters, Judged("", keys))
    assert first.branch not in deployment.catalog.branches("ingest/")
    tried_again(deployment, one, other)


def test_a_file_that_is_to_be_held_leaves_its_group(deployment: Scenario) -> None:
    """A file with known bytes, which waits for a person, needs a branch of its own."""
    deployment.ended(FIRST, b"same")
    deployment.share(1)
    known = deployment.land("shop/orders/same.parquet", b"same")
    other = deployment.land("shop/orders/other.parquet")
    deployment.go()
    now = deployment.ingestion(known)
    deployment.ledger.save(now.but(terms=replace(now.terms, on_duplicate="hold")))
    tried_again(deployment, known, other)
    assert [deployment.ingestion(each).is_shared for each in (known, other)] == [False, True]


def test_to_leave_a_group_is_no_failure(deployment: Scenario) -> None:
    """Where its own run then dies for the first time, the file has another one."""
    deployment.ended(FIRST, b"same")
    deployment.share(1)
    known = deployment.land("shop/orders/same.parquet", b"same")
    deployment.land("shop/orders/other.parquet")
    deployment.go()
    now = deployment.ingestion(known)
    deployment.ledger.save(now.but(terms=replace(now.terms, on_duplicate="hold")))
    deployment.script(known, lambda report: report if report.attempt > now.attempt + 1 else None)
    deployment.settle()
    ended = deployment.ingestion(known)
    assert (ended.state, ended.attempt, ended.failures) == (State.PUBLISHED, 3, 1)


def test_a_file_is_not_run_alone_for_an_attempt_of_before(deployment: Scenario) -> None:
    """A message that comes late names an attempt that has its verdict: nothing runs again."""
    (landed,) = judged(deployment, 1)
    known = deployment.end_of(landed)
    late = Judged("", (), (run_name(known.id, known.attempt),))
    assert record_judged(deployment.adapters, late) == [known]
    assert deployment.states(landed) == [State.PUBLISHED]
