"""The buttons under an alert: within Slack's limits, and understood again when they come back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions import buttons
from functions.buttons import NotUnderstood, Person, Press, Seen, Submission, Verb
from functions.ingestion import State
from infra.local.slack_blocks import problems
from tests.fakes.examples import FAILED, INGESTION, REPORT

EVENTS = Path(__file__).parents[1] / "events"
REJECTED = replace(INGESTION, rows=842)
SEEN = Seen("a" * 32, 1, "ffff")
ADA = Person("U0MADEUP1", "ada")


def event(name: str) -> Any:
    """An example of what Slack sends."""
    return json.loads((EVENTS / f"slack_{name}.json").read_text())


def pressed(button: dict[str, Any]) -> Press | Submission:
    """What comes back when that button is pressed."""
    return buttons.parsed(event("block_actions") | {"actions": [button]})


def labels(told: str, page: str = "") -> list[str]:
    """What the buttons say."""
    return [each["text"]["text"] for each in buttons.block(told, page)["elements"]]


def test_a_rejected_file_has_all_four() -> None:
    """Rows that wait on their branch may be replayed, published anyway, discarded and shown."""
    told = buttons.token(REJECTED, REPORT)
    assert labels(told) == ["Replay", "Publish anyway", "Discard", "Show"]


@pytest.mark.parametrize(
    "ingestion",
    [
        replace(REJECTED, state=State.ERRORED),
        replace(REJECTED, audited_hash=""),
        replace(REJECTED, audited_hash=REJECTED.base_hash),
        replace(REJECTED, rows=0),
    ],
)
def test_without_audited_rows_nothing_is_published(ingestion: Any) -> None:
    """Where nothing was judged, or nothing written, there is nothing to publish."""
    assert labels(buttons.token(ingestion, None)) == ["Replay", "Discard", "Show"]


def test_what_is_published_has_none() -> None:
    """A notice about what reached main has nothing to press."""
    assert buttons.token(replace(REJECTED, state=State.PUBLISHED), REPORT) == ""


def test_each_button_says_what_was_seen() -> None:
    """Whichever is pressed, it names the ingestion, its attempt and what was audited."""
    ingestion = replace(REJECTED, attempt=3)
    block = buttons.block(buttons.token(ingestion, REPORT))
    found = [pressed(button) for button in block["elements"]]
    assert [each.verb for each in found if isinstance(each, Press)] == list(Verb)
    assert {each.seen for each in found} == {Seen.of(ingestion)}


def test_only_a_discard_is_asked_about_twice() -> None:
    """Slack asks before it sends a discard, and says that what landed stays."""
    block = buttons.block(buttons.token(REJECTED, REPORT))
    asked = {
        each["text"]["text"]: each["confirm"] for each in block["elements"] if "confirm" in each
    }
    assert list(asked) == ["Discard"]
    assert "What landed stays" in asked["Discard"]["text"]["text"]


def test_show_is_a_link_where_there_is_a_page() -> None:
    """With a quality page Show leads to the ingestion there; without one it is answered."""
    told = buttons.token(REJECTED, REPORT)
    *_, shown = buttons.block(told, "https://lake.example")["elements"]
    assert shown["url"] == f"https://lake.example/ingestion?id={REJECTED.id}"
    *_, shown = buttons.block(told)["elements"]
    assert "url" not in shown
    press = pressed(shown)
    assert isinstance(press, Press)
    assert press.summary == "1 of 2 checks failed: carrier"


def test_a_press_is_understood() -> None:
    """Slack's own document of a press: who, in which workspace, and where to answer."""
    assert buttons.parsed(event("block_actions")) == Press(
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
    found = buttons.parsed(event("view_submission"))
    assert found == Submission(SEEN, ADA, "T0MADEUP", "a refund,␊and a lost parcel")


def test_the_modal_keeps_what_was_seen() -> None:
    """What the modal carries comes back with its submission, and fits Slack's 3,000 characters."""
    press = buttons.parsed(event("block_actions"))
    assert isinstance(press, Press)
    view = buttons.modal(replace(press, title="x" * 2000))
    assert len(view["private_metadata"]) <= 3000
    assert all(len(view[name]["text"]) <= 24 for name in ("title", "submit", "close"))
    assert problems(view["blocks"]) == []
    submission = event("view_submission")
    submission["view"] |= {name: view[name] for name in ("private_metadata", "callback_id")}
    assert buttons.parsed(submission).seen == SEEN


@pytest.mark.parametrize("given_reason", [None, "", " \n "])
def test_no_reason_is_none(given_reason: str | None) -> None:
    """Blanks are no reason."""
    document = event("view_submission")
    document["view"]["state"]["values"]["reason"]["reason"]["value"] = given_reason
    found = buttons.parsed(document)
    assert isinstance(found, Submission)
    assert found.reason == ""


def test_who_pressed_is_put_on_record_by_name_and_id() -> None:
    """Names change and are not unique, ids say nothing to people: the record has both."""
    assert str(ADA) == "ada (U0MADEUP1)"


def test_an_organizations_user_has_a_workspace() -> None:
    """Of an app that a whole organization has, Slack names the workspace with the user alone."""
    found = buttons.parsed(event("block_actions") | {"team": None})
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
        {"message": None},
    ],
)
def test_what_no_button_sends_is_refused(change: dict[str, Any]) -> None:
    """Unknown kinds, actions, values and people are an error of their own, and no crash."""
    with pytest.raises(NotUnderstood):
        buttons.parsed(event("block_actions") | change)


@pytest.mark.parametrize("payload", [None, 7, [], "x", {}, {"type": "view_submission", "view": 1}])
def test_what_is_no_document_is_refused(payload: Any) -> None:
    """Whatever JSON it is, only the two documents are understood."""
    with pytest.raises(NotUnderstood):
        buttons.parsed(payload)


@given(st.text(), st.text(min_size=1), st.integers(1, 60))
def test_slack_takes_the_buttons(name: str, check: str, checks: int) -> None:
    """Whatever a file and its checks are called, the block is within Slack's limits."""
    failed = tuple(replace(FAILED, id=check * 100) for _ in range(checks))
    told = buttons.token(
        replace(REJECTED, landed=replace(REJECTED.landed, key=name)), replace(REPORT, checks=failed)
    )
    block = buttons.block(told, "https://lake.example")
    assert problems([block]) == []
    for button in block["elements"]:
        assert len(button["value"]) <= 2000
        assert len(button["text"]["text"]) <= 75
        assert len(button.get("url", "")) <= 3000
