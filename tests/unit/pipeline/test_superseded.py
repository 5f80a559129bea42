"""A failed file is superseded once its newer version is published; no late decision doubles it."""

from collections.abc import Callable
from contextlib import suppress
from io import StringIO

import pytest
from rich.console import Console

from cli import json_output, terminal
from cli.ingestions import page
from dashboard import actions_plan
from dashboard.actions_plan import offered
from functions.model.alert import Kind
from functions.model.ingestion import Ingestion, State
from functions.model.ingestion_summary import status_text
from functions.notifications.alert_text import state_token
from functions.notifications.interactions import ActionRequest
from functions.notifications.slack_buttons import Seen, Verb, buttons
from functions.on_press import act
from functions.operations.expire import expire
from functions.operations.failed import Outcome, discard, publish_anyway, replay
from functions.operations.rebuild_ledger import rebuild
from lakegate.errors import LakegateError
from lakegate.landing import LandedObject
from tests.fakes.deployment import Deployment
from tests.fakes.faults import Fault, ProcessDied, die
from tests.fakes.job import Script, crashed, errored, passed, rejected
from tests.fakes.promises import check_promises

pytestmark = pytest.mark.usefixtures("quiet")

KEY = "shop/orders/a.parquet"
Decision = Callable[..., Outcome]


def published(deployment: Deployment, landed: LandedObject, despite: str = "") -> Outcome:
    """Publish the rejected ingestion as Ann."""
    now = deployment.ingestion(landed)
    return publish_anyway(deployment.adapters, now, "Ann", "it is known", despite=despite)


def replayed(deployment: Deployment, landed: LandedObject, despite: str = "") -> Outcome:
    """Replay the ingestion as Ann."""
    return replay(deployment.adapters, deployment.ingestion(landed), by="Ann", despite=despite)


def failed(script: Script = rejected) -> tuple[Deployment, LandedObject]:
    """Return a deployment with a file on main, and a failed one whose next run would pass."""
    deployment = Deployment()
    deployment.land("shop/orders/first.parquet")
    deployment.settle()
    landed = deployment.land(KEY, script=script)
    deployment.settle()
    return deployment, landed


def corrected(script: Script = rejected) -> tuple[Deployment, LandedObject, LandedObject]:
    """Return `failed`, after the corrected file under the same key was published."""
    deployment, old = failed(script)
    new = deployment.land(KEY)
    deployment.settle()
    assert deployment.ingestion(new).state is State.PUBLISHED
    return deployment, old, new


def on_main(deployment: Deployment, *landed: LandedObject) -> list[bool]:
    """Return whether the rows of each are on main."""
    files = deployment.published_files()
    return [f"{each.uri}@{each.version}" in files for each in landed]


@pytest.mark.parametrize("script", [rejected, errored, crashed])
def test_a_newer_version_closes_the_older_failure(script: Script) -> None:
    """The failure names the newer version, owners are alerted once, and its branch stays."""
    deployment, old, new = corrected(script)
    closed, newer = deployment.ingestion(old), deployment.ingestion(new)
    assert (closed.superseded_by, closed.is_open) == (newer.id, False)
    assert "superseded" in closed.times
    assert newer.id in status_text(closed)
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
    check_promises(deployment)


def test_a_failure_that_comes_after_the_newer_version_is_closed_at_once() -> None:
    """If the older version's job ends last, its one alert asks for no action."""
    deployment = Deployment()
    old = deployment.land(KEY, script=rejected)
    deployment.deliver()
    new = deployment.land(KEY)
    deployment.deliver()
    deployment.run_one_job(1)
    deployment.deliver()
    assert deployment.ingestion(new).state is State.PUBLISHED
    deployment.settle()
    closed = deployment.ingestion(old)
    assert closed.superseded_by == deployment.ingestion(new).id
    told = [alert.kind for _, alert in deployment.alerts.posted if alert.ingestion == closed.id]
    assert told == [Kind.RECOVERED]
    check_promises(deployment)


def test_only_open_failures_of_the_key_are_closed() -> None:
    """Discarded failures, other keys' failures and newer failures are not superseded."""
    deployment, old = failed()
    other = deployment.land("shop/orders/b.parquet", script=rejected)
    discarded = deployment.land(KEY, script=rejected)
    deployment.settle()
    discard(deployment.adapters, deployment.ingestion(discarded))
    new = deployment.land(KEY)
    newest = deployment.land(KEY, script=rejected)
    deployment.settle()
    found = [deployment.ingestion(each).superseded_by for each in (old, other, discarded, newest)]
    assert found == [deployment.ingestion(new).id, "", "", ""]


@pytest.mark.parametrize("decide", [published, replayed])
def test_a_stale_decision_is_refused_unless_it_names_the_newer_version(decide: Decision) -> None:
    """The refusal names the newer ingestion and the override; with it both are on main."""
    deployment, old, new = corrected()
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
    assert on_main(deployment, old, new) == [True, True]
    now = deployment.ingestion(old)
    assert (now.state, now.despite, now.superseded_by) == (State.PUBLISHED, newer, "")
    check_promises(deployment)


def test_a_stale_button_does_nothing_and_says_why() -> None:
    """A press on an outdated alert is refused in its thread, which names the newer version."""
    deployment, old = failed()
    before = deployment.ingestion(old)
    presses = [
        ActionRequest(
            verb, Seen(before.id, state_token(before)), "ada (U0ADA)", "it is known"
        ).text()
        for verb in (Verb.PUBLISH, Verb.REPLAY)
    ]
    new = deployment.land(KEY)
    deployment.settle()
    closed = deployment.ingestion(old)
    for press in presses:
        act(deployment.adapters, press)
        _, told = deployment.alerts.posted[-1]
        assert (told.kind, told.token) == (Kind.ANSWER, "")
        assert f"--despite {deployment.ingestion(new).id}" in told.text
    assert deployment.ingestion(old) == closed
    assert on_main(deployment, old) == [False]
    check_promises(deployment)


def test_the_page_offers_nothing_but_to_discard_it() -> None:
    """An outdated page explains the refusal, and lists name the newer version."""
    deployment, old = failed()
    opened = deployment.ingestion(old)
    new = deployment.land(KEY)
    deployment.settle()
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
    assert json_output.of_ingestion(now)["superseded_by"] == newer
    console = Console(width=250, record=True, file=StringIO())
    console.print(terminal.runs([now]), page(now, None))
    assert f"CHECKS_FAILED, superseded by {newer[:12]}" in (text := console.export_text())
    assert newer in text


@pytest.mark.parametrize("decide", [published, replayed])
def test_a_version_on_its_way_is_waited_for(decide: Decision) -> None:
    """The older version cannot be decided on while the newer one is in flight."""
    deployment, old = failed()
    new = deployment.land(KEY, script=rejected)
    deployment.deliver()
    with pytest.raises(LakegateError, match=deployment.ingestion(new).id):
        decide(deployment, old)
    deployment.settle()
    deployment.script(old, passed)
    decide(deployment, old)
    deployment.settle()
    assert on_main(deployment, old, new) == [True, False]
    check_promises(deployment)


@pytest.mark.parametrize("decide", [published, replayed])
@pytest.mark.parametrize(("script", "wins"), [(passed, True), (rejected, False)])
def test_a_decision_is_asked_again_when_it_is_published(
    decide: Decision, script: Script, wins: bool
) -> None:
    """A decision waits for a version that landed after it; once published, that version wins."""
    deployment, old = failed()
    deployment.script(old, passed)
    deployment.journal.strike("catalog.merge", Fault(die))
    with suppress(ProcessDied):
        decide(deployment, old)
        deployment.run_jobs()
        deployment.deliver()
    assert deployment.ingestion(old).state is State.AUDITED
    new = deployment.land(KEY, script=script)
    deployment.deliver_one(-1)
    deployment.settle()
    assert on_main(deployment, old, new) == [not wins, wins]
    now = deployment.ingestion(old)
    assert now.state is (State.REJECTED if wins else State.PUBLISHED)
    if wins:
        assert now.reason
        assert (now.reason.code, now.approval) == ("SUPERSEDED", None)
        assert now.superseded_by == deployment.ingestion(new).id
        assert now.branch in deployment.catalog.branches("ingest/", "publish/")
    check_promises(deployment)


def test_a_merge_before_the_newer_version_is_recorded() -> None:
    """A publisher that died after its merge finds it on main, after any later publication."""
    deployment, old = failed()
    deployment.journal.strike("ledger.save_all", Fault(die))
    with suppress(ProcessDied):
        published(deployment, old)
    assert deployment.ingestion(old).state is State.AUDITED
    new = deployment.land(KEY)
    deployment.settle()
    assert on_main(deployment, old, new) == [True, True]
    assert deployment.ingestion(old).state is State.PUBLISHED
    check_promises(deployment)


def test_a_decided_version_is_published_by_itself() -> None:
    """An ingestion that failed once joins no group."""
    deployment, old = failed()
    deployment.script(old, passed)
    replayed(deployment, old)
    deployment.run_jobs()
    others = [deployment.land(f"shop/orders/{name}.parquet") for name in "bcd"]
    deployment.deliver()
    deployment.settle()
    assert all(on_main(deployment, old, *others))
    assert deployment.ingestion(old).group == ()
    check_promises(deployment)


def test_a_superseded_branch_expires_like_any_other() -> None:
    """A superseded branch expires like that of any failure, and can be discarded."""
    deployment, old, _ = corrected()
    branch = deployment.ingestion(old).branch
    assert not list(expire(deployment.adapters, 30))
    assert branch in deployment.catalog.branches("ingest/")
    assert discard(deployment.adapters, deployment.ingestion(old)).left == ""
    assert branch not in deployment.catalog.branches("ingest/")


def test_a_rebuilt_ledger_closes_it_again() -> None:
    """After a rebuild of the ledger the sweep marks the failure as superseded again."""
    deployment, old, new = corrected()
    newer: Ingestion = deployment.ingestion(new)
    deployment.ledger.lose()
    assert len(list(rebuild(deployment.adapters))) == 3
    deployment.settle()
    assert deployment.ingestion(old).superseded_by == newer.id
    with pytest.raises(LakegateError, match="SUPERSEDED"):
        published(deployment, old)
