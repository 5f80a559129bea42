import json
from dataclasses import replace

from cli import json_output
from tests.fakes.deployment import Deployment
from tests.unit.cli.cli_examples import ERRORED, LANDED, PUBLISHED, REJECTED

_PROMISED = ("id", "key", "table", "state", "branch", "rows", "reason", "checks")


def test_a_document_has_what_programs_rely_on() -> None:
    """Every documented key exists for an ingestion in any state."""
    for ingestion in (LANDED, PUBLISHED, REJECTED, ERRORED):
        assert set(_PROMISED) <= json_output.of_ingestion(ingestion).keys()


def test_a_document_says_what_the_ledger_says() -> None:
    """Values are unchanged: the full id, the unescaped key, hashes and times."""
    text = json_output.text(json_output.of_ingestion(PUBLISHED))
    document = json.loads(text)

    assert "März" in text
    assert document["id"] == PUBLISHED.id
    assert document["key"] == "shop/orders/[red] März.csv"
    assert (document["bucket"], document["version"]) == ("landing", "v1")
    assert (document["table"], document["state"]) == ("shop.orders", "published")
    assert (document["rows"], document["attempt"]) == (1842, 1)
    assert document["branch"] == PUBLISHED.branch
    assert document["base_hash"] == "b" * 64
    assert document["audited_hash"] == "a" * 64
    assert document["merge_hash"] == "d" * 64
    assert document["times"] == dict(PUBLISHED.times)
    assert document["reason"] is None
    assert [check["id"] for check in document["checks"]] == ["few_late"]
    assert document["tally"] == {"pass": 1, "warn": 1}


def test_a_document_says_whose_bytes_and_rows_it_repeats_or_replaces() -> None:
    """A duplicate names its original, a new version those it replaced; else null."""
    again = replace(PUBLISHED, duplicate_of="e" * 32, replaced=("f" * 32,), replaced_rows=7)
    document = json.loads(json_output.text(json_output.of_ingestion(again)))
    assert document["duplicate_of"] == "e" * 32
    assert (document["replaced"], document["replaced_rows"]) == (["f" * 32], 7)
    assert json_output.of_ingestion(PUBLISHED)["duplicate_of"] is None


def test_a_reason_has_its_code_for_programs() -> None:
    """The reason has a code and a message."""
    assert json_output.of_ingestion(ERRORED)["reason"] == {
        "code": "NO_CONTRACT",
        "message": "no contract claims the key",
    }


def test_the_report_is_the_one_beside_the_lake() -> None:
    """`show --json` has the job's audit report unchanged, null if there is none."""
    deployment = Deployment()
    landed = deployment.land("shop/orders/a.parquet")
    deployment.settle()
    ingestion = deployment.ingestion(landed)
    report = deployment.lake.report(ingestion.report_key)

    document = json.loads(json_output.text(json_output.with_report(ingestion, report)))

    assert document["report"] == json.loads(report.to_json())
    assert json_output.with_report(ERRORED, None)["report"] is None
