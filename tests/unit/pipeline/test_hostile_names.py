"""Hostile names, which are plain text wherever they go."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.console import json_output, terminal
from cli.ingestions.runs import listed
from functions.adapters.ledger.items import to_item
from functions.model.ingestion import State
from functions.model.merge_commit import message, properties
from functions.notifications.alert_text import alert
from lakegate.audit.audit_tables import TABLES
from lakegate.audit.drift import Baselines
from lakegate.audit.report import AuditReport, Reason
from lakegate.contract.claims import claiming
from lakegate.errors import Permanent
from lakegate.job.change import Change
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject, branch_name, ingestion_id
from lakegate.text import escaped_json, one_line, visible
from spark_jobs.lake.storage import plain_name
from tests.fakes.deployment import TABLE
from tests.fakes.examples import FAILED, INGESTION, LANDED, REPORT
from tests.fakes.job import rejected
from tests.fakes.scenario import Scenario
from tests.unit.contract.contract_texts import contract_text, parsed, problems_of
from tests.unit.lakegate.test_jobspec import SPEC
from tests.unit.pipeline.test_landing import REFERENCE_NAME

KEYS = [
    "../../../etc/passwd", "..", ".", "/", "//a//b", "/absolute.csv", "../ops/audit_results/x",
    "nul\0.csv", "line\nend.csv", "carriage\rreturn.csv", "tab\t.csv", "escape\x1b[2J\x1b[31m.csv",
    "link\x1b]8;;https://x.example\x07click\x1b]8;;\x07.csv", "c1\x9b31m.csv", "bell\x07.csv",
    "gnp\u202efdp.csv", "isolate\u2066\u2069.csv", "separator\u2028\u2029.csv", "bom\ufeff.csv",
    "nfd-u\u0308.csv", "nfc-\u00fc.csv", "cyrillic-\u0430.csv", "tag\U000e0041.csv",
    "%2F%2e%2e%00", "a+b c&d=e?.csv", "'\"`\\.csv", "$(reboot);`reboot`|x&&y.csv", "-rf",
    "--conf x",
    "${jndi:ldap://x.example/a}", "${spark.home}", "#{x}", "{{x}}", "%s%n", "<!here>", "<@U1>.csv",
    "[red]x[/red].csv", "*bold* _x_ ~y~ :boom:.csv", "```\n*Branch* `main`", "=cmd|'/c calc'!A1",
    "+1", "@SUM(1)", "a*b?c[d]{e,f}.csv", "CON", "x" * 1024, "\u00e9" * 512,
    "\U0001f600" * 256, "\n" * 1024,
]  # fmt: skip
# Characters that act on a terminal or in a log: controls, marks of direction, line separators.
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
ANY = st.text(st.characters(), max_size=50) | st.sampled_from(KEYS)


def landed(key: str) -> LandedObject:
    return replace(LANDED, key=f"shop/orders/{key}"[:1024])


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_ingested_whatever_it_is(key: str) -> None:
    """A file with any name is published once."""
    deployment = Scenario()
    file = deployment.land(f"shop/orders/x{key}"[:1000])
    deployment.send_all_again()
    known = deployment.end_of(file)
    assert (known.landed.key, known.table) == (file.key, TABLE) or known.state is State.IGNORED
    assert deployment.published_files() == (
        [] if known.state is State.IGNORED else [f"{file.uri}@{file.version}"]
    )


@pytest.mark.parametrize("key", KEYS)
def test_a_key_leads_to_plain_names(key: str) -> None:
    """Branch, job argument and local copy have names without any special character.

    The job gets the same key back.
    """
    name = branch_name(TABLE, key, ingestion_id(landed(key)), 1)
    assert REFERENCE_NAME.fullmatch(name)
    assert name.startswith(f"ingest/{TABLE}/")
    assert len(name) < 100
    spec = replace(SPEC, landed=landed(key))
    argument = spec.to_argument()
    assert argument.isascii()
    assert argument.isprintable()
    assert len(argument) <= 10_280  # EMR Serverless API reference, EntryPointArgument
    assert JobSpec.from_argument(argument) == spec
    for gzipped in (True, False):
        assert re.fullmatch(r"file(\.[^\W_]+)?", plain_name(key, gzipped=gzipped))


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_shown_on_one_line_without_control_characters(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Terminal, JSON, Slack and main's log show a name on one line, without control characters."""
    named = replace(INGESTION, landed=landed(key), reason=Reason("X", f"{one_line(key)} is bad"))
    terminal.out().print(listed([named]))
    terminal.err().print(f"{key} (X)")
    shown = capsys.readouterr()
    assert not ACTING.search(shown.out + shown.err)
    text = json_output.text([json_output.ingestion_json(named)])
    assert not ACTING.search(text)
    assert json.loads(text)[0]["key"] == named.landed.key
    assert not ACTING.search(str(alert(named, REPORT)))
    assert "\n" not in message([named])
    assert not ACTING.search(message([named]))
    assert json.loads(properties([named])["lakegate.ingestions"])[0]["object"] == named.landed.uri


def test_a_name_adds_no_line_to_an_alert() -> None:
    """A line end in a key, a column or a cell begins no line that looks like one of the alert's."""
    key = "a\n*Branch* `main`\n```"
    cells: dict[str, str | None] = {key: key}
    check = replace(FAILED, columns=(key,), samples=(cells,))
    named = replace(INGESTION, landed=landed(key))
    for block in alert(named, replace(REPORT, checks=(check,))).blocks:
        text = block["text"]["text"]
        assert text.count("*Branch*") == text.count("\n*Branch* `ingest/") + text.count("␊*Branch*")
        assert text.count("```") % 2 == 0 or block["type"] == "header"


def test_an_alert_makes_no_links_of_what_files_say() -> None:
    """Slack shows sections verbatim: addresses in them become no links."""
    sections = [b["text"] for b in alert(INGESTION, REPORT).blocks if b["type"] == "section"]
    assert all(section["verbatim"] for section in sections)


@given(ANY)
def test_nothing_that_acts_is_left(text: str) -> None:
    """Any text becomes visible characters of the same number."""
    for made in (visible(text), one_line(text)):
        assert not ACTING.search(made)
        assert made.encode().decode() == made
        assert len(made) == len(text)
    assert one_line(text).splitlines() in ([one_line(text)], [])
    assert visible("a\tb\nc é 😀 👩‍🚀") == "a\tb\nc é 😀 👩‍🚀"


@given(st.recursive(ANY, lambda inner: st.dictionaries(ANY, inner, max_size=3) | st.lists(inner)))
def test_json_says_the_same_and_acts_nowhere(value: Any) -> None:
    """Printed JSON has the same value, with any characters in it."""
    text = escaped_json(json.dumps(value, ensure_ascii=False))
    assert not ACTING.search(text)
    assert text.encode()
    assert json.loads(text) == json.loads(json.dumps(value))


@pytest.mark.parametrize(
    "key",
    [
        "ops/audit_results/x",
        "/shop/orders/x",
        "shop//orders/x",
        "SHOP/orders/x",
        "../shop/orders/x",
    ],
)
def test_a_key_reaches_no_other_table(key: str) -> None:
    """A key belongs to the contract whose prefix it literally begins with, and to no other."""
    contract = parsed()
    with pytest.raises(Permanent, match="NO_CONTRACT"):
        claiming([contract], key)
    assert claiming([contract], "shop/orders/../items/x") == contract


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_no_contract_is_for_lakegates_own_tables(table: str) -> None:
    """Files never reach the tables of audit results, in any spelling of their names."""
    for name in (table, table.upper()):
        (problem,) = problems_of(contract_text().replace("shop.orders", name))
        assert "Lakegate's own" in problem.reason


@pytest.mark.parametrize("of_what", ["reason", "checks"])
def test_a_report_of_any_length_fits_into_the_ledger(of_what: str) -> None:
    """An item of the ledger stays below DynamoDB's 400 KB, however long a report is."""
    deployment = Scenario()

    def wordy(*given: Any) -> Any:
        report = rejected(*given)
        if of_what == "reason":
            return replace(report, reason=Reason("X" * 10**6, "\U0001f600" * 10**5))
        words: dict[str, Any] = dict.fromkeys(("id", "expected", "found", "message"), "\0" * 2000)
        long = replace(FAILED, columns=("\0" * 2000,) * 9, **words)
        return replace(report, checks=(long,) * 30)

    known = deployment.ended("shop/orders/a.csv", script=wordy)
    assert known.state is State.REJECTED
    item = to_item(replace(known, landed=landed("\U0001f600" * 256)))
    assert sum(len(f"{name}{value}".encode()) for name, value in item.items()) < 400_000


def test_only_the_landing_bucket_is_taken_in() -> None:
    """An event of another bucket begins nothing, the lake's included, and is alerted."""
    deployment = Scenario()
    strange = replace(LANDED, bucket="somebody-elses", key="shop/orders/a.csv")
    change = Change(TABLE, "DELETE FROM shop.orders", "token").landed("lake")
    own = deployment.landing.put("shop/orders/own.csv", b"own")
    for forged in (strange, change, replace(LANDED, bucket="lake", key="contracts/x.yaml")):
        deployment.send_upload(own, forged)
    for _ in range(5):
        deployment.deliver()
    assert list(deployment.ledger.all()) == []
    deployment.sweep()
    assert len(deployment.alerts.posted) == 3
    assert "it is in none of the landing buckets landing" in str(deployment.alerts.posted)
    assert [each.landed.key for each in deployment.ledger.all()] == [own.key]


@pytest.mark.parametrize("run", ["00other00application", "00nobodys"])
def test_a_forged_end_of_a_run_ends_nothing(run: str) -> None:
    """An event that names a run of another application, or one that still runs, changes nothing."""
    deployment = Scenario()
    file = deployment.land("shop/orders/a.csv")
    deployment.deliver()
    before = deployment.ingestion(file)
    (running,) = deployment.jobs.runs()
    deployment.send_job_run(running.id)
    deployment.send_job_run(run)
    for _ in range(5):
        deployment.deliver()
    assert deployment.ingestion(file) == before
    assert deployment.end_of(file).state is State.PUBLISHED


@pytest.mark.parametrize("text", ["[" * 100_000, '{"schema":' * 50_000, "9" * 9999, "\ud800"])
def test_an_invalid_report_is_refused(text: str) -> None:
    """Any bytes in a report's place are a report or are refused with no other error."""
    for read in (AuditReport.from_json, Baselines.from_json):
        with pytest.raises(Permanent, match="BAD_"):
            read(text)
    with pytest.raises(ValueError, match=r"."):
        JobSpec.from_argument(text)


@pytest.mark.parametrize("rows", [-1, 1 << 63, 10**40])
def test_numbers_that_no_ledger_holds_are_no_report(rows: int) -> None:
    """A report with numbers that the ledger cannot keep is refused when it is read."""
    with pytest.raises(Permanent, match="BAD_REPORT"):
        AuditReport.from_json(replace(REPORT, rows_written=rows).to_json())
