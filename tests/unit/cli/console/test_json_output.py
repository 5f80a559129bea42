import json
from dataclasses import asdict, replace

import pytest

from cli.console import json_output
from functions.model.ingestion import Ingestion
from tests.fakes.deployment import Deployment
from tests.unit.cli.cli_examples import ERRORED, LANDED, PUBLISHED, QUEUED, REJECTED


@pytest.mark.parametrize("ingestion", [LANDED, QUEUED, PUBLISHED, REJECTED, ERRORED])
def test_a_document_has_the_ledgers_values_in_any_state(ingestion: Ingestion) -> None:
    """Documented keys have unchanged values: the full id, the unescaped key, hashes and times."""
    text = json_output.text(json_output.ingestion_json(ingestion))
    document, landed, reason = json.loads(text), ingestion.landed, ingestion.reason
    same = ("id", "table", "attempt", "branch", "base_hash", "audited_hash", "merge_hash")

    assert "März" in text
    assert {name: document[name] for name in same} == {n: getattr(ingestion, n) for n in same}
    assert document["rows"] == ingestion.audit.rows
    place = (document["bucket"], document["key"], document["version"])
    assert place == (landed.bucket, landed.key, landed.version)
    assert document["state"] == ingestion.state.value
    assert document["times"] == dict(ingestion.times)
    assert document["reason"] == (asdict(reason) if reason else None)
    assert document["is_shared"] is ingestion.is_shared
    assert document["checks"] == list(ingestion.audit.checks)
    assert document["check_counts"] == ingestion.audit.check_counts


def test_a_document_says_whose_bytes_and_rows_it_repeats_or_replaces() -> None:
    """A duplicate names its original, a new version those it replaced; else null."""
    again = replace(
        PUBLISHED,
        audit=replace(PUBLISHED.audit, duplicate_of="e" * 32, replaced_rows=7),
        replaced=("f" * 32,),
    )
    document = json.loads(json_output.text(json_output.ingestion_json(again)))
    assert document["duplicate_of"] == "e" * 32
    assert (document["replaced"], document["replaced_rows"]) == (["f" * 32], 7)
    assert json_output.ingestion_json(PUBLISHED)["duplicate_of"] is None


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
