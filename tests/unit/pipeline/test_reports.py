"""How many requests reading reports takes, and what may stand in for a report."""

from dataclasses import replace

import pytest

from functions.model.ingestion import State
from functions.pipeline.outcome.reports import reports_at
from lakegate.audit.report import AuditReport, to_lines
from lakegate.errors import Permanent
from lakegate.job.landing import group_branch, group_reports_key, report_key
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.examples import REPORT
from tests.fakes.scenario import Scenario
from tests.unit.pipeline.test_shared_runs import MANY, SHARED, land

BRANCH = group_branch(TABLE, 16 * "a")
IDS = tuple(f"{number:032x}" for number in range(3))
KEYS = [report_key(TABLE, id_, 1) for id_ in IDS]
TOGETHER = group_reports_key(TABLE, BRANCH)


def member(id_: str, **changes: object) -> AuditReport:
    report = replace(REPORT, table=TABLE, ingestion=id_, attempt=1, branch=BRANCH, group=IDS)
    return replace(report, **changes)  # type: ignore[arg-type]


@pytest.fixture
def deployment() -> Scenario:
    """Return a deployment whose lake has the reports of a group."""
    deployment = Scenario(SHARED)
    for id_, key in zip(IDS, KEYS, strict=True):
        deployment.lake.put_report(key, member(id_).to_json())
    return deployment


def requests(deployment: Deployment) -> int:
    """Return the requests for reports so far."""
    calls = deployment.journal.calls
    return calls.count("lake.report") + calls.count("lake.group_reports")


def test_a_group_costs_few_requests_whatever_its_size() -> None:
    """Each report is looked for once before the run; after it four requests read all reports."""
    deployment = Scenario(SHARED)
    landed = land(deployment)
    deployment.settle()
    assert deployment.states(*landed) == [State.PUBLISHED] * MANY
    assert requests(deployment) == MANY + 4


def test_the_reports_of_a_group_are_read_from_one_object(deployment: Scenario) -> None:
    """What the group's object repeats is not read again."""
    deployment.lake.put_text(TOGETHER, to_lines(map(member, IDS)))
    assert reports_at(deployment.adapters, KEYS) == dict(zip(KEYS, map(member, IDS), strict=True))
    assert requests(deployment) == 2


@pytest.mark.parametrize(
    "text",
    [None, b"", b"{}", b"\xff", to_lines([member(IDS[0])])],
    ids=["missing", "empty", "no report", "no text", "one report"],
)
def test_without_the_object_each_report_is_read(deployment: Scenario, text: bytes | None) -> None:
    """A group's object that is missing, damaged or incomplete changes no result."""
    if text is not None:
        deployment.lake.put_text(TOGETHER, text)
    assert reports_at(deployment.adapters, KEYS) == dict(zip(KEYS, map(member, IDS), strict=True))


def test_a_groups_object_stands_in_for_its_members_alone(deployment: Scenario) -> None:
    """What it says of a file that no report calls a member is not read."""
    own = member(32 * "e", group=())
    key = report_key(TABLE, own.ingestion, 1)
    deployment.lake.put_report(key, own.to_json())
    forged = replace(own, rows_written=9)
    deployment.lake.put_text(TOGETHER, to_lines([*map(member, IDS), forged]))
    assert reports_at(deployment.adapters, [*KEYS, key])[key] == own


def test_a_report_is_taken_only_for_its_own_key(deployment: Scenario) -> None:
    """A group's object stands in for no report of another table, attempt or ingestion."""
    others = (
        member(IDS[1], table="shop.items"),
        member(IDS[1], attempt=2),
        member(32 * "e", rows_written=9),
    )
    deployment.lake.put_text(TOGETHER, to_lines(others))
    assert reports_at(deployment.adapters, KEYS[:2])[KEYS[1]] == member(IDS[1])


@pytest.mark.parametrize("table", [TABLE, f"{IDS[0]}.x"])
def test_a_forged_report_names_no_object_of_its_choice(deployment: Scenario, table: str) -> None:
    """The object of a group lies beside the report of a member, whatever that one says."""
    forged = f"reports/{IDS[0]}.x/group-{16 * 'b'}.json"
    branch = f"ingest/{IDS[0]}.x/group-{16 * 'b'}"
    told = member(IDS[0], branch=branch, table=table)
    deployment.lake.put_text(KEYS[0], told.to_json().encode())
    deployment.lake.put_text(forged, to_lines([member(IDS[1], rows_written=9)]))
    assert reports_at(deployment.adapters, KEYS[:2])[KEYS[1]] == member(IDS[1])


@pytest.mark.parametrize("name", [f"a-{IDS[0][:12]}", f"group-{IDS[0]}", "group-../x", "group-"])
def test_only_a_groups_branch_has_such_an_object(name: str) -> None:
    """No key of a group's object has an ingestion's id in it, so no own run may write one."""
    assert group_reports_key(TABLE, f"ingest/{TABLE}/{name}") == ""


def test_missing_and_unreadable_reports_are_left_out(deployment: Scenario) -> None:
    """The other reports are returned."""
    deployment.lake.put_text(KEYS[1], b"{}")
    found = reports_at(deployment.adapters, [*KEYS, report_key(TABLE, 32 * "f", 1)])
    assert found.keys() == {KEYS[0], KEYS[2]}
    with pytest.raises(Permanent):
        deployment.lake.report(KEYS[1])
