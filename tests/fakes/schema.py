"""The published JSON Schema of audit reports: every report that a test has written must fit it."""

import json
from functools import cache
from pathlib import Path

from jsonschema import Draft202012Validator

PUBLISHED = Path(__file__).parents[2] / "docs" / "audit-report-1.schema.json"


def validate_report(text: str) -> None:
    """Raise ValidationError where the text is no audit report as the schema has it."""
    _validator().validate(json.loads(text))


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(PUBLISHED.read_text()))
