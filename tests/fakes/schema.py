"""The published JSON Schemas for documents that a test wrote or received."""

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

_DOCS = Path(__file__).parents[2] / "docs"
PUBLISHED = _DOCS / "audit-report-1.schema.json"
ANNOUNCEMENT = _DOCS / "announcement-1.schema.json"


@lru_cache(maxsize=10_000)  # thousands of stories write the same few reports
def validate_report(text: str) -> None:
    """Raise ValidationError if the text is not an audit report by the schema."""
    _validator(PUBLISHED).validate(json.loads(text))


def validate_announcement(detail: dict[str, Any]) -> None:
    """Raise ValidationError if an event's detail is not an announcement by the schema."""
    _validator(ANNOUNCEMENT).validate(detail)


@cache
def _validator(file: Path) -> Draft202012Validator:
    return Draft202012Validator(json.loads(file.read_text()))
