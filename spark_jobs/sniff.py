"""What the first bytes of a file tell, before Spark is asked to read it. Pure."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Mapping

from lakegate.errors import Permanent

HEAD = 64 * 1024
_PARQUET = b"PAR1"
_BINARY = {
    _PARQUET: "a Parquet file",
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "gzip-compressed (its name must end in .gz)",
    b"ORC": "an ORC file",
    b"Obj\x01": "an Avro file",
    b"%PDF": "a PDF document",
}


def check_parquet(head: bytes, tail: bytes) -> None:
    """Say what a file is if it is no whole Parquet file, by its first and last bytes.

    Parquet begins and ends with its magic (Apache Parquet, "File format"). Raises Permanent.
    """
    if not head.startswith(_PARQUET):
        described = _described(head) or "text or something else"
        raise Permanent("NOT_PARQUET", f"the contract says parquet, but this is {described}")
    if not tail.endswith(_PARQUET):
        message = "the file begins as Parquet but has no end: its upload or copy was cut short"
        raise Permanent("TRUNCATED_FILE", message)


def check_text(declared: str, head: bytes) -> None:
    """Make sure that a file beginning with `head` may be text, as `declared` (csv, json) is.

    Raises Permanent.
    """
    if described := _described(head):
        code = f"NOT_{declared.upper()}"
        raise Permanent(code, f"the contract says {declared}, but this is {described}")


def text_head(head: bytes, gzipped: bool) -> bytes:
    """The beginning of a text file's text. Raises Permanent CORRUPT_FILE when it is no gzip."""
    if not gzipped:
        return head
    try:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(head, HEAD)
    except (zlib.error, gzip.BadGzipFile) as error:
        raise Permanent(
            "CORRUPT_FILE", f"the name ends in .gz, but it is no gzip: {error}"
        ) from error


def csv_header(head: bytes, options: Mapping[str, str]) -> tuple[str, ...]:
    """The names in a CSV file's first row; `options` are Spark's reader options."""
    text = _decoded(head, options.get("encoding", "utf-8"))
    rows = csv.reader(
        io.StringIO(text),
        delimiter=options.get("sep", options.get("delimiter", ",")),
        quotechar=options.get("quote", '"'),
    )
    try:
        return tuple(next(rows, ()))
    except csv.Error as error:
        raise Permanent("NOT_CSV", f"the first row cannot be read: {error}") from error


def json_keys(head: bytes) -> tuple[str, ...]:
    """The keys of the objects, one a line, at the beginning of a JSON lines file.

    Raises Permanent NOT_JSON when the first line is no JSON object.
    """
    lines = [line for line in _decoded(head, "utf-8").splitlines() if line.strip()]
    if not lines:
        return ()
    whole = lines if len(head) < HEAD else lines[:-1] or lines
    keys = {key: None for row in map(_json_row, whole) for key in row}
    if not keys and not isinstance(_parsed(whole[0]), dict):
        message = "the contract says json, one object a line; the first line is no JSON object"
        raise Permanent("NOT_JSON", f"{message}: {whole[0][:100]}")
    return tuple(keys)


def _described(head: bytes) -> str:
    for magic, described in _BINARY.items():
        if head.startswith(magic):
            return described
    return "binary data" if b"\0" in head[:1024] else ""


def _decoded(head: bytes, encoding: str) -> str:
    return head.decode(encoding, errors="replace").removeprefix("\ufeff")


def _json_row(line: str) -> dict[str, object]:
    parsed = _parsed(line)
    return parsed if isinstance(parsed, dict) else {}


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None
