"""Make Python's own values of Arrow's, which also has dates and times that Python has not."""

from typing import Any

import pyarrow as pa


def python_values(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> list[Any]:
    """Return a column's values; a date or time outside the years 1 to 9999 as text."""
    try:
        return column.to_pylist()
    except (OverflowError, ValueError):
        return [_value(scalar) for scalar in column]


def _value(scalar: "pa.Scalar[Any]") -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return _parts(scalar)


def _parts(scalar: Any) -> Any:
    """Return a value that Python has not: its parts, or its text."""
    if isinstance(scalar, pa.StructScalar):
        return {name: _value(scalar[name]) for name in scalar}
    if isinstance(scalar, pa.MapScalar):
        return [(_value(pair[0]), _value(pair[1])) for pair in scalar.values]
    if isinstance(scalar, pa.ListScalar):
        return [_value(item) for item in scalar.values]
    return _text(scalar)


def _text(scalar: Any) -> str:
    if not pa.types.is_timestamp(scalar.type) or not scalar.type.tz:
        return str(scalar.cast(pa.string()))
    in_utc = pa.scalar(scalar.value, pa.timestamp(scalar.type.unit))
    return f"{in_utc.cast(pa.string())}+00:00"
