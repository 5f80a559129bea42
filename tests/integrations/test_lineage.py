"""OpenLineage's own client writes the same events from its own classes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from functions.downstream.lineage import PRODUCER, Lineage, events
from tests.fakes.examples import REPORT
from tests.unit.downstream.test_lineage import CONTRACT, GOOD, PUBLISHED, REJECTED

pytest.importorskip("openlineage", reason="`make test-integrations` installs it")

# The module of openlineage.client.generated and the class of each facet, by its key.
FACETS = {
    "columnLineage": ("column_lineage_dataset", "ColumnLineageDatasetFacet"),
    "dataQualityAssertions": (
        "data_quality_assertions_dataset",
        "DataQualityAssertionsDatasetFacet",
    ),
    "errorMessage": ("error_message_run", "ErrorMessageRunFacet"),
    "jobType": ("job_type_job", "JobTypeJobFacet"),
    "outputStatistics": ("output_statistics_output_dataset", "OutputStatisticsOutputDatasetFacet"),
    "schema": ("schema_dataset", "SchemaDatasetFacet"),
    "sql": ("sql_job", "SQLJobFacet"),
    "symlinks": ("symlinks_dataset", "SymlinksDatasetFacet"),
    "version": ("dataset_version_dataset", "DatasetVersionDatasetFacet"),
}
NESTED = {  # the classes of the values within
    "identifiers": "Identifier",
    "assertions": "Assertion",
    "inputFields": "InputField",
    "transformations": "Transformation",
}


def facets_of(event: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return every facet of an event with its key."""
    holders = [event["run"], event["job"], *event.get("inputs", ()), *event.get("outputs", ())]
    places = ("facets", "inputFacets", "outputFacets")
    return [item for holder in holders for at in places for item in holder.get(at, {}).items()]


def read(key: str, facet: dict[str, Any]) -> Any:
    """Return the facet as an object of the client's class; an unknown field is an error."""
    from importlib import import_module

    name, class_ = FACETS[key]
    module = import_module(f"openlineage.client.generated.{name}")

    def value(at: str, found: Any) -> Any:
        if key == "schema" and at == "fields":
            return [module.SchemaDatasetFacetFields(**each) for each in found]
        if key == "columnLineage" and at == "fields":
            return {name: module.Fields(**values(each)) for name, each in found.items()}
        if at in NESTED:
            return [getattr(module, NESTED[at])(**values(each)) for each in found]
        return found

    def values(found: dict[str, Any]) -> dict[str, Any]:
        return {at: value(at, each) for at, each in found.items() if not at.startswith("_")}

    return getattr(module, class_)(**values(facet), producer=PRODUCER)


@pytest.mark.parametrize(
    "lineage",
    [
        Lineage(PUBLISHED, "a-lake", GOOD, CONTRACT),
        Lineage(REJECTED, "a-lake", REPORT, CONTRACT),
        Lineage(PUBLISHED, "a-lake", GOOD, replace(CONTRACT, transform="SELECT id FROM file")),
    ],
    ids=["published", "rejected", "transformed"],
)
def test_each_facet_is_the_clients(lineage: Lineage) -> None:
    """Each facet has the fields of the client's class, and the version of its schema."""
    from openlineage.client.serde import Serde

    found = [each for event in events(lineage) for each in facets_of(event)]
    assert len(found) >= 6
    for key, facet in found:
        theirs = json.loads(Serde.to_json(read(key, facet)))
        assert without_empty(theirs) == without_empty(facet)


def without_empty(value: Any) -> Any:
    """Return a document without what is empty, which the client leaves out."""
    if isinstance(value, dict):
        return {k: without_empty(v) for k, v in value.items() if v not in ("", [], {}, None)}
    return [without_empty(each) for each in value] if isinstance(value, list) else value


def test_the_client_takes_the_events() -> None:
    """The client's event has the same fields, and takes a run's id and times."""
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
    from openlineage.client.serde import Serde

    for event in events(Lineage(PUBLISHED, "a-lake", GOOD, CONTRACT)):
        theirs = json.loads(
            Serde.to_json(
                RunEvent(
                    eventTime=event["eventTime"],
                    producer=event["producer"],
                    run=Run(runId=event["run"]["runId"]),
                    job=Job(namespace=event["job"]["namespace"], name=event["job"]["name"]),
                    eventType=RunState[event["eventType"]],
                )
            )
        )
        same = ("eventTime", "producer", "schemaURL", "eventType")
        assert {k: event[k] for k in same} == {k: theirs[k] for k in same}
