"""The sweep completes what lost events left, and one failure stops nothing else."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest

from functions.adapters.emr import RunState
from functions.adapters.sqs import QueuedAlert
from functions.model.budget import Use
from functions.model.ingestion import Ingestion, State
from functions.model.messages.alert import Alert
from functions.pipeline.start.intake import take_in
from functions.sweep import sweep
from tests.fakes import messages
from tests.fakes.deployment import SETTINGS
from tests.fakes.faults import Fault, unavailable
from tests.fakes.job import rejected
from tests.fakes.scenario import KEY, Scenario

KINDS = (
    *("dead_letters", "forgotten", "resumed", "runs", "late", "recorded", "deleted"),
    *("measured", "compactions", "overdue", "failed"),
)
NOTHING = dict.fromkeys(KINDS, 0)


@pytest.fixture
def deployment() -> Scenario:
    """Return a deployment that loses all events."""
    lossy = Scenario()
    lossy.loses_events = True
    return lossy


def bug() -> None:
    """Raise an error that no adapter should raise."""
    raise KeyError("a bug")


def test_without_a_single_event_everything_ends(deployment: Scenario) -> None:
    """Without any event, each landed object is found, run, and published or alerted."""
    deployment.land(KEY)
    deployment.land("shop/orders/b.parquet", script=rejected)
    deployment.land("elsewhere/c.parquet")
    assert deployment.sweep() == {**NOTHING, "forgotten": 3}
    deployment.run_jobs()
    assert deployment.sweep() == {**NOTHING, "resumed": 2, "recorded": 1}
    assert deployment.published_files() == [f"s3://landing/{KEY}@v1"]
    assert len(deployment.alerts.posted) == 2


def test_a_second_sweep_finds_nothing_to_do(deployment: Scenario) -> None:
    """Finished ingestions stay unchanged."""
    deployment.ended()
    assert deployment.sweep() == NOTHING


def test_an_event_may_come_while_the_sweep_lists(deployment: Scenario) -> None:
    """An object whose event comes after the sweep listed it is taken in by its event alone."""
    deployment.land(KEY)
    late = deployment.land("shop/orders/b.parquet")
    events = [late]

    def come(call: str) -> tuple[Fault, ...]:
        if call == "ledger.save" and events:
            take_in(deployment.adapters, events.pop())
        return ()

    deployment.journal.pause = come
    deployment.sweep()
    assert deployment.ingestion(late).revision == 3  # begun, branched, submitted


def test_recent_objects_are_left_to_their_events(deployment: Scenario) -> None:
    """Objects and steps within the grace time are left alone."""
    deployment.land(KEY)
    assert sweep(deployment.adapters) == NOTHING
    deployment.sweep()
    deployment.run_jobs()
    assert sweep(deployment.adapters) == NOTHING


@pytest.mark.parametrize(("hours", "found"), [(0, 0), (2, 101)])
def test_a_backlog_of_events_is_left_to_them(hours: int, found: int) -> None:
    """While many events wait, an object is taken in without its event only after an hour."""
    deployment = Scenario()
    for number in range(101):
        deployment.land(f"shop/orders/{number}.parquet")
    deployment.clock.pass_(hours * 3600)
    assert deployment.sweep()["forgotten"] == found


@pytest.mark.parametrize("effect", [unavailable, bug])
def test_one_that_fails_holds_up_no_other(deployment: Scenario, effect: Callable[[], None]) -> None:
    """If one object fails the same sweep ingests the others."""
    deployment.land(KEY)
    deployment.land("shop/orders/b.parquet")
    deployment.journal.strike("jobs.start", Fault(effect))
    assert deployment.sweep() == {**NOTHING, "forgotten": 1, "failed": 1}
    deployment.settle()


@pytest.mark.parametrize(
    "source",
    [
        "dead_uploads.read",
        "dead_job_runs.read",
        "landing.page",
        "ledger.unfinished",
        "ledger.needs_recording",
    ],
)
def test_a_source_that_fails_holds_up_no_other(deployment: Scenario, source: str) -> None:
    """If one source fails the sweep processes the others."""
    deployment.land(KEY)
    deployment.sweep()
    deployment.run_jobs()
    deployment.land("shop/orders/b.parquet")
    deployment.dead_uploads.send("no event")
    deployment.dead_job_runs.send("no event")
    everything = {**NOTHING, "dead_letters": 2, "forgotten": 1, "resumed": 1, "recorded": 1}
    kinds = {
        "landing.page": ("forgotten",),
        "ledger.unfinished": ("resumed", "recorded"),  # nothing has ended then
        "ledger.needs_recording": ("recorded",),
    }
    missed = kinds.get(source, ("dead_letters",))
    deployment.fail(source)
    done = deployment.sweep()
    assert done == {**everything, **{kind: everything[kind] - 1 for kind in missed}, "failed": 1}


def test_an_ingestion_finished_meanwhile_is_no_failure(deployment: Scenario) -> None:
    """The sweep uses the current state, as its list of due ingestions becomes outdated."""
    deployment.land(KEY)
    deployment.land("shop/orders/b.parquet")
    deployment.sweep()
    deployment.run_jobs()
    deployment.journal.strike("jobs.get", Fault(deployment.settle, "after"))
    done = deployment.sweep()
    assert done["failed"] == 1  # the one that was being resumed; not the one after it


def test_a_dead_message_is_handled_once_more(deployment: Scenario) -> None:
    """The sweep processes a message that failed for a transient reason."""
    deployment.loses_events = False
    deployment.fail("ledger.together", times=5)
    landed = deployment.land(KEY)
    for _ in range(5):
        deployment.deliver()
    assert len(deployment.dead_uploads.waiting()) == 1
    assert deployment.sweep()["dead_letters"] == 1
    assert deployment.dead_uploads.waiting() == []
    assert deployment.ingestion(landed).state is State.SUBMITTED


def test_a_dead_message_that_fails_again_stays(deployment: Scenario) -> None:
    """A message stays without an alert while the reason of its failure lasts."""
    deployment.dead_uploads.send(messages.upload(deployment.land(KEY)))
    deployment.fail("ledger.together", times=2)
    assert deployment.sweep() == {**NOTHING, "failed": 2}
    assert len(deployment.dead_uploads.waiting()) == 1
    assert deployment.alerts.posted == []


def test_an_exception_that_nobody_foresaw_is_told_with_its_name(deployment: Scenario) -> None:
    """A file that no handler can take in is alerted once, and taken in once the cause is gone."""
    landed = deployment.land(KEY)
    deployment.dead_uploads.send(messages.upload(landed))
    deployment.journal.strike("ledger.together", Fault(bug, times=float("inf")))
    for _ in range(3):
        deployment.sweep()
    [(_, alert)] = deployment.alerts.posted
    assert all(word in str(alert.blocks) for word in ("KeyError", "a bug", "a.parquet"))
    assert deployment.dead_uploads.waiting() == []
    deployment.journal.repair("ledger.together")
    deployment.sweep()
    assert deployment.ingestion(landed).state is State.SUBMITTED


@pytest.mark.parametrize("body", ["", "no JSON", "{}", "[]", '{"Records": [{}]}'])
def test_a_poisonous_message_is_shown_to_people(deployment: Scenario, body: str) -> None:
    """An invalid message is alerted once, with queue and text, and then deleted."""
    deployment.dead_uploads.send(body)
    deployment.dead_job_runs.send(body)
    deployment.sweep()
    deployment.sweep()
    texts = [str(alert.blocks) for _, alert in deployment.alerts.posted]
    assert len(texts) == 2
    assert "uploads-dead" in texts[0]
    assert "job-runs-dead" in texts[1]
    assert all(body in text for text in texts)
    assert deployment.dead_uploads.waiting() == deployment.dead_job_runs.waiting() == []


def test_the_end_of_an_unknown_run_is_shown_to_people(deployment: Scenario) -> None:
    """An event about an unknown run is alerted."""
    deployment.send_job_run("00unknown")
    deployment.settle()
    assert "00unknown" in str(deployment.alerts.posted)


def test_an_alert_that_was_given_up_is_reported_again(deployment: Scenario) -> None:
    """An alert that Slack refused for days is posted again; an invalid one is reported."""
    notice = Alert("Rejected: a", ({"type": "divider"},), "a 1")
    deployment.dead_alerts.send(QueuedAlert("#orders", notice).to_json())
    deployment.dead_alerts.send("nonsense")
    assert deployment.sweep()["dead_letters"] == 2
    assert deployment.alerts.posted[0] == ("#orders", notice)
    assert "nonsense" in str(deployment.alerts.posted[1])
    assert deployment.dead_alerts.waiting() == []


def test_people_hear_once_of_a_file_that_waits_for_main_for_hours(deployment: Scenario) -> None:
    """An audited file that waits for main for hours is alerted once, with the reason."""
    landed = deployment.land(KEY)
    deployment.sweep()
    deployment.run_jobs()
    deployment.journal.strike("catalog.merge", Fault(bug, times=float("inf")))
    deployment.sweep()
    assert deployment.ingestion(landed).state is State.AUDITED
    assert deployment.alerts.posted == []
    deployment.clock.pass_(deployment.settings.overdue_minutes * 60)
    for _ in range(3):
        deployment.sweep()
    [(channel, notice)] = deployment.alerts.posted
    assert (channel, notice.text) == ("#orders", "Still not published: a.parquet")
    assert "a bug" in str(notice.blocks)
    deployment.journal.repair("catalog.merge")
    assert deployment.end_of(landed).state is State.PUBLISHED


class Weighed:
    """The ledger, which counts the ingestions that its readers hold at once."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger
        self._given: dict[int, ref[Ingestion]] = {}
        self.most = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def unfinished(self, before: str) -> Iterator[Ingestion]:
        return map(self._copy, self._ledger.unfinished(before))

    def together(self, ids: list[str]) -> list[Ingestion]:
        return [self._copy(each) for each in self._ledger.together(ids)]

    def _copy(self, ingestion: Ingestion) -> Ingestion:
        copied = ingestion.but()
        number = id(copied)
        self._given[number] = ref(copied, lambda _: self._given.pop(number))
        self.most = max(self.most, len(self._given))
        return copied


def most_at_once(deployment: Scenario, files: int) -> int:
    """Return how many ingestions a sweep holds at most where so many files wait."""
    for number in range(files):
        deployment.land(f"shop/orders/{number:04}.parquet")
    deployment.deliver()
    deployment.clock.pass_(deployment.settings.grace_seconds + 1)
    ledger: Any = Weighed(deployment.adapters.ledger)
    sweep(replace(deployment.adapters, ledger=ledger))
    return int(ledger.most)


def test_held_files_are_not_all_in_memory_at_once() -> None:
    """However many files of a table are held, a sweep has the room for them."""
    deployment = Scenario()
    deployment.replace_rows("upsert")
    assert 0 < most_at_once(deployment, files=700) <= 600


def test_files_that_wait_for_the_next_day_are_not_all_in_memory_at_once() -> None:
    """However many files the day's budget has no room for, a sweep has the room for them."""
    deployment = Scenario(replace(SETTINGS, daily_budget_usd=1))
    deployment.jobs.bill = Use(24.0)
    deployment.ended()
    assert 0 < most_at_once(deployment, files=700) <= 600


def test_runs_are_started_before_what_may_take_long() -> None:
    """Files in the work queue have their run, however long the rest of the sweep takes."""
    deployment = Scenario(replace(SETTINGS, shared_runs=1))
    own = deployment.land(KEY)
    deployment.share(0)
    take_in(deployment.adapters, own)
    deployment.loses_events = True
    deployment.run_jobs()
    deployment.share(1)
    take_in(deployment.adapters, deployment.land("shop/orders/b.parquet"))
    (run,) = deployment.jobs.shared_runs()
    deployment.jobs.end(run, RunState.SUCCESS)
    before = len(deployment.journal.calls)
    deployment.sweep()
    calls = deployment.journal.calls[before:]
    assert calls.index("jobs.start") < calls.index("catalog.merge")
