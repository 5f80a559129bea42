"""The JSON Schema of audit reports, made from the classes that write and read them."""

import json
from typing import Any

from lakegate.audit.report import SCHEMA, AuditReport


def report_schema() -> dict[str, Any]:
    """Return the schema of every report (JSON Schema, draft 2020-12).

    Fields of newer releases are allowed; fields with a default may be missing, as in older reports.
    """
    return schema_of(AuditReport, SCHEMA)


def schema_of(class_: Any, name: str) -> dict[str, Any]:
    """Return the schema of documents with a dataclass's fields that name this schema."""
    from pydantic import TypeAdapter  # only who publishes the schema needs it

    made = TypeAdapter(class_).json_schema()
    parts = made.pop("$defs", {})
    whole = parts[made["$ref"].rpartition("/")[2]] if "$ref" in made else made
    return {
        **whole,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "$defs": parts,
        "properties": {"schema": {"const": name}, **whole["properties"]},
        "required": ["schema", *whole["required"]],
    }


if __name__ == "__main__":
    print(json.dumps(report_schema(), indent=2))
