"""The published JSON Schema of audit reports."""

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from lakegate.audit.report import Baseline, Verdict
from lakegate.audit.report_schema import report_schema
from tests.fakes.examples import FAILED, REPORT
from tests.fakes.schema import PUBLISHED, validate_report

CHECK = replace(FAILED, baseline=Baseline("r", 1.5, 7, 1.0, 0.0))


def validate(document: dict[str, Any]) -> None:
    """Raise ValidationError unless the document is a report."""
    validate_report(json.dumps(document))


def test_the_published_schema_is_that_of_the_code() -> None:
    """The published schema is the output of `python -m lakegate.report_schema`."""
    assert json.loads(PUBLISHED.read_text()) == report_schema()


def test_the_schema_is_one() -> None:
    """The schema is valid JSON Schema itself."""
    Draft202012Validator.check_schema(report_schema())


@pytest.mark.parametrize(
    "report",
    [
        REPORT,
        replace(REPORT, checks=(CHECK,)),
        replace(REPORT, verdict=Verdict.PASSED, reason=None, checks=(), files=()),
    ],
)
def test_a_report_fits_the_schema(report: Any) -> None:
    """Every written report fits the schema."""
    validate(json.loads(report.to_json()))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("verdict", "fine"),
        ("schema", "audit-report/2"),
        ("checks", [{"id": "x"}]),
        ("rows_written", "3"),
        ("reason", "because"),
        ("files", [{"path": 1, "rows": 1, "bytes": 1}]),
    ],
)
def test_an_invalid_report_does_not_fit(field: str, value: object) -> None:
    """The schema refuses every document that the code refuses."""
    with pytest.raises(ValidationError):
        validate({**json.loads(REPORT.to_json()), field: value})
