"""The lists of the page: what needs a decision, and all ingestions."""

from collections.abc import Iterator
from typing import Any

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

from dashboard.actions_plan import Verb
from dashboard.serve.serving import team_options
from dashboard.serve.session import Opened
from dashboard.serve.team_door import PERSON
from dashboard.views import inbox as inbox_page
from dashboard.views import ingestion as ingestion_page
from functions.model.ingestion import State
from functions.operations.decisions.failed import discard, replay
from tests.fakes.deployment import OTHER_TABLE, TABLE, Deployment
from tests.fakes.job import errored, passed, rejected
from tests.unit.dashboard.test_page_views import everything, plain, seen


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment with a published, a rejected and, an hour later, an unreadable file."""
    made = Deployment()
    made.land("shop/orders/good.csv", script=passed)
    made.land("shop/orders/old.csv", script=rejected)
    made.settle()
    made.clock.pass_(3_600)
    made.land("shop/orders/broken.csv", script=errored)
    made.settle()
    return made


def links(app: object) -> list[str]:
    """Return the labels of a view's links to ingestions."""
    return [link.proto.label for link in app.get("page_link")]  # type: ignore[attr-defined]


def files(app: AppTest) -> list[tuple[str, str]]:
    """Return table and name of the files of a view's grid."""
    grids = [each.value for each in app.dataframe]
    return [(row.table, row.file) for grid in grids for row in grid.itertuples()]


def test_what_needs_a_decision_comes_first_and_the_oldest_first(deployment: Deployment) -> None:
    """Open failures of any age are listed oldest first, with cause, rows, age and owner."""
    deployment.clock.pass_(90 * 86_400)
    app = seen(inbox_page.show, deployment)
    assert files(app) == [(TABLE, "old.csv"), (TABLE, "broken.csv")]
    assert "2 files, oldest first." in everything(app)
    first = app.dataframe[0].value.iloc[0]
    assert (first["cause"], first["rows"]) == ("1 of 2 checks failed: id.required", 3)
    assert (list(first["state"]), first["owner"]) == (["rejected"], "#orders")
    assert first["landed"].isoformat(timespec="milliseconds") == next(
        each.landed_at for each in deployment.ledger.open_failures()
    )
    assert len(app.title) == 1


def test_a_decision_takes_it_off_the_list(deployment: Deployment) -> None:
    """A discarded and a replayed file are no longer listed, and an empty list says so."""
    first, second = (deployment.ledger.get(b.id) for b in deployment.ledger.open_failures())
    discard(deployment.adapters, first, by="Ann")
    assert files(seen(inbox_page.show, deployment)) == [(TABLE, "broken.csv")]
    replay(deployment.adapters, second, by="Ann")
    assert "Nothing waits for a decision" in everything(seen(inbox_page.show, deployment))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("BROKEN csv", ["broken.csv"]),
        ("id.required", ["old.csv"]),
        ("#orders", ["old.csv", "broken.csv"]),
        ("shop/orders", ["old.csv", "broken.csv"]),
        ("errored", ["broken.csv"]),
        ("good", []),
    ],
)
def test_the_inbox_is_searched(deployment: Deployment, text: str, found: list[str]) -> None:
    """All words of a search are found in file, table, state, cause or owner."""
    app = seen(inbox_page.show, deployment)
    app.text_input[0].set_value(text).run()
    assert files(app) == [(TABLE, name) for name in found]
    assert f"{len(found)} file{'' if len(found) == 1 else 's'}" in everything(app)


def test_the_inbox_is_filtered(deployment: Deployment) -> None:
    """A table and an owner limit the list, and both lists of choices are those that wait."""
    deployment.batch("b", {"r.csv": OTHER_TABLE}, script=rejected)
    deployment.settle()
    app = seen(inbox_page.show, deployment)
    tables, owners = app.selectbox
    assert tables.options == ["All tables", TABLE, OTHER_TABLE]
    assert "#orders" in owners.options
    tables.select(OTHER_TABLE).run()
    assert files(app) == [(OTHER_TABLE, "batch b")]


def test_a_filter_stays_when_another_table_fails(deployment: Deployment) -> None:
    """The list keeps itself up to date, and shows no other table's files than were chosen."""
    app = seen(inbox_page.show, deployment)
    app.selectbox[0].select(TABLE).run()
    deployment.batch("b", {"r.csv": OTHER_TABLE}, script=rejected)
    deployment.settle()
    assert app.run().selectbox[0].options == ["All tables", TABLE, OTHER_TABLE]
    assert files(app) == [(TABLE, "old.csv"), (TABLE, "broken.csv")]


def selected(app: AppTest, *rows: int) -> AppTest:
    """Select rows of the grid, and run the view again."""
    (key,) = (each.proto.id.rpartition("-")[2] for each in app.dataframe)
    app.session_state[key] = {"selection": {"rows": list(rows), "columns": [], "cells": []}}
    return app.run()


def test_selected_files_are_opened_and_decided_about(deployment: Deployment) -> None:
    """A selected row has a link, and what may be decided about all that are selected.

    When the list changes, nothing is selected: its rows are other files.
    """
    app = selected(seen(inbox_page.show, deployment), 1)
    assert links(app) == ["Open `broken.csv`"]
    labels = ["Replay 1 selected …", "Discard 1 selected …"]
    assert [plain(each.label) for each in app.button] == labels
    app = selected(app, 0, 1)
    assert [plain(each.label) for each in app.button] == [
        "Replay 2 selected …",
        "Publish anyway 2 selected …",
        "Discard 2 selected …",
    ]
    deployment.land("shop/orders/a.csv", script=rejected)
    deployment.settle()
    assert not [each for each in app.run().button if "selected" in each.label]


def test_a_burst_says_how_much_is_done() -> None:
    """It counts what landed lately without a pause, and says nothing once all of it is done."""
    made = Deployment()
    made.land("shop/orders/earlier.csv")
    made.settle()
    made.clock.pass_(3_600)
    for number in range(4):
        made.land(f"shop/orders/{number}.csv")
    made.settle()
    made.land("shop/orders/last.csv")
    made.deliver()
    for show in (inbox_page.show, ingestion_page.show):
        assert "4 of 5 files done: this list" in everything(seen(show, made))
    made.settle()
    assert " done" not in everything(seen(ingestion_page.show, made))


def test_files_with_one_cause_have_buttons_for_all(deployment: Deployment) -> None:
    """A cause of several files is shown once, with what may be decided for all of them."""
    assert not seen(inbox_page.show, deployment).button
    deployment.land("shop/orders/next.csv", script=rejected)
    deployment.settle()
    app = seen(inbox_page.show, deployment)
    assert "2 files with one cause" in everything(app)
    labels = ["Replay all …", "Publish anyway all …", "Discard all …"]
    assert [plain(each.label) for each in app.button] == labels


def asked(deployment: Deployment, verb: Verb, **user: str) -> AppTest:
    """Return the dialog of a pressed button of the group, which AppTest does not support.

    `user` is who is logged in.
    """

    def script(opened: "Any", verb: "Any", one: "Any") -> None:
        from dashboard import group_actions
        from functions.operations.decisions.cause import waiting_with

        group_actions.tell_last()
        ledger = opened.adapters.ledger
        group_actions.ask(verb, opened, "all", lambda: waiting_with(ledger, one))

    opened = Opened(None, deployment.adapters, "the stage")  # type: ignore[arg-type]
    one = deployment.ledger.get(next(deployment.ledger.open_failures()).id)
    kwargs = {"opened": opened, "verb": verb, "one": one}
    app = AppTest.from_function(script, kwargs=kwargs, default_timeout=600)
    app.user = dict(user)
    return app.run()


@pytest.fixture
def of_a_team() -> Iterator[None]:
    """Give the page the options of a team's page."""
    name = "server.trustedUserHeaders"
    before = config.get_option(name)
    config.set_option(name, team_options("127.0.0.1", 1)[name])
    yield
    config.set_option(name, before)


@pytest.mark.usefixtures("of_a_team")
def test_on_a_teams_page_decides_who_is_logged_in() -> None:
    """The dialog asks for no name; without a person whom the proxy named there is no button."""
    made = Deployment()
    landed = [made.land(f"shop/orders/{n}.csv", script=rejected) for n in range(2)]
    made.settle()
    for nobody in ({}, {PERSON: ""}, {"email": "eve@example.org"}):
        app = asked(made, Verb.DISCARD, **nobody)
        assert "NOT_NAMED" in str(app.exception[0].value)
        assert not app.button
    app = asked(made, Verb.DISCARD, **{PERSON: "J%C3%B6rg%40example.org"})
    assert not app.text_input
    yes(app)
    by = [act.by for each in landed for act in made.ingestion(each).decisions.actions]
    assert by == ["Jörg@example.org"] * 2


def yes(app: AppTest) -> AppTest:
    """Press the button that confirms."""
    (button,) = (each for each in app.button if plain(each.label).startswith("Yes"))
    return button.click().run()


def test_one_confirmation_decides_for_all_that_wait_then() -> None:
    """It is by name and for each file, and asked again if other files wait than were listed."""
    made = Deployment()
    landed = [made.land(f"shop/orders/{n}.csv", script=rejected) for n in range(4)]
    made.settle()
    app = asked(made, Verb.DISCARD)
    assert "4 files: 0.csv, 1.csv, 2.csv and 1 more" in everything(app)
    landed.append(made.land("shop/orders/4.csv", script=rejected))
    made.settle()
    app.text_input[0].set_value("Ann")
    app = yes(app)
    assert "look again" in app.warning[0].value
    assert "5 files: 0.csv" in everything(app)
    app = yes(app)
    assert app.text[0].value == "Discarded 5 of 5 files"
    now = [made.ingestion(each) for each in landed]
    assert [[(a.what, a.by) for a in each.decisions.actions] for each in now] == [
        [("discard", "Ann")]
    ] * 5


def test_what_is_not_decided_for_is_named() -> None:
    """A publication needs a reason, and the answer says which files still wait, and why."""
    made = Deployment()
    landed = [made.land(f"shop/orders/{n}.csv", script=rejected) for n in range(2)]
    made.settle()
    made.others.drop_branch(made.ingestion(landed[1]).branch)
    app = yes(asked(made, Verb.PUBLISH))
    assert "Say who publishes them and why" in app.warning[0].value
    app.text_area[0].set_value("it is known")
    words = yes(app).text[0].value
    assert words.startswith("Approved 1 of 2 files; not these 1: 1.csv: its branch")
    assert made.ingestion(landed[0]).state is State.PUBLISHED


def test_ingestions_are_searched_and_filtered(deployment: Deployment) -> None:
    """Without an id the view lists the newest first; a search, a state and a table limit it."""
    app = seen(ingestion_page.show, deployment)
    assert [name for _, name in files(app)] == ["broken.csv", "old.csv", "good.csv"]
    last = app.dataframe[0].value.iloc[2]
    assert (list(last["state"]), last["rows"]) == (["published"], 3)
    app.selectbox[0].select("rejected").run()
    assert files(app) == [(TABLE, "old.csv")]
    app.selectbox[0].select("Any state").run()
    app.text_input[0].set_value("good").run()
    assert files(app) == [(TABLE, "good.csv")]
    app.text_input[0].set_value("nothing like it").run()
    assert not app.dataframe
    assert "None was found" in everything(app)


def test_an_old_ingestion_is_found_by_its_id(deployment: Deployment) -> None:
    """The beginning of an id leads to an ingestion that landed before the window."""
    known = next(deployment.ledger.open_failures()).id
    deployment.clock.pass_(90 * 86_400)
    app = seen(ingestion_page.show, deployment)
    app.text_input[0].set_value(known[:12]).run()
    assert links(app) == [f"The ingestion `{known[:12]}`, of any age"]


def test_lists_keep_themselves_up_to_date_only_while_something_is_in_flight(
    deployment: Deployment,
) -> None:
    """While a file is in flight both lists and its own view say that they are kept up to date."""
    words = "up to date"
    for show in (inbox_page.show, ingestion_page.show):
        assert words not in everything(seen(show, deployment))
    landed = deployment.land("shop/orders/new.csv")
    deployment.deliver()
    one = deployment.ingestion(landed)

    def views() -> list[str]:
        lists = [seen(show, deployment) for show in (inbox_page.show, ingestion_page.show)]
        return [*map(everything, [*lists, seen(ingestion_page.show, deployment, id=one.id)])]

    assert all(words in each for each in views())
    deployment.settle()
    assert not any(words in each for each in views())
