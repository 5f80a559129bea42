"""What an audit quoted of a column is shown nowhere once a contract makes that confidential."""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from rich.console import Console

from access.deployment import deployment as opened
from access.evidence.failing_rows import Question, inspection
from access.gate import Gate
from access.ingestions.decisions import with_cause
from access.ingestions.find import Wanted, find
from access.ingestions.follow import TrackedIngestion
from access.ingestions.identify import identified
from access.ingestions.shown import shown, shown_or_why
from access.sensors.arrivals import NotPublished, is_published, known, landed
from cli.console import json_output
from cli.ingestions import inspect, runs, show, wait
from cli.ledger.rebuild import document
from dashboard.views import inbox as inbox_page
from dashboard.views import ingestion as ingestion_page
from functions.adapters.all import Adapters
from functions.adapters.ledger.ledger import Ledger
from functions.model.ingestion import Ingestion, State
from functions.operations.decisions.cause import refusal
from functions.operations.decisions.failed import Outcome
from functions.operations.recovery.rebuild_ledger import rebuild
from lakegate.audit.diagnosis import WrongColumns
from lakegate.audit.report import AuditReport, Reason
from lakegate.errors import LakegateError
from tests.contract.aws import ACCOUNT
from tests.contract.ledgers import new_table
from tests.fakes.deployment import ORDERS, OTHER_TABLE, RETURNS, SETTINGS, TABLE, Deployment
from tests.fakes.job import FAILED, rejected
from tests.unit.cli.shown import shown as printed
from tests.unit.dashboard.test_page_views import everything, seen

ROOT = Path(__file__).parents[2]
SECRET, HIDDEN = "Smith", "the words are hidden, because the contract hides more by now"
CONFIDENTIAL = "required: true, classification: confidential"
LATER = ORDERS.replace("required: true", CONFIDENTIAL)
RETURNS_LATER = RETURNS.replace("required: true", CONFIDENTIAL)


def quoting(report: AuditReport) -> AuditReport:
    """Return the report of a run that quotes a value wherever one can be quoted."""
    told = replace(FAILED, is_told=True, samples=({"id": SECRET},))
    mean = replace(FAILED, id="id.mean", metric="mean", found=f"{SECRET}.5", value=f"{SECRET}.5")
    header = replace(FAILED, id=f"file.columns.{SECRET}", columns=(SECRET,), found=f"no {SECRET}")
    wrong = WrongColumns(expected=1, unexpected=(SECRET,))
    checks = (told, mean, header)
    reason = Reason("CHECKS_FAILED", f"id '{SECRET}' (1)")
    return replace(rejected(report), checks=checks, reason=reason, wrong_columns=wrong)


class People:
    """A deployment whose ledger has one quoting ingestion, and gives out what people may see."""

    def __init__(
        self, dynamodb: Any, contract: str = ORDERS, files: Mapping[str, str] | None = None
    ) -> None:
        self.inside = Deployment()
        self.agree(contract)
        if files:
            landed = self.inside.batch("monday", files, script=quoting)
        else:
            landed = self.inside.land("shop/orders/a.csv", script=quoting)
        self.inside.settle()
        self.id = self.inside.ingestion(landed).id
        self.table = new_table(dynamodb)
        self._raw = Ledger(self.table, self.inside.clock.now)
        self._raw.save(self.inside.ingestion(landed).but(revision=0))

    @property
    def adapters(self) -> Adapters:
        lake: Any = self.inside.lake
        ledger = Ledger(self.table, self.inside.clock.now, partial(shown, lake))
        return replace(self.inside.adapters, ledger=ledger)

    @property
    def ingestion(self) -> Ingestion:
        return identified(self.adapters.ledger, self.id)

    def save(self, **changes: Any) -> None:
        """Change what the ledger has."""
        self._raw.save(self._raw.get(self.id).but(**changes))

    def agree(self, contract: str, table: str = TABLE) -> None:
        self.inside.lake.put_text(f"contracts/{table}.yaml", contract.encode())


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[Any]:
    with mock_aws():
        yield boto3.resource("dynamodb", **ACCOUNT)


@pytest.fixture
def people(dynamodb: Any) -> People:
    return People(dynamodb)


def report(people: People) -> AuditReport | None:
    return shown_or_why(people.adapters, people.ingestion)[0]


def explained(people: People) -> str:
    console = Console(file=io.StringIO(), width=200)
    wait.explain(console, people.adapters, [TrackedIngestion(people.ingestion)])
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def inspected(people: People) -> str:
    no_rows: Any = lambda _: nullcontext(None)  # noqa: E731
    answer = inspection(people.adapters, people.ingestion, Question(), no_rows)
    return printed(inspect.page(answer)) + json_output.text(inspect.document(answer))


def refused(people: People, found: Ingestion | None) -> str:
    with pytest.raises(NotPublished) as caught:
        is_published(found, patient=False)
    return caught.value.message


def page(people: People, view: Callable[[Any], None]) -> str:
    """Return all text and all rows of a view of the page."""
    deployment: Any = people
    app = seen(view, deployment, id=people.id)
    return "\n".join([everything(app), *(each.value.to_string() for each in app.dataframe)])


def rebuilt(people: People) -> str:
    lost: Any = people.inside.adapters
    if not people.inside.ledger.has_lost:
        people.inside.jobs.lose(people.ingestion.job_run)
        people.inside.ledger.lose()
    return json_output.text(document(lost.lake, list(rebuild(lost, dry_run=True))))


def as_json(people: People) -> str:
    return json_output.text(json_output.with_report(people.ingestion, report(people)))


def of_program(people: People) -> str:
    no_reader: Any = None
    gate = Gate("test", people.adapters, no_reader)
    told = gate.show(people.id)
    assert told.report
    return f"{vars(told)} {told.bad_rows} {told.report.to_json()} {gate.runs(waiting=True)}"


def listed(people: People, *, is_waiting: bool) -> list[Ingestion]:
    return list(find(people.adapters, Wanted(), is_waiting=is_waiting).ingestions)


DISPLAYS: dict[str, Callable[[People], str]] = {
    "show": lambda people: printed(show.page(people.ingestion, report(people))),
    "show --json": as_json,
    "runs --waiting": lambda people: printed(
        runs.undecided(listed(people, is_waiting=True), people.adapters.now())
    ),
    "runs --json": lambda people: json.dumps(
        [json_output.ingestion_json(each) for each in listed(people, is_waiting=False)]
    ),
    "drop --wait": explained,
    "inspect": inspected,
    "ledger rebuild --json": rebuilt,
    "what a command for a group refuses": lambda people: refusal(
        people.ingestion, Outcome(people.ingestion)
    ),
    "Python": of_program,
    "a sensor of an id": lambda people: refused(people, known(people.adapters.ledger, people.id)),
    "a sensor of a key": lambda people: refused(
        people, landed(people.adapters.ledger, "landing", "shop/orders/a.csv")
    ),
    "the page's inbox": lambda people: page(people, inbox_page.show),
    "the page of an ingestion": lambda people: page(people, ingestion_page.show),
}


@pytest.mark.parametrize("display", DISPLAYS.values(), ids=DISPLAYS)
def test_a_value_is_shown_nowhere_once_it_is_confidential(
    people: People, display: Callable[[People], str]
) -> None:
    """Each display quotes the file as long as the contract allows it, and not a moment longer."""
    assert SECRET in display(people)
    people.agree(LATER)
    assert SECRET not in display(people)


OTHER_EDIT = ORDERS.replace("value: 10", "value: 9")
FORBIDDEN = ORDERS.replace(
    "schema:", "customProperties: [{property: allowSamples, value: false}]\nschema:"
)


@pytest.mark.parametrize(
    ("then", "now", "hides"),
    [
        (ORDERS, OTHER_EDIT, False),
        (ORDERS, LATER, True),
        (ORDERS, FORBIDDEN, True),
        (ORDERS, "no contract", True),
        (LATER, LATER.replace("value: 10", "value: 9"), False),
        (LATER, FORBIDDEN, True),
        (FORBIDDEN, LATER, False),
        (LATER, ORDERS, False),
    ],
)
def test_words_are_hidden_where_a_contract_hides_more(
    dynamodb: Any, then: str, now: str, *, hides: bool
) -> None:
    """The words of an audit stay until a contract hides what was shown; the checks' names stay."""
    people = People(dynamodb, then)
    people.agree(now)
    reason = people.ingestion.reason
    assert reason
    assert (HIDDEN in reason.message, SECRET in reason.message) == (hides, not hides)
    assert (SECRET in as_json(people)) is not hides
    assert not hides or reason.message.startswith("id.required, id.mean, file.columns failed; ")


def test_of_a_lost_contract_everything_was_shown(people: People) -> None:
    """If nobody knows what a contract hid, its audit quoted what the one in force hides."""
    lost = people.ingestion.terms
    people.agree(LATER)
    people.save(terms=replace(lost, contract_version="lost"))
    assert SECRET not in printed(show.page(people.ingestion, report(people)))
    people.save(terms=replace(lost, contract_key="", contract_version=""))
    assert SECRET not in printed(show.page(people.ingestion, report(people)))


@pytest.mark.parametrize(("table", "contract"), [(TABLE, LATER), (OTHER_TABLE, RETURNS_LATER)])
def test_the_reason_of_a_batch_is_about_any_of_its_tables(
    dynamodb: Any, table: str, contract: str
) -> None:
    """A contract of one file that hides more hides the reason of all; other files keep theirs."""
    people = People(dynamodb, files={"a.csv": TABLE, "b.csv": OTHER_TABLE})
    people.agree(contract, table)
    told, reason = report(people), people.ingestion.reason
    assert told
    assert told.reason == reason
    assert reason
    assert HIDDEN in reason.message
    for checks in (told.checks, told.parts[0].checks):
        assert (SECRET in str(checks)) is (table != TABLE)


def test_a_cause_is_not_found_by_a_hidden_value(people: People) -> None:
    """Who guesses values by `--cause` learns nothing."""
    assert with_cause(people.adapters, SECRET) == [people.ingestion]
    people.agree(LATER)
    with pytest.raises(LakegateError, match="NONE_WAITS"):
        with_cause(people.adapters, SECRET)


def test_a_gates_own_reason_stays(people: People) -> None:
    """Why a file was ignored quotes no data, and is shown whatever a contract hides."""
    people.save(state=State.IGNORED, reason=Reason("SUPERSEDED", "a newer version came first"))
    people.agree(LATER)
    assert people.ingestion.reason == Reason("SUPERSEDED", "a newer version came first")


def test_an_opened_deployment_gives_out_what_people_may_see(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever opens a deployment reads the ledger by the contracts in force in its lake."""
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(f"AWS_{name.replace('region_name', 'default_region')}".upper(), value)
    s3 = boto3.client("s3", **ACCOUNT)
    s3.create_bucket(Bucket=SETTINGS.lake_bucket)
    s3.put_object(Bucket=SETTINGS.lake_bucket, Key=f"contracts/{TABLE}.yaml", Body=LATER.encode())
    settings = replace(SETTINGS, ledger_table=people.table.name)
    deployed = opened.Deployment(settings, {"nessie": "http://nessie"}, "", local=False)
    reason = deployed.adapters().ledger.get(people.id).reason
    assert reason
    assert HIDDEN in reason.message


def matching(pattern: str) -> set[str]:
    """Return the modules of access, commands and page with such code."""
    files = [
        file for name in ("access", "cli", "dashboard") for file in (ROOT / name).rglob("*.py")
    ]
    found = (file for file in files if re.search(pattern, file.read_text("utf-8")))
    return {str(file.relative_to(ROOT)) for file in found}


def test_nothing_else_reads_what_people_may_not_see() -> None:
    """Only these modules open a ledger or read a report, so no display can have a raw one.

    The local stack's puts contracts in force; the others show nothing of a report's words.
    """
    assert matching(r"wiring import connect|\bLedger\(") == {
        "access/deployment/deployment.py",
        "cli/local/stack.py",
    }
    assert matching(r"lake\.report\(|\b(report_of|reports_at|group_reports)\(") == {
        "access/evidence/backtest.py",
        "access/evidence/failing_rows.py",
        "access/evidence/trace.py",
        "access/ingestions/shown.py",
    }
