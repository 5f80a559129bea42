"""The quality page's views over fakes, as Streamlit sends them to a browser."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.serve.session import Opened
from dashboard.views import inbox as inbox_page
from dashboard.views import ingestion as ingestion_page
from dashboard.views import overview as overview_page
from functions.model.decisions import Mends
from functions.model.ingestion import State
from functions.model.notes.freshness import Freshness
from functions.operations.decisions.failed import publish_anyway, replay
from functions.pipeline.start.intake import retract
from lakegate.audit.report import AuditReport, Reason
from lakegate.errors import LakegateError, Transient
from lakegate.job.change import retraction
from lakegate.times import moment
from tests.fakes.deployment import OTHER_TABLE, TABLE, Deployment
from tests.fakes.examples import WRONG, WRONG_FILE
from tests.fakes.faults import Fault, unavailable
from tests.fakes.job import FAILED, REPEATED, crashed, errored, passed, rejected
from tests.unit.pipeline.test_shared_runs import SHARED

_HOSTILE = "shop/orders/[x](evil.example) :red[a] $x$ <b>`.csv"
_TOOK = "Duration"
_CODE = re.compile(r"(`+).*?\1")
_MARKUP = ("title", "header", "subheader", "markdown", "caption", "error", "info", "warning")


def seen(
    show: Callable[[Any], None], deployment: Deployment, tables: Any = None, **address: str
) -> AppTest:
    """Return a view of the deployment at an address; `tables` opens readers of its tables."""

    def script(show: "Callable[[Any], None]", opened: "Opened") -> None:  # runs without our names
        from dashboard.serve.errors import errors_shown

        with errors_shown():
            show(opened)

    opened = Opened(tables, deployment.adapters, "stage trial in eu-central-1")
    app = AppTest.from_function(script, default_timeout=600, args=(show, opened))
    for name, value in address.items():
        app.query_params[name] = value
    return app.run()


def values(app: AppTest, kinds: Sequence[str]) -> list[str]:
    """Return the texts of a view's elements of these kinds."""
    found: list[Any] = [each for kind in kinds for each in app.get(kind)]
    return [str(each.value) for each in found]


def everything(app: AppTest) -> str:
    """Return all text of a view."""
    labels = [each.label for each in app.expander]
    return "\n".join([*labels, *values(app, (*_MARKUP, "text", "code"))])


def plain(label: str) -> str:
    """Return a button's label without its colour."""
    return label.removeprefix(":red[").removesuffix("]")


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment with two published files, one rejected and one unreadable."""
    made = Deployment()
    for key in ("shop/orders/a.csv", "shop/orders/b.csv"):
        made.land(key, script=passed)
    made.land(_HOSTILE, script=rejected)
    made.land("shop/orders/broken.csv", script=errored)
    made.settle()
    return made


def test_the_overview_counts(deployment: Deployment) -> None:
    """The overview has landed, published, rejected and errored files in numbers and a chart."""
    app = seen(overview_page.show, deployment)
    numbers = {metric.label: metric.value for metric in app.metric}
    assert {"landed": "4", "published": "2", "rejected": "1", "errored": "1"}.items() <= (
        numbers.items()
    )
    assert len(app.get("vega_lite_chart") or app.get("arrow_vega_lite_chart")) == 3


def test_an_empty_overview_says_what_to_do() -> None:
    """An empty overview names the command that drops a file."""
    app = seen(overview_page.show, Deployment())
    assert "lakegate drop" in everything(app)
    assert not app.metric


def test_a_table_is_asked_for_in_all_parts(deployment: Deployment) -> None:
    """The selected table limits the overview's numbers."""
    deployment.batch("b", {"r.csv": OTHER_TABLE, "s.csv": OTHER_TABLE}, script=rejected)
    deployment.settle()
    app = seen(overview_page.show, deployment)
    assert app.selectbox[0].options == ["All tables", TABLE, OTHER_TABLE]
    app.selectbox[0].select(OTHER_TABLE).run()
    assert {each.label: each.value for each in app.metric}["landed"] == "1"


def test_rows_are_not_called_removed_whose_removal_was_rejected(deployment: Deployment) -> None:
    """While a retraction is no more than asked for, or rejected, the page says so."""
    file = next(each for each in deployment.ledger.all() if each.state is State.PUBLISHED)
    asked = retraction(TABLE, file.id).landed("lake")
    deployment.script(asked, rejected)
    retract(deployment.adapters, file, "Ann", "wrong day")
    deployment.settle()
    shown = everything(seen(ingestion_page.show, deployment, id=file.id))
    assert "asked to have its rows removed" in shown
    assert "by Ann: wrong day (it is rejected)" in shown
    assert "were removed" not in shown


def test_a_rejected_file_is_explained(deployment: Deployment) -> None:
    """A rejected file is shown with its reason, and with each failed check's values."""
    failed = next(deployment.ledger.open_failures())
    app = seen(ingestion_page.show, deployment, id=failed.id)
    shown = everything(app)
    assert failed.reason_code in shown
    assert f"`{FAILED.id}`: `1 row`" in shown
    assert "Main is unchanged: 1 of 2 checks failed: id.required. Drop a corrected file" in shown
    assert "checks passed" in [metric.label for metric in app.metric]
    cells = app.dataframe[0].value  # that break the check
    assert cells.to_dict("list") == {"✗ id": ["(empty)"] * len(cells)}
    buttons = [each.label for each in app.button]
    assert buttons == ["Replay …", "Publish anyway …", ":red[Discard …]"]  # red is what destroys


def test_the_top_of_an_ingestion_tells_where_it_is_from(deployment: Deployment) -> None:
    """When it landed, its size, its owner and the contract's version are above the verdict."""
    failed = deployment.ledger.get(next(deployment.ledger.open_failures()).id)
    shown = _read(deployment, failed.id)
    landed = moment(failed.landed.landed_at)
    assert f"landed {landed} · {failed.landed.size} bytes · owner #orders · contract " in shown
    assert "shop-orders 1.0.0" in shown


def test_a_mended_file_leads_to_what_it_mends(deployment: Deployment) -> None:
    """Its top has the corrected rows' file and who gave them, and a link to the rejected one."""
    rejected, other = (deployment.ledger.get(b.id) for b in deployment.ledger.open_failures())
    deployment.ledger.save(replace(other, mends=Mends(rejected.id, "broken.csv", "Ann")))
    app = seen(ingestion_page.show, deployment, id=other.id)
    assert "mended with broken.csv by Ann" in everything(app)
    labels = [link.proto.label for link in app.get("page_link")]
    assert f"It mends the rejected ingestion `{rejected.id[:12]}`" in labels


def test_a_file_published_anyway_says_who_overruled_the_audit(deployment: Deployment) -> None:
    """The view of a file that was published anyway has who did it and why, above its checks."""
    failed = next(deployment.ledger.open_failures())
    assert "although its audit failed" not in _read(deployment, failed.id)
    publish_anyway(deployment.adapters, deployment.ledger.get(failed.id), "Ann", "test rows")
    deployment.settle()
    shown = _read(deployment, failed.id)
    assert "**Published although its audit failed**" in shown
    assert "Published anyway by Ann although id.required failed, " in shown
    assert ": test rows" in shown


def _read(deployment: Deployment, ingestion: str) -> str:
    return everything(seen(ingestion_page.show, deployment, id=ingestion))


def test_a_wrong_file_is_one_sentence() -> None:
    """Of a file with wrong columns the page shows the reason, and no check for each column."""
    made = Deployment()
    landed = made.land("shop/orders/wrong.csv", script=_wrong)
    made.settle()
    app = seen(ingestion_page.show, made, id=made.ingestion(landed).id)
    assert WRONG.sentence.lower() in everything(app).lower()
    assert "file.columns" not in everything(app)
    assert app.dataframe[0].value.to_dict("records") == [
        {"expected": "carrier", "✗ found": "", "perhaps": ""},
        {"expected": "flight", "✗ found": "", "perhaps": "flght (91% alike)"},
    ]


def test_rows_that_the_audit_did_not_note_can_be_found(deployment: Deployment) -> None:
    """For repeated keys, which have no sample rows, the page links to the page that finds them."""
    landed = deployment.land("shop/orders/twice.csv", script=_repeated)
    deployment.settle()
    one = deployment.ingestion(landed)
    app = seen(ingestion_page.show, deployment, id=one.id)
    assert f"`lakegate inspect {one.id} --check {REPEATED.id}`" in everything(app)
    assert "Find all such rows" in [link.proto.label for link in app.get("page_link")]


def _wrong(report: AuditReport) -> AuditReport:
    wrong = WRONG_FILE
    refused = replace(rejected(report), audited_hash="", rows_written=0, files=())
    return replace(refused, reason=wrong.reason, checks=wrong.checks, wrong_columns=WRONG)


def _repeated(report: AuditReport) -> AuditReport:
    return replace(rejected(report), checks=(REPEATED,))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (rejected, "Its audit report {} is no longer in the lake bucket (MISSING_OBJECT). A"),
        (passed, "Its audit report {} is no longer in the lake bucket (MISSING_OBJECT)."),
        (crashed, "Its job left no audit report, or its audit report {} is no longer"),
    ],
)
def test_a_report_that_is_gone_is_reported(
    deployment: Deployment, script: Callable[[AuditReport], AuditReport | None], words: str
) -> None:
    """For a lost report the page says so, and suggests a replay only for a failure."""
    landed = deployment.land("shop/orders/gone.csv", script=script)
    deployment.settle()
    deployment.lake.lose("reports/")
    one = deployment.ingestion(landed)
    shown = everything(seen(ingestion_page.show, deployment, id=one.id))
    assert words.format(one.report_key) in shown
    assert ("A replay makes a new one." in shown) is (script is not passed)


def test_a_report_that_is_none_is_reported(deployment: Deployment) -> None:
    """A pending report is not called lost; an invalid one has its address and the remedy."""
    landed = deployment.land("shop/orders/runs.csv", script=rejected)
    deployment.deliver()
    shown = everything(seen(ingestion_page.show, deployment, id=deployment.ingestion(landed).id))
    assert "Its job has left no audit report yet." in shown
    one = deployment.ledger.get(next(deployment.ledger.open_failures()).id)
    deployment.lake.put_text(one.report_key, b"{")
    shown = everything(seen(ingestion_page.show, deployment, id=one.id))
    assert f"The audit report {one.report_key} is not JSON: " in shown
    assert "(BAD_REPORT). A replay makes a new one." in shown


def test_a_name_injects_nothing(deployment: Deployment) -> None:
    """A hostile name is in every view, in its Markdown only as code; grids show plain texts."""
    hostile = next(b for b in deployment.ledger.open_failures() if "evil" in b.name)
    for app in (
        seen(inbox_page.show, deployment),
        seen(ingestion_page.show, deployment),
        seen(ingestion_page.show, deployment, id=hostile.id),
    ):
        labels = [link.proto.label for link in app.get("page_link")]
        errors_shown = [text for text in (*values(app, _MARKUP), *labels) if "evil" in text]
        assert errors_shown or hostile.name in list(app.dataframe[0].value["file"])
        assert "evil" not in "".join(_CODE.sub("", text) for text in errors_shown)


def test_a_replay_under_way_reports_nothing_of_the_attempt_before(deployment: Deployment) -> None:
    """A replay in flight shows a sentence, and its total time only at the end."""
    hostile = next(b for b in deployment.ledger.open_failures() if "evil" in b.name)
    replay(deployment.adapters, deployment.ledger.get(hostile.id), by="Ann\u202e")
    app = seen(ingestion_page.show, deployment, id=hostile.id)
    assert "Running: it is submitted, attempt 2, replayed" in (everything(app))
    assert _TOOK not in [metric.label for metric in app.metric]
    deployment.settle()
    app.run()
    assert _TOOK in [metric.label for metric in app.metric]
    assert "Running: " not in everything(app)


def test_a_file_that_waits_for_a_shared_run_is_shown() -> None:
    """Both pages show a waiting file, which has no branch and no run, and how many files wait."""
    deployment = Deployment(SHARED)
    landed = [deployment.land(f"shop/orders/{name}.csv") for name in ("a", "b")]
    deployment.deliver()
    waiting, *_ = map(deployment.ingestion, landed)
    load = "about 2 files wait or are in work"
    app = seen(ingestion_page.show, deployment, id=waiting.id)
    assert f"It waits for a shared run; {load}." in everything(app)
    assert "Its shared run has left no audit report yet." in everything(app)
    assert not app.exception
    assert f"Job runs: {load}." in everything(seen(overview_page.show, deployment))
    deployment.settle()
    shown = everything(seen(ingestion_page.show, deployment, id=waiting.id))
    assert "`with 1 other file`" in shown
    assert f"`{deployment.ingestion(waiting).job_run} (shared)`" in shown
    assert "Job runs:" not in everything(seen(overview_page.show, deployment))


def test_a_publication_under_way_is_reported(deployment: Deployment) -> None:
    """An approved publication that is not merged yet is shown as in flight."""
    hostile = next(b for b in deployment.ledger.open_failures() if "evil" in b.name)
    deployment.journal.strike("catalog.merge", Fault(unavailable, times=99))
    publish_anyway(deployment.adapters, deployment.ledger.get(hostile.id), "Ann", "known")
    app = seen(ingestion_page.show, deployment, id=hostile.id)
    assert "it is audited, approved by Ann" in everything(app)
    assert _TOOK not in [metric.label for metric in app.metric]


def test_no_text_of_others_acts() -> None:
    """Direction marks and escapes are shown as visible characters in texts and tables."""
    deployment = Deployment()
    landed = deployment.land("shop/orders/a.csv", script=_twisted)
    deployment.settle()
    app = seen(ingestion_page.show, deployment, id=deployment.ingestion(landed).id)
    tables = "".join(f"{[*each.value.columns]}{each.value.to_numpy()}" for each in app.dataframe)
    assert not {"\u202e", "\x1b"} & {*everything(app), *tables}
    assert "a\ufffdb" in tables
    assert everything(app).lower().count("a\ufffdb") == 4


def test_each_file_of_a_batch_is_on_a_line_of_its_own(deployment: Deployment) -> None:
    """Each file of a batch is shown on a line of its own, as a separate piece of code."""
    manifest = deployment.batch("b", {"r.csv": OTHER_TABLE, "s.csv": TABLE}, script=rejected)
    deployment.settle()
    app = seen(ingestion_page.show, deployment, id=deployment.ingestion(manifest).id)
    assert "`r.csv for shop.returns`  \n`s.csv for shop.orders`" in everything(app)
    assert "␊" not in everything(app)


def _twisted(report: AuditReport) -> AuditReport:
    """Return a rejection with such characters in every text that comes from a file."""
    odd = "a\u202eb\x1b[31m"
    check = replace(FAILED, expected=odd, found=odd, message=odd, samples=({odd: odd},))
    return replace(rejected(report), reason=Reason("CHECKS_FAILED", odd), checks=(check,))


def test_an_unknown_id_is_a_sentence(deployment: Deployment) -> None:
    """An unknown id is reported in a sentence, without a traceback."""
    app = seen(ingestion_page.show, deployment, id="f" * 32)
    assert "UNKNOWN_INGESTION" in everything(app)
    assert not app.exception


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (LakegateError("STACK_DOWN", "the local stack is down: run `lakegate up`"), "reload"),
        (Transient("CATALOG_UNAVAILABLE", "Nessie did not answer"), "lakegate doctor"),
        (ValueError("s3cret"), "Lakegate failed to show this"),
    ],
)
def test_errors_are_sentences(error: Exception, words: str) -> None:
    """An error is shown with its remedy, and an unexpected one without its message."""

    def fail(_: object) -> None:
        raise error

    app = seen(fail, Deployment())
    assert words in everything(app)
    assert "s3cret" not in everything(app)
    assert not app.exception


def test_overdue_tables_are_shown(deployment: Deployment) -> None:
    """The overview names each table whose next file is overdue, and since when it got none."""
    last = {TABLE: "2026-03-01T00:00:00.000+00:00", OTHER_TABLE: deployment.clock.now()}
    deployment.ledger.save_freshness(Freshness("2026-03-01", last, (TABLE,)))
    shown = everything(seen(overview_page.show, deployment))
    assert f"**Overdue**: `{TABLE}` got no file since 1 Mar 2026, 00:00:00 UTC, " in shown
    assert f"`{OTHER_TABLE}` got" not in shown


@pytest.mark.parametrize("mode", ["add", "replace"])
def test_what_a_newer_version_excludes_has_what_brings_its_rows(mode: str) -> None:
    """Beside a published newer version the commands for both have all that they need."""
    deployment = Deployment()
    deployment.ask(onNewVersion=mode)
    deployment.land("shop/orders/a.csv", script=rejected)
    deployment.settle()
    (old,) = deployment.ledger.all()
    deployment.land("shop/orders/a.csv", body=b"newer", script=passed)
    deployment.settle()
    newer = deployment.ledger.get(old.id).superseded_by
    app = seen(ingestion_page.show, deployment, id=old.id)
    told = " ".join(button.help for button in app.button if button.help)
    added = [
        f"`lakegate replay {old.id} --despite {newer}`",
        f"`lakegate publish {old.id} --by NAME --reason TEXT --despite {newer}`",
    ]
    assert [words in told for words in added] == [mode == "add"] * 2
    assert told.count("drop it again") == 2 * (mode == "replace")
