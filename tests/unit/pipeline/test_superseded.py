"""A failed file is superseded once its newer version is published; no late decision doubles it."""

from collections.abc import Callable
from contextlib import suppress
from io import StringIO

import pytest
from rich.console import Console

from cli.console import json_output
from cli.ingestions.runs import listed
from cli.ingestions.show import page
from dashboard import actions_plan
from dashboard.actions_plan import offered
from functions.model.ingestion import State
from functions.model.ingestion_summary import status_text
from functions.model.messages.action import ActionRequest, Seen, Verb
from functions.model.messages.alert import Kind
from functions.notifications.alert_text import state_token
from functions.notifications.slack_buttons import buttons
from functions.on_press import act
from functions.operations.decisions.failed import Outcome
from functions.operations.upkeep.expire import expire
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject
from lakegate.times import moment
from tests.fakes.deployment import TABLE
from tests.fakes.faults import ProcessDied
from tests.fakes.job import Script, crashed, errored, passed, rejected
from tests.fakes.scenario import FIRST, KEY, Scenario

pytestmark = pytest.mark.usefixtures("quiet")

Decision = Callable[..., Outcome]


def published(deployment: Scenario, landed: LandedObject, despite: str = "") -> Outcome:
    """Publish the rejected ingestion as Ann."""
    return deployment.publish_anyway(landed, despite=despite)


def replayed(deployment: Scenario, landed: LandedObject, despite: str = "") -> Outcome:
    """Replay the ingestion as Ann."""
    return deployment.replay(landed, by="Ann", despite=despite)


@pytest.fixture
def old(deployment: Scenario) -> LandedObject:
    """Return a rejected file, after another one was published."""
    return failed(deployment)


def failed(deployment: Scenario, script: Script = rejected) -> LandedObject:
    """Return a file whose job run went as scripted, after another one was published."""
    deployment.ended(FIRST)
    return deployment.ended(script=script).landed


def corrected(deployment: Scenario, script: Script = rejected) -> tuple[LandedObject, LandedObject]:
    """Return a failed file, and the corrected one under its key, which was published."""
    old = failed(deployment, script)
    new = deployment.ended()
    assert new.state is State.PUBLISHED
    return old, new.landed


@pytest.mark.parametrize("script", [rejected, errored, crashed])
def test_a_newer_version_closes_the_older_failure(deployment: Scenario, script: Script) -> None:
    """The failure names the newer version, owners are alerted once, and its branch stays."""
    old, new = corrected(deployment, script)
    closed, newer = deployment.ingestion(old), deployment.ingestion(new)
    assert (closed.superseded_by, closed.is_open) == (newer.id, False)
    assert "superseded" in closed.times
    assert newer.id in status_text(closed)
    assert status_text(closed).endswith(f"published ({moment(closed.times['superseded'])})")
    told = [alert for _, alert in deployment.alerts.posted if alert.ingestion == closed.id]
    assert [each.kind for each in told] == [Kind.FAILED, Kind.RECOVERED]
    assert told[-1].text == "Superseded: a.parquet"
    assert newer.id in str(told[-1].blocks)
    assert buttons(told[-1]) == ()
    assert closed.branch in deployment.catalog.branches("ingest/")
    assert not list(deployment.ledger.open_failures())
    deployment.send_all_again()
    deployment.settle()
    assert deployment.ingestion(old) == closed


@pytest.mark.parametrize("decide", [published, replayed])
def test_a_stale_decision_is_refused_unless_it_names_the_newer_version(
    deployment: Scenario, decide: Decision
) -> None:
    """The refusal names the newer ingestion and the override; with it both are on main."""
    old, new = corrected(deployment)
    newer = deployment.ingestion(new).id
    before = deployment.ingestion(old)
    for despite in ("", before.id):
        with pytest.raises(LakegateError, match="SUPERSEDED") as refused:
            decide(deployment, old, despite)
        first, second = refused.value.message.split("\n")
        assert newer in first
        assert f"--despite {newer}" in second
    assert deployment.ingestion(old) == before
    deployment.script(old, passed)
    decide(deployment, old, newer)
    deployment.settle()
    assert deployment.on_main(old, new) == [True, True]
    now = deployment.ingestion(old)
    assert (now.state, now.decisions.despite, now.superseded_by) == (State.PUBLISHED, newer, "")


def test_a_stale_button_does_nothing_and_says_why(deployment: Scenario, old: LandedObject) -> None:
    """A press on an outdated alert is refused in its thread, which names the newer version."""
    before = deployment.ingestion(old)
    presses = [
        ActionRequest(
            verb, Seen(before.id, state_token(before)), "ada (U0ADA)", "it is known"
        ).text()
        for verb in (Verb.PUBLISH, Verb.REPLAY)
    ]
    new = deployment.ended()
    closed = deployment.ingestion(old)
    commands = (f"publish {before.id} --by NAME --reason TEXT", f"replay {before.id}")
    for press, command in zip(presses, commands, strict=True):
        act(deployment.adapters, press)
        _, told = deployment.alerts.posted[-1]
        assert (told.kind, told.token) == (Kind.ANSWER, "")
        assert f"`lakegate {command} --despite {deployment.ingestion(new).id}`" in told.text
    assert deployment.ingestion(old) == closed
    assert deployment.on_main(old) == [False]


def test_the_page_offers_nothing_but_to_discard_it(deployment: Scenario, old: LandedObject) -> None:
    """An outdated page explains the refusal, and lists name the newer version."""
    opened = deployment.ingestion(old)
    new = deployment.ended()
    now, newer = deployment.ingestion(old), deployment.ingestion(new).id
    assert (offered(opened)[0], offered(now)) == (
        actions_plan.Verb.REPLAY,
        (actions_plan.Verb.DISCARD,),
    )
    for verb in (actions_plan.Verb.REPLAY, actions_plan.Verb.PUBLISH):
        asked = actions_plan.ActionRequest(verb, "Ann", "it is known")
        with pytest.raises(LakegateError, match=f"SUPERSEDED.*{newer}"):
            actions_plan.plan(deployment.adapters, opened, asked)
        with pytest.raises(LakegateError, match=f"SUPERSEDED.*{newer}"):
            actions_plan.carry_out(deployment.adapters, opened, asked)
    assert json_output.ingestion_json(now)["superseded_by"] == newer
    console = Console(width=250, record=True, file=StringIO())
    console.print(listed([now]), page(now, None))
    assert f"CHECKS_FAILED, superseded by {newer[:12]}" in (text := console.export_text())
    assert newer in text


@pytest.mark.parametrize("decide", [published, replayed])
def test_a_version_on_its_way_is_waited_for(
    deployment: Scenario, old: LandedObject, decide: Decision
) -> None:
    """The older version cannot be decided on while the newer one is in flight."""
    new = deployment.land(KEY, script=rejected)
    deployment.deliver()
    with pytest.raises(LakegateError, match=deployment.ingestion(new).id):
        decide(deployment, old)
    deployment.settle()
    deployment.script(old, passed)
    decide(deployment, old)
    deployment.settle()
    assert deployment.on_main(old, new) == [True, False]


def test_a_merge_before_the_newer_version_is_recorded(
    deployment: Scenario, old: LandedObject
) -> None:
    """A publisher that died after its merge finds it on main, after any later publication."""
    deployment.kill("ledger.save_each")
    with suppress(ProcessDied):
        published(deployment, old)
    assert deployment.ingestion(old).state is State.AUDITED
    new = deployment.ended()
    assert deployment.on_main(old, new) == [True, True]
    assert deployment.ingestion(old).state is State.PUBLISHED


def test_a_superseded_branch_expires_like_any_other(deployment: Scenario) -> None:
    """A superseded branch expires like that of any failure, and can be discarded."""
    old, _ = corrected(deployment)
    branch = deployment.ingestion(old).branch
    assert not list(expire(deployment.adapters, 30))
    assert branch in deployment.catalog.branches("ingest/")
    assert deployment.discard(old).left == ""
    assert branch not in deployment.catalog.branches("ingest/")


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("replayed_first", [True, False])
def test_a_replayed_file_gives_way_in_a_group_as_well(
    deployment: Scenario, replayed_first: bool, lost: bool
) -> None:
    """If main gets a newer version before the group of a file, the others come without it.

    So they do where the ledger lost the newer version since.
    """
    deployment.share(1)
    deployment.others.append(TABLE)
    failed = deployment.ended(KEY, b"first", rejected)
    deployment.script(failed, passed)
    if replayed_first:
        deployment.replay(failed)
    other = deployment.submit("shop/orders/other.parquet")
    if not replayed_first:
        deployment.replay(failed)
    deployment.run_jobs()
    newer = deployment.land(KEY, b"second")
    deployment.deliver_one(-1)
    deployment.run_jobs()
    deployment.deliver_one(2)  # before the verdict on the group
    assert deployment.states(newer, failed) == [State.PUBLISHED, State.LANDED]
    if lost:
        deployment.ledger.lose(deployment.ingestion(newer).id)
    deployment.settle()
    ended = deployment.ingestion(failed)
    assert (deployment.end(ended), ended.superseded_by) == (
        "rejected SUPERSEDED",
        deployment.ingestion(newer).id,
    )
    assert ended.branch in deployment.catalog.references()
    assert deployment.on_main(newer, other.landed, failed) == [True, True, False]


def test_a_key_that_is_written_again_and_again_is_not_read_back_to_its_first_version(
    deployment: Scenario,
) -> None:
    """A publication looks for older failures back to the version that was announced before it."""
    deployment.ended(script=rejected)
    for number in range(9):
        deployment.clock.pass_(300)
        deployment.ended()
        read, deployment.ledger.versions_read = deployment.ledger.versions_read, 0
        assert read <= 3, number
    assert not list(deployment.ledger.open_failures())
