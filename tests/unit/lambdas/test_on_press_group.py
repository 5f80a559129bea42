"""One press in Slack decides about all files with one cause, after a question."""

from dataclasses import replace
from typing import Any

import pytest

from functions.model.decisions import Decisions
from functions.model.ingestion import State
from functions.model.messages.action import ActionRequest, Seen, Verb
from functions.model.messages.alert import Alert, Kind
from functions.notifications.slack_presses import parsed
from functions.on_press import act
from functions.operations.decisions.cause import waiting
from functions.operations.upkeep.expire import expire
from infra.local.slack.blocks import problems
from lakegate.errors import Transient
from lakegate.job.landing import LandedObject
from tests.fakes.deployment import TABLE
from tests.fakes.faults import Fault, ProcessDied, die
from tests.fakes.job import passed, rejected
from tests.fakes.promises import check_promises
from tests.fakes.scenario import FIRST, Scenario
from tests.fakes.slack import example

pytestmark = pytest.mark.usefixtures("quiet")

ADA = "ada (U0ADA)"


def failed(files: int = 25) -> tuple[Scenario, list[LandedObject]]:
    """Return a deployment with a file on main, and rejected ones whose next run would pass."""
    deployment = Scenario()
    deployment.ended(FIRST)
    landed = [land(deployment, f"shop/orders/{n:04}.csv") for n in range(files)]
    deployment.settle()
    for each in landed:
        deployment.script(each, passed)
    return deployment, landed


def land(deployment: Scenario, key: str) -> LandedObject:
    return deployment.land(key, script=rejected)


def work(deployment: Scenario, request: ActionRequest) -> None:
    """Deliver a request, and the requests that it queues, each once."""
    deployment.actions.sent = [request]
    for each in deployment.actions.sent:  # grows meanwhile
        act(deployment.adapters, each.text())


def press(deployment: Scenario, landed: LandedObject, what: Verb = Verb.REPLAY) -> Alert:
    """Press a group's button; return the question."""
    seen = Seen(deployment.ingestion(landed).id, "", is_group=True)
    work(deployment, ActionRequest(what, seen, ADA))
    return answers(deployment)[-1]


def agreed(question: Alert, reason: str = "") -> ActionRequest:
    """Return the request of who answers a question by yes."""
    *_, block = question.blocks
    payload: Any = example("slack_block_actions") | {"actions": block["elements"]}
    pressed: Any = parsed(payload)
    return ActionRequest(pressed.verb, pressed.seen, ADA, reason)


def answers(deployment: Scenario) -> list[Alert]:
    return [alert for _, alert in deployment.alerts.posted if alert.kind is Kind.ANSWER]


def actions(deployment: Scenario, landed: LandedObject) -> list[tuple[str, str]]:
    return [(each.what, each.by) for each in deployment.ingestion(landed).decisions.actions]


def test_a_press_asks_first() -> None:
    """The question has number and first names, and nothing is decided before a yes."""
    deployment, landed = failed()
    question = press(deployment, landed[3])
    files = "25 files: 0000.csv, 0001.csv, 0002.csv and 22 more"
    assert question.text == f"Replay {files}? Each runs again on a new branch."
    assert problems([dict(block) for block in question.blocks]) == []
    assert question.token
    assert not any(actions(deployment, each) for each in landed)


@pytest.mark.parametrize(
    ("what", "words", "state"),
    [
        (Verb.REPLAY, "replayed 25 of 25 files", State.PUBLISHED),
        (Verb.PUBLISH, "approved 25 of 25 files", State.PUBLISHED),
        (Verb.DISCARD, "discarded 25 of 25 files", State.REJECTED),
    ],
)
def test_a_yes_decides_for_each_file_in_the_name_of_who_said_it(
    what: Verb, words: str, state: State
) -> None:
    """Each file has its own decision, and the thread gets one answer for all of them."""
    deployment, landed = failed()
    other = deployment.ended("shop/orders/later.csv")
    work(deployment, agreed(press(deployment, landed[0], what), "it is known"))
    (answer,) = answers(deployment)[1:]
    assert answer.text == f"{ADA} {words}"
    settled = [each for each in landed if deployment.ingestion(each).is_settled]
    assert len(answer.also) == len(settled)
    deployment.settle()
    assert not [each.left for each in expire(deployment.adapters, 30) if each.left]
    assert {deployment.ingestion(each).state for each in landed} == {state}
    assert all(actions(deployment, each) == [(what, ADA)] for each in landed)
    assert not deployment.ingestion(other.landed).decisions.actions
    check_promises(deployment)


def test_a_thousand_files_are_decided_in_small_parts() -> None:
    """No message decides about more than ten files, and the first ones only queue the next."""
    deployment, (landed,) = failed(1)
    one = deployment.ingestion(landed)
    for n in range(1, 1_000):
        key = f"shop/orders/{n:04}.csv"
        other = one.but(id=f"{n:032}", landed=replace(one.landed, key=key), revision=0)
        deployment.ledger.begin(other)
    work(deployment, agreed(press(deployment, landed, Verb.DISCARD)))
    assert [each.tried for each in deployment.actions.sent[1:]] == [*range(0, 1_000, 10)]
    assert max(len(each.text()) for each in deployment.actions.sent) < 256 * 1024
    assert not waiting(deployment.adapters.ledger)


def test_a_press_at_a_file_beyond_the_first_thousands_is_answered() -> None:
    """A message names the first of a group, and the answer comes to the pressed file all the same.

    So the message is here as it is for a larger group.
    """
    deployment, (first, pressed) = failed(2)
    seen = Seen(deployment.ingestion(pressed).id, "1:0", is_group=True)
    ids = (deployment.ingestion(first).id,)
    since = deployment.clock.now()
    work(deployment, ActionRequest(Verb.DISCARD, seen, ADA, ids=ids, since=since))
    assert answers(deployment)[-1].text == f"{ADA} discarded 1 of 1 file"
    assert [each.id for each in waiting(deployment.adapters.ledger)] == [seen.ingestion]


def test_another_number_is_asked_about_again() -> None:
    """A yes to a group that has changed since decides nothing, and asks with the new number."""
    deployment, landed = failed(3)
    old = agreed(press(deployment, landed[0]))
    landed.append(land(deployment, "shop/orders/more.csv"))
    deployment.settle()
    work(deployment, old)
    question = answers(deployment)[-1]
    assert question.text.startswith("These are not the 3 failures asked about before. Replay 4")
    assert not any(actions(deployment, each) for each in landed)
    work(deployment, agreed(question))
    assert all(actions(deployment, each) == [("replay", ADA)] for each in landed)


def test_another_attempt_is_asked_about_again() -> None:
    """A yes to rows of earlier attempts publishes no others, though the same check failed."""
    deployment, landed = failed(2)
    old = agreed(press(deployment, landed[0], Verb.PUBLISH), "it is known")
    for each in landed:
        deployment.script(each, rejected)
        deployment.replay(each)
    deployment.settle()
    work(deployment, old)
    assert "These are not the 2 failures asked about before." in answers(deployment)[-1].text
    assert {deployment.ingestion(each).state for each in landed} == {State.REJECTED}


def test_what_is_not_decided_is_named_with_the_reason() -> None:
    """The answer names the first files that could not be decided about, and counts all."""
    deployment, landed = failed(15)
    question = press(deployment, landed[0], Verb.PUBLISH)
    for each in landed[3:]:
        deployment.others.drop_branch(deployment.ingestion(each).branch)
    work(deployment, agreed(question, "it is known"))
    words = answers(deployment)[-1].text
    assert words.startswith(f"{ADA} approved 3 of 15 files; not these 12: 0003.csv: its branch")
    assert words.endswith("; and 2 more")


def test_a_file_that_is_rejected_again_at_once_has_that_reason() -> None:
    """What was approved and is kept from main by something else is named with what that is."""
    deployment = Scenario()
    deployment.ask(onNewVersion="replace")
    deployment.ended("shop/orders/0000.csv")
    deployment.others.compact(TABLE)
    bad = land(deployment, "shop/orders/0000.csv")
    deployment.settle()
    work(deployment, agreed(press(deployment, bad, Verb.PUBLISH), "it is known"))
    words = answers(deployment)[-1].text
    assert "approved 0 of 1 file; not these 1: 0000.csv: the earlier rows of this key" in words


def test_a_file_that_somebody_decided_about_meanwhile_is_left_alone() -> None:
    """Between the yes and its turn a file may be discarded: that decision stands."""
    deployment, landed = failed(2)
    yes = agreed(press(deployment, landed[0]))
    deployment.actions.sent = []
    act(deployment.adapters, yes.text())
    now = deployment.ingestion(landed[1])
    deployment.ledger.save(now.but(decisions=Decisions(discarded=True)))
    work(deployment, deployment.actions.sent[0])
    words = answers(deployment)[-1].text
    assert "replayed 1 of 2 files; not these 1: 0001.csv: it changed meanwhile" in words
    assert not actions(deployment, landed[1])


def test_a_group_is_not_found_by_a_file_that_waits_no_more() -> None:
    """Such a file has no cause, so the answer says where to press."""
    deployment, landed = failed(2)
    deployment.replay(landed[0])
    deployment.settle()
    assert "press at a file that waits" in press(deployment, landed[0]).text


def test_a_part_that_comes_again_changes_nothing() -> None:
    """After a crash, or if the queue repeats it, files are decided once and counted once."""
    deployment, landed = failed(12)
    yes = agreed(press(deployment, landed[0]))
    deployment.journal.strike_later("ledger.save", Fault(die), 7)
    with pytest.raises(ProcessDied):
        work(deployment, yes)
    parts = deployment.actions.sent[1:]
    for each in parts:  # grows meanwhile
        act(deployment.adapters, each.text())
        parts += deployment.actions.sent[1 + len(parts) :]
    for each in parts:  # once more
        act(deployment.adapters, each.text())
    told = {each.text for each in answers(deployment)[1:]}
    assert told == {f"{ADA} replayed 12 of 12 files"}
    assert all(actions(deployment, each) == [("replay", ADA)] for each in landed)


def test_an_outage_repeats_the_part() -> None:
    """While the ledger does not answer, the message fails and comes again."""
    deployment, landed = failed(2)
    yes = agreed(press(deployment, landed[0]))
    act(deployment.adapters, yes.text())
    deployment.fail("ledger.save")
    with pytest.raises(Transient):
        act(deployment.adapters, deployment.actions.sent[-1].text())
    act(deployment.adapters, deployment.actions.sent[-1].text())
    assert answers(deployment)[-1].text == f"{ADA} replayed 2 of 2 files"


def test_a_request_survives_the_queue() -> None:
    """The next part knows all of the last one."""
    seen = Seen("a" * 32, "2:ff", is_group=True)
    whole = ActionRequest(Verb.PUBLISH, seen, ADA, "why", ("b", "c"), 1, 1, ("d: e",), "2026")
    assert ActionRequest.of(whole.text()) == whole
    assert replace(whole, tried=2).same != whole.same
