"""Keep null arrays and maps of structs, which pyiceberg 0.12 makes empty ones while it reads.

https://github.com/apache/iceberg-python/issues/3833
"""

from typing import Any

import pyarrow.compute as pc
from pyiceberg.io import pyarrow as reading
from pyiceberg.types import ListType, MapType


class KeepNulls(reading.ArrowProjectionVisitor):
    """The library's fit of a file's columns to a table's, which loses no null."""

    def list(self, list_type: ListType, list_array: Any, value_array: Any) -> Any:
        """Return the arrays as the table's type."""
        return _with_nulls(list_array, super().list(list_type, list_array, value_array))

    def map(self, map_type: MapType, map_array: Any, key_result: Any, value_result: Any) -> Any:
        """Return the maps as the table's type."""
        return _with_nulls(map_array, super().map(map_type, map_array, key_result, value_result))


def _with_nulls(read: Any, made: Any) -> Any:
    """Return what was made of an array, with the nulls that it had when it was read."""
    if made is None or made.null_count == read.null_count:
        return made
    return pc.if_else(read.is_valid(), made, None)


reading.ArrowProjectionVisitor = KeepNulls  # type: ignore[misc]  # all its scans look it up here
