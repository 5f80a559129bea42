"""Write a benchmark's figures, and make what it lands."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_FOLDER = Path("build")


def written(name: str, figures: object) -> None:
    """Write the figures to `build/` as JSON."""
    file = _FOLDER / f"{name}.json"
    _FOLDER.mkdir(exist_ok=True)
    file.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"written to {file}")


def told(name: str, figures: object) -> None:
    """Print the figures and write them."""
    print(json.dumps(figures, indent=2))
    written(name, figures)


def parquet(columns: Mapping[str, Any]) -> bytes:
    """Return a Parquet file of these columns."""
    file = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), file)
    return file.getvalue()


def contract(table: str, columns: Mapping[str, str]) -> str:
    """Return a contract for a table whose columns, with these types, are never null."""
    properties = [
        {"name": name, "logicalType": kind, "required": True} for name, kind in columns.items()
    ]
    document = {"kind": "DataContract", "apiVersion": "v3.1.0", "id": table, "version": "1.0.0"}
    return json.dumps({**document, "schema": [{"name": table, "properties": properties}]})
