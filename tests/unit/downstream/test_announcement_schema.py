"""The published JSON Schema says of events what is true of them."""

import json

from jsonschema import Draft202012Validator

from functions.model.announcement import announcement_schema
from tests.fakes.schema import ANNOUNCEMENT


def test_the_published_schema_is_that_of_the_code() -> None:
    """Whoever changes an event writes it anew: `python -m functions.model.announcement`."""
    assert json.loads(ANNOUNCEMENT.read_text()) == announcement_schema()


def test_the_schema_is_one() -> None:
    """It is valid JSON Schema itself, and asks for what every event has."""
    schema = announcement_schema()
    Draft202012Validator.check_schema(schema)
    assert {"schema", "stage", "id", "ingestion", "table", "rows"} <= set(schema["required"])
