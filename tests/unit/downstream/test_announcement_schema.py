"""The published JSON Schema matches the events."""

import json

from jsonschema import Draft202012Validator

from functions.model.messages.announcement import announcement_schema
from tests.fakes.schema import ANNOUNCEMENT


def test_the_published_schema_is_that_of_the_code() -> None:
    """The published schema equals the code's: `python -m functions.model.messages.announcement`."""
    assert json.loads(ANNOUNCEMENT.read_text()) == announcement_schema()


def test_the_schema_is_one() -> None:
    """The schema is valid JSON Schema itself, and requires the fields of every event."""
    schema = announcement_schema()
    Draft202012Validator.check_schema(schema)
    assert {"schema", "stage", "id", "ingestion", "table", "rows"} <= set(schema["required"])
