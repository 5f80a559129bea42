"""Slack actions are executed once and answered, in any order, by several users, with crashes."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.adapters.ledger.reads import UnknownIngestion
from functions.adapters.nessie import UnknownBranch
from functions.model import merge_commit
from functions.model.ingestion import State
from functions.model.messages.action import ActionRequest, Seen, Verb
from functions.model.messages.alert import Alert, Kind
from functions.notifications.alert_text import state_token
from functions.on_press import act
from functions.operations.upkeep.expire import expire
from lakegate.errors import Permanent, Transient
from lakegate.job.landing import LandedObject
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import TABLE
from tests.fakes.faults import KINDS, Fault, ProcessDied
from tests.fakes.job import errored, passed, rejected
from tests.fakes.promises import check_promises, ends
from tests.fakes.scenario import FIRST, KEY, Scenario

pytestmark = pytest.mark.usefixtures("quiet")


ADA, BOB = "ada (U0ADA)", "bob (U0BOB)"
WHAT = (Verb.REPLAY, Verb.PUBLISH, Verb.DISCARD)


def failed(script: Callable[..., object] = rejected) -> tuple[Scenario, LandedObject]:
    """Return a deployment with a file on main and one that failed, whose next run would pass."""
    deployment = Scenario()
    deployment.ended(FIRST)
    landed = deployment.land(KEY, script=script)  # type: ignore[arg-type]
    deployment.settle()
    deployment.script(landed, passed)
    return deployment, landed


@pytest.fixture
def landed(deployment: Scenario) -> LandedObject:
    """Return a rejected file whose next run would pass, after another one was published."""
    deployment.ended(FIRST)
    rejection = deployment.ended(script=rejected).landed
    deployment.script(rejection, passed)
    return rejection


def wish(
    deployment: Scenario, landed: LandedObject, what: Verb = Verb.REPLAY, by: str = ADA
) -> str:
    """Return a request on the newest alert as the queue holds it."""
    now = deployment.ingestion(landed)
    reason = "it is known" if what is Verb.PUBLISH else ""
    return ActionRequest(what, Seen(now.id, state_token(now)), by, reason).text()


def come_to_rest(deployment: Scenario) -> None:
    """Let everything reach its final state, and run the daily clean-up."""
    deployment.settle()
    assert not [each.left for each in expire(deployment.adapters, 30) if each.left]
    check_promises(deployment)


def answers(deployment: Scenario) -> list[Alert]:
    """Return the answers posted in threads."""
    return [alert for _, alert in deployment.alerts.posted if alert.kind is Kind.ANSWER]


def test_a_replay_is_carried_out_and_reported(deployment: Scenario, landed: LandedObject) -> None:
    """The job runs again; thread and ledger name the person."""
    act(deployment.adapters, wish(deployment, landed))
    now = deployment.ingestion(landed)
    assert (now.state, now.attempt) == (State.SUBMITTED, 2)
    (action,) = now.decisions.actions
    assert (action.what, action.by, action.attempt) == ("replay", ADA, 1)
    (answer,) = answers(deployment)
    assert answer.text.startswith(f"{ADA} replayed a.parquet: it is submitted, attempt 2")
    assert (answer.ingestion, answer.token) == (now.id, state_token(now))
    assert deployment.end_of(landed).state is State.PUBLISHED


def test_rows_are_published_anyway(deployment: Scenario, landed: LandedObject) -> None:
    """Main's log names the person and the reason; the thread gets the final state once."""
    act(deployment.adapters, wish(deployment, landed, Verb.PUBLISH))
    now = deployment.ingestion(landed)
    (entry,) = merge_commit.published(merge_commit.commit_of(deployment.catalog.log(), now))
    assert (entry.approved_by, entry.approved_because) == (ADA, "it is known")
    kinds = [alert.kind for _, alert in deployment.alerts.posted]
    assert kinds == [Kind.FAILED, Kind.RECOVERED]


def test_a_discard_waits_for_the_clean_up(deployment: Scenario, landed: LandedObject) -> None:
    """A discard is recorded at once, and only the daily clean-up deletes files."""
    act(deployment.adapters, wish(deployment, landed, Verb.DISCARD))
    now = deployment.ingestion(landed)
    assert (now.decisions.discarded, list(now.decisions.branches_to_delete)) == (True, [now.branch])
    assert now.branch in deployment.catalog.branches("ingest/")
    assert not deployment.lake.deleted
    (answer,) = answers(deployment)
    assert (answer.text, answer.token) == (
        f"{ADA} discarded a.parquet: the next daily clean-up deletes its branch",
        "",
    )
    come_to_rest(deployment)
    assert now.branch not in deployment.catalog.branches("ingest/")


def test_an_outdated_alert_does_nothing(deployment: Scenario, landed: LandedObject) -> None:
    """A button of an outdated alert does nothing, and the thread says so."""
    old = wish(deployment, landed, Verb.DISCARD)
    deployment.script(landed, rejected)
    deployment.replay(landed)
    before = deployment.end_of(landed)
    act(deployment.adapters, old)
    assert deployment.ingestion(landed) == before
    (answer,) = answers(deployment)
    assert "the ingestion changed since this alert: it is rejected" in answer.text
    assert answer.token == state_token(before)


def test_a_refusal_keeps_the_buttons(deployment: Scenario, landed: LandedObject) -> None:
    """A refusal for another reason keeps the alert's buttons."""
    now = deployment.ingestion(landed)
    deployment.others.drop_branch(now.branch)
    act(deployment.adapters, wish(deployment, landed, Verb.PUBLISH))
    (answer,) = answers(deployment)
    assert "is gone" in answer.text
    assert answer.token == state_token(now)


def test_an_ingestion_without_a_verdict_is_not_published() -> None:
    """A forged or outdated button never publishes an ingestion without a verdict."""
    deployment, landed = failed(errored)
    act(deployment.adapters, wish(deployment, landed, Verb.PUBLISH))
    assert deployment.ingestion(landed).state is State.ERRORED
    assert len(answers(deployment)) == 1


def test_the_slower_person_reads_who_was_faster(deployment: Scenario, landed: LandedObject) -> None:
    """The second person's request is refused and answered once, however often pressed."""
    bobs = wish(deployment, landed, Verb.DISCARD, BOB)
    act(deployment.adapters, wish(deployment, landed))
    act(deployment.adapters, bobs)
    act(deployment.adapters, bobs)
    assert [answer.text.partition(":")[0] for answer in answers(deployment)] == [
        f"{ADA} replayed a.parquet",
        f"{BOB} could not discard a.parquet",
    ]


def test_a_press_is_answered_again_once_something_else_is_true(
    deployment: Scenario, landed: LandedObject
) -> None:
    """Who presses a refused button again reads what became of the file since."""
    bobs = wish(deployment, landed, by=BOB)
    deployment.script(landed, rejected)
    act(deployment.adapters, wish(deployment, landed))
    act(deployment.adapters, bobs)
    deployment.settle()
    for _ in range(2):
        act(deployment.adapters, bobs)
    changed = "could not replay a.parquet: the ingestion changed since this alert: it is"
    refused = [each.text for each in answers(deployment)[1:]]
    assert [text.partition(" (1 Mar 2026, ")[0] for text in refused] == [
        f"{BOB} {changed} {state}, attempt 2, replayed by {ADA}"
        for state in ("submitted", "rejected")
    ]


def test_another_end_of_the_same_attempt_may_be_decided_on() -> None:
    """After a failed publication the new alert's buttons work again."""
    deployment, landed = unreplaceable()
    old = wish(deployment, landed, Verb.PUBLISH)
    for _ in range(2):
        act(deployment.adapters, old)
    now = deployment.ingestion(landed)
    assert (now.state, now.attempt, now.reason and now.reason.code) == (
        State.REJECTED,
        1,
        "CANNOT_REPLACE",
    )
    (answer,) = answers(deployment)
    assert answer.text.startswith(f"{ADA} could not publish a.parquet: the")
    act(deployment.adapters, wish(deployment, landed, Verb.PUBLISH))
    assert deployment.ingestion(landed).state is State.PUBLISHED
    rejections = [said for said in deployment.announcements.sent if said.ingestion == now.id][:2]
    assert [said.state for said in rejections] == [State.REJECTED] * 2
    assert len({said.id for said in rejections}) == 2


def unreplaceable() -> tuple[Scenario, LandedObject]:
    """Return a deployment with a bad version of a key whose earlier rows are unidentifiable."""
    deployment = Scenario()
    deployment.ask(onNewVersion="replace")
    deployment.ended()
    table = deployment.main()
    deployment.catalog.commit("main", TABLE, FakeTable(table.uuid, ("compacted#1",)))
    return deployment, deployment.ended(script=rejected).landed


def test_a_refused_press_may_be_done_later(deployment: Scenario, landed: LandedObject) -> None:
    """After a refusal's cause is gone, the same press is executed and answered."""
    pressed = wish(deployment, landed, Verb.PUBLISH)

    def gone() -> None:
        raise UnknownBranch("UNKNOWN_BRANCH", "it is not there")

    deployment.journal.strike("catalog.head", Fault(gone))
    act(deployment.adapters, pressed)
    deployment.fail("catalog.merge")
    act(deployment.adapters, pressed)
    refused, done = (answer.text for answer in answers(deployment))
    assert "is gone" in refused
    assert done.startswith(f"{ADA} approved a.parquet: it is audited")


def test_names_ping_nobody(deployment: Scenario, landed: LandedObject) -> None:
    """A person's name is plain text in the thread."""
    act(deployment.adapters, wish(deployment, landed, by="<!channel> (U0EVE)"))
    (answer,) = answers(deployment)
    assert "<!channel>" not in str((answer.text, answer.blocks))


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"what": "drop", "seen": {}}', "nonsense"])
def test_an_invalid_request_is_refused(body: str) -> None:
    """An invalid message raises a clear error and goes to the dead-letter queue."""
    with pytest.raises(Permanent, match="BAD_REQUEST"):
        act(Scenario().adapters, body)


def test_an_unknown_ingestion_is_refused() -> None:
    """A request for an unknown ingestion goes to the dead-letter queue."""
    with pytest.raises(UnknownIngestion):
        act(Scenario().adapters, ActionRequest(Verb.REPLAY, Seen("a" * 32, "1:"), ADA).text())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(WHAT), st.sampled_from((ADA, BOB))), min_size=1))
def test_however_many_press_one_thing_is_done(pressed: list[tuple[Verb, str]]) -> None:
    """Exactly the first of any presses on one alert is executed."""
    deployment, landed = failed()
    bodies = [wish(deployment, landed, what, by) for what, by in pressed]
    for body in bodies:
        act(deployment.adapters, body)
    deployment.settle()
    for body in bodies:  # and once more, late
        act(deployment.adapters, body)
    come_to_rest(deployment)
    now = deployment.ingestion(landed)
    assert [(action.what, action.by) for action in now.decisions.actions] == pressed[:1]
    assert len(deployment.jobs.runs()) == 2 + (pressed[0][0] is Verb.REPLAY)
    assert (now.state is State.PUBLISHED) is (pressed[0][0] is not Verb.DISCARD)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", WHAT)
def test_a_fault_anywhere_changes_no_end(what: Verb, kind: str) -> None:
    """After a fault at any call the request comes again and has the undisturbed result."""

    def story(number: int = -1) -> tuple[Scenario, LandedObject, list[str]]:
        deployment, landed = failed()
        body = wish(deployment, landed, what)
        before = len(deployment.journal.calls)
        if number >= 0:
            deployment.journal.strike_at(before + number, Fault(*KINDS[kind]))
        for _ in range(3):
            with suppress(Transient, ProcessDied):
                act(deployment.adapters, body)
                break
        calls = deployment.journal.calls[before:]
        come_to_rest(deployment)
        return deployment, landed, calls

    undisturbed, _, calls = story()
    for number, call in enumerate(calls):
        disturbed, again, _ = story(number)
        where = f"{kind} at call {number}, {call}"
        assert ends(disturbed) == ends(undisturbed), where
        done = disturbed.ingestion(again).decisions.actions
        assert [(each.what, each.by) for each in done] == [(what.value, ADA)], where
        assert len(disturbed.jobs.runs()) == len(undisturbed.jobs.runs()), where
        assert len(answers(disturbed)) >= len(answers(undisturbed)), where
