"""Decisions on failed ingestions, which hold against any concurrent process."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Literal

import pytest

from functions.model import merge_commit
from functions.model.alert import Kind
from functions.model.ingestion import Ingestion, State
from functions.operations.failed import Outcome, discard, mark_discarded, publish_anyway, replay
from lakegate.errors import LakegateError, Transient
from lakegate.landing import LandedObject
from lakegate.report import AuditReport, Status
from tests.fakes.deployment import ORDERS, TABLE, Deployment
from tests.fakes.faults import Fault, ProcessDied, die, unavailable
from tests.fakes.job import errored, passed, rejected
from tests.fakes.promises import check_files, check_promises, ends, left_behind, publishing

pytestmark = pytest.mark.usefixtures("quiet")

KEY = "shop/orders/a.parquet"
Command = Callable[[Deployment, LandedObject], Outcome]
When = Literal["before", "after"]


def rejected_otherwise(report: AuditReport) -> AuditReport:
    """Return the run whose audit fails another check as well."""
    report = rejected(report)
    other = replace(report.checks[-1], id="other", status=Status.ERROR)
    return replace(report, checks=(*report.checks, other))


def refused(report: AuditReport) -> AuditReport:
    """Return the run that rejects the file before it writes a row."""
    return replace(rejected(report), audited_hash="", rows_written=0)


def failed(
    script: Callable[[AuditReport], AuditReport | None] = rejected,
) -> tuple[Deployment, LandedObject]:
    """Return a deployment with a file on main, and one whose job run went as scripted."""
    deployment = Deployment()
    deployment.land("shop/orders/first.parquet")
    deployment.settle()
    landed = deployment.land(KEY, script=script)
    deployment.settle()
    return deployment, landed


def replayed(deployment: Deployment, landed: LandedObject) -> Outcome:
    """Replay it."""
    return replay(deployment.adapters, deployment.ingestion(landed))


def published(deployment: Deployment, landed: LandedObject) -> Outcome:
    """Publish it as Ann."""
    return publish_anyway(deployment.adapters, deployment.ingestion(landed), "Ann", "it is known")


def discarded(deployment: Deployment, landed: LandedObject) -> Outcome:
    """Discard it."""
    return discard(deployment.adapters, deployment.ingestion(landed))


def moved(deployment: Deployment, landed: LandedObject) -> None:
    """Change main's table, so that only a rebase can publish."""
    deployment.land(f"shop/orders/{landed.etag}-other.parquet")
    deployment.settle()


def data_files(deployment: Deployment) -> list[str]:
    """Return the keys of the deleted data files."""
    return [key for key in deployment.lake.deleted if "/data/" in key]


@pytest.mark.parametrize("script", [rejected, errored])
def test_what_failed_is_replayed_to_its_end(script: Callable[[AuditReport], AuditReport]) -> None:
    """A replay uses a fresh branch; its publication also deletes the old one."""
    deployment, landed = failed(script)
    old = deployment.ingestion(landed)
    deployment.script(landed, passed)
    outcome = replayed(deployment, landed)
    assert (outcome.ingestion.state, outcome.ingestion.attempt) == (State.SUBMITTED, 2)
    assert outcome.ingestion.branch == f"{old.branch}-2"
    assert old.branch in deployment.catalog.branches("ingest/")
    deployment.settle()
    now = deployment.ingestion(landed)
    assert (now.state, now.reason, now.approval) == (State.PUBLISHED, None, None)
    assert not left_behind(deployment)
    check_promises(deployment)


def test_the_ledger_keeps_who_had_what_done() -> None:
    """The ledger records the person of each decision, also after a replay."""
    deployment, landed = failed()
    adapters = deployment.adapters
    replay(adapters, deployment.ingestion(landed), by=" Ann ")
    deployment.settle()
    published(deployment, landed)
    now = deployment.ingestion(landed)
    assert [(each.what, each.by, each.attempt) for each in now.actions] == [
        ("replay", "Ann", 1),
        ("publish", "Ann", 2),
    ]
    deployment, landed = failed()
    discard(deployment.adapters, deployment.ingestion(landed), by="Bob")
    (action,) = deployment.ingestion(landed).actions
    assert (action.what, action.by) == ("discard", "Bob")


def test_what_is_given_up_is_deleted_by_the_next_discard() -> None:
    """Marking only records the discard; the next discard deletes the files."""
    deployment, landed = failed()
    before = deployment.ingestion(landed)
    marked = mark_discarded(deployment.adapters, before, by="Ann")
    assert (marked.discarded, list(marked.branches_to_delete)) == (True, [before.branch])
    assert before.branch in deployment.catalog.branches("ingest/")
    assert discarded(deployment, landed).left == ""
    assert before.branch not in deployment.catalog.branches("ingest/")
    assert data_files(deployment)
    with pytest.raises(LakegateError, match="DISCARDED"):
        mark_discarded(deployment.adapters, deployment.ingestion(landed), by="Bob")


def test_a_replay_that_fails_is_reported_again() -> None:
    """A replay that is rejected is alerted again, and both branches stay."""
    deployment, landed = failed()
    replayed(deployment, landed)
    deployment.settle()
    now = deployment.ingestion(landed)
    alerts = [alert for _, alert in deployment.alerts.posted if now.id in str(alert)]
    assert (now.state, now.attempt, len(alerts)) == (State.REJECTED, 2, 2)
    assert len(deployment.catalog.branches("ingest/")) == 2
    check_promises(deployment)


@pytest.mark.parametrize("original", [False, True])
def test_a_replay_goes_by_the_contract_that_is_asked_for(original: bool) -> None:
    """A replay uses the current contract, or the first attempt's, until its final state."""
    deployment, landed = failed()
    before = deployment.ingestion(landed).contract_version
    changed = ORDERS.replace("required: true", "required: false, unique: true")
    deployment.lake.put_text(f"contracts/{TABLE}.yaml", changed.encode())
    deployment.script(landed, passed)
    replay(deployment.adapters, deployment.ingestion(landed), original=original)
    moved(deployment, landed)
    deployment.settle()
    now = deployment.ingestion(landed)
    assert now.state is State.PUBLISHED
    assert (now.contract_version == before) is original
    assert now.attempt == 2
    check_promises(deployment)


def test_attempts_count_from_the_replay() -> None:
    """A replay resets the limit of attempts."""
    deployment, landed = failed()
    now = replayed(deployment, landed).ingestion
    assert (now.tries_from, now.attempt, now.failures) == (1, 2, 0)


def test_rejected_rows_are_published_with_name_and_reason() -> None:
    """The commit on main names person and reason; the branch is deleted."""
    deployment, landed = failed()
    outcome = published(deployment, landed)
    assert (outcome.ingestion.state, outcome.left) == (State.PUBLISHED, "")
    (entry,) = merge_commit.published(publishing(deployment)[0])
    assert (entry.id, entry.approved_by) == (outcome.ingestion.id, "Ann")
    assert entry.approved_because == "it is known"
    assert outcome.ingestion.approval
    assert outcome.ingestion.approval.checks == ("id.required",)
    assert [each.state for each in deployment.announcements.sent][-2:] == ["rejected", "published"]
    assert deployment.announcements.sent[-1].approved_by == "Ann"
    assert not left_behind(deployment)
    deployment.settle()
    check_promises(deployment)


def test_an_audit_that_passed_names_nobody() -> None:
    """A commit of passed rows names no approval."""
    deployment, _ = failed()
    (commit, *_) = publishing(deployment)
    assert "approved" not in commit.properties[merge_commit.INGESTIONS]


def test_published_anyway_beside_others() -> None:
    """If main's table changed, approved rows are registered again like any others."""
    deployment, landed = failed()
    moved(deployment, landed)
    assert published(deployment, landed).ingestion.state is State.PUBLISHED
    deployment.settle()
    check_promises(deployment)


@pytest.mark.parametrize(
    ("script", "state", "by"),
    [
        (rejected, State.PUBLISHED, "Ann"),
        (rejected_otherwise, State.REJECTED, ""),
        (refused, State.REJECTED, ""),
        (passed, State.PUBLISHED, ""),
    ],
)
def test_an_approval_covers_what_was_seen(
    script: Callable[[AuditReport], AuditReport], state: State, by: str
) -> None:
    """If the job must run again, only the approved checks may fail."""
    deployment, landed = failed()
    deployment.catalog.delete_branch(deployment.ingestion(landed).branch)
    deployment.catalog.fork(deployment.ingestion(landed).branch, "main")
    deployment.script(landed, script)
    deployment.journal.strike("catalog.merge", Fault(partial(moved_table, deployment)))
    published(deployment, landed)
    deployment.settle()
    now = deployment.ingestion(landed)
    assert (now.state, now.attempt) == (state, 2)
    assert (now.approval.by if now.approval else "") == by
    check_promises(deployment)


def moved_table(deployment: Deployment) -> None:
    """Delete the branch just before the merge, so that nothing can be merged."""
    for branch in deployment.catalog.branches("ingest/"):
        deployment.catalog.delete_branch(branch)


def test_discarded_is_gone_from_the_lake() -> None:
    """The branch and its own files are deleted; main's files stay."""
    deployment, landed = failed()
    outcome = discarded(deployment, landed)
    assert (outcome.left, outcome.ingestion.state) == ("", State.REJECTED)
    assert outcome.ingestion.discarded
    assert not outcome.ingestion.branches_to_delete
    assert deployment.catalog.branches("ingest/") == []
    assert [key.rpartition("/")[2] for key in data_files(deployment)] == ["a.parquet@v1#1"]
    assert len(deployment.lake.deleted) == 3
    assert outcome.removal.kept == {}
    check_promises(deployment)


def test_a_file_that_another_branch_reaches_stays() -> None:
    """A branch created from the rejected one keeps its rows, and the command names it."""
    deployment, landed = failed()
    deployment.catalog.fork("mine", deployment.ingestion(landed).branch)
    outcome = discarded(deployment, landed)
    assert deployment.lake.deleted == {}
    assert set(outcome.removal.kept.values()) == {"mine needs it"}
    check_promises(deployment)


def test_a_branch_cut_at_the_last_moment_keeps_its_files() -> None:
    """A branch created just before the deletion keeps its files."""
    deployment, landed = failed()
    branch = deployment.ingestion(landed).branch
    fault = Fault(partial(deployment.catalog.fork, "mine", branch))
    deployment.journal.strike("catalog.delete_branch", fault)
    discarded(deployment, landed)
    assert deployment.catalog.branches("ingest/") == []
    check_files(deployment)


@pytest.mark.parametrize("command", [replayed, published, discarded])
def test_a_write_that_timed_out_although_done_is_done(command: Command) -> None:
    """A save that timed out but was applied is a success."""
    deployment, landed = failed()
    deployment.journal.strike("ledger.save", Fault(unavailable, "after"))
    command(deployment, landed)
    deployment.settle()
    check_promises(deployment)


def test_a_discarded_one_can_be_replayed() -> None:
    """A discarded ingestion can be replayed from its landed object."""
    deployment, landed = failed()
    discarded(deployment, landed)
    deployment.script(landed, passed)
    replayed(deployment, landed)
    deployment.settle()
    now = deployment.ingestion(landed)
    assert (now.state, now.discarded) == (State.PUBLISHED, False)
    check_promises(deployment)


def test_one_without_a_branch_is_discarded_all_the_same() -> None:
    """An ingestion without a contract has nothing to delete, and is discarded."""
    deployment = Deployment()
    landed = deployment.land("elsewhere/a.parquet")
    deployment.settle()
    assert discarded(deployment, landed).ingestion.discarded
    assert deployment.lake.deleted == {}


@pytest.mark.parametrize("command", [replayed, published, discarded])
def test_what_did_not_fail_is_left_alone(command: Command) -> None:
    """A published file can be neither replayed nor discarded, and the error names its state."""
    deployment, landed = failed(passed)
    before = deployment.ingestion(landed)
    with pytest.raises(LakegateError, match="it is published"):
        command(deployment, landed)
    assert deployment.ingestion(landed) == before


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [(errored, "NO_ROWS", "its audit did not finish"), (refused, "NO_ROWS", "before any row")],
)
def test_without_rows_there_is_nothing_to_publish(
    script: Callable[[AuditReport], AuditReport], code: str, said: str
) -> None:
    """Without audited rows publishing is refused, with a remedy."""
    deployment, landed = failed(script)
    with pytest.raises(LakegateError, match=code) as refusal:
        published(deployment, landed)
    assert said in refusal.value.message
    assert "lakegate replay" in refusal.value.message


def test_discarded_rows_are_not_published() -> None:
    """Publishing a discarded ingestion is refused."""
    deployment, landed = failed()
    discarded(deployment, landed)
    with pytest.raises(LakegateError, match="it was discarded and its rows deleted"):
        published(deployment, landed)
    with pytest.raises(LakegateError, match="already discarded"):
        discarded(deployment, landed)


def test_a_branch_that_is_gone_is_not_published() -> None:
    """If the branch was deleted by hand the error says to replay."""
    deployment, landed = failed()
    deployment.catalog.delete_branch(deployment.ingestion(landed).branch)
    with pytest.raises(LakegateError, match="BRANCH_GONE"):
        published(deployment, landed)
    assert deployment.ingestion(landed).state is State.REJECTED


@pytest.mark.parametrize(("by", "reason"), [("", "why"), ("Ann", " ")])
def test_an_approval_has_a_name_and_a_reason(by: str, reason: str) -> None:
    """Publishing rejected rows requires a name and a reason."""
    deployment, landed = failed()
    with pytest.raises(LakegateError, match="NAME_NEEDED"):
        publish_anyway(deployment.adapters, deployment.ingestion(landed), by, reason)


def test_an_original_contract_that_is_gone_is_reported() -> None:
    """A replay with the original contract is refused if there is none."""
    deployment = Deployment()
    landed = deployment.land("elsewhere/a.parquet")
    deployment.settle()
    with pytest.raises(LakegateError, match="NO_ORIGINAL_CONTRACT"):
        replay(deployment.adapters, deployment.ingestion(landed), original=True)


def test_published_but_not_cleaned_up_is_distinguished() -> None:
    """A publication whose branch cannot be deleted is reported as such."""
    deployment, landed = failed()
    deployment.journal.strike("catalog.delete_branch", Fault(unavailable))
    outcome = published(deployment, landed)
    assert outcome.ingestion.state is State.PUBLISHED
    assert "the sweep continues it" in outcome.left
    deployment.settle()
    assert not left_behind(deployment)


KINDS: dict[str, tuple[Callable[[], None], When]] = {
    "unavailable": (unavailable, "before"),
    "died before": (die, "before"),
    "timed out although done": (unavailable, "after"),
    "died after": (die, "after"),
}


def insist(deployment: Deployment, landed: LandedObject, command: Command) -> None:
    """Repeat a command until it succeeds or reports that it is done."""
    for _ in range(4):
        with suppress(Transient, ProcessDied):
            try:
                if not command(deployment, landed).left:
                    return
            except Transient:
                raise
            except LakegateError:
                return


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", [replayed, published, discarded])
@pytest.mark.parametrize("is_moved", [False, True])
def test_a_fault_anywhere_changes_no_end(command: Command, kind: str, is_moved: bool) -> None:
    """After a fault at any call a repeated command has the undisturbed result."""

    def story(number: int, fault: Fault | None) -> tuple[Deployment, int, LandedObject]:
        deployment, landed = failed()
        if is_moved:
            moved(deployment, landed)
        start = len(deployment.journal.calls)
        if fault:
            deployment.journal.strike_at(start + number, fault)
        insist(deployment, landed, command)
        calls = len(deployment.journal.calls) - start
        deployment.settle()
        check_promises(deployment)
        return deployment, calls, landed

    undisturbed, calls, landed = story(0, None)
    effect, when = KINDS[kind]
    assert calls > 3
    for number in range(calls):
        disturbed, _, _ = story(number, Fault(effect, when))
        where = f"{kind} at call {number}, {undisturbed.journal.calls[-calls:][number]}"
        assert ends(disturbed) == ends(undisturbed), where
        assert not left_behind(disturbed), where
        assert disturbed.ingestion(landed).branches_to_delete == {}, where
        assert set(data_files(disturbed)) == set(data_files(undisturbed)), where


def swept(deployment: Deployment, landed: LandedObject) -> Outcome:
    """Run the sweep, and deliver repeated messages only."""
    deployment.send_all_again()
    deployment.settle()
    return Outcome(deployment.ingestion(landed))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("other", [replayed, published, discarded, swept])
@pytest.mark.parametrize("command", [replayed, published, discarded])
def test_of_two_people_one_wins(command: Command, other: Command, when: When) -> None:
    """One of two simultaneous commands succeeds, and the other reports the new state."""
    calls = len(_raced(command, other, -1, when)[0].journal.calls)
    assert calls > 3
    for number in range(calls):
        deployment, wins, refusals = _raced(command, other, number, when)
        deployment.settle()
        check_promises(deployment)
        assert wins, f"nobody won at call {number}"
        for words in refusals:
            assert "it is " in words or "discard" in words, words


def _raced(
    command: Command, other: Command, number: int, when: When
) -> tuple[Deployment, list[Ingestion], list[str]]:
    """Return one person's command during whose nth call another person's runs."""
    deployment, landed = failed()
    wins: list[Ingestion] = []
    refusals: list[str] = []

    def attempt(what: Command) -> None:
        try:
            wins.append(what(deployment, landed).ingestion)
        except LakegateError as error:
            refusals.append(error.message)

    start = len(deployment.journal.calls)
    if number >= 0:
        fault = Fault(partial(attempt, other), when)
        deployment.journal.strike_at(start + number, fault)
    attempt(command)
    del deployment.journal.calls[: start if number < 0 else 0]
    return deployment, wins, refusals


@pytest.mark.parametrize("command", [published, discarded])
def test_the_last_word_is_what_became_of_it(command: Command) -> None:
    """A delayed alert of a failure is not posted after its resolution."""
    deployment = Deployment()
    landed = deployment.land(KEY, script=rejected)
    deployment.journal.strike("alerts.post", Fault(lambda: command(deployment, landed)))
    deployment.settle()
    check_promises(deployment)
    assert [alert.kind for _, alert in deployment.alerts.posted] == [Kind.RECOVERED]


def test_a_decision_is_for_the_attempt_that_was_seen() -> None:
    """A decision on an outdated attempt is refused."""
    deployment, landed = failed()

    def replayed_meanwhile() -> None:
        replayed(deployment, landed)
        deployment.settle()

    deployment.journal.strike("ledger.save", Fault(replayed_meanwhile))
    with pytest.raises(LakegateError, match="MOVED_ON"):
        published(deployment, landed)
    now = deployment.ingestion(landed)
    assert (now.attempt, now.state, now.approval) == (2, State.REJECTED, None)


def test_a_replay_begins_with_nothing_of_the_attempt_before() -> None:
    """A replay keeps neither the group nor the replacement of the previous attempt."""
    deployment, landed = failed()
    before = deployment.ingestion(landed)
    held = before.but(group=(before.id, "other"), replaced=("other",), replaced_rows=3)
    deployment.ledger.save(held)
    now = replayed(deployment, landed).ingestion
    assert (now.group, now.replaced, now.replaced_rows) == ((), (), 0)
