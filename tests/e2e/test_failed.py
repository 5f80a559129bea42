"""Failed branches on the real stack: corrected and replayed, and decided in Slack."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import requests

from cli.local.slack_messages import messages as ask_for_messages
from functions.model.ingestion import Ingestion, State
from lakegate.job.landing import LandedObject
from tests.e2e.conftest import Gate, contract, lakegate, run
from tests.e2e.test_bad_input import GOOD, parquet
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.stack

TOO_MUCH = parquet(id=[7], amount=[101.0])


@dataclass(frozen=True)
class Failed:
    """A table with two rows on main, and a file that its contract rejected."""

    table: str
    landed: LandedObject
    ended: Ingestion

    @property
    def parts(self) -> tuple[str, LandedObject, Ingestion]:
        """Return the table's name, the file, and its ingestion."""
        return self.table, self.landed, self.ended


TABLES = ("mended", "pressed")


@pytest.fixture(scope="module")
def failed(gate: Gate) -> dict[str, Failed]:
    """Return a failure for each test; the good files are dropped together, then the bad ones."""
    for name in TABLES:
        gate.put_contract(contract(f"failed.{name}", "parquet", "shared"))
    good = [gate.drop(f"failed/{name}/good.parquet", GOOD) for name in TABLES]
    assert {gate.end(each).state for each in good} == {State.PUBLISHED}
    bad = {name: gate.drop(f"failed/{name}/bad.parquet", TOO_MUCH) for name in TABLES}
    return {
        name: Failed(f"failed.{name}", landed, rejected(gate, landed))
        for name, landed in bad.items()
    }


def rejected(gate: Gate, landed: LandedObject) -> Ingestion:
    """Return the ended ingestion of a file whose only amount is too high."""
    ended = gate.end(landed)
    assert ended.state is State.REJECTED
    return ended


def test_a_mended_contract_lets_a_replay_pass(gate: Gate, failed: dict[str, Failed]) -> None:
    """A file that a wrong contract rejected passes its replay under the corrected contract.

    Another file has the same fault: Slack has one message for both, and its thread has the details.
    """
    name, landed, ended = failed["mended"].parts
    other = gate.end(gate.drop("failed/mended/b.parquet", parquet(id=[8], amount=[102.0])))
    gate.put_contract(contract(name, "parquet").replace("maximum: 100", "maximum: 1000"))
    run("replay", ended.id, "--wait")
    assert gate.end(landed).state is State.PUBLISHED
    assert gate.rows(name) == [(1, 1.0), (2, 2.0), (7, 101.0)]
    assert gate.adapters.catalog.branches(ended.branch) == []
    first, recovery = gate.alerts(ended)
    *_, repeat = gate.alerts(other)  # the first message has buttons that name it, too
    cause = "amount not between 0 and 100 in 1 row"
    title = f"failed.mended: bad.parquet rejected, {cause}; main unchanged (and 1 more)"
    assert first["text"] == title
    assert recovery["text"] == "Published after replay: bad.parquet"
    assert [each["thread_ts"] for each in (repeat, recovery)] == [first["ts"]] * 2


def test_people_act_in_slack(gate: Gate, failed: dict[str, Failed]) -> None:
    """Replay and fifty simultaneous approvals in Slack publish each file once.

    Its ledger entry names the person who decided, and the alert's thread reports the decision.
    """
    gate.misbehave("slack", {"app_seconds": 30, "sends_again": 1})
    name, landed, ended = failed["pressed"].parts
    eventually(lambda: "You may not" in pressed(ended, "--as", "bob"))
    gate.put_contract(contract(name, "parquet").replace("maximum: 100", "maximum: 1000"))
    is_replayed = partial(is_at, gate, ended, attempt=2)
    eventually(lambda: "under way" in pressed(ended) or is_replayed())
    eventually(is_replayed)
    assert gate.end(landed).state is State.PUBLISHED
    gate.put_contract(contract(name, "parquet"))
    again = gate.drop("failed/pressed/again/bad.parquet", TOO_MUCH)
    held = rejected(gate, again)
    told = {"values": {"reason": "a refund"}, "as": "ada"}
    with ThreadPoolExecutor(5) as at_once:
        presses = [{"view": form["id"], **told} for form in five_forms(gate, held) * 10]
        list(at_once.map(lambda asked: ask(gate, "_submit", asked), presses))
    eventually(lambda: gate.adapters.ledger.get(held.id).decisions.approval)
    assert gate.end(again).state is State.PUBLISHED
    gate.misbehave("slack", {})
    by = [(each.what, each.by) for each in gate.adapters.ledger.get(held.id).decisions.actions]
    assert by == [("publish", "ada (U0ADA)")]
    assert gate.rows(name).count((7, 101.0)) == 2
    assert is_answered(gate, ended, "Published after replay")
    eventually(lambda: is_answered(gate, ended, "ada (U0ADA) replayed bad.parquet"))


def test_one_yes_in_slack_decides_for_all_files_with_one_cause(gate: Gate) -> None:
    """The press is answered by a question in the thread, and the yes by one answer for all."""
    gate.put_contract(contract("failed.many", "parquet", "shared"))
    keys = {7: "failed/many/7.parquet", 8: "failed/many/8.parquet"}
    landed = [gate.drop(key, parquet(id=[n], amount=[101.0])) for n, key in keys.items()]
    for each in landed:
        rejected(gate, each)
    gate.misbehave("slack", {"app_seconds": 30})

    def shown(*words: str) -> list[str]:
        every = {m["ts"]: f"{m['text']} {m['blocks']}" for m in ask_for_messages(gate.stack.slack)}
        return [ts for ts, text in every.items() if all(each in text for each in words)]

    def press(about: str, button: str) -> bool:
        asked = [{"ts": ts, "button": button, "as": "ada"} for ts in shown(about, button)]
        return bool(asked) and bool(ask(gate, "_press", asked[-1])["ok"])

    eventually(lambda: press("failed.many: ", "Discard all …"))
    eventually(lambda: press("7.parquet", "Yes, discard 2"))
    eventually(lambda: shown("ada (U0ADA) discarded 2 of 2 files"))
    gate.misbehave("slack", {})
    for ended in map(gate.end, landed):
        assert [(done.what, done.by) for done in ended.decisions.actions] == [
            ("discard", "ada (U0ADA)")
        ]


def pressed(ingestion: Ingestion, *person: str) -> str:
    """Return the reply to pressing Replay, which may be an error on a busy machine."""
    return lakegate("slack", "press", ingestion.id, "replay", *person).output


def is_answered(gate: Gate, ingestion: Ingestion, words: str) -> bool:
    """Return whether a reply in the thread of the ingestion's alert begins with these words."""
    replies = (message["text"] for message in gate.alerts(ingestion) if "thread_ts" in message)
    return any(text.startswith(words) for text in replies)


def is_at(gate: Gate, ingestion: Ingestion, attempt: int) -> bool:
    """Return whether that attempt has begun."""
    return gate.adapters.ledger.get(ingestion.id).attempt == attempt


def five_forms(gate: Gate, ingestion: Ingestion) -> list[dict[str, Any]]:
    """Return five open forms for ada; press Publish at the ingestion's alert until they open."""
    alerts = [m for m in gate.alerts(ingestion) if "actions" in str(m["blocks"])]
    asked = {"ts": alerts[-1]["ts"], "button": "Publish anyway", "as": "ada"}

    def opened() -> list[dict[str, Any]]:
        ask(gate, "_press", asked)
        url = f"{gate.stack.slack}/_person"
        forms = requests.get(url, {"as": "ada"}, timeout=PATIENCE).json()["forms"]
        return list(forms[:5]) if len(forms) >= 5 else []

    return eventually(opened)


def ask(gate: Gate, what: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Request an action from Slack's stand-in."""
    answer = requests.post(f"{gate.stack.slack}/{what}", json=asked, timeout=PATIENCE)
    return dict(answer.json())
