"""Know the names by which a table's files without field ids are read. Pure."""

import json
from collections.abc import Iterator
from typing import Any

PROPERTY = "schema.name-mapping.default"


def mapped_names(mapping: str | None) -> frozenset[tuple[str, ...]]:
    """Return the paths in a table's name mapping, in lower case, with all former names.

    See Iceberg's specification, "Name Mapping Serialization".
    """
    return frozenset(_paths(json.loads(mapping))) if mapping else frozenset()


def _paths(fields: list[dict[str, Any]], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in fields:
        for name in field["names"]:
            path = (*above, name.lower())
            yield path
            yield from _paths(field.get("fields") or [], path)
