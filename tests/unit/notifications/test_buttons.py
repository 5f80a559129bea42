"""The buttons under an alert: within Slack's limits, and understood again when they come back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.model.alert import (
    Kind,
)
from functions.model.ingestion import Ingestion, State
from functions.notifications.alert_text import (
    alert,
    recovered,
)
from functions.notifications.notify import headline
from functions.notifications.slack import Place
from functions.notifications.slack_buttons import (
    NotUnderstood,
    Person,
    Press,
    Seen,
    Submission,
    Verb,
    buttons,
    modal,
    parsed,
)
from functions.notifications.threads import Thread
from infra.local.slack_blocks import problems, problems_of_modal
from lakegate.report import AuditReport
from tests.fakes.examples import FAILED, INGESTION, REPORT

EVENTS = Path(__file__).parents[2] / "events"
REJECTED = replace(INGESTION, rows=842)
SEEN = Seen("a" * 32, "1:ffff")
ADA = Person("U0MADEUP1", "ada")


def event(name: str) -> Any:
    """Return an example of what Slack sends."""
    return json.loads((EVENTS / f"slack_{name}.json").read_text())


def shown(
    ingestion: Ingestion, report: AuditReport | None = None, page: str = ""
) -> list[dict[str, Any]]:
    """Return the buttons under the alert of an ingestion."""
    (block,) = buttons(alert(ingestion, report, page))
    return list(block["elements"])


def labels(ingestion: Ingestion) -> list[str]:
    """What the buttons say."""
    return [each["text"]["text"] for each in shown(ingestion)]


def pressed(button: dict[str, Any]) -> Press:
    """What comes back when that button is pressed."""
    press = parsed(event("block_actions") | {"actions": [button]})
    assert isinstance(press, Press)
    return press


def test_a_rejected_file_has_all_four() -> None:
    """Rows that wait on their branch may be replayed, published anyway, discarded and shown."""
    assert labels(REJECTED) == ["Replay", "Publish anyway", "Discard", "Show"]


@pytest.mark.parametrize(
    "ingestion",
    [
        replace(REJECTED, state=State.ERRORED),
        replace(REJECTED, audited_hash=""),
        replace(REJECTED, audited_hash=REJECTED.base_hash),
        replace(REJECTED, rows=0),
    ],
)
def test_without_audited_rows_nothing_is_published(ingestion: Ingestion) -> None:
    """Where nothing was judged, or nothing written, there is nothing to publish."""
    assert labels(ingestion) == ["Replay", "Discard", "Show"]


def test_only_what_failed_has_buttons() -> None:
    """Of what recovered, and of what is about no ingestion, there is nothing to be done."""
    assert buttons(recovered(replace(REJECTED, state=State.PUBLISHED))) == ()
    assert buttons(replace(alert(REJECTED, REPORT), kind=Kind.NOTICE)) == ()


def test_each_button_says_what_was_state_token() -> None:
    """Whichever is pressed, it names the ingestion, its attempt, what was audited and its end."""
    ended = "2026-03-01T12:00:00.000+00:00"
    third = replace(REJECTED, attempt=3, times={"rejected": ended})
    found = [pressed(button) for button in shown(third)]
    assert [each.verb for each in found] == list(Verb)
    assert {each.seen.ingestion for each in found} == {REJECTED.id}
    assert {each.seen.parts for each in found} == {("3", REJECTED.audited_hash, ended)}


def test_only_a_discard_is_asked_about_twice() -> None:
    """Slack asks before it sends a discard, and says that what landed stays."""
    asked = [each for each in shown(REJECTED) if "confirm" in each]
    assert [each["text"]["text"] for each in asked] == ["Discard"]
    assert "What landed stays" in asked[0]["confirm"]["text"]["text"]


def test_each_button_names_what_it_acts_on() -> None:
    """It is of one file, also under a message that counts others: form and question name that."""
    told = alert(replace(REJECTED, landed=replace(REJECTED.landed, key="shop/<a&b>.csv")), REPORT)
    members = frozenset({told.ingestion, "b", "c"})
    first = headline(Thread(Place("C1", "1.0"), told, members))
    *_, block = first.blocks
    title = "Rejected: <a&b>.csv (CHECKS_FAILED)"
    assert {pressed(button).title for button in block["elements"]} == {title}
    (question,) = [each["confirm"] for each in block["elements"] if "confirm" in each]
    assert question["text"]["text"].startswith(f"{title}\n")
    section, _ = modal(Seen(told.ingestion, "1:ffff"), title)["blocks"]
    assert section["text"]["text"] == f"{title}\nIngestion {told.ingestion}"


def test_a_button_of_an_older_release_names_no_other_file() -> None:
    """It does not say of which file it is, and its message's text may count others."""
    (button, *_) = shown(REJECTED)
    value = {"ingestion": REJECTED.id, "token": "1:ffff"}
    assert pressed(button | {"value": json.dumps(value)}).title == "This file"


def test_show_is_a_link_where_there_is_a_page() -> None:
    """With a quality page Show leads to the ingestion there; without one it is answered."""
    *_, link = shown(REJECTED, REPORT, "https://lake.example")
    assert link["url"] == f"https://lake.example/ingestion?id={REJECTED.id}"
    *_, answered = shown(REJECTED, REPORT)
    assert "url" not in answered
    assert pressed(answered).summary == "CHECKS_FAILED carrier"


def test_a_press_is_understood() -> None:
    """Slack's own document of a press: who, in which workspace, and where to answer."""
    assert parsed(event("block_actions")) == Press(
        verb=Verb.REPLAY,
        seen=SEEN,
        person=ADA,
        team="T0MADEUP",
        trigger="1000000000001.1000000000002.00000000000000000000000000000000",
        answers="https://hooks.slack.com/actions/T0MADEUP/1000000000003/madeup",
        title="Rejected: tuesday.csv (CHECKS_FAILED)",
        summary="",
    )


def test_a_submission_is_understood() -> None:
    """Slack's own document of a submitted modal; the reason is put on one line of main's log."""
    found = parsed(event("view_submission"))
    assert found == Submission(SEEN, ADA, "T0MADEUP", "a refund, and a lost parcel")


def test_the_modal_keeps_what_was_state_token() -> None:
    """What the modal carries comes back with its submission, and fits Slack's 3,000 characters."""
    press = parsed(event("block_actions"))
    assert isinstance(press, Press)
    view = modal(press.seen, "x" * 2000)
    assert problems_of_modal(view) == []
    submission = event("view_submission")
    submission["view"] |= {name: view[name] for name in ("private_metadata", "callback_id")}
    assert parsed(submission).seen == SEEN


@pytest.mark.parametrize("given_reason", [None, "", " \n "])
def test_no_reason_is_none(given_reason: str | None) -> None:
    """Blanks are no reason."""
    document = event("view_submission")
    document["view"]["state"]["values"]["reason"]["reason"]["value"] = given_reason
    found = parsed(document)
    assert isinstance(found, Submission)
    assert found.reason == ""


def test_who_pressed_is_put_on_record_by_name_and_id() -> None:
    """Names change and are not unique, ids say nothing to people: the record has both."""
    assert str(ADA) == "ada (U0MADEUP1)"


def test_an_organizations_user_has_a_workspace() -> None:
    """Of an app that a whole organization has, Slack names the workspace with the user alone."""
    found = parsed(event("block_actions") | {"team": None})
    assert found.team == "T0MADEUP"


@pytest.mark.parametrize(
    "change",
    [
        {"type": "shortcut"},
        {"actions": []},
        {"actions": [{"action_id": "lakegate.drop-table", "value": "{}"}]},
        {"actions": [{"action_id": "others.replay", "value": "{}"}]},
        {"actions": [{"action_id": "lakegate.replay", "value": "[]"}]},
        {"actions": [{"action_id": "lakegate.replay", "value": "{"}]},
        {"actions": [{"action_id": "lakegate.replay"}]},
        {"actions": [{"action_id": 7}]},
        {"actions": [None]},
        {"user": None},
        {"user": {"id": "ada"}},
        {"user": {"id": "<!channel>"}},
    ],
)
def test_what_no_button_sends_is_refused(change: dict[str, Any]) -> None:
    """Unknown kinds, actions, values and people are an error of their own, and no crash."""
    with pytest.raises(NotUnderstood):
        parsed(event("block_actions") | change)


@pytest.mark.parametrize("payload", [None, 7, [], "x", {}, {"type": "view_submission", "view": 1}])
def test_what_is_no_document_is_refused(payload: Any) -> None:
    """Whatever JSON it is, only the two documents are understood."""
    with pytest.raises(NotUnderstood):
        parsed(payload)


@given(st.text(), st.text(min_size=1), st.integers(1, 60))
def test_slack_takes_the_buttons(key: str, check: str, checks: int) -> None:
    """Whatever a file and its checks are called, the buttons are within Slack's limits."""
    failed = tuple(replace(FAILED, id=check * 100) for _ in range(checks))
    named = replace(REJECTED, landed=replace(REJECTED.landed, key=key))
    told = alert(named, replace(REPORT, checks=failed), "https://lake.example")
    assert problems(list(buttons(told))) == []
    for button in buttons(told)[0]["elements"]:
        assert len(button["value"]) <= 2000
        assert len(button["text"]["text"]) <= 75
        assert len(button.get("url", "")) <= 3000
