"""The page of a failed branch over fakes: its content and its buttons."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType
from streamlit.testing.v1 import AppTest

from access.deployment.choice import Choice
from access.tables.file_rows import FileRows
from access.tables.rows import Evidence
from dashboard.actions_plan import Verb
from dashboard.serve import session
from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion, State
from functions.operations.decisions.failed import replay
from functions.operations.recovery.rebuild_ledger import rebuild
from lakegate.audit.report import AuditReport, Reason, Verdict
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject
from lakegate.refusals import RightMissing
from tests.fakes.deployment import ORDERS, OTHER_TABLE, SETTINGS, TABLE, Deployment
from tests.fakes.faults import Fault, unavailable
from tests.fakes.iceberg import iceberg_table
from tests.fakes.job import FAILED, crashed, passed, rejected
from tests.unit.dashboard.test_page_views import plain

_SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "secret", StringType()))
_HOSTILE = "[x](http:y) $z$ :red[w] <img src=q>.parquet"


@dataclass(frozen=True)
class FakeReader:
    """A reader with one table, or without any if its reference is gone."""

    table: Table | None
    gone: bool = False

    def has(self, table: str) -> bool:
        """Return whether the reader has its table, for any name."""
        return self.table is not None and bool(table)

    @contextmanager
    def opened(self, table: str) -> Iterator[Table]:
        """See Reader.opened."""
        if self.gone or not self.table:
            raise LakegateError("UNKNOWN_REFERENCE", f"there is no branch of {table}")
        yield self.table

    @contextmanager
    def rows(self, table: str, *, whole: bool) -> Iterator[Evidence]:
        """See Reader.rows."""
        assert not whole
        with self.opened(table) as found, duckdb.connect() as connection:
            yield Evidence(connection, FileRows.added(found))


@dataclass(frozen=True)
class FakeOpened:
    """An opened session: a deployment over fakes, and tables on the local disk."""

    deployment: Deployment
    branch: FakeReader
    main: FakeReader
    name: str = "stage trial in eu-central-1"

    @property
    def adapters(self) -> Adapters:
        """Return the fake adapters."""
        return self.deployment.adapters

    def reader(self, reference: str) -> FakeReader:
        """Return main's reader, or the one of any branch."""
        return self.main if reference.startswith("main@") else self.branch


def table(folder: Path, ids: list[int | None], secrets: list[str]) -> Table:
    """Return a table with one data file."""
    schema = _SCHEMA.as_arrow()
    rows = pa.table([pa.array(ids, pa.int64()), pa.array(secrets, schema.types[1])], schema=schema)
    return iceberg_table(folder, _SCHEMA, rows)


@pytest.fixture
def opened(tmp_path: Path) -> FakeOpened:
    """Return a deployment with a good file on main, and tables for main and for the branch."""
    deployment = Deployment()
    deployment.land("shop/orders/first.parquet")
    deployment.settle()
    branch = table(tmp_path / "branch", [5, None, 5], ["Ann", "Bob", "Bob"])
    main = table(tmp_path / "main", [1, 2, 3], ["Cid", "Dan", "Dan"])
    return FakeOpened(deployment, FakeReader(branch), FakeReader(main))


def failed(
    opened: FakeOpened,
    script: Callable[[AuditReport], AuditReport | None] = rejected,
    name: str = "bad.parquet",
) -> LandedObject:
    landed = opened.deployment.land(f"shop/orders/{name}", script=script)
    opened.deployment.settle()
    return landed


def seen(opened: FakeOpened, landed: LandedObject) -> Ingestion:
    return opened.deployment.ingestion(landed)


def page(opened: FakeOpened, landed: LandedObject | None = None) -> AppTest:
    """Return the page after one run."""

    def script(opened: "Any") -> None:  # its text is run where nothing is imported
        import streamlit as st

        from dashboard.compare import comparison_page
        from dashboard.serve.errors import errors_shown

        st.cache_data.clear()
        with errors_shown():
            comparison_page.show(opened)

    app = AppTest.from_function(script, kwargs={"opened": opened}, default_timeout=600)
    if landed:
        app.query_params["id"] = seen(opened, landed).id
    return app.run()


def words(app: AppTest) -> str:
    """Return all texts of the page."""
    assert not app.exception, app.exception[0].message
    parts = (*app.title, *app.header, *app.subheader, *app.markdown, *app.text, *app.caption)
    return "\n".join([*(str(part.value) for part in parts), *html(app)])


def html(app: AppTest) -> list[str]:
    return [str(part.proto.body) for part in app.get("html")]


def press(app: AppTest, label: str) -> AppTest:
    """Press the only button with that label."""
    (button,) = [each for each in app.button if plain(each.label) == label]
    return button.click().run()


def test_it_belongs_to_its_ingestion(opened: FakeOpened) -> None:
    """The page shows the ingestion in its address and no other; without one it opens none."""
    first, second = failed(opened), failed(opened, name="worse.parquet")
    app = page(opened, second)
    for _ in range(2):
        assert seen(opened, second).branch in words(app)
        assert seen(opened, first).branch not in words(app)
        assert not [each for each in app.selectbox if each.label != "1 failed check"]
        app = app.run()
    nothing = page(opened)
    assert "belongs to an ingestion" in words(nothing)
    assert not nothing.button


def batch(opened: FakeOpened, name: str) -> LandedObject:
    """Land a failed batch of two files, whose names differ in an invisible character only."""
    files = {"a\u200e.parquet": "shop.orders", "a\u200f.parquet": "shop.orders"}
    landed = opened.deployment.batch(name, files, rejected)
    opened.deployment.settle()
    return landed


def test_the_files_of_a_batch_are_distinguished(opened: FakeOpened) -> None:
    """Files with similar names can each be selected, and another batch starts at its first file."""
    one, other = batch(opened, "one"), batch(opened, "other")
    app = page(opened, one)
    assert len(set(app.selectbox[-1].options)) == 2
    assert app.selectbox[-1].index == 0
    app = app.selectbox[-1].select_index(1).run()
    assert app.selectbox[-1].index == 1
    app.query_params["id"] = seen(opened, other).id
    assert app.run().selectbox[-1].index == 0


def test_a_press_is_for_what_was_shown(opened: FakeOpened) -> None:
    """A button pressed for one ingestion opens no dialog for another."""
    first, second = failed(opened), failed(opened, name="worse.parquet")
    app = page(opened, first)
    (button,) = [each for each in app.button if plain(each.label) == "Discard …"]
    app.query_params["id"] = seen(opened, second).id
    app = button.click().run()
    assert seen(opened, second).branch in words(app)
    assert not [each for each in app.button if plain(each.label) == "Yes, discard"]


def test_both_sides_stand_beside_each_other(opened: FakeOpened) -> None:
    """Rows, nulls and bounds of file and main are shown, without values of a hidden column."""
    said = words(page(opened, failed(opened)))
    assert "This file: 3 rows. Main: 3 rows." in said
    assert ">1</span> (33.3%)" in said
    assert ">3<" in said
    assert not any(name in said for name in ("Ann", "Bob", "Dan"))


def test_a_column_is_hidden_as_soon_as_the_contract_says_so(opened: FakeOpened) -> None:
    """Values of a column that became confidential are shown no more."""

    def script(opened: "Any") -> None:  # which keeps what was loaded, as the page does
        from dashboard.compare import comparison_page

        comparison_page.show(opened)

    landed = failed(opened)
    assert "smallest" in words(page(opened, landed))
    text = ORDERS.replace("required: true", "required: true, classification: confidential")
    opened.deployment.lake.put_text(f"contracts/{TABLE}.yaml", text.encode())
    app = AppTest.from_function(script, kwargs={"opened": opened}, default_timeout=600)
    app.query_params["id"] = seen(opened, landed).id
    assert "smallest" not in words(app.run())


def test_rows_that_break_a_check_are_looked_up_when_asked_for(opened: FakeOpened) -> None:
    """The page shows the report's sample rows first, and reads the branch on request."""
    landed = failed(opened)
    app = page(opened, landed)
    assert "id.required" in [option for each in app.selectbox for option in each.options]
    assert [*app.dataframe[0].value.columns] == ["✗ id"]  # the cells that break the check
    found = press(app, "Find all such rows on the branch")
    assert not found.exception
    assert not found.error


def test_a_table_that_is_new_is_shown_alone(opened: FakeOpened) -> None:
    """The file's figures are shown even if main does not have its table yet."""
    said = words(page(replace(opened, main=FakeReader(None)), failed(opened)))
    assert "Main has no such table yet." in said
    assert ">1</span> (33.3%)" in said


def test_a_branch_that_goes_while_it_is_read_is_reported(opened: FakeOpened) -> None:
    """If the branch disappears during a read, the report stays and a message says so."""
    gone = replace(opened, branch=FakeReader(None, gone=True))
    said = words(page(gone, failed(gone)))
    assert "here is no branch of shop.orders" in said
    assert "Rows that break a check" in said
    assert "just deleted it" in said


def test_where_the_branch_is_gone_no_part_of_the_page_has_it(opened: FakeOpened) -> None:
    """Without the branch the page offers no search for rows and shows no cached columns."""
    landed = failed(opened)
    app = page(opened, landed)
    assert "Column by column" in words(app)
    opened.deployment.catalog.delete_branch(seen(opened, landed).branch)
    said = words(app.run())
    assert "Its branch is gone: somebody deleted it" in said
    assert "A replay makes it anew." in said
    assert "Column by column" not in said
    assert "This file:" not in said
    assert "Rows that break a check" in said
    assert "Find all such rows on the branch" not in [each.label for each in app.button]
    app = press(app, "Publish anyway …")
    assert "(BRANCH_GONE)" in words(app)
    assert not [each for each in app.button if each.label == "Yes, publish anyway"]


def test_why_a_branch_is_gone_is_reported(opened: FakeOpened) -> None:
    """The page says why a branch is gone: it was published, or discarded and can be replayed.

    The message about a discard stays when the ledger records other steps afterwards.
    """
    landed = failed(opened)
    app = press(dialog(opened, landed, Verb.DISCARD), "Yes, discard")
    opened.deployment.settle()
    assert "Discarded bad.parquet" in words(app.run())
    assert "Its branch is gone: it was discarded. A replay" in words(page(opened, landed))
    good = opened.deployment.land("shop/orders/good.parquet")
    opened.deployment.settle()
    said = words(page(opened, good))
    assert "Its branch is gone: its rows are on main." in said
    assert "A replay" not in said


@pytest.mark.parametrize("broken", [None, b"{"])
def test_without_a_report_there_are_still_buttons(opened: FakeOpened, broken: bytes | None) -> None:
    """A missing or overwritten report is reported, and the buttons still work."""
    landed = failed(opened)
    key = seen(opened, landed).report_key
    if broken:
        opened.deployment.lake.put_text(key, broken)
    else:
        opened.deployment.lake.lose(key)
    app = page(opened, landed)
    assert f"udit report {key} is n" in words(app)
    assert "A replay makes a new one." in words(app)
    assert len([each for each in app.button if plain(each.label).endswith("…")]) == len(Verb)


def _unwritten(report: AuditReport) -> AuditReport:
    return replace(rejected(report), audited_hash="", rows_written=0)


@pytest.mark.parametrize(
    ("script", "expected"),
    [(crashed, "Its job left no audit report"), (_unwritten, "before any row was written")],
)
def test_without_rows_the_reason_is_reported(
    opened: FakeOpened, script: Callable[[AuditReport], AuditReport | None], expected: str
) -> None:
    """An ingestion without rows shows the reason, and no button to publish."""
    app = page(opened, failed(opened, script))
    assert expected in words(app)
    (publish,) = [each for each in app.button if each.label == "Publish anyway …"]
    assert publish.disabled


def test_a_hostile_name_is_shown_as_it_is(opened: FakeOpened) -> None:
    """A hostile file name is shown only as code or plain text."""
    app = page(opened, failed(opened, name=_HOSTILE))
    words(app)
    for part in (*app.markdown, *app.caption, *app.header):
        assert "[x](http" not in str(part.value).replace(f"`{_HOSTILE}`", "")
    assert not any("<img" in each for each in html(app))


def test_where_the_contract_is_not_known_no_value_is_shown(opened: FakeOpened) -> None:
    """After a rebuild from the report alone no value is shown, and the page says why."""
    landed = failed(opened)
    before = seen(opened, landed)
    opened.deployment.ledger.lose(before.id)
    opened.deployment.jobs.lose(before.job_run)
    list(rebuild(opened.adapters))
    opened.deployment.settle()
    app = page(opened, landed)
    said = words(app)
    assert "By which contract it was judged is not known" in said
    assert ">1</span> (33.3%)" in said
    assert "smallest" not in said
    assert "UNKNOWN_CONTRACT" in words(press(app, "Find all such rows on the branch"))


def test_a_batch_leads_to_its_tables(opened: FakeOpened) -> None:
    """A batch links to each of its tables, and to nothing else."""
    manifest = opened.deployment.batch("b", {"r.csv": OTHER_TABLE, "s.csv": TABLE}, rejected)
    opened.deployment.settle()
    app = page(opened, manifest)
    labels = [link.proto.label for link in app.get("page_link")]
    assert labels[1:] == [f"`{OTHER_TABLE}`", f"`{TABLE}`"]
    assert "`batch b` beside main" in [each.value for each in app.title]


def test_no_text_of_others_acts(opened: FakeOpened) -> None:
    """Direction marks and escapes in checks and rows are shown as visible characters."""
    odd = "a\u202eb\x1b[31m"
    check = replace(FAILED, expected=odd, found=odd, message=odd, samples=({odd: odd},))
    reason = Reason("CHECKS_FAILED", odd)
    script = partial(replace, verdict=Verdict.REJECTED, reason=reason, checks=(check,))
    app = page(opened, failed(opened, script))
    rows = "".join(f"{[*each.value.columns]}{each.value.to_numpy()}" for each in app.dataframe)
    assert not {"\u202e", "\x1b"} & {*words(app), *rows}
    assert words(app).lower().count("a\ufffdb") == 4


@pytest.mark.parametrize("verb", Verb)
def test_each_button_asks_first(opened: FakeOpened, verb: Verb) -> None:
    """Each button only opens a dialog with the action, its object and its deployment."""
    landed = failed(opened)
    before = seen(opened, landed)
    app = press(page(opened, landed), f"{verb} …")
    assert f"`bad.parquet`, ingestion `{before.id[:12]}` of `{opened.name}`" in words(app)
    assert [each for each in app.button if plain(each.label) == f"Yes, {verb.lower()}"]
    assert seen(opened, landed) == before


def dialog(opened: FakeOpened, landed: LandedObject, verb: Verb) -> AppTest:
    """Return an app with the dialog of a pressed button, which AppTest does not support."""

    def script(opened: "Any", verb: "Any", seen: "Any") -> None:
        from dashboard import actions

        actions.show(opened, opened.adapters.ledger.get(seen.id))
        actions.ask(verb, opened, seen)

    kwargs = {"opened": opened, "verb": verb, "seen": seen(opened, landed)}
    return AppTest.from_function(script, kwargs=kwargs, default_timeout=600).run()


def test_a_publication_asks_for_a_reason_and_is_made_once(opened: FakeOpened) -> None:
    """A publication requires a reason, and a second press reports that it was made."""
    landed = failed(opened)
    app = dialog(opened, landed, Verb.PUBLISH)
    assert "1 check failed, and this overrules them" in words(app)
    app = press(app, "Yes, publish anyway")
    assert "Say who publishes it and why" in app.warning[0].value
    assert seen(opened, landed).state is State.REJECTED
    app.text_input[0].set_value(" Ann ")
    app.text_area[0].set_value("it is known")
    app = press(app, "Yes, publish anyway")
    now = seen(opened, landed)
    assert now.decisions.approval
    assert (now.state, now.decisions.approval.by) == (State.PUBLISHED, "Ann")
    assert f"as {now.merge_hash}" in words(app)
    again = press(app, "Yes, publish anyway")
    assert f"as {now.merge_hash}" in words(again)
    assert "It was not done" not in words(again)
    assert seen(opened, landed) == now


def test_the_slower_one_is_reported(opened: FakeOpened) -> None:
    """If another person's replay comes first, the page reports the new state."""
    landed = failed(opened)
    app = dialog(opened, landed, Verb.DISCARD)
    replay(opened.adapters, seen(opened, landed))
    said = words(press(app, "Yes, discard"))
    assert "It was not done" in said
    assert "nother process was faster" in said
    assert not seen(opened, landed).decisions.discarded


def test_what_failed_in_passing_can_be_pressed_again(opened: FakeOpened) -> None:
    """After a transient error nothing was done, and the next press succeeds."""
    landed = failed(opened)
    opened.deployment.script(landed, passed)
    app = dialog(opened, landed, Verb.REPLAY)
    opened.deployment.journal.strike("ledger.save", Fault(unavailable))
    said = words(press(app, "Yes, replay"))
    assert "It was not done" in said
    assert "Press again" in said
    assert seen(opened, landed).attempt == 1
    said = words(press(app, "Yes, replay"))
    assert "Started attempt 2 of bad.parquet" in said
    assert "It was not done" not in said
    assert seen(opened, landed).attempt == 2
    opened.deployment.settle()
    assert seen(opened, landed).state is State.PUBLISHED


def test_a_missing_right_must_be_granted_first(opened: FakeOpened) -> None:
    """Where a right is missing nothing gets better in a moment, by a press or a reload."""

    def refused() -> None:
        raise RightMissing("the role page lacks the right dynamodb:PutItem on the ledger")

    landed = failed(opened)
    app = dialog(opened, landed, Verb.REPLAY)
    opened.deployment.journal.strike("ledger.save", Fault(refused))
    said = words(press(app, "Yes, replay"))
    assert "The role page lacks the right dynamodb:PutItem" in said
    assert "Grant it" in said
    assert "Then press again." in said
    opened.deployment.journal.strike("catalog.metadata", Fault(refused))
    said = words(page(opened, landed))
    assert "Then reload this page." in said
    assert "in a moment" not in said


def test_what_is_past_is_reported_no_more(opened: FakeOpened) -> None:
    """The message about a replay disappears once the replay has a final state."""
    landed = failed(opened)
    app = press(dialog(opened, landed, Verb.REPLAY), "Yes, replay")
    assert "Started attempt" in words(app.run())
    opened.deployment.settle()
    assert seen(opened, landed).state is State.REJECTED
    assert "Started attempt" not in words(app.run())
    assert "Started attempt" not in words(app.run())


def test_a_batch_can_go_by_the_contracts_of_its_last_attempt(opened: FakeOpened) -> None:
    """A batch can be replayed with the contracts of its last attempt."""
    landed = batch(opened, "one")
    app = dialog(opened, landed, Verb.REPLAY)
    app = app.radio[0].set_value(True).run()
    assert "It goes by the contract of the last attempt" in words(app)
    press(app, "Yes, replay")
    assert seen(opened, landed).contract_pinned


def test_what_failed_in_passing_is_opened_again(
    opened: FakeOpened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a transient error on the page the deployment is opened again, with a new stack."""
    for name, value in asdict(SETTINGS).items():
        monkeypatch.setenv(f"LAKEGATE_{name.upper()}", str(value))
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    here = Choice.of(None)
    before = session.opened(here)
    assert session.opened(here) is before
    opened.deployment.journal.strike("catalog.metadata", Fault(unavailable))
    assert "the system did not answer" in words(page(opened, failed(opened)))
    assert session.opened(here) is not before
    session.opened.clear()
