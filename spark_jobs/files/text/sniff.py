"""Recognize a file by its first and last bytes, before Spark reads it. Pure."""

import zlib

from lakegate.errors import Permanent

HEAD = 64 * 1024
_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_BINARY = {
    _PARQUET: "a Parquet file",
    b"PARE": "an encrypted Parquet file",
    b"ORC": "an ORC file",
    b"Obj\x01": "an Avro file",
    b"PK\x03\x04": "a ZIP archive (or an Excel file)",
    _GZIP: "compressed by gzip",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ\x00": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by Zstandard",
    b"\x04\x22\x4d\x18": "compressed by LZ4",
    b"\xff\x06\x00\x00sNaPpY": "compressed by Snappy",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"ARROW1": "an Arrow file",
    b"FEA1": "a Feather file",
    b"SQLite format 3\x00": "an SQLite database",
    b"\x89HDF\r\n\x1a\n": "an HDF5 file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"%PDF": "a PDF document",
    b"\x89PNG": "an image",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
_MARKS = (b"\xff\xfe", b"\xfe\xff")
_MARKUP = (b"<!doctype html", b"<html", b"<?xml")
_MAGIC = {"parquet": _PARQUET, "orc": b"ORC", "avro": b"Obj\x01"}
_NAMES = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro"}


def check_binary(declared: str, head: bytes, tail: bytes) -> None:
    """Raise Permanent unless the file is a complete one of the format `declared`.

    Parquet, ORC and Avro begin with their magic. Parquet ends with it too (Apache Parquet, "File
    format"), and ORC ends with it and one more byte (ORC Specification v1, "File Tail").
    """
    magic = _MAGIC[declared]
    if not head.startswith(magic):
        described = kind_of(head) or "text or something else"
        if is_gzip(head):
            described = f"{described}: unpack it, as only text files may be compressed"
        code = f"NOT_{declared.upper()}"
        raise Permanent(code, f"the contract says {declared}, but this is {described}")
    ends = {"parquet": tail[-4:], "orc": tail[-4:-1]}
    if ends.get(declared, magic) != magic:
        name = _NAMES[declared]
        message = f"the file begins as {name} but has no end: it was truncated on its way"
        raise Permanent("TRUNCATED_FILE", message)


def check_text(declared: str, head: bytes, encoding: str) -> None:
    """Raise Permanent unless a file that begins with `head` may be text (csv, json)."""
    code = f"NOT_{declared.upper()}"
    wide, is_marked = encoding.startswith("UTF-16"), head.startswith(_MARKS)
    described = "" if wide and is_marked else kind_of(head)
    if described and not (wide and described == "binary data"):
        raise Permanent(code, f"the contract says {declared}, but this is {described}")
    if encoding == "UTF-16" and not is_marked:
        message = (
            "the contract says UTF-16, but the file does not begin with its byte order mark: write "
            "the mark, or declare the encoding UTF-16LE or UTF-16BE"
        )
        raise Permanent(code, message)


def is_gzip(head: bytes) -> bool:
    """Return if a file that begins like this is compressed by gzip (RFC 1952)."""
    return head.startswith(_GZIP)


def text_head(head: bytes, gzipped: bool) -> bytes:
    """Return the beginning of a file's text. Raises Permanent CORRUPT_FILE on invalid gzip."""
    if not gzipped:
        return head
    text = b""
    try:
        while head and len(text) < HEAD:  # a member of the file may be empty, or short
            member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            text += member.decompress(head, HEAD - len(text))
            head = member.unused_data.lstrip(b"\0")
    except zlib.error as error:
        message = f"the name ends in .gz, but the file is not gzip: {error}"
        raise Permanent("CORRUPT_FILE", message) from error
    return text


def kind_of(head: bytes) -> str:
    """Return the kind of file that begins like this, in words; "" if it may be text."""
    start = head[:1024]
    is_text = not any(byte < 9 for byte in start)
    for magic, described in _BINARY.items():
        # A header may begin with ORCHARD or PAR1.
        if head.startswith(magic) and not (is_text and magic.isalnum()):
            return described
    if head.lstrip().lower().startswith(_MARKUP):
        return "HTML or XML: it may be an error page"
    return "binary data" if start.count(0) > len(start) / 8 else ""
