"""The JSON Schema of an event's detail, made from the class that is written and read."""

import json
from typing import Any

from functions.readers.announcements import SCHEMA, Announcement
from lakegate.report_schema import schema_of


def announcement_schema() -> dict[str, Any]:
    """What the detail of every event is like (JSON Schema, draft 2020-12).

    What newer releases add is allowed.
    """
    made = schema_of(Announcement, SCHEMA)
    stage = {"type": "string", "description": "The deployment that says so."}
    return {
        **made,
        "properties": {"stage": stage, **made["properties"]},
        "required": ["stage", *made["required"]],
    }


if __name__ == "__main__":
    print(json.dumps(announcement_schema(), indent=2))
