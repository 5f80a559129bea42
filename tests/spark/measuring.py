"""Measure checks over rows of a test, without a file, a table or a catalog."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

from lakegate.audit.report import CheckResult, DataFile
from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract, parse
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.audit import tier_scan, verdict
from spark_jobs.audit.run import Measured, Run
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.text import Unparseable
from spark_jobs.files.source import LocalFile
from spark_jobs.files.text.text_lines import LINE
from spark_jobs.one_pass.prepare import prepared
from spark_jobs.spark.session import session_settings
from spark_jobs.write.description import Written
from spark_jobs.write.files import DataFiles, Rows
from tests.fakes.lakes import data_files
from tests.services import fresh_session

Row = Sequence[Any]
# The rule that a column has no duplicates.
UNIQUE: Mapping[str, Any] = {"metric": "duplicateValues", "mustBe": 0}
_NOT_IN_YAML = "\x7f\x85\u2028\u2029\ufeff"
NO_RUN = JobSpec("", 1, LandedObject("", "", "", "", 0), "", "", "", "", "", "", "", "", "")


def custom(check: str, **stated: Any) -> dict[str, Any]:
    """Return a rule of Lakegate's own."""
    return {"type": "custom", "engine": "lakegate", "implementation": {"check": check, **stated}}


def whole_table(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule over the whole table instead of the file."""
    return {**rule, **options(scope="table")}


def options(**given: Any) -> dict[str, Any]:
    """Return the options of a rule or of a property."""
    return {"customProperties": [{"property": k, "value": v} for k, v in given.items()]}


def contract_of(
    properties: Iterable[Mapping[str, Any]],
    quality: Sequence[Mapping[str, Any]] = (),
    table: str = "tests.rows",
    *,
    relationships: Any = (),
    **settings: Any,
) -> str:
    """Return the text of a contract as JSON, which is YAML except for some characters."""
    rules = {"quality": list(quality), "relationships": list(relationships)}
    schema = {"name": table, "properties": list(properties), **rules}
    head = {"kind": "DataContract", "apiVersion": "v3.2.0", "id": table, "version": "1.0.0"}
    text = json.dumps({**head, **options(**settings), "schema": [schema]}, ensure_ascii=False)
    return text.translate({ord(char): f"\\u{ord(char):04x}" for char in _NOT_IN_YAML})


def reading_session(spark: SparkSession) -> SparkSession:
    """Return a session of its own that reads as the job does, without a catalog."""
    session = fresh_session(spark)
    for name, value in session_settings(NO_RUN, "").items():
        if not name.startswith("spark.sql.catalog."):
            session.conf.set(name, value)
    return session


def frame(spark: SparkSession, contract: Contract, rows: Sequence[Row]) -> DataFrame:
    """Return the rows in the contract's columns."""
    schema = ", ".join(f"{quoted(column.name)} {column.type}" for column in contract.columns)
    return spark.createDataFrame(cast(Any, [tuple(row) for row in rows]), schema)


def run_over(spark: SparkSession, contract: Contract, rows: Sequence[Row]) -> Run:
    """Return a run that has appended the rows."""
    run = Run(spark, NO_RUN, "", contract, None, (_File(len(rows)),))
    vars(run)["rows"] = frame(spark, contract, rows)
    return run


def measured(
    spark: SparkSession, contract: Contract, rows: Sequence[Row]
) -> Mapping[str, Measured]:
    """Return the measures of every check that a scan can answer, by the check's id."""
    return tier_scan.answer(run_over(spark, contract, rows), contract.checks)


def results(spark: SparkSession, text: str, rows: Sequence[Row]) -> dict[str, CheckResult]:
    """Return the results of every check that a scan can answer, by the check's id."""
    contract = parse(text, "rows.yaml")
    found = measured(spark, contract, rows)
    known = (check for check in contract.checks if check.id in found)
    return {check.id: verdict.result(check, found[check.id], contract) for check in known}


class _File:
    """A data file with a number of rows."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def recordCount(self) -> int:  # noqa: N802 - Iceberg's name
        return self._rows


def rows_by_arrow(
    file: Path, contract: Contract, limits: Limits = DEFAULTS
) -> tuple[list[tuple[Any, ...]], list[str]] | None:
    """Return a text file's good and bad rows as Arrow decodes them; None if it leaves them."""
    lake, files = data_files(contract)
    sink = _WithTexts(files)
    try:
        found = prepared(LocalFile(file), contract, limits).examined(sink)
    except MustRewrite:
        return None
    rows = [row for each in found.files for row in lake.rows(each).to_pylist()]
    good = [tuple(map(_as_spark, row.values())) for row in rows]
    apart = [*sink.texts, *found.apart.part.texts]
    return good, [text for texts in apart for text in texts[LINE].to_pylist()]


@dataclass(frozen=True)
class _WithTexts:
    """The data files of a run, and the unparseable rows that they would keep."""

    files: DataFiles
    texts: Unparseable = field(default_factory=list)

    def write(self, rows: Iterable[Rows]) -> list[Written]:
        """Write rows."""
        return self.files.write(rows)

    def keep(self, rows: Unparseable) -> tuple[DataFile, ...]:
        """Take unparseable rows."""
        self.texts.extend(rows)
        return ()


def _as_spark(value: Any) -> Any:
    """Return a value as Spark gives it to Python: times without a zone, in UTC."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def bookings(format_: str, settings: str = "", hotel: str = "", more: str = "") -> str:
    """Return a contract with a rule of each kind that rows may break.

    The `settings` are its own, those of `hotel` are of this column, `more` is a rule of the table.
    """
    return f"""
kind: DataContract
apiVersion: v3.1.0
id: bookings
version: 1.0.0
customProperties: [{{property: format, value: {format_}}}{settings}]
schema:
  - name: travel.bookings
    quality:
      - type: custom
        engine: lakegate
        implementation: {{check: rowExpression, expression: "nights < 100"}}
      {more}
    properties:
      - {{name: id, logicalType: integer, required: true, unique: true}}
      - {{name: hotel, logicalType: string, required: true{hotel}}}
      - {{name: nights, logicalType: integer, logicalTypeOptions: {{minimum: 0}}}}
"""
