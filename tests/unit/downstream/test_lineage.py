"""OpenLineage events say which file became which rows of which table, and by which checks."""

from dataclasses import replace
from typing import Any

import pytest

from functions.downstream.lineage import Lineage, events
from functions.downstream.origins import origins
from functions.model.commits import Tip
from functions.model.ingestion import State
from functions.model.messages.announcement import announcements
from lakegate.audit.report import DataFile, Status, Verdict
from tests.fakes.examples import FAILED, INGESTION, PASSED, REPORT
from tests.unit.contract.contract_texts import parsed

CSV = "- {property: format, value: csv}\n"
CONTRACT = parsed("- {name: carrier, logicalType: string, description: Who flies.}", settings=CSV)
MAIN = "s3://lake/warehouse/shop/orders_4b/metadata/00001.metadata.json"
LANDED = replace(INGESTION.landed, landed_at="2026-11-22T00:59:00.000+00:00")
FILE = replace(INGESTION, landed=LANDED)
DONE = replace(
    FILE,
    state=State.PUBLISHED,
    merge_hash="c0ffee",
    audit=replace(FILE.audit, rows=842),
    reason=None,
)
(PUBLISHED,) = announcements(
    DONE.step("published", "2026-11-22T01:00:00.000+00:00"),
    Tip("c0ffee", 5),
    {INGESTION.table: MAIN},
)
(REJECTED,) = announcements(FILE.step("rejected", "2026-11-22T01:00:00.000+00:00"))
GOOD = replace(REPORT, verdict=Verdict.PASSED, reason=None, checks=(PASSED,))


def ended(lineage: Lineage) -> Any:
    """Return the last event of an ingestion."""
    return events(lineage)[-1]


def test_a_published_file_has_a_start_and_an_end() -> None:
    """Both events are of one run, whose id is the same whenever they are made."""
    lineage = Lineage(PUBLISHED, "the-lake", GOOD, CONTRACT)
    began, done = events(lineage)
    assert (began["eventType"], done["eventType"]) == ("START", "COMPLETE")
    assert began["run"]["runId"] == done["run"]["runId"] == events(lineage)[0]["run"]["runId"]
    assert (began["eventTime"], done["eventTime"]) == (PUBLISHED.landed_at, PUBLISHED.ended_at)
    assert done["job"]["namespace"] == "lakegate://the-lake"
    assert done["job"]["name"] == "ingest shop.orders"
    again = replace(PUBLISHED, id="a replay")
    assert ended(Lineage(again, "the-lake"))["run"]["runId"] != done["run"]["runId"]


def test_rows_come_from_a_version_of_a_landed_object() -> None:
    """The input is the object with its version, the output the table with schema and rows."""
    done = ended(Lineage(PUBLISHED, "the-lake", GOOD, CONTRACT))
    (source,), (table,) = done["inputs"], done["outputs"]
    assert (source["namespace"], source["name"]) == ("s3://landing", "shop/orders/a.csv")
    assert source["facets"]["version"]["datasetVersion"] == "v1"
    assert (table["namespace"], table["name"]) == ("lakegate://the-lake", "shop.orders")
    assert table["facets"]["version"]["datasetVersion"] == "c0ffee"
    assert table["facets"]["schema"]["fields"] == [
        {"name": "id", "type": "bigint", "description": ""},
        {"name": "carrier", "type": "string", "description": "Who flies."},
    ]
    (link,) = table["facets"]["symlinks"]["identifiers"]
    assert (link["namespace"], link["name"]) == ("s3://lake", "warehouse/shop/orders_4b")
    statistics = table["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"], statistics["fileCount"]) == (842, 9_000, 1)
    (carrier,) = table["facets"]["columnLineage"]["fields"]["carrier"]["inputFields"]
    assert (carrier["name"], carrier["field"]) == ("shop/orders/a.csv", "carrier")


def test_a_rejected_file_fails_with_its_checks() -> None:
    """The event says which checks failed, and no rows were written to the table."""
    skipped = replace(PASSED, id="later", status=Status.SKIPPED)
    report = replace(REPORT, checks=(PASSED, FAILED, skipped))
    failed = ended(Lineage(REJECTED, "the-lake", report, CONTRACT))
    assert failed["eventType"] == "FAIL"
    assert "CHECKS_FAILED" in failed["run"]["facets"]["errorMessage"]["message"]
    told = failed["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert [(each["name"], each["success"]) for each in told] == [
        ("fine", True),
        ("carrier", False),
    ]
    assert (told[1]["expected"], told[1]["actual"]) == ("0 rows", "2 rows")
    assert failed["outputs"][0]["outputFacets"] == {}


def test_no_rows_are_in_an_event() -> None:
    """Samples of bad rows stay in the report."""
    assert FAILED.samples
    assert "Zürich" not in str(events(Lineage(REJECTED, "the-lake", REPORT, CONTRACT)))


def test_a_table_of_a_batch_has_its_own_files_alone() -> None:
    """Checks and data files of a batch's other tables belong to their own events."""
    file = DataFile("s3://lake/2.parquet", 5, 70)
    other = replace(GOOD, table="shop.items", checks=(replace(PASSED, id="other"),), files=(file,))
    batch = replace(GOOD, parts=(GOOD, other), checks=())
    done = ended(Lineage(PUBLISHED, "the-lake", batch, CONTRACT))
    told = done["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert [each["name"] for each in told] == ["fine"]
    assert done["outputs"][0]["outputFacets"]["outputStatistics"]["fileCount"] == 1


def test_what_is_unknown_is_left_out() -> None:
    """Without a contract, a report or a table the event still names the file and the reason."""
    failed = ended(Lineage(replace(REJECTED, table="", contract="", version=""), "the-lake"))
    assert failed["outputs"] == []
    assert failed["inputs"] == [
        {
            "namespace": "s3://landing",
            "name": "shop/orders/a.csv",
            "facets": {},
            "inputFacets": {},
        }
    ]
    assert failed["job"]["name"] == "ingest"


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT ID, name AS carrier FROM file", {"id": "ID", "carrier": "name"}),
        (
            "select `the id` id, file.carrier from file where x > 1",
            {"id": "the id", "carrier": "carrier"},
        ),
        ("SELECT coalesce(a, b) AS id, carrier FROM file", {"carrier": "carrier"}),
        ("SELECT NULL AS id, 7 AS carrier FROM file", {}),
        ("SELECT current_date AS id, Current_User carrier FROM file", {}),
        ("SELECT id, other FROM file", {"id": "id"}),
        ("SELECT a.id, b.carrier FROM file a JOIN file b", {}),
        ("SELECT id, carrier FROM (SELECT x AS id, carrier FROM file)", {}),
        ("SELECT id, max(carrier) AS carrier FROM file GROUP BY id", {}),
        ("WITH t AS (SELECT id FROM file) SELECT id FROM t", {}),
    ],
)
def test_only_a_sure_origin_of_a_column_is_told(sql: str, found: dict[str, str]) -> None:
    """A transform's plain and renamed columns have an origin; computed ones have its SQL."""
    transformed = replace(CONTRACT, transform=sql)
    assert origins(transformed) == found
    job = ended(Lineage(PUBLISHED, "the-lake", GOOD, transformed))["job"]
    assert job["facets"]["sql"]["query"] == sql
