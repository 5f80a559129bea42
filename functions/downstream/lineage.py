"""OpenLineage events of an ingestion: which file became which rows of which table, by which checks.

OpenLineage specification, "Object model", "Naming": a dataset has a namespace and a name. A landed
object is `s3://<bucket>` and its key; a table is `lakegate://<lake bucket>` and its name, as only
buckets have names that no stage of another account or region has.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from functions.downstream.origins import origins
from functions.model.ingestion import State
from functions.model.messages.announcement import Announcement
from lakegate.audit.report import AuditReport, CheckResult, Status
from lakegate.contract.model import Contract

PRODUCER = "urn:lakegate"
_SPEC = "https://openlineage.io/spec"
_VERSIONS = {  # of each facet's schema
    "ColumnLineageDatasetFacet": "1-2-0",
    "DataQualityAssertionsDatasetFacet": "1-1-0",
    "DatasetVersionDatasetFacet": "1-0-1",
    "ErrorMessageRunFacet": "1-0-1",
    "JobTypeJobFacet": "2-0-4",
    "OutputStatisticsOutputDatasetFacet": "1-0-2",
    "SQLJobFacet": "1-1-0",
    "SchemaDatasetFacet": "1-2-0",
    "SymlinksDatasetFacet": "1-0-1",
}
_JUDGED = (Status.PASS, Status.WARN, Status.FAIL, Status.ERROR)
_SEVERITIES = {"error": "error", "warning": "warn", "info": "info"}

Document = dict[str, Any]


@dataclass(frozen=True)
class Lineage:
    """The known facts about an ingestion, for one of its tables.

    `report` is None if its run left none, `contract` if no contract claimed the file or its text is
    gone. `lake` is the deployment's lake bucket.
    """

    announcement: Announcement
    lake: str
    report: AuditReport | None = None
    contract: Contract | None = None


def events(lineage: Lineage) -> list[Document]:
    """Return the events of an ingestion's run: its start, and that it is complete or failed.

    They are the same whenever they are made again: a run's id follows from the announcement's.
    """
    announced = lineage.announcement
    done = announced.state is State.PUBLISHED
    run = {"runId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{PRODUCER}:{announced.id}"))}
    job = {
        "namespace": _namespace(lineage.lake),
        "name": f"ingest {announced.table}".strip(),
        "facets": _job_facets(lineage),
    }
    common = {"producer": PRODUCER, "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"}
    began = {"eventType": "START", "eventTime": announced.landed_at}
    ended = {"eventType": "COMPLETE" if done else "FAIL", "eventTime": announced.ended_at}
    told = {
        "run": {**run, "facets": _run_facets(announced)},
        "inputs": [_input(lineage)],
        "outputs": [_output(lineage)] if announced.table else [],
    }
    return [{**common, **began, "run": run, "job": job}, {**common, **ended, "job": job, **told}]


def _namespace(lake: str) -> str:
    return f"lakegate://{lake}"


def _facet(class_: str, **values: Any) -> Document:
    address = f"{_SPEC}/facets/{_VERSIONS[class_]}/{class_}.json#/$defs/{class_}"
    return {"_producer": PRODUCER, "_schemaURL": address, **values}


def _run_facets(announced: Announcement) -> Document:
    if not announced.reason:
        return {}
    words = f"{announced.reason} ({announced.reason_code})"
    facet = _facet("ErrorMessageRunFacet", message=words, programmingLanguage="SQL")
    return {"errorMessage": facet}


def _job_facets(lineage: Lineage) -> Document:
    kind = _facet(
        "JobTypeJobFacet", processingType="BATCH", integration="LAKEGATE", jobType="INGESTION"
    )
    transform = lineage.contract.transform if lineage.contract else ""
    sql = {"sql": _facet("SQLJobFacet", query=transform, dialect="spark")} if transform else {}
    return {"jobType": kind, **sql}


def _source(announced: Announcement) -> Document:
    bucket, _, key = announced.object.removeprefix("s3://").partition("/")
    return {"namespace": f"s3://{bucket}", "name": key}


def _input(lineage: Lineage) -> Document:
    version = lineage.announcement.version
    facets = {"version": _facet("DatasetVersionDatasetFacet", datasetVersion=version)}
    assertions = [_assertion(check) for check in _checks(lineage) if check.status in _JUDGED]
    judged = _facet("DataQualityAssertionsDatasetFacet", assertions=assertions)
    return {
        **_source(lineage.announcement),
        "facets": facets if version else {},
        "inputFacets": {"dataQualityAssertions": judged} if assertions else {},
    }


def _mine(lineage: Lineage) -> list[AuditReport]:
    """Return the reports of the table's files: one, or several of a batch."""
    singles = lineage.report.singles if lineage.report else ()
    return [each for each in singles if each.table == lineage.announcement.table]


def _checks(lineage: Lineage) -> Iterable[CheckResult]:
    return (check for each in _mine(lineage) for check in each.checks)


def _assertion(check: CheckResult) -> Document:
    column = {"column": check.columns[0]} if len(check.columns) == 1 else {}
    return {
        "assertion": check.metric,
        "name": check.id,
        "success": check.status is Status.PASS,
        "severity": _SEVERITIES.get(check.severity, check.severity),
        "description": check.message,
        "expected": check.expected,
        "actual": check.found,
        **column,
    }


def _output(lineage: Lineage) -> Document:
    announced, contract = lineage.announcement, lineage.contract
    facets = _contract_facets(contract, _source(announced)) if contract else {}
    if announced.commit:
        facets["version"] = _facet("DatasetVersionDatasetFacet", datasetVersion=announced.commit)
    if location := announced.metadata_location.partition("/metadata/")[0]:
        bucket, _, path = location.removeprefix("s3://").partition("/")
        link = {"namespace": f"s3://{bucket}", "name": path, "type": "LOCATION"}
        facets["symlinks"] = _facet("SymlinksDatasetFacet", identifiers=[link])
    written = announced.state is State.PUBLISHED
    return {
        "namespace": _namespace(lineage.lake),
        "name": announced.table,
        "facets": facets,
        "outputFacets": {"outputStatistics": _statistics(lineage)} if written else {},
    }


def _statistics(lineage: Lineage) -> Document:
    files = [file for each in _mine(lineage) for file in each.files]
    sizes = {"size": sum(file.bytes for file in files), "fileCount": len(files)} if files else {}
    rows = lineage.announcement.rows
    return _facet("OutputStatisticsOutputDatasetFacet", rowCount=rows, **sizes)


def _contract_facets(contract: Contract, source: Mapping[str, str]) -> Document:
    fields = [
        {"name": column.name, "type": column.type, "description": column.description}
        for column in contract.table_columns
    ]
    identity = {"type": "DIRECT", "subtype": "IDENTITY"}
    lineage = {
        name: {"inputFields": [{**source, "field": field, "transformations": [identity]}]}
        for name, field in origins(contract).items()
    }
    columns = {"columnLineage": _facet("ColumnLineageDatasetFacet", fields=lineage)}
    return {"schema": _facet("SchemaDatasetFacet", fields=fields), **(columns if lineage else {})}
