"""Decisions on failed ingestions, which hold against any concurrent process."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from functions.model import merge_commit
from functions.model.decisions import Approval
from functions.model.ingestion import Ingestion, State
from functions.model.ingestion_summary import status_text
from functions.model.messages.alert import Kind
from functions.operations.decisions.failed import Outcome, mark_discarded, publish_anyway
from functions.operations.upkeep.expire import expire
from functions.pipeline.start.intake import ask
from lakegate.audit.report import AuditReport, Status
from lakegate.errors import LakegateError, Transient
from lakegate.job.change import Change
from lakegate.job.landing import LandedObject
from lakegate.refusals import RightMissing
from tests.fakes.deployment import ORDERS, TABLE
from tests.fakes.faults import KINDS, Fault, ProcessDied, When, die
from tests.fakes.job import errored, passed, rejected
from tests.fakes.promises import ends, left_behind, publishing
from tests.fakes.scenario import FIRST, KEY, Scenario

pytestmark = pytest.mark.usefixtures("quiet")

Command = Callable[[Scenario, LandedObject], Outcome]
COMMANDS: list[Command] = [Scenario.replay, Scenario.publish_anyway, Scenario.discard]
OTHER = "shop/orders/another.parquet"


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
) -> tuple[Scenario, LandedObject]:
    """Return a deployment with a file on main, and one whose job run went as scripted."""
    deployment = Scenario()
    deployment.ended(FIRST)
    return deployment, deployment.ended(script=script).landed


@pytest.fixture
def landed(deployment: Scenario) -> LandedObject:
    """Return a rejected file, after another one was published."""
    deployment.ended(FIRST)
    return deployment.ended(script=rejected).landed


@pytest.mark.parametrize("script", [rejected, errored])
def test_a_failed_file_is_replayed_to_its_end(script: Callable[[AuditReport], AuditReport]) -> None:
    """A replay uses a fresh branch; its publication also deletes the old one."""
    deployment, landed = failed(script)
    old = deployment.ingestion(landed)
    deployment.script(landed, passed)
    outcome = deployment.replay(landed)
    assert (outcome.ingestion.state, outcome.ingestion.attempt) == (State.SUBMITTED, 2)
    assert outcome.ingestion.branch == f"{old.branch}-2"
    assert old.branch in deployment.catalog.branches("ingest/")
    deployment.check()
    now = deployment.ingestion(landed)
    assert (now.state, now.reason, now.decisions.approval) == (State.PUBLISHED, None, None)


def test_the_ledger_keeps_each_decision(deployment: Scenario, landed: LandedObject) -> None:
    """The ledger records the person of each decision, also after a replay."""
    deployment.replay(landed, by=" Ann ")
    deployment.settle()
    deployment.publish_anyway(landed)
    now = deployment.ingestion(landed)
    assert [(each.what, each.by, each.attempt) for each in now.decisions.actions] == [
        ("replay", "Ann", 1),
        ("publish", "Ann", 2),
    ]


def test_a_marked_file_is_deleted_by_the_next_discard(
    deployment: Scenario, landed: LandedObject
) -> None:
    """Marking only records the discard; the next discard deletes the branch."""
    before = deployment.ingestion(landed)
    marked = mark_discarded(deployment.adapters, before, by="Ann")
    assert (marked.decisions.discarded, list(marked.decisions.branches_to_delete)) == (
        True,
        [before.branch],
    )
    assert before.branch in deployment.catalog.branches("ingest/")
    assert deployment.discard(landed).left == ""
    assert before.branch not in deployment.catalog.branches("ingest/")
    with pytest.raises(LakegateError, match="DISCARDED"):
        mark_discarded(deployment.adapters, deployment.ingestion(landed), by="Bob")


def test_a_replay_that_fails_is_reported_again(deployment: Scenario, landed: LandedObject) -> None:
    """A replay that is rejected is alerted again, and both branches stay."""
    deployment.replay(landed)
    now = deployment.end_of(landed)
    alerts = [alert for _, alert in deployment.alerts.posted if now.id in str(alert)]
    assert (now.state, now.attempt, len(alerts)) == (State.REJECTED, 2, 2)
    assert len(deployment.catalog.branches("ingest/")) == 2


@pytest.mark.parametrize("original", [False, True])
def test_a_replay_goes_by_the_contract_that_is_asked_for(
    deployment: Scenario, landed: LandedObject, original: bool
) -> None:
    """A replay uses the current contract, or the first attempt's, until its final state."""
    before = deployment.ingestion(landed).terms.contract_version
    changed = ORDERS.replace("required: true", "required: false, unique: true")
    deployment.upload_contract(changed)
    deployment.script(landed, passed)
    deployment.replay(landed, original=original)
    deployment.ended(OTHER)
    now = deployment.end_of(landed)
    assert now.state is State.PUBLISHED
    assert (now.terms.contract_version == before) is original
    assert now.attempt == 2


def test_rejected_rows_are_published_with_name_and_reason(
    deployment: Scenario, landed: LandedObject
) -> None:
    """The commit on main names person and reason; the branch is deleted."""
    outcome = deployment.publish_anyway(landed)
    assert (outcome.ingestion.state, outcome.left) == (State.PUBLISHED, "")
    (entry,) = merge_commit.published(publishing(deployment)[0])
    assert (entry.id, entry.approved_by) == (outcome.ingestion.id, "Ann")
    assert entry.approved_because == "it is known"
    assert outcome.ingestion.decisions.approval
    assert outcome.ingestion.decisions.approval.checks == ("id.required",)
    assert [each.state for each in deployment.announcements.sent][-2:] == ["rejected", "published"]
    assert deployment.announcements.sent[-1].approved_by == "Ann"


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
    deployment: Scenario,
    landed: LandedObject,
    script: Callable[[AuditReport], AuditReport],
    state: State,
    by: str,
) -> None:
    """If the job must run again, only the approved checks may fail."""
    deployment.catalog.delete_branch(deployment.ingestion(landed).branch)
    deployment.catalog.fork(deployment.ingestion(landed).branch, "main")
    deployment.script(landed, script)
    deployment.journal.strike("catalog.merge", Fault(partial(moved_table, deployment)))
    deployment.publish_anyway(landed)
    now = deployment.end_of(landed)
    assert (now.state, now.attempt) == (state, 2)
    assert now.decisions.approved_by == by


def moved_table(deployment: Scenario) -> None:
    """Delete the branch just before the merge, so that nothing can be merged."""
    for branch in deployment.catalog.branches("ingest/"):
        deployment.catalog.delete_branch(branch)


def test_a_discarded_ingestion_has_no_branch(deployment: Scenario, landed: LandedObject) -> None:
    """The branch is deleted, and the ledger says who asked; files are left to upkeep."""
    outcome = deployment.discard(landed, by="Bob")
    assert (outcome.left, outcome.ingestion.state) == ("", State.REJECTED)
    (action,) = outcome.ingestion.decisions.actions
    assert (action.what, action.by) == ("discard", "Bob")
    assert outcome.ingestion.decisions.discarded
    assert not outcome.ingestion.decisions.branches_to_delete
    assert deployment.catalog.branches("ingest/") == []
    assert deployment.lake.deleted == {}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_write_that_timed_out_although_done_is_done(
    deployment: Scenario, landed: LandedObject, command: Command
) -> None:
    """A save that timed out but was applied is a success."""
    deployment.fail("ledger.save", "after")
    command(deployment, landed)


def test_a_discard_lists_no_other_branches(deployment: Scenario, landed: LandedObject) -> None:
    """A discard reads only the file's own branches: an expiry of thousands ends in its time."""
    for nth in range(3):
        deployment.catalog.create_branch(f"other/{nth}")
    del deployment.journal.calls[:]
    deployment.discard(landed)
    assert "catalog.references" not in deployment.journal.calls


def test_a_discarded_one_can_be_replayed(deployment: Scenario, landed: LandedObject) -> None:
    """A discarded ingestion can be replayed from its landed object."""
    deployment.discard(landed)
    deployment.script(landed, passed)
    deployment.replay(landed)
    now = deployment.end_of(landed)
    assert (now.state, now.decisions.discarded) == (State.PUBLISHED, False)


def test_a_discard_that_is_only_marked_can_be_replayed(
    deployment: Scenario, landed: LandedObject
) -> None:
    """Between a button's discard and the clean-up a replay takes it back, as people are told."""
    mark_discarded(deployment.adapters, deployment.ingestion(landed), by="Ann")
    deployment.replay(landed, by="Bob")
    assert not [each for each in expire(deployment.adapters, 0) if each.ingestion]
    again = deployment.end_of(landed)
    assert (again.state, again.attempt, again.is_open) == (State.REJECTED, 2, True)
    deployment.script(landed, passed)
    deployment.replay(again)
    deployment.check()
    assert deployment.on_main(landed) == [True]


def test_one_without_a_branch_is_discarded_all_the_same() -> None:
    """An ingestion without a contract has nothing to delete, and is discarded."""
    deployment = Scenario()
    landed = deployment.ended("elsewhere/a.parquet")
    assert deployment.discard(landed).ingestion.decisions.discarded
    assert deployment.lake.deleted == {}


@pytest.mark.parametrize("marks_only", [False, True])
def test_a_discard_without_a_branch_is_told_whoever_died(*, marks_only: bool) -> None:
    """Where there is nothing to delete, the sweep tells of a discard that was only recorded."""
    deployment = Scenario()
    landed = deployment.ended("elsewhere/a.parquet")
    if marks_only:
        mark_discarded(deployment.adapters, landed, by="Ann")
    else:
        deployment.journal.strike_later("ledger.save", Fault(die), skipped=1)
        with pytest.raises(ProcessDied):
            deployment.discard(landed)
    deployment.settle()
    assert [alert.kind for _, alert in deployment.alerts.posted] == [Kind.FAILED, Kind.RECOVERED]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_published_file_is_left_alone(command: Command) -> None:
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
        deployment.publish_anyway(landed)
    assert said in refusal.value.message
    assert "lakegate replay" in refusal.value.message


def test_discarded_rows_are_not_published(deployment: Scenario, landed: LandedObject) -> None:
    """Publishing a discarded ingestion is refused."""
    deployment.discard(landed)
    with pytest.raises(LakegateError, match="it was discarded and its rows deleted"):
        deployment.publish_anyway(landed)
    with pytest.raises(LakegateError, match="already discarded on 1 Mar 2026"):
        deployment.discard(landed)


def test_the_slower_reads_who_decided(deployment: Scenario, landed: LandedObject) -> None:
    """Who comes too late reads who replayed or discarded the file, also where it failed again."""
    deployment.replay(landed, by="Ann")
    with pytest.raises(LakegateError, match=r"submitted, attempt 2, replayed by Ann \("):
        deployment.discard(landed, by="Bob")
    deployment.settle()
    deployment.discard(landed, by="Bob")
    with pytest.raises(LakegateError, match="already discarded by Bob on 1 Mar 2026"):
        deployment.discard(landed, by="Cem")


def test_nobody_is_said_to_have_done_what_no_name_was_given_for(
    deployment: Scenario, landed: LandedObject
) -> None:
    """A discard without a name is not told as that of who discarded an earlier attempt."""
    deployment.discard(landed, by="Ann")
    deployment.replay(landed)
    deployment.settle()
    discarded = deployment.discard(landed).ingestion
    assert deployment.alerts.posted[-1][1].text == "Discarded: a.parquet"
    assert "discarded on 1 Mar 2026" in status_text(discarded)


def test_a_discard_is_told_of_what_had_been_approved(
    deployment: Scenario, landed: LandedObject
) -> None:
    """What was approved, could not be published and was discarded is called discarded."""
    approved = deployment.ingestion(landed).decisions
    approved = replace(approved, approval=Approval("Ann", "known", deployment.clock.now(), ()))
    now = deployment.adapters.ledger.save(deployment.ingestion(landed).but(decisions=approved))
    assert "already discarded by Bob on" in status_text(deployment.discard(now, by="Bob").ingestion)


@pytest.mark.parametrize("text", [None, "kind: DataContract\nnonsense"])
def test_without_a_contract_in_force_nothing_is_approved(
    deployment: Scenario, landed: LandedObject, text: str | None
) -> None:
    """A withdrawn or invalid contract refuses an approval, and the branch stays for a later one."""
    before = deployment.ingestion(landed)
    if text:
        deployment.upload_contract(text)
    else:
        deployment.lake.delete_objects([f"contracts/{TABLE}.yaml"])
    with pytest.raises(LakegateError, match="NO_CONTRACT") as refusal:
        deployment.publish_anyway(landed)
    assert "lakegate contract push" in refusal.value.message
    deployment.settle()
    assert deployment.ingestion(landed) == before
    deployment.upload_contract(ORDERS)
    assert deployment.publish_anyway(landed).ingestion.state is State.PUBLISHED


def test_who_may_not_decide_is_not_promised_that_it_is_done_later(
    deployment: Scenario, landed: LandedObject
) -> None:
    """A decision that a right refused is not recorded, and the refusal says to give it again."""
    lacking = RightMissing("the role ann lacks the right dynamodb:PutItem on the ledger")
    before = deployment.ingestion(landed)
    for command in COMMANDS:
        deployment.journal.strike("ledger.save", Fault(partial(raises, lacking)))
        with pytest.raises(RightMissing, match="give a command again"):
            command(deployment, landed)
        deployment.settle()
        assert deployment.ingestion(landed) == before


def raises(error: Exception) -> None:
    """Raise it."""
    raise error


def test_a_branch_that_is_gone_is_not_published(deployment: Scenario, landed: LandedObject) -> None:
    """If the branch was deleted by hand the error says to replay."""
    deployment.others.drop_branch(deployment.ingestion(landed).branch)
    with pytest.raises(LakegateError, match="BRANCH_GONE"):
        deployment.publish_anyway(landed)
    assert deployment.ingestion(landed).state is State.REJECTED


@pytest.mark.parametrize(("by", "reason"), [("", "why"), ("Ann", " ")])
def test_an_approval_has_a_name_and_a_reason(
    deployment: Scenario, landed: LandedObject, by: str, reason: str
) -> None:
    """Publishing rejected rows requires a name and a reason."""
    with pytest.raises(LakegateError, match="NAME_NEEDED"):
        publish_anyway(deployment.adapters, deployment.ingestion(landed), by, reason)


@pytest.mark.parametrize(("by", "reason"), [("A" * 201, "why"), ("Ann", "y" * 2_001)])
def test_a_name_and_a_reason_are_of_a_length_that_a_commit_keeps(
    deployment: Scenario, landed: LandedObject, by: str, reason: str
) -> None:
    """Longer ones are refused before anything is recorded, of an approval and of a change."""
    with pytest.raises(LakegateError, match=r"TEXT_TOO_LONG.* at most are kept\nGive"):
        publish_anyway(deployment.adapters, deployment.ingestion(landed), by, reason)
    assert deployment.states(landed) == [State.REJECTED]
    asked = Change(TABLE, f"DELETE FROM {TABLE}", "token", by, reason)
    with pytest.raises(LakegateError, match="TEXT_TOO_LONG"):
        ask(deployment.adapters, asked)
    now = deployment.ingestion(landed)
    outcome = publish_anyway(deployment.adapters, now, by[:200], reason[:2_000])
    assert outcome.ingestion.state is State.PUBLISHED


def test_an_original_contract_that_is_gone_is_reported() -> None:
    """A replay with the original contract is refused if there is none."""
    deployment = Scenario()
    landed = deployment.ended("elsewhere/a.parquet")
    with pytest.raises(LakegateError, match="NO_ORIGINAL_CONTRACT"):
        deployment.replay(landed, original=True)


def test_published_but_not_cleaned_up_is_distinguished(
    deployment: Scenario, landed: LandedObject
) -> None:
    """A publication whose branch cannot be deleted is reported as such."""
    deployment.fail("catalog.delete_branch")
    outcome = deployment.publish_anyway(landed)
    assert outcome.ingestion.state is State.PUBLISHED
    assert "the sweep continues it" in outcome.left


def insist(deployment: Scenario, landed: LandedObject, command: Command) -> None:
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
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("is_moved", [False, True])
def test_a_fault_anywhere_changes_no_end(command: Command, kind: str, is_moved: bool) -> None:
    """After a fault at any call a repeated command has the undisturbed result."""

    def story(number: int, fault: Fault | None) -> tuple[Scenario, int, LandedObject]:
        deployment, landed = failed()
        if is_moved:
            deployment.ended(OTHER)
        start = len(deployment.journal.calls)
        if fault:
            deployment.journal.strike_at(start + number, fault)
        insist(deployment, landed, command)
        calls = len(deployment.journal.calls) - start
        deployment.check()
        return deployment, calls, landed

    undisturbed, calls, landed = story(0, None)
    effect, when = KINDS[kind]
    assert calls > 3
    for number in range(calls):
        disturbed, _, _ = story(number, Fault(effect, when))
        where = f"{kind} at call {number}, {undisturbed.journal.calls[-calls:][number]}"
        assert ends(disturbed) == ends(undisturbed), where
        assert not left_behind(disturbed), where
        assert disturbed.ingestion(landed).decisions.branches_to_delete == {}, where


def swept(deployment: Scenario, landed: LandedObject) -> Outcome:
    """Run the sweep, and deliver repeated messages only."""
    deployment.send_all_again()
    deployment.settle()
    return Outcome(deployment.ingestion(landed))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("other", [*COMMANDS, swept])
@pytest.mark.parametrize("command", COMMANDS)
def test_of_two_people_one_wins(command: Command, other: Command, when: When) -> None:
    """One of two simultaneous commands succeeds, and the other reports the new state."""
    calls = len(_raced(command, other, -1, when)[0].journal.calls)
    assert calls > 3
    for number in range(calls):
        deployment, wins, refusals = _raced(command, other, number, when)
        deployment.check()
        assert wins, f"nobody won at call {number}"
        for words in refusals:
            assert "it is " in words or "discard" in words, words


def _raced(
    command: Command, other: Command, number: int, when: When
) -> tuple[Scenario, list[Ingestion], list[str]]:
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


@pytest.mark.parametrize("command", COMMANDS[1:])
def test_the_last_word_is_what_became_of_it(command: Command) -> None:
    """A delayed alert of a failure is not posted after its resolution."""
    deployment = Scenario()
    landed = deployment.land(KEY, script=rejected)
    deployment.journal.strike("alerts.post", Fault(lambda: command(deployment, landed)))
    deployment.check()
    assert [alert.kind for _, alert in deployment.alerts.posted] == [Kind.RECOVERED]


def test_a_decision_is_for_the_attempt_that_was_seen(
    deployment: Scenario, landed: LandedObject
) -> None:
    """A decision on an outdated attempt is refused."""

    def replayed_meanwhile() -> None:
        deployment.replay(landed)
        deployment.settle()

    deployment.journal.strike("ledger.save", Fault(replayed_meanwhile))
    with pytest.raises(LakegateError, match="MOVED_ON"):
        deployment.publish_anyway(landed)
    now = deployment.ingestion(landed)
    assert (now.attempt, now.state, now.decisions.approval) == (2, State.REJECTED, None)


@pytest.mark.parametrize("command", COMMANDS[:2])
def test_what_another_person_discarded_is_not_taken_up_unknowingly(
    deployment: Scenario, landed: LandedObject, command: Command
) -> None:
    """A decision on what was seen before a discard is refused, and names who discarded it."""
    seen: Any = deployment.ingestion(landed)
    discarded = deployment.discard(landed, by="Bob").ingestion
    with pytest.raises(LakegateError) as refusal:
        command(deployment, seen)
    assert "discarded by Bob" in refusal.value.message
    assert deployment.ingestion(landed) == discarded


@pytest.mark.parametrize("command", COMMANDS)
def test_what_another_person_approved_is_not_undone_unknowingly(command: Command) -> None:
    """A decision on what was seen before an approval is refused, also if that came to nothing."""
    deployment = Scenario()
    deployment.ask(onNewVersion="replace")
    deployment.ended()
    deployment.others.compact(TABLE)
    seen: Any = deployment.ended(script=rejected)
    deployment.publish_anyway(seen, by="Bob")
    assert deployment.end(seen) == "rejected CANNOT_REPLACE"
    after = deployment.ingestion(seen)
    with pytest.raises(LakegateError, match="MOVED_ON"):
        command(deployment, seen)
    assert deployment.ingestion(seen) == after


def test_a_replay_begins_with_nothing_of_the_attempt_before(
    deployment: Scenario, landed: LandedObject
) -> None:
    """A replay resets the limit of attempts, the group and what the last attempt replaced."""
    before = deployment.ingestion(landed)
    outcome = replace(before.audit, replaced_rows=3)
    held = before.but(group=(before.id, "other"), replaced=("other",), audit=outcome)
    deployment.ledger.save(held)
    now = deployment.replay(landed).ingestion
    assert (now.group, now.replaced, now.audit.replaced_rows) == ((), (), 0)
    assert (now.tries_from, now.attempt, now.failures) == (1, 2, 0)
