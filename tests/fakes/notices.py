"""The promises to owners and consumers: each is notified of final states, and of nothing else."""

from collections.abc import Iterator

from functions.model import steps
from functions.model.ingestion import ALERTED, ANNOUNCED, Ingestion, State
from functions.model.messages.alert import Kind
from functions.model.messages.announcement import announcements
from tests.fakes.deployment import Deployment


def check_owners_are_notified(deployment: Deployment, these: list[Ingestion]) -> None:
    """Raise AssertionError unless alerts are about exactly these ingestions, with their states."""
    texts = [str(alert.blocks) for _, alert in deployment.alerts.posted]
    for ingestion in these:
        known = {each.branch for each in deployment.ledger.history(ingestion.id)}
        of_it = [text for text in texts if _subject(ingestion) in text]
        assert of_it, f"nobody was told of {ingestion}"
        if ingestion.state in ALERTED:
            for text in _failures(deployment, ingestion):
                named = any((branch or "none created") in text for branch in known)
                assert named, f"an alert names none of {known}"
    ends = (Kind.FAILED, Kind.RECOVERED)
    posted = [told for _, told in deployment.alerts.posted if told.kind in ends]
    last = {told.ingestion: told.kind for told in posted}
    was_lost = deployment.ledger.was_lost
    for ingestion in deployment.ledger.all():
        if ingestion.has_recovered:
            # Of an entry that was lost the revisions began again, so an alert may seem outdated.
            right = last.get(ingestion.id) is Kind.RECOVERED or was_lost(ingestion.id)
            assert right, f"nobody was told what became of {ingestion}"
        elif ingestion.state in ALERTED:
            right = last.get(ingestion.id) is Kind.FAILED
            assert right, f"nobody was told that it failed: {ingestion}"
    told_of = {ingestion.id for ingestion in these} | set(_once_failed(deployment))
    others = [_subject(i) for i in deployment.ledger.all() if i.id not in told_of]
    told = [text for text in texts if "Still not published" not in text]  # which is no end
    wrong = [text for text in told if any(subject in text for subject in others)]
    assert not wrong, f"told of what did not fail: {wrong}"


def _failures(deployment: Deployment, ingestion: Ingestion) -> list[str]:
    """Return the text of each alert that the ingestion failed."""
    posted = [alert for _, alert in deployment.alerts.posted if alert.ingestion == ingestion.id]
    return [str(alert.blocks) for alert in posted if alert.kind is Kind.FAILED]


def _subject(ingestion: Ingestion) -> str:
    """Return how an alert names its ingestion."""
    return f"*Ingestion* `{ingestion.id}`"


def _once_failed(deployment: Deployment) -> Iterator[str]:
    """Yield the ids of ingestions that ever failed, in any present state.

    So does one that was published with a remark, before main lost it.
    """
    for ingestion in deployment.ledger.all():
        history = deployment.ledger.history(ingestion.id)
        remarked = "set back" in ingestion.times and any(map(steps.is_remarkable, history))
        if remarked or any(each.state in ALERTED for each in history):
            yield ingestion.id


def check_consumers_are_notified(deployment: Deployment) -> None:
    """Raise AssertionError unless exactly the final states were announced.

    An announced publication names its table's metadata on main then or later.
    """
    ends = [i for i in deployment.ledger.all() if i.state in ANNOUNCED]
    told = {each.id for each in deployment.announcements.sent}
    for each in ends:
        lacking = {said.id for said in announcements(each)} - told
        assert not lacking, f"readers were not told of {lacking}"
    known = (each for i in deployment.ledger.all() for each in deployment.ledger.history(i.id))
    once = {said.id for i in known if i.state in ANNOUNCED for said in announcements(i)}
    wrong = told - once
    assert not wrong, f"readers were told of {wrong}"
    log = [commit.hash for commit in deployment.catalog.log()][::-1]
    for said in deployment.announcements.sent:
        if said.state is State.PUBLISHED:
            assert said.commit in log[: said.position], f"readers were told too early: {said}"
            stands = deployment.catalog.metadata(log[said.position - 1], said.table)
            assert said.metadata_location == stands, f"readers were told of another table: {said}"
