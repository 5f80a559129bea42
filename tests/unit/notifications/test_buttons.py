"""An alert's buttons respect Slack's limits, and their presses can be read back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.model.ingestion import Ingestion, State
from functions.model.messages.action import Seen, Verb
from functions.model.messages.alert import Kind
from functions.notifications.alert_text import alert, recovered
from functions.notifications.slack import Place
from functions.notifications.slack_buttons import BUTTONS, buttons, modal
from functions.notifications.slack_presses import NotUnderstood, Person, Press, Submission, parsed
from functions.notifications.threads import Thread
from functions.on_alert import headline
from infra.local.slack.blocks import problems, problems_of_modal
from lakegate.audit.report import AuditReport
from tests.fakes.examples import FAILED, INGESTION, REPORT

EVENTS = Path(__file__).parents[2] / "events"
REJECTED = replace(INGESTION, audit=replace(INGESTION.audit, rows=842))
SEEN = Seen("a" * 32, "1:ffff")
ADA = Person("U0MADEUP1", "ada")


def event(name: str) -> Any:
    """Return an example of Slack's requests."""
    return json.loads((EVENTS / f"slack_{name}.json").read_text())


def shown(
    ingestion: Ingestion, report: AuditReport | None = None, page: str = ""
) -> list[dict[str, Any]]:
    """Return the buttons under the alert of an ingestion."""
    (block,) = buttons(alert(ingestion, report, page))
    return list(block["elements"])


def labels(ingestion: Ingestion) -> list[str]:
    """Return the buttons' labels."""
    return [each["text"]["text"] for each in shown(ingestion)]


def pressed(button: dict[str, Any]) -> Press:
    """Return Slack's request after a press of that button."""
    press = parsed(event("block_actions") | {"actions": [button]})
    assert isinstance(press, Press)
    return press


def test_a_rejected_file_has_all_four() -> None:
    """Rows that wait on their branch can be replayed, published, discarded and shown."""
    assert labels(REJECTED) == ["Replay", "Publish anyway", "Discard", "Show"]


@pytest.mark.parametrize(
    "ingestion",
    [
        replace(REJECTED, state=State.ERRORED),
        replace(REJECTED, audited_hash=""),
        replace(REJECTED, audited_hash=REJECTED.base_hash),
        replace(REJECTED, audit=replace(REJECTED.audit, rows=0)),
    ],
)
def test_without_audited_rows_nothing_is_published(ingestion: Ingestion) -> None:
    """Without audited rows nothing can be published."""
    assert labels(ingestion) == ["Replay", "Discard", "Show"]


def test_only_what_failed_has_buttons() -> None:
    """A recovery, and an alert without an ingestion, have no buttons."""
    assert buttons(recovered(replace(REJECTED, state=State.PUBLISHED))) == ()
    assert buttons(replace(alert(REJECTED, REPORT), kind=Kind.NOTICE)) == ()


def test_each_button_says_what_was_shown() -> None:
    """Each button names the ingestion, its attempt, the audited hash and its time."""
    ended = "2026-03-01T12:00:00.000+00:00"
    third = replace(REJECTED, attempt=3, times={"rejected": ended})
    found = [pressed(button) for button in shown(third)]
    assert [each.verb for each in found] == list(Verb)
    assert {each.seen.ingestion for each in found} == {REJECTED.id}
    assert {each.seen.parts for each in found} == {("3", REJECTED.audited_hash, ended)}


def test_only_a_discard_is_asked_about_twice() -> None:
    """Slack asks for confirmation of a discard, and says that the original stays."""
    asked = [each for each in shown(REJECTED) if "confirm" in each]
    assert [each["text"]["text"] for each in asked] == ["Discard"]
    assert "keeps the original" in asked[0]["confirm"]["text"]["text"]


def test_each_button_names_what_it_acts_on() -> None:
    """Form and question name the button's own file, even under a message that counts others."""
    notice = alert(replace(REJECTED, landed=replace(REJECTED.landed, key="shop/<a&b>.csv")), REPORT)
    members = frozenset({notice.ingestion, "b", "c"})
    first = headline(Thread(Place("C1", "1.0"), notice, members))
    (block,) = (each for each in first.blocks if each.get("block_id") == BUTTONS)
    title = "shop.orders: <a&b>.csv rejected, 1 of 2 checks failed: carrier; main unchanged"
    assert {pressed(button).title for button in block["elements"]} == {title}
    (question,) = [each["confirm"] for each in block["elements"] if "confirm" in each]
    assert question["text"]["text"].startswith(f"{title}\n")
    section, _ = modal(Seen(notice.ingestion, "1:ffff"), title)["blocks"]
    assert section["text"]["text"] == f"{title}\nIngestion {notice.ingestion}"


def test_show_is_a_link_where_there_is_a_page() -> None:
    """With a quality page Show is a link there; without one it is answered."""
    *_, link = shown(REJECTED, REPORT, "https://lake.example")
    assert link["url"] == f"https://lake.example/ingestion?id={REJECTED.id}"
    *_, answered = shown(REJECTED, REPORT)
    assert "url" not in answered
    assert pressed(answered).summary == "CHECKS_FAILED carrier"


def test_a_press_is_understood() -> None:
    """A press has its person, workspace and response address."""
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
    """A submitted reason becomes one line."""
    found = parsed(event("view_submission"))
    assert found == Submission(SEEN, ADA, "T0MADEUP", "a refund, and a lost parcel")


def test_the_modal_keeps_what_was_shown() -> None:
    """The form's data returns with its submission, and fits Slack's 3,000 characters."""
    press = parsed(event("block_actions"))
    assert isinstance(press, Press)
    view = modal(press.seen, "x" * 2000)
    assert problems_of_modal(view) == []
    submission = event("view_submission")
    submission["view"] |= {name: view[name] for name in ("private_metadata", "callback_id")}
    assert parsed(submission).seen == SEEN


@pytest.mark.parametrize("given_reason", [None, "", " \n "])
def test_no_reason_is_none(given_reason: str | None) -> None:
    """Blanks are not a reason."""
    document = event("view_submission")
    document["view"]["state"]["values"]["reason"]["reason"]["value"] = given_reason
    found = parsed(document)
    assert isinstance(found, Submission)
    assert found.reason == ""


def test_an_organizations_user_has_a_workspace() -> None:
    """For an app of a whole organization the workspace comes from the user."""
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
def test_an_invalid_press_is_refused(change: dict[str, Any]) -> None:
    """Unknown kinds, actions, values and users are an error of their own."""
    with pytest.raises(NotUnderstood):
        parsed(event("block_actions") | change)


@pytest.mark.parametrize("payload", [None, 7, [], "x", {}, {"type": "view_submission", "view": 1}])
def test_another_document_is_refused(payload: Any) -> None:
    """Other JSON documents are refused."""
    with pytest.raises(NotUnderstood):
        parsed(payload)


@given(st.text(), st.text(min_size=1), st.integers(1, 60))
def test_slack_takes_the_buttons(key: str, check: str, checks: int) -> None:
    """For any names of file and checks the buttons are within Slack's limits."""
    failed = tuple(replace(FAILED, id=check * 100) for _ in range(checks))
    named = replace(REJECTED, landed=replace(REJECTED.landed, key=key))
    notice = alert(named, replace(REPORT, checks=failed), "https://lake.example")
    assert problems(list(buttons(notice))) == []
    for button in buttons(notice)[0]["elements"]:
        assert len(button["value"]) <= 2000
        assert len(button["text"]["text"]) <= 75
        assert len(button.get("url", "")) <= 3000
