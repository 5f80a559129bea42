"""The branch page over fakes: what is shown of a failed branch, and what its buttons do."""

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

from access.deployment import Choice
from access.rows import Evidence, FileRows
from dashboard import session
from dashboard.actions_plan import Verb
from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion, State
from functions.operations.failed import discard, replay
from functions.operations.rebuild_ledger import rebuild
from lakegate.errors import LakegateError
from lakegate.landing import LandedObject
from lakegate.report import AuditReport, Reason, Verdict
from tests.fakes.deployment import OTHER_TABLE, SETTINGS, TABLE, Deployment
from tests.fakes.faults import Fault, unavailable
from tests.fakes.job import FAILED, crashed, passed, rejected

_SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "secret", StringType()))
_HOSTILE = "[x](http:y) $z$ :red[w] <img src=q>.parquet"


@dataclass(frozen=True)
class FakeReader:
    """Reads one table, or at a reference that is gone, none."""

    table: Table | None
    gone: bool = False

    def has(self, table: str) -> bool:
        """Whether there is a table; all of them are the same one."""
        return self.table is not None and bool(table)

    @contextmanager
    def opened(self, table: str) -> Iterator[Table]:
        """See Reader.opened."""
        if self.gone or not self.table:
            raise LakegateError("UNKNOWN_REFERENCE", f"there is no branch of {table}")
        yield self.table

    @contextmanager
    def added(self, table: str) -> Iterator[Evidence]:
        """See Reader.added."""
        with self.opened(table) as found, duckdb.connect() as connection:
            yield Evidence(connection, FileRows.added(found))


@dataclass(frozen=True)
class FakeOpened:
    """What dashboard.session opens: a deployment over fakes, and tables on this machine's disk."""

    deployment: Deployment
    branch: FakeReader
    main: FakeReader
    name: str = "stage trial in eu-central-1"

    @property
    def adapters(self) -> Adapters:
        """The fakes' world."""
        return self.deployment.adapters

    def reader(self, reference: str) -> FakeReader:
        """Main's, or that of any branch."""
        return self.main if reference.startswith("main@") else self.branch


def table(folder: Path, ids: list[int | None], secrets: list[str]) -> Table:
    """A table with one data file."""
    from tests.fakes.iceberg import iceberg_table

    schema = _SCHEMA.as_arrow()
    rows = pa.table([pa.array(ids, pa.int64()), pa.array(secrets, schema.types[1])], schema=schema)
    return iceberg_table(folder, _SCHEMA, rows)


@pytest.fixture
def opened(tmp_path: Path) -> FakeOpened:
    """A deployment with a good file on main, and tables for main and for the branch."""
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
    """The page, run once."""

    def script(opened: "Any") -> None:  # its text is run where nothing is imported
        import streamlit as st

        from dashboard.compare import comparison_page
        from dashboard.session import errors_shown

        st.cache_data.clear()
        with errors_shown():
            comparison_page.show(opened)

    app = AppTest.from_function(script, kwargs={"opened": opened}, default_timeout=600)
    if landed:
        app.query_params["id"] = seen(opened, landed).id
    return app.run()


def words(app: AppTest) -> str:
    """All texts of the page."""
    assert not app.exception, app.exception[0].message
    parts = (*app.header, *app.subheader, *app.markdown, *app.text, *app.caption)
    return "\n".join([*(str(part.value) for part in parts), *html(app)])


def html(app: AppTest) -> list[str]:
    return [str(part.proto.body) for part in app.get("html")]


def press(app: AppTest, label: str) -> AppTest:
    """Press the one button of that label."""
    (button,) = [each for each in app.button if each.label == label]
    return button.click().run()


def test_where_nothing_waits_the_page_says_so(opened: FakeOpened) -> None:
    """An empty list is good news, and says what would be listed."""
    assert "Nothing waits for a decision" in words(page(opened))


def test_a_failed_branch_is_picked_or_come_by(opened: FakeOpened) -> None:
    """The oldest is shown without being asked for; the alert's link shows its own."""
    first, second = failed(opened), failed(opened, name="worse.parquet")
    assert seen(opened, first).branch in words(page(opened))
    linked = page(opened, second)
    assert seen(opened, second).branch in words(linked)
    (picker, *_) = linked.selectbox
    picked = picker.select_index(0).run()
    assert seen(opened, first).branch in words(picked)
    assert picked.query_params["id"] == seen(opened, first).id


def test_twins_are_told_apart(opened: FakeOpened) -> None:
    """Of two failures of one name, table and minute, the one that the address names is acted on."""
    first, second = seen(opened, failed(opened)), seen(opened, failed(opened))
    app = page(opened, first.landed)
    (picker, *_) = app.selectbox
    assert len(set(picker.options)) == 2
    assert picker.index == 0
    for _ in range(2):
        app = app.run()
        assert app.query_params["id"] == first.id
        assert first.branch in words(app)
    app = press(app, "Publish anyway …")
    assert f"`{first.id[:12]}`" in words(app)
    assert second.id[:12] not in words(app)


def test_a_pick_outlives_the_minute(opened: FakeOpened) -> None:
    """What was picked is still shown when the clock has gone on, and is called the same."""
    failed(opened)
    second = seen(opened, failed(opened, name="worse.parquet"))
    app = page(opened)
    before = app.selectbox[0].options
    app = app.selectbox[0].select_index(1).run()
    opened.deployment.clock.pass_(3600)
    app = app.run()
    assert app.selectbox[0].options == before
    assert app.selectbox[0].index == 1
    assert second.branch in words(app)


def batch(opened: FakeOpened, name: str) -> LandedObject:
    """A failed batch of two files, whose names look alike: each has another unseen mark."""
    files = {"a\u200e.parquet": "shop.orders", "a\u200f.parquet": "shop.orders"}
    landed = opened.deployment.batch(name, files, rejected)
    opened.deployment.settle()
    return landed


def test_the_files_of_a_batch_are_told_apart(opened: FakeOpened) -> None:
    """Files that look alike can each be picked, and another batch begins at its first."""
    one, other = batch(opened, "one"), batch(opened, "other")
    app = page(opened, one)
    assert len(set(app.selectbox[-1].options)) == 2
    assert app.selectbox[-1].index == 0
    app = app.selectbox[-1].select_index(1).run()
    assert app.selectbox[-1].index == 1
    app.query_params["id"] = seen(opened, other).id
    assert app.run().selectbox[-1].index == 0


def test_a_press_is_for_what_was_shown(opened: FakeOpened) -> None:
    """A button that was pressed for one ingestion asks nothing of another."""
    first, second = failed(opened), failed(opened, name="worse.parquet")
    app = page(opened, first)
    (button,) = [each for each in app.button if each.label == "Discard …"]
    app.query_params["id"] = seen(opened, second).id
    app = button.click().run()
    assert seen(opened, second).branch in words(app)
    assert not [each for each in app.button if each.label == "Yes, discard"]


def test_both_sides_stand_beside_each_other(opened: FakeOpened) -> None:
    """Rows, nulls and ends of the file and of main; the values of a hidden column are nowhere."""
    said = words(page(opened, failed(opened)))
    assert "This file: 3 rows. Main: 3 rows." in said
    assert ">1</span> (33.3%)" in said
    assert ">3<" in said
    assert not any(name in said for name in ("Ann", "Bob", "Dan"))


def test_rows_that_break_a_check_are_looked_up_when_asked_for(opened: FakeOpened) -> None:
    """First what the audit noted; then the branch is read."""
    landed = failed(opened)
    app = page(opened, landed)
    assert "id.required" in [option for each in app.selectbox for option in each.options]
    press(app, "Find all such rows on the branch")
    assert not app.exception


def test_a_table_that_is_new_is_shown_alone(opened: FakeOpened) -> None:
    """Main has no such table, and the file's figures are there all the same."""
    said = words(page(replace(opened, main=FakeReader(None)), failed(opened)))
    assert "Main has no such table yet." in said
    assert ">1</span> (33.3%)" in said


def test_a_branch_that_goes_while_it_is_read_is_told(opened: FakeOpened) -> None:
    """What the report says stays, and the rest is a sentence."""
    gone = replace(opened, branch=FakeReader(None, gone=True))
    said = words(page(gone, failed(gone)))
    assert "here is no branch of shop.orders" in said
    assert "Rows that break a check" in said
    assert "just deleted it" in said


def test_where_the_branch_is_gone_no_part_of_the_page_has_it(opened: FakeOpened) -> None:
    """Neither rows are offered to be found nor columns shown that were read before."""
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


def test_why_a_branch_is_gone_is_told(opened: FakeOpened) -> None:
    """One that was published is on main; one that was discarded can be made anew."""
    landed = failed(opened)
    discard(opened.adapters, seen(opened, landed))
    assert "Its branch is gone: it was discarded. A replay" in words(page(opened, landed))
    good = opened.deployment.land("shop/orders/good.parquet")
    opened.deployment.settle()
    said = words(page(opened, good))
    assert "Its branch is gone: its rows are on main." in said
    assert "A replay" not in said


@pytest.mark.parametrize("broken", [None, b"{"])
def test_without_a_report_there_are_still_buttons(opened: FakeOpened, broken: bytes | None) -> None:
    """A report that was deleted or overwritten is told, and the ingestion can be acted on."""
    landed = failed(opened)
    key = seen(opened, landed).report_key
    if broken:
        opened.deployment.lake.put_text(key, broken)
    else:
        opened.deployment.lake.lose(key)
    app = page(opened, landed)
    assert f"udit report {key} is n" in words(app)
    assert "A replay makes a new one." in words(app)
    assert len([each for each in app.button if each.label.endswith("…")]) == len(Verb)


def _unwritten(report: AuditReport) -> AuditReport:
    return replace(rejected(report), audited_hash="", rows_written=0)


@pytest.mark.parametrize(
    ("script", "expected"),
    [(crashed, "Its job left no audit report"), (_unwritten, "before any row was written")],
)
def test_without_rows_the_reason_is_told(
    opened: FakeOpened, script: Callable[[AuditReport], AuditReport | None], expected: str
) -> None:
    """What never had rows says why, and offers no publication."""
    app = page(opened, failed(opened, script))
    assert expected in words(app)
    (publish,) = [each for each in app.button if each.label == "Publish anyway …"]
    assert publish.disabled


def test_a_hostile_name_is_shown_as_it_is(opened: FakeOpened) -> None:
    """In no Markdown and no HTML of the page a file's name is anything but code or text."""
    app = page(opened, failed(opened, name=_HOSTILE))
    words(app)
    for part in (*app.markdown, *app.caption, *app.header):
        assert "[x](http" not in str(part.value).replace(f"`{_HOSTILE}`", "")
    assert not any("<img" in each for each in html(app))


def test_where_the_contract_is_not_known_no_value_is_shown(opened: FakeOpened) -> None:
    """After a rebuild from the report alone values are counted, and why is said."""
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
    """There is a link to each of its tables, and none to what is no table."""
    manifest = opened.deployment.batch("b", {"r.csv": OTHER_TABLE, "s.csv": TABLE}, rejected)
    opened.deployment.settle()
    app = page(opened, manifest)
    labels = [link.proto.label for link in app.get("page_link")]
    assert labels[1:] == [f"`{OTHER_TABLE}`", f"`{TABLE}`"]
    assert f"batch b · {OTHER_TABLE}, {TABLE} · rejected" in app.selectbox[0].options[0]


def test_no_text_of_others_acts(opened: FakeOpened) -> None:
    """What turns text round, or escapes from it, is a mark in the checks' texts and rows."""
    odd = "a\u202eb\x1b[31m"
    check = replace(FAILED, expected=odd, found=odd, message=odd, samples=({odd: odd},))
    reason = Reason("CHECKS_FAILED", odd)
    script = partial(replace, verdict=Verdict.REJECTED, reason=reason, checks=(check,))
    app = page(opened, failed(opened, script))
    rows = "".join(f"{[*each.value.columns]}{each.value.to_numpy()}" for each in app.dataframe)
    assert not {"\u202e", "\x1b"} & {*words(app), *rows}
    assert words(app).count("a\ufffdb") == 4


@pytest.mark.parametrize("verb", Verb)
def test_each_button_asks_first(opened: FakeOpened, verb: Verb) -> None:
    """Pressing a button does nothing but say what would happen, to what and where."""
    landed = failed(opened)
    before = seen(opened, landed)
    app = press(page(opened, landed), f"{verb} …")
    assert f"`bad.parquet`, ingestion `{before.id[:12]}` of `{opened.name}`" in words(app)
    assert [each for each in app.button if each.label == f"Yes, {verb.lower()}"]
    assert seen(opened, landed) == before


def dialog(opened: FakeOpened, landed: LandedObject, verb: Verb) -> AppTest:
    """The dialog of a button that was pressed, as it stands: an app's test has no such thing."""

    def script(opened: "Any", verb: "Any", seen: "Any") -> None:
        from dashboard import actions

        actions.show(opened, opened.adapters.ledger.get(seen.id))
        actions.ask(verb, opened, seen)

    kwargs = {"opened": opened, "verb": verb, "seen": seen(opened, landed)}
    return AppTest.from_function(script, kwargs=kwargs, default_timeout=600).run()


def test_a_publication_asks_for_a_reason_and_is_made_once(opened: FakeOpened) -> None:
    """Without a reason nothing is done; with one it is, and a second press finds that it was."""
    landed = failed(opened)
    app = dialog(opened, landed, Verb.PUBLISH)
    assert "1 check failed, and this overrules them" in words(app)
    app = press(app, "Yes, publish anyway")
    assert "Say who publishes it and why" in app.warning[0].value
    assert seen(opened, landed).state is State.REJECTED
    app.text_input[0].set_value("Ann")
    app.text_area[0].set_value("it is known")
    app = press(app, "Yes, publish anyway")
    now = seen(opened, landed)
    assert now.approval
    assert (now.state, now.approval.by) == (State.PUBLISHED, "Ann")
    assert f"as {now.merge_hash}" in words(app)
    again = press(app, "Yes, publish anyway")
    assert f"as {now.merge_hash}" in words(again)
    assert "It was not done" not in words(again)
    assert seen(opened, landed) == now


def test_who_was_slower_is_told(opened: FakeOpened) -> None:
    """A replay that somebody began meanwhile wins, and the page says what became of the file."""
    landed = failed(opened)
    app = dialog(opened, landed, Verb.DISCARD)
    replay(opened.adapters, seen(opened, landed))
    said = words(press(app, "Yes, discard"))
    assert "It was not done" in said
    assert "nother process was faster" in said
    assert not seen(opened, landed).discarded


def test_a_replay_is_on_its_way(opened: FakeOpened) -> None:
    """Its attempt is told, and it comes to its end."""
    landed = failed(opened)
    opened.deployment.script(landed, passed)
    app = press(dialog(opened, landed, Verb.REPLAY), "Yes, replay")
    assert "Started attempt 2 of bad.parquet" in words(app)
    opened.deployment.settle()
    assert seen(opened, landed).state is State.PUBLISHED


def test_what_failed_in_passing_can_be_pressed_again(opened: FakeOpened) -> None:
    """Where the ledger did not answer nothing was done; the next press does it, and says so."""
    landed = failed(opened)
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


def test_what_is_past_is_told_no_more(opened: FakeOpened) -> None:
    """A replay is on its way until it has come to its end, and then it is gone for good."""
    landed = failed(opened)
    app = press(dialog(opened, landed, Verb.REPLAY), "Yes, replay")
    assert "Started attempt" in words(app.run())
    opened.deployment.settle()
    assert seen(opened, landed).state is State.REJECTED
    assert "Started attempt" not in words(app.run())
    assert "Started attempt" not in words(app.run())


def test_what_was_done_is_told_while_it_stands(opened: FakeOpened) -> None:
    """What the ledger notes aside of it does not matter."""
    landed = failed(opened)
    app = press(dialog(opened, landed, Verb.DISCARD), "Yes, discard")
    opened.deployment.settle()
    assert "Discarded bad.parquet" in words(app.run())


def test_a_batch_can_go_by_the_contracts_of_its_last_attempt(opened: FakeOpened) -> None:
    """Its parts keep which they were, and what is picked is what the replay goes by."""
    landed = batch(opened, "one")
    app = dialog(opened, landed, Verb.REPLAY)
    app = app.radio[0].set_value(True).run()
    assert "It goes by the contract of the last attempt" in words(app)
    press(app, "Yes, replay")
    assert seen(opened, landed).contract_pinned


def test_what_failed_in_passing_is_opened_anew(
    opened: FakeOpened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever on the page an error is told that may be of a stack that is gone."""
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
